"""Up to four columns in a real browser: what each shows, its controls, address, curves, ranking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from browser_visitor import Person
from column_runs import AGAIN, BASE, RENAMED, SHORT
from seen_columns import headings, inputs, notes, saved_texts, written

SECOND = "fmapboard/second"
FOUR = {"compare": f"{AGAIN}@10", "compare2": f"{RENAMED}@:1", "compare3": f"{SHORT}@"}
HEADINGS = [
    f"A {BASE} · step 20 · sample 0",
    f"B {AGAIN} · step 10 · sample 0",
    f"C {RENAMED} · step 10 · sample 1",
    f"D {SHORT}",
]
MISSING = f"no layer second in run {SHORT}"
NAMES = ".side:visible .origin > .run-name"


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


def test_each_column_says_its_run_step_and_sample_and_what_is_missing(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, **FOUR)
    assert headings(person) == HEADINGS
    assert places(person) == [
        "step 20 · sample 0",
        "step 10 · sample 0 · pinned",
        "step 10 · sample 1 · follows the slider",
        "follows the slider",
    ]
    assert person.see(".match:visible").all_text_contents() == ["matched by position: conv2"]
    on_c, on_d, on_all = notes(person)
    assert on_c == "different step: step 20 has no pictures here; different input image"
    assert on_d == MISSING
    assert on_all.startswith("Different input images")
    seen = inputs(person)
    assert (len(seen), len(set(seen))) == (3, 2)  # A and B saw the same image
    names = person.see(NAMES).evaluate_all("(all) => all.map((name) => name.title)")
    assert names == [BASE, AGAIN, RENAMED, SHORT]
    ellipsis = "(all) => all.map((end) => getComputedStyle(end).textOverflow)"
    assert set(person.see(".side .run-tail").evaluate_all(ellipsis)) == {"ellipsis"}


def test_a_missing_picture_keeps_its_place_among_the_others(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, show="all", channel=2, **FOUR)
    texts = written(person, lambda: person.press("c"))
    tiles = [text for text in texts if text in {"A", "B", "C", "D", "A − B", "A − C", "A − D"}]
    assert len(tiles) >= 12  # of the channels in the window
    assert tiles == ["A", "B", "C", "D", "A − B", "A − C"] * (len(tiles) // 6)
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert [title.split(":")[0] for title in titles] == ["A", "B", "C", "D", "A − B", "A − C"]
    assert titles[3] == "D: no picture"
    assert titles[4:] == ["A − B: Difference", "A − C: Difference of different inputs"]
    table = person.see(".numbers th[scope=col]").all_text_contents()
    assert table == ["A", "B", "C"]


def test_an_address_with_four_columns_restores_them(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, inside=True, show="difference", **FOUR)
    assert columns(person) == list(FOUR.values())
    assert headings(person) == HEADINGS
    # TensorBoard rewrites the address when the tab changes.
    person.page.get_by_role("tab", name="Images", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#images')")
    person.page.get_by_role("tab", name="Feature maps", exact=False).click()
    person.page.wait_for_function("() => location.hash.startsWith('#feature_maps')")
    person.settle()
    assert headings(person) == HEADINGS
    person.reopen()
    person.settle()
    assert headings(person) == HEADINGS


def test_a_repeated_entry_adds_a_column_each(runs: str, visit: Callable[..., Person]) -> None:
    person = open_columns(visit, runs, **{"compare": f"{AGAIN}@0&p.feature_maps.compare={SHORT}"})
    # The ampersand of the fixture's quoting belongs to one value: no run has such a name.
    assert notes(person)[0].startswith("no run")
    person.page.evaluate(
        "(hash) => { location.hash = hash; }",
        f"#feature_maps&p.feature_maps.run={BASE}&p.feature_maps.layer=fmapboard/first"
        f"&p.feature_maps.compare={AGAIN}@0&p.feature_maps.compare={SHORT}",
    )
    person.see(f".side[aria-label^='C {SHORT}']").wait_for()
    person.settle()
    assert headings(person)[1:] == [
        f"B {AGAIN} · step 0 · sample 0", f"C {SHORT} · step 20 · sample 0",
    ]  # fmt: skip


def test_a_column_follows_the_slider_unless_its_step_is_pinned(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(
        visit, runs, layer="fmapboard/first", compare=f"{AGAIN}@10", compare2=f"{SHORT}@"
    )
    person.press("Home")
    person.drawn(0)
    assert places(person)[1:] == [
        "step 10 · sample 0 · pinned", "step 0 · sample 0 · follows the slider",
    ]  # fmt: skip
    person.see("button[aria-label='Change column B']").click()
    person.see("select[aria-label='Step of column B']").select_option("follows the slider")
    person.settle()
    assert places(person)[1] == "step 0 · sample 0 · follows the slider"
    assert columns(person)[0] == f"{AGAIN}@"


def test_columns_are_added_searched_and_removed_with_the_keyboard(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, layer="fmapboard/first")
    add = person.see("select[aria-label='Compare with']")
    for kind in ("step", "run", "sample"):
        person.menu("Compare")
        add.select_option(kind)
        person.settle()
    assert columns(person) == ["@0", f"{AGAIN}@", "@:1"]
    assert add.locator("option").all_text_contents() == ["4 columns", "Remove all columns"]
    person.see("button[aria-label='Change column C']").focus()
    person.page.keyboard.press("Enter")
    person.page.keyboard.press("Enter")  # opens the list of runs, which has the focus
    entries = person.see(".picker-panel:visible li")
    assert entries.count() == 5  # with "same run"
    person.page.keyboard.type("SEED_2 resnet")
    assert entries.all_text_contents() == [RENAMED]
    person.page.keyboard.press("Enter")
    person.settle()
    assert columns(person)[1] == f"{RENAMED}@"
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
    person.see("button[aria-label='Remove column B']").click()
    person.settle()
    assert columns(person) == [f"{RENAMED}@", "@:1"]
    person.press("d")
    person.settle()
    assert columns(person) == []
    assert not person.see(".sides").is_visible()


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
    person = open_columns(visit, runs, compare=f"{AGAIN}@", compare2=f"{RENAMED}@")
    for letter, end in (("B", "seed_1"), ("C", "seed_2")):
        name = person.see(f".side[aria-label^='{letter} '] .origin > .run-name")
        text, shown, cut = name.evaluate(
            "(e) => { const [head, tail] = [...e.children].slice(1);"
            "return [tail.textContent, tail.getBoundingClientRect().width,"
            " head.scrollWidth > head.clientWidth]; }"
        )
        assert text.endswith(end)
        assert shown > 40  # px
        assert cut
    option = person.see("select[aria-label=Run] option[value$=seed_2]").text_content()
    assert len(option) == 46
    assert option.endswith("seed_2")


def colours(person: Person) -> dict[str, str]:
    """Run -> the colour of its dot above the maps."""
    script = "(all) => all.map((e) => [e.title, getComputedStyle(e.firstChild).backgroundColor])"
    return dict(person.see(NAMES).evaluate_all(script))


def test_runs_have_the_colours_of_tensorboard(runs: str, visit: Callable[..., Person]) -> None:
    person = open_columns(visit, runs, inside=True, **FOUR)
    seen = colours(person)
    assert len(set(seen.values())) == 4
    for run, colour in seen.items():
        script = (
            "(run) => { const e = document.createElement('i');"
            "e.style.color = document.createElement('tf-color-scale').runsColorScale(run);"
            "return e.style.color; }"
        )
        assert person.page.evaluate(script, run) == colour
    # The tab hands out the same colours where there is no page to read them from.
    assert colours(open_columns(visit, runs, **FOUR)) == seen


def test_the_curves_of_all_columns_are_in_one_chart_with_a_key(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, channel=2, **FOUR)
    for place in (".channel", ".charts"):
        key = person.see(f"{place} .key li")
        key.nth(2).wait_for()
        assert [text.replace("loading", "") for text in key.all_text_contents()] == [
            f"A{BASE}", f"B{AGAIN}", f"C{RENAMED}conv2",
        ]  # fmt: skip
    label = person.see(".charts canvas[aria-label^='range over steps']").get_attribute("aria-label")
    assert [part.split(":")[0] for part in label.split("range over steps: ")[1].split(" · ")] == [
        "A", "B", "C", "linear axis",
    ]  # fmt: skip
    drawn = person.frame.evaluate(
        """() => { const canvas = document.querySelector(".charts canvas[aria-label^='range']");
        const { width, height } = canvas;
        const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
        const pixel = (_, i) => `rgb(${data.slice(4 * i, 4 * i + 3).join(", ")})`;
        return [...new Set(Array.from({ length: width * height }, pixel))]; }"""
    )
    of = colours(person)  # the curve of A lies below that of C, whose weights are the same
    assert {of[AGAIN], of[RENAMED]} <= set(drawn)
    assert of[SHORT] not in drawn


def test_a_saved_picture_has_the_headings_of_all_columns(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, show="all", **FOUR)
    texts = saved_texts(person)
    assert "second" in texts
    assert f"A · {BASE} · step 20 · sample 0" in texts
    assert f"B · {AGAIN} · step 10 · sample 0 · pinned" in texts
    follows = "follows the slider · matched by position: conv2"
    assert f"C · {RENAMED} · step 10 · sample 1 · {follows}" in texts
    assert f"D · {SHORT} · follows the slider" in texts
    assert MISSING in texts
    assert any(text.startswith("difference, of different inputs: each") for text in texts)


def test_layers_are_ranked_by_how_much_a_column_differs(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = open_columns(visit, runs, **FOUR)
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
    which = person.see("select[aria-label='Column that is compared with A']")
    which.select_option("C")
    person.settle()
    person.see(".rank-group:has-text('statistics')").wait_for()
    texts = person.see(".rank-note").all_text_contents()
    assert sorted(texts) == [f"matched by position: conv{k}; steps 20 and 10" for k in (1, 2)]
    which.select_option("D")
    person.see(".rank-note:text-is('no such layer in the other run')").wait_for()
    person.settle()
    assert person.see(".ranks button").count() == 2
