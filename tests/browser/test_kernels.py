"""Kernels in a real browser: their weights are those of the model, as PyTorch applies them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from browser_visitor import Person
from drawn_texts import drawn_texts
from kernel_readings import COUNTS, assert_weights, number, sweep, weights
from own_convolutions import Experts
from PIL import Image
from torch import nn
from trained_kernels import DRAWN, STEPS, Kernels

from fmapboard import watch

IMAGES = [
    "rgb", "plain", "depthwise", "grouped", "grouped_rgb", "up", "up_grouped", "last",
]  # fmt: skip
OFTEN = {"rgb", "up_grouped"}
"""Layers that CI looks at; `pytest -m sweep` looks at the others."""


@pytest.fixture(scope="module")
def kernels_address(serve: Callable[[Path], str], trained_kernels: Kernels) -> str:
    return serve(trained_kernels.logdir)


@pytest.fixture
def open_kernels(kernels_address: str, visit: Callable[..., Person]) -> Callable[..., Person]:
    """A function that opens the kernels of a layer."""

    def open_layer(layer: str, run: str = "one", **state: Any) -> Person:
        person = visit(
            kernels_address, role="kernels", run=run, layer=f"fmapboard/{layer}", **state
        )
        person.settle()
        return person

    return open_layer


@pytest.mark.parametrize(
    "layer",
    [pytest.param(layer, marks=() if layer in OFTEN else pytest.mark.sweep) for layer in IMAGES],
)
def test_the_weight_under_the_pointer_is_the_model_s(
    trained_kernels: Kernels, open_kernels: Callable[..., Person], layer: str
) -> None:
    person = open_kernels(layer, step=20)
    assert_weights(sweep(person), trained_kernels.at["one", 20][layer], COUNTS[layer])


@pytest.mark.parametrize(
    "layer", [pytest.param("sequence", marks=pytest.mark.sweep), "sequence_up", "volume"]
)
def test_weights_over_sequences_and_volumes_are_the_model_s(
    trained_kernels: Kernels, open_kernels: Callable[..., Person], layer: str
) -> None:
    person = open_kernels(layer, run="axes", step=10)
    assert_weights(sweep(person), trained_kernels.at["axes", 10][layer], COUNTS[layer])


def test_of_experts_a_row_of_weights_each_is_shown_and_none_is_a_channel(
    tmp_path: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(Experts(3, 2))
    layer = model[0]
    with watch(model, tmp_path / "run", every=1) as board, board.step(0):
        model(torch.rand(2, 3, 8, 8)).sum().backward()
    place = {"run": "run", "layer": "fmapboard/0"}
    address = serve(tmp_path)
    person = visit(address, role="kernels", **place)
    person.settle()
    assert [text for text in drawn_texts(person, ".grid canvas") if text.isdigit()] == [*"0123"]
    seen = set()
    for y in (63, 113, 163, 213):
        person.see(".grid canvas").hover(position={"x": 60, "y": y})
        person.settle()
        row, where, value = person.see(".status").text_content().split(" · ")
        expert = int(row.removeprefix("row "))
        seen.add(expert)
        weight = float(layer.weight.detach()[expert, int(where.removeprefix("position "))])
        stored, error = (float(part.replace("−", "-")) for part in value.split(" ± "))
        assert abs(stored - weight) <= error * 1.01
    assert seen == {0, 1, 2, 3}
    person.see(".grid canvas").click(position={"x": 60, "y": 72})
    person.press("]")
    person.settle()
    assert "channel" not in person.page.url
    assert "its rows are no channels" in person.see(".kernels .note").text_content()
    person = visit(address, view="film", channel=1, **place)
    person.settle()
    assert "the weight has no kernel per channel" in drawn_texts(person, ".film canvas")


def test_a_click_selects_the_output_channel_and_the_maps_show_it(
    open_kernels: Callable[..., Person],
) -> None:
    person = open_kernels("plain")
    assert "Click a kernel" in person.see(".kernels .note").text_content()
    points = person.frame.evaluate(
        """async () => {
          const canvas = document.querySelector(".grid canvas");
          const box = canvas.getBoundingClientRect();
          const text = document.querySelector(".status");
          for (let y = box.height - 5; y > 0; y -= 3) {
            const at = { clientX: box.left + 80, clientY: box.top + y, bubbles: true };
            canvas.dispatchEvent(new MouseEvent("mousemove", at));
            for (let i = 0; i < 3; i += 1) await null; // the text is drawn in a microtask
            if (text.textContent.startsWith("channel 5 ")) return [80, y];
          }
        }"""
    )
    person.see(".grid canvas").click(position={"x": points[0], "y": points[1]})
    person.settle()
    assert "p.feature_maps.channel=5" in person.page.url
    assert person.see(".kernels h2").text_content() == "Kernels of channel 5"
    person.press("]")
    person.settle()
    assert person.see(".kernels h2").text_content() == "Kernels of channel 6"
    person.menu("Data")
    person.see("[aria-label=Data] button:text-is('Maps')").click()
    person.settle()
    assert person.see(".channel:visible h2").text_content() == "Channel 6"
    person.reopen()
    assert person.see(".channel:visible h2").text_content() == "Channel 6"


def test_kernels_have_numbers_and_follow_the_tile_size(
    open_kernels: Callable[..., Person],
) -> None:
    person = open_kernels("plain")
    numbers = [text for text in drawn_texts(person, ".grid canvas") if text.isdigit()]
    left, above = numbers[:DRAWN], numbers[DRAWN:]  # outputs and inputs, by their norms
    assert sorted(left, key=int) == [*map(str, range(DRAWN))]
    assert sorted(above, key=int) == [*map(str, range(6))]
    assert left != sorted(left, key=int)
    sizes = []
    for tile in ("24", "64", "192"):
        person.menu("Display")
        person.see("select[aria-label=Tile]").select_option(tile)
        person.settle()
        sizes.append(person.see(".sheet").bounding_box()["width"])
        sizes.append(person.see(".sheet").bounding_box()["height"])
    assert sizes[4] > sizes[2] > 6 * 64
    assert sizes[5] > 8 * 192  # higher than the window: it scrolls
    person = open_kernels("rgb")
    numbers = [text for text in drawn_texts(person, ".grid canvas") if text.isdigit()]
    assert numbers == [*map(str, range(6))]


@pytest.mark.parametrize(("other", "run", "step"), [("@0", "one", 0), ("two@", "two", 20)])
def test_kernels_of_two_steps_or_runs_have_one_scale_and_a_difference(
    trained_kernels: Kernels, open_kernels: Callable[..., Person], other: str, run: str, step: int
) -> None:
    person = open_kernels("plain", step=20, compare=other, show="all", channel=2)
    mine, theirs = (trained_kernels.at[k]["plain"][:DRAWN] for k in (("one", 20), (run, step)))
    points = sweep(person, every=8)
    for part, expected in ((" · A ·", mine), (" · B ·", theirs), (" · A − B ·", mine - theirs)):
        said = [(text, colour) for text, colour in points if part in text]
        assert said, part
        for text, _ in said:
            ((at, value, error),) = weights(text)
            true = float(expected[at])
            assert abs(value - true) <= 1.06 * error + 6e-3 * abs(true), (text, true)
    peak = float(max(mine.abs().max(), theirs.abs().max()))
    between = float((mine - theirs).abs().max())
    bars = person.see(".legend .bar:visible")
    assert bars.count() == 2
    for bar, most, exact in ((0, peak, 5e-3), (1, between, 0.1)):
        labels = bars.nth(bar).locator(".end").all_text_contents()
        start, end = number(labels[0]), number(labels[-1])
        assert start == -end
        assert end == pytest.approx(most, rel=exact, abs=0.02 * peak if bar else 0)
    rows = person.see(".kernels .kernel-numbers tr").all_text_contents()
    assert rows[0] == "AB"
    norm = float((mine - theirs)[2].norm())
    shown = number(rows[4].removeprefix("Norm of A − B"))
    assert shown == pytest.approx(norm, abs=0.02 * peak * 54**0.5)


def test_the_same_kernels_differ_by_no_more_than_their_rounding(
    open_kernels: Callable[..., Person],
) -> None:
    person = open_kernels("plain", step=20, compare="@20", show="difference")
    offered = person.see("select[aria-label='Compare with'] option").evaluate_all(
        "(all) => all.map((each) => each.value)"
    )
    assert not {"sample", "role"} & set(offered)  # the same kernels
    assert not person.see("button:has-text('Rank layers')").is_visible()
    assert "No difference is larger than the rounding" in person.see(".order").text_content()


def test_kernels_of_another_shape_are_not_compared(
    tmp_path: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    import fmapboard

    for run, size in (("a", 3), ("b", 5)):
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 4, size, padding=size // 2))
        with fmapboard.watch(model, tmp_path / run, every=1, kernels=1) as board, board.step(0):
            model(torch.randn(1, 2, 8, 8)).sum().backward()
    person = visit(serve(tmp_path), run="a", role="kernels", layer="fmapboard/0", compare="b@")
    assert "kernels of another shape" in person.see(".grid-room > .note").text_content()
    assert sweep(person)


def test_the_legend_of_rgb_kernels_says_what_each_colour_is(
    trained_kernels: Kernels, open_kernels: Callable[..., Person]
) -> None:
    person = open_kernels("rgb", step=20)
    peak = float(trained_kernels.at["one", 20]["rgb"].abs().max())
    meaning = person.see(".order").text_content()
    full, none = re.search(r"half bright \(grey\) is 0, full (\S+), none (\S+)\.", meaning).groups()  # type: ignore[union-attr]
    assert number(full) == -number(none) == pytest.approx(peak, rel=5e-3)
    assert person.see(".legend .ramp.rgb:visible").count() == 1
    assert not person.see(".toolbar select[aria-label^=Colours]").is_visible()


@pytest.mark.parametrize(
    "layer", ["rgb", "up_grouped", pytest.param("plain", marks=pytest.mark.sweep)]
)
def test_the_panel_has_all_kernels_of_a_channel_and_their_numbers(
    trained_kernels: Kernels, open_kernels: Callable[..., Person], layer: str
) -> None:
    person = open_kernels(layer, step=10, channel=3 if layer != "up_grouped" else 2)
    channel = 3 if layer != "up_grouped" else 2
    expected = trained_kernels.at["one", 10][layer]
    own = expected[channel]
    inputs = [i for i in range(len(own)) if own[i].any()]
    tiles = ".kernels canvas:last-of-type"
    points = sweep(person, tiles, ".kernel-value", every=8)
    read = assert_weights(points, expected, len(inputs))
    assert read == {(channel, i) for i in inputs}
    numbers = [text for text in drawn_texts(person, tiles) if text.startswith("in ")]
    assert numbers == [f"in {i}" for i in inputs]
    rows = dict(
        row.split("\t")
        for row in person.see(".kernels .kernel-numbers").inner_text().strip().splitlines()
    )
    for name, true in (("Minimum", own.min()), ("Maximum", own.max()), ("Norm", own.norm())):
        value, error = rows[name].split(" ± ")
        assert abs(number(value) - float(true)) <= 1.06 * number(error) + 6e-3 * abs(float(true))
    assert rows["Drawn"] == f"{len(inputs)} of {len(inputs)} inputs"


def test_a_channel_without_drawn_kernels_says_so(open_kernels: Callable[..., Person]) -> None:
    person = open_kernels("plain", channel=DRAWN + 1)
    note = person.see(".kernels .note").text_content()
    assert note == (
        "No kernel of this channel is drawn: the picture has the first 8 of 12 output channels."
    )
    assert "8 of 12 output channels, 6 inputs" in person.see(".order").text_content()


def test_saved_kernels_have_their_numbers_scale_and_meaning(
    open_kernels: Callable[..., Person], tmp_path: Path
) -> None:
    person = open_kernels("plain", step=20, compare="@0", show="all")
    person.frame.evaluate(
        """() => { window.written = []; const kind = OffscreenCanvasRenderingContext2D.prototype;
          const write = kind.fillText;
          kind.fillText = function (text, ...at) {
            window.written.push(text);
            return write.call(this, text, ...at); }; }"""
    )
    with person.page.expect_download() as download:
        person.press("p")
    download.value.save_as(tmp_path / "view.png")
    with Image.open(tmp_path / "view.png") as picture:
        assert picture.width >= 1200
    texts = person.frame.evaluate("() => window.written")
    assert any(text.startswith("weights, all kernels: −") for text in texts)
    assert any(text.startswith("A − B, each ±") for text in texts)
    assert any("A row per output channel, a column per input" in text for text in texts)
    assert {str(c) for c in range(DRAWN)} <= set(texts)


def test_the_first_step_of_a_kernel_is_that_of_the_untrained_network(
    trained_kernels: Kernels, open_kernels: Callable[..., Person]
) -> None:
    person = open_kernels("plain", step=STEPS[0])
    now, first = (trained_kernels.at["one", step]["plain"] for step in (20, 0))
    assert float((now - first).abs().max()) > 0.05 * float(first.abs().max())
    assert_weights(sweep(person), first, COUNTS["plain"])


def test_kernels_that_are_not_finite_are_that_word_in_the_film_and_in_the_legend(
    tmp_path: Path, serve: Callable[[Path], str], visit: Callable[..., Person]
) -> None:
    model = nn.Sequential(nn.Conv2d(2, 4, 3))
    with watch(model, tmp_path / "run", every=1) as board:
        for step in range(2):
            with board.step(step):
                model(torch.randn(1, 2, 8, 8)).sum().backward()
            with torch.no_grad():
                model[0].weight[1] = torch.nan
    address = serve(tmp_path)
    place = {"run": "run", "layer": "fmapboard/0"}
    film = visit(address, view="film", channels="1", **place)
    film.wait("document.documentElement.dataset.film === 'ready'")
    texts = drawn_texts(film, ".film canvas")
    assert texts.count("NaN") == 2, texts  # the map's badge, and the kernel
    kernels = visit(address, role="kernels", **place)
    kernels.settle()
    assert kernels.see(".legend .marks li:visible").all_inner_texts() == ["NaN"]
