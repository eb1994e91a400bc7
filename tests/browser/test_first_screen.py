"""The first screen in a real browser: how each run is, in words, and layers × steps as pictures."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attending_networks import NETWORKS, images, slow_path
from browser_visitor import HEADER, Person
from overview_runs import HEALTHY_STEPS, NAN_FROM, STORED, log_healthy
from torch import nn

import fmapboard

COLOURS = """(canvas) => { const { width, height } = canvas;
const image = canvas.getContext("2d").getImageData(0, 0, width, height).data;
return new Set(new Uint32Array(image.buffer)).size; }"""
MAGENTA = """(canvas) => { const { width, height } = canvas;
const image = canvas.getContext("2d").getImageData(0, 0, width, height).data;
let found = 0;
for (let i = 0; i < image.length; i += 4) {
  const [red, green, blue, opaque] = image.subarray(i, i + 4);
  found += red === 255 && green === 0 && blue === 255 && opaque === 255 ? 1 : 0;
}
return found / (width * height); }"""
COLOUR = "(element) => getComputedStyle(element).color"
SHEET = ".sheet-page:visible > canvas"


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], overview_runs: Path) -> str:
    return serve_shared(overview_runs)


@pytest.fixture
def first(visit: Callable[..., Person], runs: str) -> Callable[..., Person]:
    """A function that opens the first screen and waits for its pictures."""

    def open_first(**state: object) -> Person:
        person = visit(runs, width=1366, **{"view": None, **state})
        assert person.see(SHEET).first.is_visible()  # at once: ready means that they are drawn
        person.settle()
        return person

    return open_first


def place(person: Person, row: int, column: int) -> tuple[float, float]:
    """The middle of a cell in the page, px."""
    box = person.see(".sheet-name").nth(row).bounding_box()
    step = person.see(".sheet-steps span").nth(column).bounding_box()
    return step["x"] + step["width"] / 2, box["y"] + box["height"] / 2


ASKED = """(run) => {
  const all = performance.getEntriesByType("resource");
  const script = all.find((each) => each.name.endsWith("/app.js"));
  return all.filter(({ name }) => name.endsWith(run) && !name.includes("sheet"))
    .map((each) => [each.name.split(/[/?]/).at(-2), each.startTime < script.responseEnd]);
}"""


def test_what_it_needs_is_asked_for_once_while_the_script_is_still_loading(
    visit: Callable[..., Person], runs: str
) -> None:
    """The entry module asks ahead, and the script takes its answers; so none is asked for twice."""
    for state in ({"run": "ill"}, {"run": None}):
        person = visit(runs, width=1366, anew=True, **{"view": None, **state})
        person.settle()
        asked = person.frame.evaluate(ASKED, f"run={state['run'] or 'healthy'}")
        assert sorted(name for name, _ in asked) == ["findings", "health", "layers"]
        assert all(is_early for _, is_early in asked) or state["run"] is None


def test_a_fault_is_said_with_its_layer_and_step_and_seen_from_there_on(
    first: Callable[..., Person],
) -> None:
    person = first(run="ill")
    assert person.see(".verdict .mark").inner_text() == "✕"
    said = person.see(".verdict .sentence").inner_text()
    assert "first in block.0" in said
    assert f"since step {NAN_FROM}" in said
    assert str(NAN_FROM) in person.see(".sheet-steps .onset").all_inner_texts()
    assert not person.see(".overview-head .about").is_visible()
    assert person.see(".states").inner_text().endswith("step: start of a finding")
    assert person.see(".states .onset").inner_text() == "bold"  # is seen without colours, too
    red, words = (person.see(f"{where} .onset") for where in (".sheet-steps", ".states"))
    assert red.first.evaluate(COLOUR) == words.evaluate(COLOUR) != "rgb(0, 0, 0)"
    names = person.see(".sheet-name b").all_inner_texts()
    assert names[:2] == ["stem.0", "block.0"]
    canvas = person.see(SHEET).last
    assert canvas.evaluate(COLOURS) > 100
    assert 0 < canvas.evaluate(MAGENTA) < 0.1  # frames, no fields
    assert person.see(".sheet-about .states li").all_inner_texts()[0] == "non-finite"
    person.see(".verdict .go").click()
    person.drawn(NAN_FROM, "block.0")


def test_the_verdict_is_named_and_the_rest_of_it_opens_on_a_click(
    first: Callable[..., Person],
) -> None:
    person = first(run="ill")
    assert person.see(".verdict b").inner_text() == "Fault:"
    rest = person.see(".why dd")
    assert not rest.first.is_visible()
    person.see(".why summary").click()
    said = rest.all_inner_texts()
    assert said[0].startswith("The fault is in the weights: block.0.weight is not finite")
    labels = person.see(".why dt").all_inner_texts()
    assert labels[0].lower() == "means"
    assert [label.lower() for label in labels].count("next") == 1
    assert len(labels) < len(said)  # remarks of one kind share their label
    person.page.set_viewport_size({"width": 500, "height": 800})
    person.settle()
    assert person.see(".verdict b").bounding_box()["height"] < 40  # one line


def test_a_run_whose_loss_is_not_known_has_no_tick_and_says_what_was_looked_through(
    first: Callable[..., Person],
) -> None:
    person = first(run="healthy")
    assert person.see(".verdict .mark").inner_text() == "?"
    said = person.see(".verdict .sentence").inner_text()
    size = f"2 layers × {len(HEALTHY_STEPS)} steps"
    assert said.startswith(f"nothing found in {size}; whether it learns is not known, since ")
    person.see(".why summary").click()
    listed = person.see(".why dd").all_inner_texts()
    (moved,) = [line for line in listed if line.startswith("median update ")]
    assert re.search(r", largest .* \(\d\.(weight|bias), step \d+\)", moved)
    assert not person.see(".verdict .go").count()
    assert person.see(SHEET).last.evaluate(MAGENTA) == 0
    assert person.see(".sheet-steps span").all_inner_texts() == [str(s) for s in HEALTHY_STEPS]
    assert not person.see(".overview-head .about").is_visible()


def test_a_cell_says_what_it_shows_and_opens_its_layer_at_its_step(
    first: Callable[..., Person],
) -> None:
    person = first(run="healthy")
    person.page.mouse.move(*place(person, 1, 3))
    tip = person.see(".contact-sheet .tip")
    tip.wait_for()
    said = tip.inner_text()
    assert said.startswith(f"2 · step {HEALTHY_STEPS[3]}\nfine")
    shown = re.search(r"\nchannel (\d): −?[\d.]+ … −?[\d.]+$", said)
    assert shown
    person.page.mouse.click(*place(person, 1, 3))
    person.drawn(HEALTHY_STEPS[3], "2")
    assert f"p.feature_maps.channel={shown[1]}" in person.page.url
    person.see(".toolbar button:text-is('Film')").click()
    person.wait("document.querySelector('.film-channels')?.value")
    assert person.see(".film-channels").input_value() == shown[1]


def test_the_sheet_is_used_and_announced_with_the_keyboard(first: Callable[..., Person]) -> None:
    person = first(run="ill", layer="fmapboard/stem.0", step=0, view="overview")
    person.press("ArrowDown", "ArrowDown", "End", "ArrowLeft")
    said = person.see(".contact-sheet + [role=status]")
    assert said.text_content().startswith("block.0 · step 50. non-finite")
    assert person.see(".contact-sheet .cursor").is_visible()
    person.press("Enter")
    person.drawn(50, "block.0")


def test_pictures_and_states_are_one_button_apart_and_the_address_keeps_which(
    first: Callable[..., Person],
) -> None:
    person = first(run="ill")
    person.see(".toolbar button:text-is('States')").click()
    person.see(".health-map").wait_for()
    assert not person.see(".contact-sheet").is_visible()
    person.reopen()
    assert person.see(".health-map").is_visible()
    person.see(".toolbar button:text-is('Pictures')").click()
    person.see(SHEET).first.wait_for()


def test_states_come_first_where_four_columns_do_not_fit(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, width=240, view=None, run="ill")
    assert person.see(".health-map").is_visible()
    assert not person.see(".contact-sheet").is_visible()


def test_further_runs_have_a_row_each_faulty_ones_first(first: Callable[..., Person]) -> None:
    person = first(run="healthy")
    rows = person.see(".run-rows > li")
    person.see(".run-summary button:text-is('Show all')").click()
    rows.nth(1).wait_for()
    gutter = "getComputedStyle(document.querySelector('main.overview')).scrollbarGutter"
    assert person.frame.evaluate(gutter) == "stable"  # the rows move no column sideways
    assert [row.split("\n")[0] for row in rows.all_inner_texts()] == ["✕", "✕"]
    assert rows.locator(".of-run").all_inner_texts() == ["ill", STORED]
    assert f"since step {NAN_FROM}" in rows.first.inner_text()
    rows.first.locator("button").click()
    person.wait("document.querySelector('.verdict .sentence').textContent.includes('block.0')")
    assert "p.feature_maps.run=ill" in person.page.url
    assert person.see(".run-rows .of-run").all_inner_texts() == [STORED, "healthy"]


def test_findings_open_without_a_change_of_the_size_of_cells(first: Callable[..., Person]) -> None:
    person = first(run="ill")
    before = person.see(".sheet-name").first.bounding_box()
    assert not person.see(".finding").first.is_visible()
    person.see("button:has-text('Findings')").click()
    person.see(".finding").first.wait_for()
    person.settle()
    assert person.see(".sheet-name").first.bounding_box()["height"] == before["height"]
    assert "p.feature_maps.findings=open" in person.page.url


@pytest.fixture(scope="module")
def twelve(
    serve: Callable[[Path], str], overview_runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Eleven runs in which nothing was found, and one with a fault."""
    root = tmp_path_factory.mktemp("twelve")
    for i in range(11):
        shutil.copytree(overview_runs / "healthy", root / f"run{i}")
    shutil.copytree(overview_runs / "ill", root / "z")
    return serve(root)


