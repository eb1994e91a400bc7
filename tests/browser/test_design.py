"""The tab's design in a real browser: toolbar, small windows, keyboard, marks, what is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from browser_visitor import HEADER, Person
from faulty_runs import LARGE_FROM
from striped_training import STEPS
from torch import nn

import fmapboard

STEM = {"run": "good", "layer": "fmapboard/stem.0"}
COMPARED = {**STEM, "channel": 1, "compare": "@0", "show": "all"}


def focused(person: Person) -> str:
    """The label of the focused element, or its text."""
    script = "(e => e.getAttribute('aria-label') ?? e.textContent)(document.activeElement)"
    return str(person.frame.evaluate(script)).strip()


def tab_to(person: Person, label: str) -> None:
    """Press Tab until an element has the focus; fail if it is not reached or not to be seen."""
    for _ in range(60):
        person.page.keyboard.press("Tab")
        if focused(person) == label:
            ring = "getComputedStyle(document.activeElement).outlineStyle"
            assert person.frame.evaluate(ring) != "none", label
            return
    raise AssertionError(f"Tab does not reach {label!r}")


def overlaps(person: Person, selector: str) -> list[str]:
    """Texts of visible elements that touch the next one of the same parent."""
    script = """(selector) => [...document.querySelectorAll(selector)].flatMap((e) => {
      const next = e.nextElementSibling; if (!next?.offsetWidth || !e.offsetWidth) return [];
      const [a, b] = [e, next].map((each) => each.getBoundingClientRect());
      return a.right > b.left ? [`${e.textContent} ${next.textContent}`] : [];
    })"""
    return list(person.frame.evaluate(script, selector))


@pytest.mark.parametrize(
    "width", [1024, *(pytest.param(width, marks=pytest.mark.sweep) for width in (1366, 1920))]
)
@pytest.mark.parametrize("state", [STEM, COMPARED], ids=["maps", "two steps"])
def test_one_row_of_controls_is_all_that_is_above_the_title_and_the_pictures(
    address: str, visit: Callable[..., Person], width: int, state: dict[str, Any]
) -> None:
    person = visit(address, width=width, height=768, inside=True, **state)
    person.settle()
    groups = person.see(".toolbar .toolgroup:visible")
    names = [groups.nth(i).get_attribute("aria-label") for i in range(groups.count())]
    assert names == ["Data", "Display", "Compare", "More"]
    bar = person.see(".toolbar").bounding_box()
    assert bar["height"] <= 46
    box = groups.last.bounding_box()
    assert box["x"] + box["width"] <= width
    assert overlaps(person, ".toolbar > *") == []
    assert person.see(".head").bounding_box()["y"] <= HEADER + 47
    assert (person.see(".fold:visible").count() > 1) == (width < 1900)


def test_the_networks_input_is_beside_the_title(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, **STEM)
    person.settle()
    picture = person.see(".head .thumbnail")
    picture.wait_for()
    colours = "(c) => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    assert picture.evaluate(colours) > 3
    assert person.see(".head h1").text_content() == "stem.0"


def test_at_683_by_384_tiles_are_visible_and_everything_is_reached(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, width=683, height=384, **STEM)
    person.settle()
    grid = person.see(".grid").bounding_box()
    assert grid["height"] >= 100
    assert grid["y"] + grid["height"] <= 384
    person.see(".drawer-button:text-is('Layers')").click()
    person.see(".layer .name:text-is('block.2')").click()
    person.drawn(STEPS[-1], "block.2")
    person.see("nav.layers").wait_for(state="hidden")
    person.see(".fold:has-text('Display')").click()
    person.see("select[aria-label=Sort]").select_option("strength")
    person.page.mouse.click(grid["x"] + 20, grid["y"] + 30 + 64)
    person.see(".toolgroup.open").wait_for(state="detached")
    person.see(".channel h2").wait_for()
    person.see(".numbers").scroll_into_view_if_needed()
    person.see(".charts canvas.chart:visible").last.scroll_into_view_if_needed()
    person.press("Escape")
    person.see("aside").wait_for(state="hidden")
    person.see(".drawer-button:text-is('Details')").click()
    person.see(".charts").wait_for()
    assert "sort=strength" in person.page.url


def test_a_task_is_done_with_the_keyboard_alone(address: str, visit: Callable[..., Person]) -> None:
    """Choose a run, a step, a scale, an order, a comparison, a layer and a channel."""
    person = visit(address, width=1366, height=768, run="good", view="maps")
    person.settle()
    person.frame.evaluate("window.focus()")
    keyboard = person.page.keyboard
    tab_to(person, "Run: good")
    keyboard.press("Enter")
    keyboard.type("bad")
    keyboard.press("Enter")
    person.settle()
    assert person.chosen_run == "bad"
    tab_to(person, "Step")
    keyboard.press("Home")
    person.drawn(0)
    for _ in range(STEPS.index(30)):
        keyboard.press("ArrowRight")
    person.drawn(30)
    person.menu("Display")
    tab_to(person, "Layer")
    keyboard.press("Enter")
    tab_to(person, "Lock the scale over steps")
    keyboard.press("Enter")
    tab_to(person, "Sort")
    keyboard.press("ArrowDown")
    person.settle()
    person.menu("Compare")
    tab_to(person, "Compare with")
    keyboard.press("ArrowDown")
    person.settle()
    tab_to(person, "Filter layers")
    keyboard.type("block")
    person.settle()
    assert person.see(".tree .layer").count() == 2
    tab_to(person, "Layers")
    keyboard.press("ArrowDown")
    keyboard.press("ArrowUp")
    person.drawn(30, "block.0")
    tab_to(person, person.see(".grid").get_attribute("aria-label"))
    keyboard.press("Enter")
    person.see(".channel h2").wait_for()
    assert person.see(".layer[aria-selected=true] .badge").text_content() == "NaN"
    for part in ("run=bad", "step=30", "scale=layer", "locked=1", "sort=strength", "compare="):
        assert f"p.feature_maps.{part}" in person.page.url
    tab_to(person, "Close the channel")
    keyboard.press("Enter")
    person.see(".numbers").wait_for(state="hidden")


def test_a_menu_of_the_toolbar_is_left_with_escape_and_by_going_on(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, width=1024, height=768, **STEM, channel=1)
    person.settle()
    menu = person.see(".toolgroup:has(.fold:has-text('Display'))")
    for leave in ("Escape", "Shift+Tab"):
        menu.locator(".fold").focus()
        person.page.keyboard.press("Enter")
        menu.locator(".toolgroup-body").wait_for()
        person.page.keyboard.press(leave)
        menu.locator(".toolgroup-body").wait_for(state="hidden")
    person.see("h2:text-is('Channel 1')").wait_for()  # Escape closed the menu only


def test_marks_are_explained_only_where_there_are_any(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0")
    person.see(".legend .marks li:visible").first.wait_for()
    shown = person.see(".legend .marks li:visible").all_text_contents()
    assert shown == ["constant", "dead: 0 after its ReLU", "(whole batch)"]
    person.see(".layer .name:text-is('block.0')").click()
    person.drawn(STEPS[-1], "block.0")
    assert person.see(".legend .marks").is_hidden()


def test_every_term_has_a_tooltip_and_a_description(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="bad", layer="fmapboard/block.0", channel=1)
    person.settle()
    missing = person.frame.evaluate(
        "[...document.querySelectorAll('[aria-describedby]')].flatMap((e) =>"
        " e.getAttribute('aria-describedby').split(' ').filter((id) =>"
        " !e.title.includes(document.getElementById(id)?.textContent ?? id)))"
    )
    assert missing == []
    for term in ("dead", "constant", "std", "change", "locked", "flagged", "batch", "range"):
        assert person.see(f"[aria-describedby~=term-{term}]").count() > 0, term


def test_strips_have_a_header_and_tell_20_from_250(
    serve_shared: Callable[[Path], str], visit: Callable[..., Person], faulty_runs: Path
) -> None:
    person = visit(serve_shared(faulty_runs), run="faulty", step=0, view="maps")
    person.see(".strip.known").first.wait_for()
    assert person.see(".strip-head").text_content() == "max |x|change"
    many = person.see(".layer:has(.name:text-is('many'))")
    before = many.locator(".peak").text_content()
    assert person.see(".moved").first.bounding_box()["width"] >= 30
    assert many.locator(".strip").get_attribute("aria-label").startswith("range ")
    big = person.see(".layer:has(.name:text-is('big'))")
    small = big.locator(".peak").text_content()
    for _ in range(2):
        person.press("ArrowRight")
    person.drawn(LARGE_FROM)
    person.wait(
        "!document.querySelector('.tree.old') &&"
        f" document.querySelector('.peak').textContent !== {small!r}"
    )
    assert big.locator(".peak").text_content() == "1e9"
    assert before == many.locator(".peak").text_content() == "1"


def test_an_address_of_what_is_gone_says_so(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="deleted", layer="fmapboard/stem.1", view="maps")
    person.settle()
    gone = person.see(".gone").text_content()
    shown = person.chosen_run
    assert f"Run deleted is gone: showing {shown}." in gone
    assert f"Layer stem.1 is not in run {shown}: showing stem.0." in gone
    person.press("ArrowDown")
    person.settle()
    assert "Layer" not in person.see(".gone").text_content()
    fine = visit(address, run="good", view="maps")
    assert fine.see(".gone").is_hidden()
    missing = "status of 404"  # what is asked for the run of the address, before runs are known
    person.complaints[:] = [said for said in person.complaints if missing not in said]


def test_the_flagged_filter_lists_all_layers_of_a_run_without_faults(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    with fmapboard.watch(model, tmp_path / "fine", every=1) as board:
        for step in range(2):
            with board.step(step), torch.no_grad():
                model(torch.rand(2, 3, 12, 12))
    person = visit(serve(tmp_path), run="fine", flagged=1, view="maps")
    person.see(
        ".layers .note:text-is('No layer is flagged at this step: all are listed.')"
    ).wait_for()
    assert person.see("button.flagged").text_content() == "0 flagged"
    assert person.see(".tree .layer").count() == 2


def test_a_chart_says_log_of_an_axis_that_is_not_linear(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", channel=1)
    person.settle()
    titles = person.see(".charts h3 > span:first-child").all_text_contents()
    assert "Update ratio, log" in titles
    assert "Range of the layer" in titles
    assert "Channels dead, constant or non-finite, %" in titles
    assert "axis" not in person.see("aside").inner_text()


def test_a_chart_draws_and_names_only_states_that_a_channel_has_been_in(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="bad", layer="fmapboard/block.0", channel=1)
    person.settle()
    states = person.see(".charts section:has(h3:has-text('Channels dead')) .entry")
    assert [text.split(" ")[0].strip() for text in states.all_text_contents()] == ["non-finite"]
    assert states.locator(".stroke").count() == 1  # as it is drawn
    norms = person.see(".charts section:has(h3:has-text('Gradient norm')) .entry")
    assert norms.locator(".stroke").count() == norms.count() - 1  # non-finite is no line


def test_non_finite_values_are_marked_in_charts(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="bad", layer="fmapboard/block.0", channel=1)
    person.settle()
    heading = person.see(".charts section:has(h3:has-text('Gradient norm')) .value")
    assert "weight NaN" in heading.text_content()
    assert heading.text_content().endswith("non-finite")
    magenta = """(canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, 6);
      let found = 0;
      for (let i = 0; i < data.length; i += 4)
        found += data[i] > 200 && data[i + 1] < 60 && data[i + 2] > 200 ? 1 : 0;
      return found;
    }"""
    charts = person.see(".charts section:visible")
    marked = {
        charts.nth(i).locator("h3 span").first.text_content(): charts.nth(i)
        .locator("canvas").evaluate(magenta)
        for i in range(charts.count())
    }  # fmt: skip
    assert max(marked[name] for name in marked if name.startswith("Gradient norm")) > 0
    assert marked["Range of the layer"] > 0
    assert person.see(".channel canvas.chart").evaluate(magenta) > 0
    assert person.see(".legend .ramp-scale").first.text_content() == "no finite value"


def test_the_main_column_is_first_also_of_an_older_step(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, inside=True, **COMPARED)
    person.settle()
    place = "(e) => e.getBoundingClientRect()"
    sides = person.see(".side:visible")
    tops = {sides.nth(i).text_content(): sides.nth(i).evaluate(place)["top"] for i in range(2)}
    old = next(top for text, top in tops.items() if "step 0" in text)
    new = next(top for text, top in tops.items() if f"step {STEPS[-1]}" in text)
    assert new < old  # A
    titles = person.see("figcaption:visible > span:first-child")
    order = sorted(range(2), key=lambda i: titles.nth(i).evaluate(place)["left"])
    assert "step 0" in titles.nth(order[1]).text_content()


def test_the_page_has_a_title_a_language_and_the_font_of_tensorboard(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, inside=True, **STEM)
    assert person.frame.evaluate("[document.title, document.documentElement.lang]") == [
        "Feature maps",
        "en",
    ]
    assert person.frame.evaluate("getComputedStyle(document.body).fontFamily").startswith("Roboto")
    person.wait("[...document.fonts].some((face) => face.status === 'loaded')")


@pytest.mark.parametrize("width", [1024, pytest.param(1366, marks=pytest.mark.sweep)])
def test_labels_of_colour_bars_do_not_touch(
    address: str, visit: Callable[..., Person], width: int
) -> None:
    person = visit(address, width=width, height=768, **COMPARED)
    person.settle()
    for channel in range(2, 6):
        assert person.see(".ramp-scale:visible .end").count() >= 4
        assert overlaps(person, ".ramp-scale span") == []
        person.press("]")
        person.see(f"h2:text-is('Channel {channel}')").wait_for()
        person.settle()
