"""The film strip: chosen channels at all kept steps, in a real browser."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
import torch
from browser_visitor import Person
from PIL import Image
from stored_maps import stored_maps
from striped_training import STEPS
from torch import nn

import fmapboard

READY = "document.documentElement.dataset.film === 'ready'"
BAD_FROM, LAST = 12, 19


class Doubling(nn.Module):
    """Two 1x1 convolutions; channel 1 of ``first`` is not finite from step `BAD_FROM` on."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of 20 steps, in which the weights grow by a tenth per step: with a probe and without."""
    root = tmp_path_factory.mktemp("film")
    for name in ("probed", "unprobed"):
        torch.manual_seed(0)
        model = Doubling()
        images = torch.rand(LAST + 1, 2, 3, 8, 8)
        probe = images[0, :1] if name == "probed" else None
        with fmapboard.watch(model, root / name, every=1, kernels=5, probe=probe) as board:
            for step in range(LAST + 1):
                with torch.no_grad():
                    model.first.weight *= 1.1
                    if step == BAD_FROM:
                        model.first.weight[1] = math.inf
                with board.step(step), torch.no_grad():
                    model(images[step])
    return root


@pytest.fixture(scope="module")
def grown_address(serve: Callable[[Path], str], grown: Path) -> str:
    return serve(grown)


EVERY_PLACE = """async (canvas) => {
  const box = canvas.getBoundingClientRect(), said = [];
  const status = document.querySelector(".film .status");
  for (let y = 30; y < box.height; y += 23) for (let x = 170; x < box.width; x += 37) {
    const [clientX, clientY] = [box.x + x, box.y + y];
    canvas.dispatchEvent(new MouseEvent("mousemove", { clientX, clientY, bubbles: true }));
    for (let i = 0; i < 3; i += 1) await null; // the text is drawn in a microtask
    said.push(status.textContent);
  }
  return said;
}"""


def seen(person: Person) -> dict[tuple[int, int], dict[tuple[int, int], tuple[float, float]]]:
    """By step and channel: the values and uncertainties that the strip says, by y and x."""
    pattern = r"step (\d+) · channel (\d+) · y (\d+), x (\d+) · (\S+)(?: ± (\S+))?"
    found: dict[tuple[int, int], dict[tuple[int, int], tuple[float, float]]] = {}
    for text in person.see(".film canvas").evaluate(EVERY_PLACE):
        said = re.fullmatch(pattern, text)
        if said is None:
            continue
        step, channel, row, column = map(int, said.groups()[:4])
        numbers = (float((text or "0").replace("−", "-")) for text in said.groups()[4:])
        found.setdefault((step, channel), {})[row, column] = tuple(numbers)  # type: ignore[assignment]
    return found