def test_at_200_percent_zoom_a_picture_is_on_the_first_screen_beside_many_runs(
    twelve: str, visit: Callable[..., Person]
) -> None:
    width, height = 720, 450  # of 1440 × 900
    person = visit(twelve, width=width, height=height, view=None, run="run0")
    person.see(".run-summary span").filter(has_text="11 further runs").wait_for()
    person.settle()
    (top, line) = person.frame.evaluate(
        """() => [...document.querySelectorAll(".sheet-name")].slice(0, 1).flatMap((row) => {
          const { top, height } = row.getBoundingClientRect();
          return [top, height];
        })"""
    )
    assert 0 < top < top + line <= height - HEADER


def test_runs_are_known_by_what_is_stored_and_those_not_known_to_learn_share_a_row(
    twelve: str, visit: Callable[..., Person]
) -> None:
    person = visit(twelve, view=None, run="run0")
    counts = "11 further runs: 1 faulty, 10 not known"
    person.see(".run-summary span").filter(has_text=counts).wait_for()
    together = person.see(".run-rows .together")
    asked = person.frame.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
    assert len([name for name in asked if "/data/findings?" in name]) == 1  # the others are stored
    assert len([name for name in asked if "/data/verdicts?" in name]) == 1
    person.see(".run-summary button:text-is('Show all')").click()
    person.wait("document.querySelectorAll('.run-rows button').length === 11")
    assert together.locator("button").count() == 10
    assert person.see(".verdict .of-run").inner_text() == "run0:"
    assert person.see(".run-rows > li").first.inner_text().startswith("✕")


