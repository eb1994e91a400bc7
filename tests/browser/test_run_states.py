"""How a run is, in a real browser: the sign, the word and the sentence of each state."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import Person

STATES = {
    "fault": ("✕", "Fault:", "values are NaN or infinite since step 5"),
    "suspicion": ("!", "Suspicion:", "the loss hardly falls ("),
    "does not learn": ("—", "Does not learn:", "that of guessing (ln 4 = 1.39)"),
    "not known": ("?", "Not known:", "whether it learns is not known, since no loss was read"),
    "learns": ("✓", "Learns:", "the loss fell from 1.37 at step 0 to "),
}
"""State, which is also the run's name, the worst first -> its sign, word and part of its line."""
_CONTRAST = """(mark) => {
  const { color, backgroundColor } = getComputedStyle(mark);
  const [ink, ground] = [color, backgroundColor].map((colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  });
  return Math.max(ink, ground) / Math.min(ink, ground);
}"""
_GROUND = "(mark) => getComputedStyle(mark).backgroundColor"


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], stated_runs: Path) -> str:
    return serve_shared(stated_runs)


@pytest.mark.parametrize("state", STATES)
def test_the_first_screen_shows_the_state_of_the_run(
    runs: str, visit: Callable[..., Person], state: str
) -> None:
    sign, word, text = STATES[state]
    person = visit(runs, view=None, run=state)
    person.settle()
    mark = person.see(".verdict .mark")
    assert mark.inner_text() == sign
    assert mark.get_attribute("aria-hidden") == "true"  # the word beside it is read
    assert mark.get_attribute("title").startswith(word)
    assert person.see(".verdict b").inner_text() == word
    assert text in person.see(".verdict .sentence").inner_text().replace("\u00a0", " ")
    beside = person.see(".verdicts > .more").inner_text()
    assert ("loss 1." in beside) == (state == "suspicion")  # of the fault, no loss is known


def test_a_row_of_the_list_has_the_state_of_its_run_and_says_it_to_screen_readers(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, view=None, run="learns")
    counts = "4 further runs: 1 faulty, 1 suspicious, 1 not learning, 1 not known"
    person.see(".run-summary span").filter(has_text=counts).wait_for()
    assert not person.see(".run-summary .mark").count()  # beside that of the shown run
    assert person.see(".run-summary [data-state=fault]").inner_text() == "1 faulty"
    assert not person.see(".run-rows .mark").count()
    person.see(".run-summary button:text-is('Show all')").click()
    person.wait("document.querySelectorAll('.run-rows .mark').length === 4")
    marks = person.see(".run-rows .mark")
    assert marks.all_inner_texts() == ["✕", "!", "—", "?"]
    assert [marks.nth(i).get_attribute("aria-label") for i in range(4)] == [
        "Fault", "Suspicion", "Does not learn", "Not known",
    ]  # fmt: skip
    assert [marks.nth(i).get_attribute("role") for i in range(4)] == ["img"] * 4
    assert person.see(".run-rows .of-run").all_inner_texts() == list(STATES)[:4]
    rows = person.see(".run-rows .sentence")
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert rows.evaluate_all(cut) == 0
    person.see(".run-summary button:text-is('Show fewer')").click()
    person.wait("document.querySelectorAll('.run-rows .mark').length === 0")


def test_the_list_of_runs_to_choose_from_has_their_states(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, view=None, run="learns")
    person.see(".run-summary span").filter(has_text="4 further runs").wait_for()
    assert sorted(person.listed_runs()) == [
        "does not learn · — does not learn", "fault · ✕ fault", "learns · ✓ learns",
        "not known · ? not known", "suspicion · ! suspicion",
    ]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_sign_can_be_read_on_its_colour_and_each_state_has_its_own(
    runs: str, visit: Callable[..., Person], theme: str
) -> None:
    person = visit(runs, anew=True, view=None, run="learns")
    person.choose_theme(theme)
    person.see(".run-summary button:text-is('Show all')").click()
    person.wait("document.querySelectorAll('.run-rows .mark').length === 4")
    marks = person.see(".verdict .mark, .run-rows .mark").all()
    contrasts = [mark.evaluate(_CONTRAST) for mark in marks]
    assert min(contrasts) >= 4.5
    assert len({mark.evaluate(_GROUND) for mark in marks}) == 5


def test_the_maps_say_why_one_was_led_to_them_until_one_leaves(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, view="overview", run="suspicion")
    person.settle()
    said = person.see(".verdict .sentence").inner_text().replace("\u00a0", " ")
    person.see(".verdict .go").click()
    note = person.see(".arrival")
    note.wait_for()
    assert said.startswith(note.inner_text())
    assert len(note.inner_text()) > 20
    person.press("ArrowRight")
    note.wait_for(state="hidden")


def test_the_worst_of_runs_without_findings_is_opened_first(
    runs: str, visit: Callable[..., Person]
) -> None:
    """One that does not learn has no finding, but is what the user must look at."""

    def cut(route: Any) -> None:
        answer = json.loads(route.fetch().text())
        answer["runs"] = [run for run in answer["runs"] if run["run"][0] in "dnl"]
        answer["runs"].sort(key=lambda run: run["run"] != "learns")
        route.fulfill(json=answer)

    person = visit(runs, routes={"**/data/runs*": cut}, view=None)
    person.wait("document.querySelector('.verdict b')?.textContent === 'Does not learn:'")
    assert "p.feature_maps.run=does" in person.page.url


def test_runs_that_learn_share_a_row_with_a_tick_and_no_other_run_stands_in_it(
    runs: str, visit: Callable[..., Person]
) -> None:
    def learning_twice(route: Any) -> None:
        answer = json.loads(route.fetch().text())
        for line in answer["verdicts"]:
            if line["run"] in ("fault", "suspicion"):
                line["state"] = "learns"
        route.fulfill(json=answer)

    person = visit(
        runs, routes={"**/data/verdicts?*": learning_twice}, view=None, run="does not learn"
    )
    person.see(".run-summary span").filter(has_text="4 further runs").wait_for()
    person.see(".run-summary button:text-is('Show all')").click()
    person.wait("document.querySelectorAll('.run-rows .mark').length === 2")
    row = person.see(".run-rows .together")
    assert row.inner_text().startswith("✓\nLearning:")
    assert row.locator(".of-run").all_inner_texts() == ["fault", "learns", "suspicion"]