def test_frames_show_the_stored_values_of_each_step(
    grown: Path, grown_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(grown_address, run="probed", layer="fmapboard/first", channel=3, step=4)
    person.drawn(4, "first")
    person.see("button:has-text('Film strip')").click()
    person.see(".film").wait_for()
    assert "p.feature_maps.view=film" in person.page.url
    channels = person.see("input.film-channels")
    assert channels.input_value() == "3"
    person.menu("Data")
    channels.fill("3, 0, 77")
    channels.press("Enter")
    person.wait(READY)
    assert "p.feature_maps.channels=3%2C0" in person.page.url
    assert "channel 77: only 0 to 3 are drawn" in person.see(".toolbar .differs").text_content()
    true = stored_maps(grown / "probed", "first")
    found = seen(person)
    assert {channel for _, channel in found} == {0, 3}
    assert len({step for step, _ in found}) >= 5
    for (step, channel), values in found.items():
        for (y, x), (value, unit) in values.items():
            expected = true[step][channel, y, x]
            assert value == pytest.approx(expected, abs=unit + 1e-3 * abs(expected)), step


def test_the_scale_is_locked_over_all_steps_and_can_be_unlocked(
    grown: Path, grown_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(grown_address, view="film", run="probed", layer="fmapboard/first", channels="2")
    person.wait(READY)
    values = [maps[2] for maps in stored_maps(grown / "probed", "first").values()]
    scale = person.see(".film-scale")
    assert scale.text_content() == "One scale for all 20 kept steps."
    said = scale.get_attribute("title")
    found = re.fullmatch(r"channel 2 (\S+) … (\S+)", said)
    assert found is not None, said
    lo, hi = (float(text.replace("−", "-")) for text in found.groups())
    assert lo == pytest.approx(np.min(values), rel=0.01)
    assert hi == pytest.approx(np.max(values), rel=0.01)
    locked = person.canvas(".film canvas")
    person.press("l")
    person.see(".film-scale:has-text('Each step has its own scale')").wait_for()
    assert "p.feature_maps.film_scale=step" in person.page.url
    assert person.canvas(".film canvas") != locked


def test_the_first_bad_frame_is_named_and_marked(
    grown_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(
        grown_address, width=1600, view="film", run="probed", layer="fmapboard/first",
        channels="0,1", tile=24,
    )  # fmt: skip
    person.wait(READY)
    onset = person.see(".film-faults button")
    assert onset.all_text_contents() == [
        "channel 1: non-finite first at step 12 (not at 11), at 8 of 20 kept steps"
    ]
    onset.first.click()
    person.wait("document.documentElement.dataset.step === '12'")
    red = person.frame.evaluate(
        """() => { const c = document.querySelector(".film canvas");
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        const columns = new Set();
        for (let i = 0; i < d.length; i += 4)
          if (d[i] === 255 && !d[i+1] && !d[i+2]) columns.add((i / 4) % c.width);
        return [...columns].sort((a, b) => a - b); }"""
    )
    starts = [x for x, before in zip(red, [-9, *red], strict=False) if x - before > 4]
    # +Inf in these frames, and in no other
    assert len(starts) == LAST + 1 - BAD_FROM
    apart = [b - a for a, b in pairwise(starts)]
    assert max(apart) - min(apart) <= 2  # no frame between them is without


def test_different_inputs_are_marked(grown_address: str, visit: Callable[..., Person]) -> None:
    notes = {}
    for run in ("probed", "unprobed"):
        person = visit(grown_address, view="film", run=run, layer="fmapboard/first", tile=24)
        person.wait(READY)
        notes[run] = person.see(".film-inputs").text_content()
    assert notes == {
        "probed": "The same input at every step.",
        "unprobed": "A different input at each step: changes are not the network's alone.",
    }


def test_a_frame_leads_to_its_step_in_the_maps_and_keys_lead_there_and_back(
    grown_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(grown_address, view="film", run="probed", layer="fmapboard/second", channels="1")
    person.wait(READY)
    person.press("Home", "ArrowRight")
    person.wait("document.documentElement.dataset.step === '1'")
    box = person.see(".film canvas").bounding_box()
    for x in range(170, int(box["width"]), 20):
        person.page.mouse.move(box["x"] + x, box["y"] + 10)
        if person.see(".film .status").text_content().startswith("step 2 "):
            break
    person.page.mouse.click(box["x"] + x, box["y"] + 10)
    person.drawn(2, "second")
    person.see("h2:text-is('Channel 1')").wait_for()
    assert not person.see(".film").is_visible()
    person.press("m")
    person.see(".film").wait_for()
    person.reopen()
    person.see(".film .status:has-text('step 2 · channel 1')").wait_for()
    person.press("[")
    person.see(".film .status:has-text('step 2 · channel 0')").wait_for()
    person.press("Escape")
    person.see(".film").wait_for(state="hidden")
    person.press("?")
    assert "film strip" in person.see(".help").text_content()


def test_channels_are_chosen_in_the_grid(address: str, visit: Callable[..., Person]) -> None:
    person = visit(address, run="good", layer="fmapboard/stem.0", tile=64)
    canvas = person.see(".grid canvas").first
    for x, keys in ((30, ["Shift"]), (110, ["Control"]), (190, ["Shift"]), (110, ["Shift"])):
        canvas.click(position={"x": x, "y": 30}, modifiers=keys)
    person.wait("parent.location.hash.includes('p.feature_maps.channels=0%2C2')")
    person.press("m")
    person.wait(READY)
    assert person.see("input.film-channels").input_value() == "0, 2"
    assert f"{len(STEPS)} kept steps" in person.see(".film .facts").text_content()


def test_few_frames_are_requested_and_a_frame_that_fails_says_why(
    grown_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(
        grown_address, anew=True, run="probed", layer="fmapboard/first", tile=192, step=0
    )
    person.drawn(0)
    steps: list[int] = []
    person.page.on(
        "request",
        lambda sent: steps.extend(
            int(found) for found in re.findall(r"data/maps\?.*[?&]step=(\d+)", sent.url)
        ),
    )
    person.page.route(
        re.compile(r"data/maps\?.*[?&]step=3&"),
        lambda route: route.fulfill(status=404, body='{"error": "step 3 is gone"}'),
    )
    person.press("m")
    person.wait(READY)
    assert 0 < len(set(steps)) <= 14
    box = person.see(".film canvas").bounding_box()
    said = set()
    for x in range(170, int(box["width"]), 40):
        for y in (10, 460):  # of two bands
            person.page.mouse.move(box["x"] + x, box["y"] + y)
            said.add(person.see(".film .status").text_content())
    assert "step 3 · channel 1: cannot be loaded: step 3 is gone (HTTP 404)" in said
    with person.page.expect_response(re.compile(rf"data/maps\?.*[?&]step={LAST}&")):
        person.see(".film-strip").evaluate("(strip) => { strip.scrollTop = 1e6; }")
    person.wait(READY)
    person.complaints.clear()  # the browser reports the failed request


def test_the_strip_is_saved_with_all_steps(
    grown_address: str, visit: Callable[..., Person], tmp_path: Path
) -> None:
    person = visit(
        grown_address, width=900, view="film", run="probed", layer="fmapboard/first", channels="1"
    )  # so narrow that most frames are loaded only now
    person.wait(READY)
    with person.page.expect_download() as download:
        person.press("p")
    assert download.value.suggested_filename == "probed_first_film_channel_1.png"
    download.value.save_as(tmp_path / "film.png")
    pixels = np.asarray(Image.open(tmp_path / "film.png").convert("RGB"))
    red = (pixels == (255, 0, 0)).all(axis=-1)
    # The outermost of 8 px are NaN: infinite weights times padding. Frames have 96 px, columns
    # 104 px: there are 10 in each band, so the last 8 columns of the second have steps 12 to 19.
    assert red.sum() >= 8 * 72 * 72
    rows = np.flatnonzero(red.any(axis=1))
    band = red[: rows[0] + 96]
    across = (np.flatnonzero(band[rows[0] + 48]) - 156) // 104
    columns, widths = np.unique(across, return_counts=True)
    assert columns[widths >= 72].tolist() == list(range(2, 10))


def test_a_step_far_beyond_the_others_does_not_set_their_scale(
    serve: Callable[[Path], str], tmp_path: Path, visit: Callable[..., Person]
) -> None:
    torch.manual_seed(0)
    model, image = Doubling(), torch.rand(1, 3, 8, 8)
    kernels = model.first.weight.detach().clone()
    with fmapboard.watch(model, tmp_path / "spike", every=1, probe=image) as board:
        for step in range(8):
            with torch.no_grad():
                model.first.weight.copy_(kernels * (200.0 if step == 5 else 1.0))
            with board.step(step), torch.no_grad():
                model(image)
    person = visit(
        serve(tmp_path), view="film", run="spike", layer="fmapboard/first", channels="0", tile=96
    )
    person.wait(READY)
    scale = person.see(".film-scale")
    assert scale.inner_text() == "One scale, without 1 step (▲ outlying)."
    said = scale.get_attribute("title").replace("−", "-")
    lo, hi = map(float, re.findall(r"channel 0 (\S+) … (\S+)", said)[0])
    assert max(abs(lo), abs(hi)) < 5
    readout = person.see(".film .status")
    person.see(".film-strip").hover(position={"x": 156 + 2 * 104 + 20, "y": 330})
    assert "beyond the scale" in readout.text_content()


def test_a_strip_opens_at_the_first_fault_of_its_channels_unless_a_step_is_chosen(
    grown_address: str, visit: Callable[..., Person]
) -> None:
    def top_band(**state: object) -> float:
        person = visit(
            grown_address, width=900, height=500, run="probed", layer="fmapboard/first",
            view="film", tile=96, **state,
        )  # fmt: skip
        person.wait(READY)
        person.settle()
        strip = "document.querySelector('.film-strip')"
        person.wait(f"{strip}.scrollTop > 0")
        bands = (LAST + 1) / 5  # the window has places for five columns
        scrolled = f"{strip}.scrollTop / {strip}.firstChild.clientHeight"
        return bands * float(person.frame.evaluate(scrolled))

    first = BAD_FROM // 5
    assert top_band(channels="0") > first + 0.5  # has no fault
    assert top_band(channels="1") == pytest.approx(first, abs=0.05)
    assert top_band(channels="1", step=LAST) > first + 0.5


def test_the_same_input_is_drawn_once_and_all_steps_are_in_view(
    grown_address: str, visit: Callable[..., Person]
) -> None:
    said = {}
    for run in ("probed", "unprobed"):
        person = visit(grown_address, view="film", run=run, layer="fmapboard/first", channels="0")
        person.wait(READY)
        person.settle()
        strip = person.see(".film-strip")
        assert strip.evaluate("(e) => e.scrollHeight <= e.clientHeight"), run
        # Above the maps is an input of each step, unless there is one for all.
        person.see(".film canvas").hover(position={"x": 156 + 88 + 20, "y": 60})
        person.settle()
        said[run] = person.see(".film .status").text_content()
    assert " · y " in said["probed"]
    assert " · y " not in said["unprobed"]


def test_the_steps_are_readable_in_the_bar_above_a_film(
    grown_address: str, visit: Callable[..., Person]
) -> None:
    person = visit(
        grown_address, width=1024, height=700, view="film", run="probed", layer="fmapboard/first"
    )
    person.wait(READY)
    person.settle()
    cut = person.see(".now").evaluate(
        "(now) => [...now.children].filter((e) => e.scrollWidth > e.clientWidth).length"
    )
    assert cut == 0


def test_the_chosen_step_is_described_also_where_it_is_out_of_sight(
    serve: Callable[[Path], str], tmp_path: Path, visit: Callable[..., Person]
) -> None:
    model = Doubling()
    with fmapboard.watch(model, tmp_path / "long", every=1, kernels=False) as board:
        for step in range(50):
            with torch.no_grad():
                model.first.bias[1] = math.nan if step == 3 else 0.0
            with board.step(step), torch.no_grad():
                model(torch.rand(1, 3, 8, 8))

    def late(route: Any) -> None:
        sleep(1)  # until then, the strip has moved to the fault
        route.continue_()

    person = visit(
        serve(tmp_path), view="film", run="long", layer="fmapboard/first", channels="1", tile=256,
        routes={re.compile(r"data/maps\?.*[?&]step=49&"): late},
    )  # fmt: skip
    person.wait(READY)
    person.settle()
    assert person.see(".film-strip").evaluate("(e) => e.scrollTop") < 1000
    said = person.see(".film .status").text_content()
    assert said.startswith("step 49 · channel 1 · ")
    assert "loading" not in said
