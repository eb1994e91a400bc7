"""Two columns in a real browser: what each shows, its controls, address, curves, ranking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from browser_visitor import RUN_MENU, Person
from column_runs import AGAIN, BASE, RENAMED, SHORT
from seen_columns import headings, inputs, notes, saved_texts, written

SECOND = "fmapboard/second"
RERUN = {"compare": f"{AGAIN}@10"}
OTHER = {"compare": f"{RENAMED}@:1"}
ABSENT = {"compare": f"{SHORT}@"}
HEADING = f"A {BASE} · step 20 · sample 0"
MISSING = f"B: no layer second in run {SHORT}."
NAMES = ".side:visible > .run-name"


@pytest.fixture(scope="module")
def runs(serve: Callable[[Path], str], column_runs: Path) -> str:
    return serve(column_runs)


def open_columns(visit: Callable[..., Person], runs: str, **state: object) -> Person:
    person = visit(runs, width=1366, **{"run": BASE, "layer": SECOND, **state})
    person.settle()
    return person


def columns(person: Person) -> list[str]:
    """The columns in the address."""
    entries = parse_qsl(person.page.url.split("#", 1)[1], keep_blank_values=True)
    return [value for name, value in entries if name.startswith("p.feature_maps.compare")]


def places(person: Person) -> list[str]:
    found: list[str] = person.see(".side:visible .place").all_text_contents()
    return found


def test_each_column_says_its_run_step_and_sample(runs: str, visit: Callable[..., Person]) -> None:
    person = open_columns(visit, runs, **RERUN)
    assert headings(person) == [HEADING, f"B {AGAIN} · step 10 · sample 0"]
    assert places(person) == ["step 20 · sample 0", "step 10 · sample 0 · pinned"]
    (said,) = notes(person)
    assert said.startswith("Both on A's scale: A\u00a0−")
    seen = inputs(person)
    assert (len(seen), len(set(seen))) == (2, 1)  # they saw the same image
    names = person.see(NAMES).evaluate_all("(all) => all.map((name) => name.title)")
    assert names == [BASE, AGAIN]
    ellipsis = "(all) => all.map((end) => getComputedStyle(end).textOverflow)"
    assert set(person.see(".side .run-tail").evaluate_all(ellipsis)) == {"ellipsis"}


def test_a_column_of_other_images_says_how_its_layer_was_found(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, **OTHER)
    assert headings(person) == [HEADING, f"B {RENAMED} · step 10 · sample 1"]
    assert places(person)[1] == "step 10 · sample 1 · matched by position: conv2"
    (said,) = notes(person)
    assert said.startswith("B: no pictures at step 20. The input images differ. ")
    assert len(set(inputs(person))) == 2


def test_a_missing_picture_keeps_its_place(runs: str, visit: Callable[..., Person]) -> None:
    person = open_columns(visit, runs, show="all", channel=2, **ABSENT)
    assert headings(person) == [HEADING, f"B {SHORT}"]
    assert notes(person) == [MISSING]
    texts = written(person, lambda: person.press("c"))
    tiles = [text for text in texts if text in {"A", "B", "A − B"}]
    assert len(tiles) >= 4  # of the channels in the window
    assert tiles == ["A", "B"] * (len(tiles) // 2)
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert titles[1] == "B: no picture"


def test_a_difference_says_that_the_inputs_differ(runs: str, visit: Callable[..., Person]) -> None:
    for state, said in ((RERUN, ""), (OTHER, " of different inputs")):
        person = open_columns(visit, runs, show="all", channel=2, **state)
        titles = person.see("figcaption:visible > span:first-child").all_text_contents()
        assert [title.split(":")[0] for title in titles] == ["A", "B", "A − B"]
        assert titles[2] == f"A − B: Difference{said}"
        assert person.see(".numbers th[scope=col]").count() == 2


@pytest.mark.sweep  # test_controls.py has it for one column
def test_an_address_with_a_column_restores_it(runs: str, visit: Callable[..., Person]) -> None:
    person = open_columns(visit, runs, inside=True, show="difference", **OTHER)
    shown = [HEADING, f"B {RENAMED} · step 10 · sample 1"]
    assert columns(person) == list(OTHER.values())
    assert headings(person) == shown
    # TensorBoard rewrites the address when the tab changes.
    person.page.get_by_role("tab", name="Images", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#images')")
    person.page.get_by_role("tab", name="Feature maps", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#feature_maps')")
    person.settle()
    assert headings(person) == shown
    person.reopen()
    person.settle()
    assert headings(person) == shown


def test_a_column_follows_the_slider_unless_its_step_is_pinned(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, layer="fmapboard/first", compare=f"{AGAIN}@10")
    person.press("Home")
    person.drawn(0)
    assert "step 10 · sample 0 · pinned" in places(person)
    person.see("button[aria-label='Change column B']").click()
    person.see("select[aria-label='Step of column B']").select_option("follows the slider")
    person.settle()
    assert places(person)[1] == "step 0 · sample 0"
    assert columns(person) == [f"{AGAIN}@"]


def test_a_column_is_added_searched_and_removed_with_the_keyboard(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, layer="fmapboard/first")
    add = person.see("select[aria-label='Compare with']")
    person.menu("Compare")
    add.select_option("run")
    person.settle()
    assert columns(person) == [f"{AGAIN}@"]
    assert add.locator("option").all_text_contents() == ["Two columns", "Remove column B"]
    person.see("button[aria-label='Change column B']").focus()
    person.page.keyboard.press("Enter")
    person.page.keyboard.press("Enter")  # opens the list of runs, which has the focus
    entries = person.see(".picker-panel:visible li")
    assert entries.count() == 5  # with "same run"
    person.page.keyboard.type("SEED_2 resnet")
    assert entries.all_text_contents() == [RENAMED]
    person.page.keyboard.press("Enter")
    person.settle()
    assert columns(person) == [f"{RENAMED}@"]
    person.page.keyboard.press("Enter")
    person.page.keyboard.type("s")
    assert entries.count() == 4
    person.page.keyboard.press("ArrowDown")
    marked = person.see(".picker-panel:visible [aria-selected=true]").get_attribute("id")
    assert (
        person.frame.evaluate("document.activeElement.getAttribute('aria-activedescendant')")
        == marked
    )
    person.page.keyboard.press("Escape")
    assert person.see(".picker-panel:visible").count() == 0
    person.page.keyboard.press("Escape")
    assert person.see(".column-panel:visible").count() == 0
    person.press("d")
    person.settle()
    assert columns(person) == []
    assert not person.see(".sides").is_visible()
    person.press("d")  # brings it back
    person.settle()
    assert columns(person) == [f"{RENAMED}@"]
    person.see("button[aria-label='Remove column B']").click()
    person.settle()
    assert columns(person) == []


def test_the_list_of_runs_closes_when_another_place_is_pressed(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, layer="fmapboard/first", compare=f"{AGAIN}@")
    person.see("button[aria-label='Change column B']").click()
    opener, panel = person.see(".column-panel .picker:visible"), person.see(".picker-panel:visible")
    opener.click()
    panel.locator("input").click()  # a place in it
    assert opener.get_attribute("aria-expanded") == "true"
    person.see(".column-panel:visible .label").first.click()
    panel.wait_for(state="detached")
    assert opener.get_attribute("aria-expanded") == "false"
    opener.click()
    panel.locator(f"li:has([title='{RENAMED}'])").click()
    panel.wait_for(state="detached")
    person.settle()
    assert columns(person) == [f"{RENAMED}@"]


def test_long_names_are_cut_in_the_middle(runs: str, visit: Callable[..., Person]) -> None:
    for run, end in ((AGAIN, "seed_1"), (RENAMED, "seed_2")):
        person = open_columns(visit, runs, compare=f"{run}@")
        name = person.see(".side[aria-label^='B '] > .run-name")
        text, shown = name.evaluate(
            "(e) => { const tail = e.querySelector('.run-tail');"
            "return [tail.textContent, tail.getBoundingClientRect().width]; }"
        )
        assert text.endswith(end)
        assert shown > 40  # px
    chosen = person.see(f"{RUN_MENU} .run-tail")
    assert chosen.text_content().endswith(BASE[-9:])


def colours(person: Person) -> list[str]:
    """The colour of the dot of each column."""
    script = "(all) => all.map((dot) => getComputedStyle(dot).backgroundColor)"
    found: list[str] = person.see(".side:visible .dot").evaluate_all(script)
    return found


def test_columns_have_colours_of_their_own_whatever_the_run(
    runs: str, visit: Callable[..., Person]
) -> None:
    seen = colours(open_columns(visit, runs, **OTHER))
    assert len(set(seen)) == 2
    assert colours(open_columns(visit, runs, **RERUN)) == seen
    assert colours(open_columns(visit, runs, compare="@10")) == seen


def test_the_curves_of_both_columns_are_in_one_chart_with_a_key(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, channel=2, **RERUN)
    for place in (".channel", ".charts"):
        key = person.see(f"{place} .key li")
        key.nth(1).wait_for()
        texts = [text.replace("loading", "") for text in key.all_text_contents()]
        assert texts == [f"A{BASE}", f"B{AGAIN}"]
    label = person.see(".charts canvas[aria-label^='range over steps']").get_attribute("aria-label")
    parts = label.split("range over steps: ")[1].split(" · ")
    assert [part.split(":")[0] for part in parts] == ["A", "B"]
    drawn = person.frame.evaluate(
        """() => { const canvas = document.querySelector(".charts canvas[aria-label^='range']");
        const { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
        const pixel = (_, i) => `rgb(${data.slice(4 * i, 4 * i + 3).join(", ")})`;
        return [...new Set(Array.from({ length: width * height }, pixel))]; }"""
    )
    assert colours(person)[1] in drawn


def test_a_saved_picture_has_the_headings_of_both_columns(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, show="all", **OTHER)
    texts = saved_texts(person)
    assert "second" in texts
    assert f"A · {BASE} · step 20 · sample 0" in texts
    assert f"B · {RENAMED} · step 10 · sample 1 · matched by position: conv2" in texts
    assert any(text.startswith("difference, of different inputs: each") for text in texts)
    texts = saved_texts(open_columns(visit, runs, show="all", **ABSENT))
    assert f"B · {SHORT}" in texts
    assert MISSING in texts


def test_layers_are_ranked_by_how_much_the_columns_differ(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, **RERUN)
    person.menu("Compare")
    person.see("button:text-is('Rank layers')").click()
    person.see(".ranks button").nth(1).wait_for()
    person.settle()
    assert "p.feature_maps.rank=1" in person.page.url
    assert person.see(".rank-group").all_text_contents() == ["By the drawn maps, same input image"]
    values = [float(text) for text in person.see(".rank-value").all_text_contents()]
    assert values == sorted(values, reverse=True)
    assert all(0.5 < value < 2 for value in values)
    person.see(".ranks button:has-text('first')").click()
    person.drawn(20, "first")


def test_layers_that_are_not_the_same_are_ranked_apart(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, rank=1, **OTHER)
    person.see(".rank-group:has-text('statistics')").wait_for()
    texts = person.see(".rank-note").all_text_contents()
    assert sorted(texts) == [f"matched by position: conv{k}; steps 20 and 10" for k in (1, 2)]
    person = open_columns(visit, runs, rank=1, **ABSENT)
    person.see(".rank-note:text-is('no such layer in the other run')").wait_for()
    person.settle()
    assert person.see(".ranks button").count() == 2
