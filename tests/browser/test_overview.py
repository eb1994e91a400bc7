"""The overview page in a real browser: findings, their pictures, the map of layers and steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import Person
from overview_runs import HEALTHY_STEPS, NAN_FROM, large_answer, large_step

PINK = [255, 209, 255, 255]  # a line of the hatching on white
COUNT_PAINTS = """() => { window.paints = 0;
const own = CanvasRenderingContext2D.prototype.putImageData;
CanvasRenderingContext2D.prototype.putImageData = function (...of) {
  window.paints += 1; return own.apply(this, of); }; }"""
TILE = """(tile) => { const c = tile.querySelector("canvas");
return [...c.getContext("2d").getImageData(c.width >> 1, c.height >> 1, 1, 1).data]; }"""


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], overview_runs: Path) -> str:
    return serve_shared(overview_runs)


@pytest.fixture
def overview(visit: Callable[..., Person], runs: str) -> Callable[..., Person]:
    """A function that opens the findings and the map of states of a run, with all pictures."""

    def open_overview(run: str, **state: object) -> Person:
        shown = {"view": None, "findings": "open", "front": "states", **state}
        person = visit(runs, width=1366, run=run, **shown)
        person.settle()
        return person

    return open_overview


def hover(person: Person, layer: int, step: int, of: tuple[int, int]) -> str:
    """Point at a cell, given by row and column of all rows and columns; the text of the tip."""
    box = plot(person)
    x = box["left"] + (step + 0.5) / of[1] * box["width"]
    y = box["top"] + (layer + 0.5) / of[0] * box["height"]
    person.page.mouse.move(x, y)
    tip = person.see(".health-map .tip")
    tip.wait_for()
    return str(tip.inner_text())


def plot(person: Person) -> dict[str, float]:
    """The place of the map's cells in the page, px."""
    box = person.see(".health-map").bounding_box()
    extent = json.loads(person.see(".health-map").get_attribute("data-plot") or "{}")
    return {
        "left": box["x"] + extent["left"], "top": box["y"] + extent["top"],
        "width": extent["width"], "height": extent["height"],
    }  # fmt: skip


def is_shown(person: Person, view: str) -> bool:
    return bool(person.frame.evaluate(f"document.documentElement.dataset.view === '{view}'"))


def test_the_overview_opens_first_and_an_address_with_a_layer_opens_the_maps(
    runs: str, visit: Callable[..., Person]
) -> None:
    first = visit(runs, view=None)
    assert first.see("main.overview").is_visible()
    assert not first.see(".time").is_visible()
    assert first.see(".switch [aria-pressed=true]").text_content() == "Overview"
    old = visit(runs, view=None, run="ill", layer="fmapboard/block.0")
    old.drawn(55, "block.0")
    assert not old.see("main.overview").is_visible()


def test_the_switch_and_its_key_lead_to_the_maps_and_back(
    overview: Callable[..., Person],
) -> None:
    person = overview("ill")
    person.see(".switch button:text-is('Maps')").click()
    person.see(".grid").wait_for()
    assert "p.feature_maps.view=maps" in person.page.url
    person.press("v")
    person.see("main.overview").wait_for()
    person.reopen()
    assert is_shown(person, "overview")
    person.press("v")
    person.see(".grid").wait_for()


def test_the_first_line_says_where_it_began_and_leads_there(
    overview: Callable[..., Person],
) -> None:
    person = overview("ill")
    line = person.see(".finding").first
    said = line.locator(".sentence").inner_text()
    assert f"since step {NAN_FROM}" in said
    assert "first in block.0" in said
    assert line.locator(".finding-class").text_content() == "Fault"
    meaning = line.locator(".explanation")
    assert meaning.inner_text().startswith("The fault is in the weights: block.0.weight is not")
    assert meaning.evaluate("(e) => e.scrollWidth <= e.clientWidth")  # no word is cut off
    line.click()
    person.drawn(NAN_FROM, "block.0")
    assert f"p.feature_maps.step={NAN_FROM}" in person.page.url
    assert not person.see(".arrival").is_visible()


