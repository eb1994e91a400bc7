"""Attribution in the tab: a kind beside maps and gradients, with the first step as its control."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attributed_training import batch, residual_network
from browser_visitor import Person
from seen_columns import saved_texts
from tab_client import open_tab
from torch.nn import functional

import fmapboard
from fmapboard.cli.main import run_visualize
from fmapboard.demo.bundled import bundled

STEPS = 4
AXE = Path(__file__).parents[1] / "js" / "node_modules" / "axe-core" / "axe.min.js"
KIND = "[aria-label='What is drawn'] button:text-is('Attribution')"
ROWS = ".attribution-rows > section"


def log(run: Path, *, factor: float = 1.0, **options: Any) -> None:
    """Train on images of 16×12; every step is logged, with maps of 16×12 and 8×6."""
    torch.manual_seed(0)
    model, (x, y) = residual_network(), batch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, run, optimizer=optimizer, every=1, samples=2, **options):
        for _ in range(STEPS):
            optimizer.zero_grad()
            (functional.cross_entropy(model(x), y) * factor).backward()
            optimizer.step()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with attribution, one whose loss has no gradient, and one without attribution."""
    root = tmp_path_factory.mktemp("attributed")
    log(root / "attributed", attribution=True, activation_gradients=True)
    log(root / "flat", attribution=True, factor=0.0)
    log(root / "without")
    return root


@pytest.fixture(scope="module")
def place(serve: Callable[[Path], str], runs: Path) -> str:
    return serve(runs)


def captions(person: Person) -> list[str]:
    return list(person.see(f"{ROWS}:first-of-type figcaption").all_text_contents())


def test_attribution_follows_the_slider_beside_the_first_step(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="attributed", view="attribution")
    person.drawn(3)
    assert person.see(KIND).get_attribute("aria-pressed") == "true"
    headings = person.see(f"{ROWS} h2").all_text_contents()
    assert headings == ["1 · ReLU, 16×12", "3.relu (call 2) · ReLU, 8×6"]
    now, first = captions(person)
    assert now.startswith("step 3")
    assert "gradient norm " in now
    assert first.startswith("first step 0")
    person.press("ArrowLeft")
    person.drawn(2)
    assert captions(person)[0].startswith("step 2")
    assert captions(person)[1] == first
    person.press("Home")
    person.drawn(0)
    assert captions(person)[0].removeprefix("step 0") == first.removeprefix("first step 0")
    canvases = [f"{ROWS}:first-of-type figure:nth-child({k}) canvas" for k in (1, 2)]
    assert person.canvas(canvases[0]) == person.canvas(canvases[1])
    person.press("End")
    person.drawn(3)
    assert person.canvas(canvases[0]) != person.canvas(canvases[1])


def test_the_heat_has_the_aspect_of_the_input_and_fits_the_window(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="attributed", view="attribution")
    person.drawn(3)
    for window, sides in {(1400, 800): (198, 264), (700, 500): (150, 200)}.items():
        person.page.set_viewport_size({"width": window[0], "height": window[1]})
        person.settle()
        for canvas in person.see(f"{ROWS} canvas").all():
            box = canvas.bounding_box()
            assert (box["width"], box["height"]) == sides


def test_the_page_says_lowers_the_loss_here_and_never_explains(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="attributed", view="attribution")
    said = person.see(".attribution").inner_text()
    assert "a larger activation of the layer lowers the loss here" in said
    assert "The first logged step is the control" in said
    assert "expla" not in said


def test_another_sample_has_another_picture(place: str, visit: Callable[..., Person]) -> None:
    person = visit(place, run="attributed", view="attribution")
    person.drawn(3)
    before = person.canvas(f"{ROWS} canvas")
    person.menu("Data")
    person.see("select[aria-label=Sample]").select_option("1")
    person.settle()
    assert person.canvas(f"{ROWS} canvas") != before


def test_a_key_leads_from_kind_to_kind_and_the_address_keeps_it(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="attributed", role="kernels", layer="fmapboard/0")
    person.settle()
    assert person.see(".attribution").is_hidden()
    person.press("r")
    person.settle()
    assert person.see(".attribution").is_visible()
    assert person.see(".layers").is_hidden()
    assert "view=attribution" in person.page.url
    person.reopen()
    person.see(ROWS).first.wait_for()
    person.press("r")
    person.settle()
    assert person.see(".attribution").is_hidden()
    assert "role" not in person.page.url
    person.menu("Data")
    person.see(KIND).click()
    person.settle()
    person.press("Escape", "Escape")  # the first closes the menu
    person.settle()
    assert person.see(".grid").is_visible()


