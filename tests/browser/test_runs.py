"""The overview of several runs in a real browser: which one it opens, and the way to others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import Person
from local_servers import wait_for
from overview_runs import NAN_FROM, STORED
from two_layer_runs import log_steps

FOLLOW = """(entries) => new Promise((done) => {
  addEventListener("hashchange", done, { once: true });
  location.hash = entries;
})"""


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], overview_runs: Path) -> str:
    return serve_shared(overview_runs)


def test_the_overview_opens_on_the_worst_run_and_lists_its_findings_only(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, view=None)
    person.see(".verdict .sentence:has-text('block.0')").wait_for()
    person.settle()
    assert "p.feature_maps.run=ill" in person.page.url
    assert f"since step {NAN_FROM}" in person.see(".verdict .sentence").inner_text()
    assert sorted(person.listed_runs()) == sorted(
        ["healthy · ? not known", "ill · ✕ fault", f"{STORED} · ✕ fault"]
    )
    rows = person.see(".run-rows .of-run")
    assert rows.all_inner_texts() == [STORED, "healthy"]
    button = person.see(".toolbar button:has-text('Findings')")
    said = button.inner_text()
    button.click()
    person.see(".finding").first.wait_for()
    assert said == f"Findings: {person.see('.finding').count()}"
    assert rows.count() == 0  # the list of findings has their place
    person.press("v")
    person.press("v")
    button.click()
    person.see(f".run-rows button[data-run={STORED}]").click()
    person.wait(f"document.querySelector('.verdict .of-run').textContent === '{STORED}:'")
    assert f"p.feature_maps.run={STORED}" in person.page.url
    assert rows.count() == 0  # a run was chosen


def test_a_run_that_the_address_names_is_shown_whatever_is_wrong_with_others(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, view=None, run="healthy", chosen="ill", findings="open")  # an old address
    person.see(".run-summary span:has-text('2 further runs: 2 faulty')").wait_for()
    assert person.see(".verdict .sentence").inner_text().startswith("nothing found in 2 layers")
    assert not person.see(".toolbar button:has-text('Findings')").count()
    assert not person.see(".run-rows li").count()
    person.see(".run-summary button:text-is('Show all')").click()
    person.see(".run-rows li").nth(1).wait_for()
    assert "chosen" not in person.page.url


def test_what_is_prefetched_while_an_address_is_followed_is_of_one_run(
    runs: str, visit: Callable[..., Person]
) -> None:
    asked: list[Any] = []

    def answer(route: Any) -> None:  # what is shown at once, what is prefetched when it is let go
        asked.append(route)
        if len(asked) == 1:
            route.continue_()

    person = visit(runs, routes={"**/data/maps?*": answer}, run="ill", layer="fmapboard/block.0")
    wait_for("a prefetch", 10, lambda: [person.settle(), len(asked) == 2][1])
    person.frame.evaluate("requestAnimationFrame = () => 0")  # nothing is drawn any more
    person.frame.evaluate(
        FOLLOW, "feature_maps&p.feature_maps.view=maps&p.feature_maps.run=healthy"
    )
    with person.page.expect_request("**/data/maps?*") as next_one:
        asked[1].continue_()
    assert "run=ill&key=fmapboard%2Fblock.0" in next_one.value.url


def test_a_wide_window_is_used_to_its_right_edge(runs: str, visit: Callable[..., Person]) -> None:
    healthy = visit(runs, width=2560, view=None, run="healthy", front="states")
    healthy.settle()
    cells = json.loads(healthy.see(".health-map").get_attribute("data-plot") or "{}")
    assert cells["width"] > 1500  # eight steps


def test_a_run_in_the_log_directory_itself_has_the_directorys_name(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    log_steps(tmp_path / "mine", steps=range(2))
    log_steps(tmp_path / "mine" / "below", steps=range(2))
    person = visit(serve(tmp_path / "mine"), view=None, run=".")
    person.settle()
    named = [text.split(" · ")[0] for text in person.listed_runs()]
    assert named == ["mine", "below"]
    assert "run=." in person.page.url