@pytest.mark.parametrize("width", [1024, pytest.param(1366, marks=pytest.mark.sweep)])
def test_the_first_finding_and_its_pictures_are_in_sight_without_scrolling(
    runs: str, visit: Callable[..., Person], width: int
) -> None:
    person = visit(runs, width=width, height=768, run="ill", view=None, findings="open")
    person.settle()
    first = person.see(".line").first
    first.locator(".tile").first.wait_for()
    assert f"step {NAN_FROM}" in first.inner_text()
    in_sight = """(line) => { const [a, b] = [line, ...line.querySelectorAll(".tile")]
      .map((e) => e.getBoundingClientRect());
      const bottom = Math.max(a.bottom, b.bottom);
      return a.top >= 0 && bottom <= innerHeight && b.right <= innerWidth; }"""
    assert first.evaluate(in_sight)


def test_a_line_has_tiles_of_the_affected_channels_at_the_step_it_began(
    overview: Callable[..., Person],
) -> None:
    person = overview("ill")
    line = person.see(".line").first
    assert line.locator(".stems").text_content() == f"maps at step {NAN_FROM}, sample 0 · channel 1"
    assert line.locator(".tile").count() == 1
    assert line.locator(".tile").first.evaluate(TILE) == PINK
    line.locator(".tile").first.click()
    person.drawn(NAN_FROM, "block.0")
    assert "p.feature_maps.channel=1" in person.page.url


def test_a_cell_is_described_under_the_pointer_without_painting_the_map_again(
    overview: Callable[..., Person],
) -> None:
    person = overview("ill")
    person.frame.evaluate(COUNT_PAINTS)
    asked: list[str] = []
    person.page.on("request", lambda request: asked.append(request.url))
    before = hover(person, 2, 5, (7, 12))
    assert before.startswith("block.0 · step 25\nfine\n")
    after = hover(person, 2, 6, (7, 12))
    assert after.startswith("block.0 · step 30\nnon-finite: NaN or infinity\n")
    assert "4 % non-finite" in after
    assert "13 % dead, 6 % constant" in hover(person, 0, 5, (7, 12))
    assert person.frame.evaluate("window.paints") == 0
    assert not [url for url in asked if re.search("data/(health|findings|maps)", url)]
    person.page.mouse.move(5, 300)
    person.see(".health-map .tip").wait_for(state="hidden")


def test_a_click_on_a_layer_without_pictures_leads_to_the_nearest_drawn_one_and_says_so(
    overview: Callable[..., Person],
) -> None:
    person = overview("ill")
    assert "nearest drawn layer: block.0" in hover(person, 3, 6, (7, 12))
    person.page.mouse.down()
    person.page.mouse.up()
    person.drawn(NAN_FROM, "block.0")
    note = person.see(".arrival")
    assert note.text_content() == (
        "block.1 has no pictures: these are of block.0, the nearest drawn layer."
    )
    person.press("ArrowRight")
    person.drawn(NAN_FROM + 5)
    assert not note.is_visible()


def test_the_map_is_used_and_announced_with_the_keyboard(
    overview: Callable[..., Person],
) -> None:
    person = overview("ill", layer="fmapboard/stem.0", step=0, view="overview")
    person.press("ArrowDown")  # the first key shows the cell of the maps
    said = person.see(".health-room > [role=status]")
    assert said.text_content().startswith("stem.0 · step 0. ")
    person.press("ArrowDown", "ArrowDown", "End", "ArrowLeft")
    assert said.text_content().startswith("block.0 · step 50. non-finite")
    assert person.see(".health-map .cursor").is_visible()
    person.press("Enter")
    person.drawn(50, "block.0")
    assert not person.see("main.overview").is_visible()