def test_a_negligible_map_is_called_so_and_its_picture_is_one_grey(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="flat", view="attribution")
    person.drawn(3)
    assert captions(person) == [
        "step 3gradient norm 0, map negligible",
        "first step 0gradient norm 0, map negligible",
    ]
    grey = """() => { const c = document.querySelector('.attribution-rows > section canvas');
      const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
      return [...new Set(d)].sort().join(); }"""
    assert person.frame.evaluate(grey) == "128,255"


def test_a_long_caption_below_a_small_picture_is_not_cut_off(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="flat", view="attribution", width=700, height=500)
    person.drawn(3)
    captions = person.see(f"{ROWS} figcaption .value")
    captions.first.evaluate("(e) => (e.textContent = 'gradient norm 0.00595, map negligible')")
    assert captions.first.evaluate("(e) => e.scrollWidth <= e.clientWidth")


def test_the_view_is_saved_with_what_it_shows(place: str, visit: Callable[..., Person]) -> None:
    person = visit(place, run="attributed", view="attribution")
    person.drawn(3)
    assert person.see("button[aria-label='Save the view as PNG']").is_visible()
    texts = saved_texts(person)
    assert texts[0] == "Attribution · attributed · step 3 · sample 0"
    assert any("a larger activation of the layer lowers the loss here" in text for text in texts)
    assert any("The first logged step is the control" in text for text in texts)
    for heading in person.see(f"{ROWS} h2").all_text_contents():
        assert heading in texts
    assert [text for text in texts if text in ("step 3", "first step 0")] == [
        "step 3", "first step 0", "step 3", "first step 0",
    ]  # fmt: skip
    assert len([text for text in texts if text.startswith("gradient norm ")]) == 4


def test_a_run_without_attribution_has_no_control_and_shows_its_maps(
    place: str, visit: Callable[..., Person]
) -> None:
    person = visit(place, run="without", view="attribution", layer="fmapboard/0")
    person.settle()
    assert person.see(".grid").is_visible()
    assert person.see(KIND).is_hidden()


def test_the_first_picture_is_there_when_tensorboard_dropped_it(runs: Path) -> None:
    whole, sampled = open_tab(runs), open_tab(runs, kept=1)
    listed = whole.ask("data/attribution", run="attributed")["series"]
    assert [(s["label"], s["sample"], s["size"]) for s in listed] == [
        ("1", 0, [16, 12]), ("1", 1, [16, 12]),
        ("3.relu.call2", 0, [8, 6]), ("3.relu.call2", 1, [8, 6]),
    ]  # fmt: skip
    assert all(s["steps"] == [0, 1, 2, 3] for s in listed)
    assert all(gradient > 0 for s in listed for gradient in s["gradients"])
    few = sampled.ask("data/attribution", run="attributed")["series"][0]
    assert few["steps"] == [0, 3]
    first = {"run": "attributed", "key": few["key"], "step": 0}
    assert sampled.get("data/attribution_picture", **first).data.startswith(b"\x89PNG")
    assert (
        sampled.get("data/attribution_picture", **first).data
        == whole.get("data/attribution_picture", **first).data
    )
    assert sampled.get("data/attribution_picture", **{**first, "step": 1}).status_code == 404
    assert sampled.get("data/attribution_picture", **{**first, "key": "a"}).status_code == 404
    assert whole.ask("data/attribution", run="without")["series"] == []


def test_of_one_image_the_words_are_in_a_cell_beside_the_pictures(
    tmp_path: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    image = str(bundled("photographs") / "chelsea.jpg")
    with pytest.raises(SystemExit):
        run_visualize([image, "--attribution", "--logdir", str(tmp_path / "chelsea")])
    person = visit(serve(tmp_path), run="chelsea", view="attribution", width=1280, height=800)
    person.see(f"{ROWS} canvas").first.wait_for()
    person.settle()
    words = person.see(".attribution-rows > .attribution-text").bounding_box()
    side = person.see(".attribution-rows canvas").first.bounding_box()["width"]
    assert words["width"] == side > 290  # px; three in a row
    first, *_ = person.see(f"{ROWS} figcaption").all_inner_texts()
    assert first.splitlines()[0] == "relu1 · ReLU, 128×128"
    assert first.splitlines()[-1].startswith("gradient norm ")
    said = person.see(".attribution-text").inner_text()
    assert "brightness does not compare layers" in said
    assert "Regular dots: strided convolutions" in said


def test_axe_finds_no_violation(place: str, visit: Callable[..., Person]) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing: npm ci --prefix tests/js")
    person = visit(place, run="attributed", view="attribution")
    person.settle()
    person.frame.evaluate(AXE.read_text())
    for theme in ("light", "dark"):
        person.frame.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        found = person.frame.evaluate("axe.run(document).then((all) => all.violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
