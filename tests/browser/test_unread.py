"""A log that TensorBoard is still reading, in a real browser: no claims on what is not read yet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import Person
from overview_runs import HEALTHY_STEPS

LAST = HEALTHY_STEPS[-1]
SIZE = f"2 layers × {len(HEALTHY_STEPS)} steps"


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], overview_runs: Path) -> str:
    return serve_shared(overview_runs)


class Reading:
    """Answers of the routes as while the run's first two steps have been read."""

    def __init__(self) -> None:
        self.is_done = False

    def cut(self, route: Any) -> None:
        answer = json.loads(route.fetch().text())
        if not self.is_done:
            answer["unread"] = LAST
            answer["steps"] = answer["steps"][:2] if isinstance(answer["steps"], list) else 2
            answer["wall_times"] = answer.get("wall_times", [])[:2]
            answer["findings"] = []
        route.fulfill(json=answer)


@pytest.fixture
def open_reading(runs: str, visit: Callable[..., Person]) -> Callable[..., tuple[Person, Reading]]:
    def open_view(run: str, view: str) -> tuple[Person, Reading]:
        reading = Reading()
        routes = {f"**/data/{route}?*": reading.cut for route in ("findings", "layers")}
        state = {"run": run, "view": view, "findings": "open"}
        return visit(runs, routes=routes, **state), reading

    return open_view


def test_nothing_found_is_not_claimed_of_what_is_not_read_yet(
    open_reading: Callable[..., tuple[Person, Reading]],
) -> None:
    person, reading = open_reading("healthy", "overview")
    line = person.see("h1.verdict")
    line.filter(has_text="Not known so far: nothing found in 2 layers").wait_for()
    told = f"The log has not been read to its end yet, which is step {LAST}"
    awaited = person.see(".verdicts .awaited")
    assert told in awaited.inner_text()
    reading.is_done = True
    awaited.filter(has_text=told).wait_for(state="detached")  # by itself
    assert line.inner_text().startswith("?\nhealthy: Not known: nothing found in 2 layers")


def test_findings_that_are_read_later_appear_by_themselves(
    open_reading: Callable[..., tuple[Person, Reading]],
) -> None:
    person, reading = open_reading("ill", "overview")
    person.see(".verdicts .awaited").filter(has_text=f"step {LAST}").wait_for()
    assert person.see(".finding").count() == 0
    reading.is_done = True
    person.see(".finding").first.wait_for()


def test_the_newest_step_is_not_claimed_of_a_log_that_is_being_read(
    open_reading: Callable[..., tuple[Person, Reading]],
) -> None:
    person, reading = open_reading("healthy", "maps")
    kept = person.see(".kept")
    assert kept.text_content() == f"2 steps read so far, the log goes up to step {LAST}"
    reading.is_done = True
    kept.filter(has_text=f"all {len(HEALTHY_STEPS)} logged steps kept").wait_for()


def test_a_page_without_runs_says_that_files_are_not_read_yet(
    runs: str, visit: Callable[..., Person]
) -> None:
    empty = {"runs": [], "logdir": "/logs", "keeps_enough": True, "is_unread": True}
    person = visit(
        runs, routes={"**/data/runs*": lambda route: route.fulfill(json=empty)}, view=None
    )
    said = person.see("main.empty").inner_text()
    assert "There are event files of fmapboard in /logs that have not been read yet." in said
    assert "fmapboard.watch" not in said
    person.page.unroute("**/data/runs*")
    person.see("main.overview").wait_for()  # by itself