def test_keys_of_the_maps_do_nothing_on_the_overview(overview: Callable[..., Person]) -> None:
    person = overview("ill")
    before = person.page.url
    person.press("c", "s", "l", "d", "o", "]", " ")
    person.settle()
    assert person.page.url == before


def test_brightness_says_what_it_shows(overview: Callable[..., Person]) -> None:
    text = overview("ill").see(".brightness").inner_text().replace("\n", " ")
    assert "shade: maximum − minimum, logarithmic ≤" in text


def test_the_key_lists_the_states_that_the_map_has(overview: Callable[..., Person]) -> None:
    listed = overview("ill").see(".health-key li").all_inner_texts()
    assert listed[0] == "non-finite"
    assert "fine" in listed
    assert "large" not in listed
    assert overview("healthy").see(".health-key li").all_inner_texts() == ["fine"]


def test_a_healthy_run_says_what_was_looked_through(overview: Callable[..., Person]) -> None:
    person = overview("healthy")
    said = f"nothing found in 2 layers × {len(HEALTHY_STEPS)} steps"
    assert person.see(".verdict .sentence").inner_text().startswith(said)
    assert not person.see(".findings").count()


def test_findings_of_unknown_kinds_are_shown_too(runs: str, visit: Callable[..., Person]) -> None:
    found = {
        "kind": "stalled", "class": "note", "severity": 2, "name": "", "label": "0", "since": 6,
        "key": "fmapboard/0", "shown_at": "fmapboard/0", "after": 3, "until": None, "value": 1.0,
        "more": 0, "message": "the optimizer of `0` stands <b>still</b>",
    }  # fmt: skip
    answer = {
        "run": "healthy",
        "layers": 3,
        "steps": 8,
        "written": 8,
        "unread": None,
        "line": {**found, "state": "suspicion", "text": found["message"]},
    }
    shown = {"view": "overview", "run": "healthy", "findings": "open"}
    with_it = {**answer, "findings": [found]}
    person = visit(
        runs, routes={"**/data/findings?*": lambda route: route.fulfill(json=with_it)}, **shown
    )
    person.settle()
    assert person.see(".finding .sentence").inner_text() == "the optimizer of 0 stands <b>still</b>"
    assert person.see(".tile").count() == 4
    person.see(".finding").click()
    person.drawn(6, "0")


def test_3000_layers_are_binned_and_painted_once(runs: str, visit: Callable[..., Person]) -> None:
    def alone(route: Any) -> None:  # further runs have a line above the map, and move it
        answer = json.loads(route.fetch().text())
        answer["runs"] = [run for run in answer["runs"] if run["run"] == "healthy"]
        route.fulfill(json=answer)

    large = {
        "**/data/runs*": alone,
        "**/data/health?*": lambda route: route.fulfill(body=large_answer()),
        "**/data/health_step?*": lambda route: route.fulfill(body=large_step()),
    }
    person = visit(runs, routes=large, view="maps", run="healthy")
    person.settle()
    person.frame.evaluate(COUNT_PAINTS)
    person.settle()
    person.frame.evaluate("window.paints = 0")  # without those of the maps that came late
    person.press("v")
    person.see(".health-map").wait_for()
    person.settle()
    assert person.see(".overview .about").text_content().startswith("3,000 layers × 200 steps")
    key = person.see(".health-key li").count()
    painted = person.frame.evaluate("window.paints")
    assert painted == 1 + key
    area = person.see(".health-map").bounding_box()
    assert area["y"] + area["height"] <= person.page.viewport_size["height"]
    said = hover(person, 2005, 100, (3000, 200))
    assert said.startswith("layer2000 · step 1,000\nnon-finite")
    assert "the worst of the" in said
    person.see(".health-map .tip:has-text('of 4 channels: 25 % non-finite')").wait_for()
    person.frame.evaluate("window.dispatchEvent(new Event('resize'))")
    person.settle()
    assert person.frame.evaluate("window.paints") == painted