def test_the_sheet_keeps_the_focus_while_further_runs_are_looked_through(
    twelve: str, visit: Callable[..., Person]
) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    person = visit(twelve, routes={"**/data/verdicts?*": hold}, view=None, run="run0")
    person.settle()
    while not held:
        person.frame.evaluate("new Promise(requestAnimationFrame)")
    person.see(".sheet-about button").last.focus()
    person.press("Tab")
    focused = "document.activeElement.className === 'contact-sheet'"
    person.wait(focused)
    held.pop().continue_()
    person.see(".run-summary span").filter(has_text="11 further runs").wait_for()
    assert person.frame.evaluate(focused)


def log_with_inputs(run: Path, *, probe: bool, mean: float = 0.0) -> None:
    """Train on another image at each step, with or without one that is kept."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = {"probe": torch.rand(1, 3, 16, 16)} if probe else {}
    with fmapboard.watch(model, run, every=1, optimizer=optimizer, **kept) as board:
        for step in range(6):
            with board.step(step):
                optimizer.zero_grad()
                model(torch.rand(2, 3, 16, 16) - mean).square().mean().backward()
                optimizer.step()


def test_the_input_is_one_thumbnail_if_it_stayed_the_same_otherwise_a_row(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    log_with_inputs(tmp_path / "probed", probe=True)
    log_with_inputs(tmp_path / "other", probe=False)
    log_with_inputs(tmp_path / "normalized", probe=False, mean=0.5)
    log_healthy(tmp_path / "same")
    address = serve(tmp_path)
    for run, rest in (("probed", "; maps in eval mode"), ("same", "")):
        person = visit(address, view=None, run=run)
        person.see(".sheet-corner canvas").wait_for()
        assert person.see(".sheet-corner").inner_text() == f"input, the same at every step{rest}"
        assert not person.see(".sheet-note").is_visible()
        assert person.see(".sheet-corner canvas").evaluate(COLOURS) > 50
    person = visit(address, view=None, run="other")
    note = person.see(".sheet-note")
    assert note.inner_text() == "a different image at each step, which the maps follow"
    person = visit(address, view=None, run="normalized")
    note = person.see(".sheet-note")
    assert note.inner_text().endswith("which the maps follow; stretched colours")
    assert not person.see(".sheet-corner canvas").is_visible()
    assert person.see(SHEET).first.evaluate(COLOURS) > 6 * 50


def test_of_attention_one_row_is_in_the_sheet_and_says_whose_it_is(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    model = NETWORKS["softmax"]()
    with slow_path(), fmapboard.watch(model, tmp_path / "vit", every=1) as board:
        for step in range(2):
            with board.step(step):
                model(images(2)).square().mean().backward()
    person = visit(serve(tmp_path), height=1400, view=None, run="vit")
    person.see(SHEET).first.wait_for()
    person.settle()
    names = person.see(".sheet-name b").all_inner_texts()
    assert [name for name in names if "rows" in name] == [
        "blocks.0.attn.rows",
        "blocks.1.attn.rows",
    ]
    row = person.see(".sheet-name:has(b:text-is('blocks.0.attn.rows')) span")
    said = " ".join(row.all_inner_texts())
    assert re.fullmatch("attention of head . from the first token, or the last if causal", said)
    person.see(".toolbar button:text-is('Maps')").click()
    person.see(".layer .name:has-text('peak_rows')").first.wait_for()


def test_a_row_has_one_scale_on_demand_and_the_address_keeps_it(
    first: Callable[..., Person],
) -> None:
    person = first(run="healthy")
    about = person.see(".sheet-about")
    assert about.inner_text().startswith(f"{len(HEALTHY_STEPS)} steps")
    assert person.see(".sheet-about [aria-pressed=true]").inner_text() == (
        "Each picture on its own scale"
    )
    before = person.canvas(".sheet-page > canvas")
    about.locator("button:text-is('One scale per row')").click()
    person.settle()
    person.reopen()
    person.see(SHEET).first.wait_for()
    person.settle()
    assert person.see(".sheet-about [aria-pressed=true]").inner_text() == "One scale per row"
    assert person.canvas(".sheet-page > canvas") != before


def test_fewer_columns_are_some_of_those_of_a_larger_window_and_what_is_left_out_is_marked(
    first: Callable[..., Person],
) -> None:
    person = first(run="healthy")
    person.page.set_viewport_size({"width": 600, "height": 800})
    person.settle()
    shown = person.see(".sheet-steps span").all_inner_texts()
    assert len(shown) < len(HEALTHY_STEPS)
    assert set(shown) <= {str(step) for step in HEALTHY_STEPS}
    said = f"{len(shown)} of {len(HEALTHY_STEPS)} steps"
    assert person.see(".sheet-about").inner_text().startswith(said)
    assert "left out" in str(person.see(".sheet-steps .gap").first.get_attribute("title"))
