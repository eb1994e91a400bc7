"""The point tool: channels ordered by their values at a pixel, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
import torch
from browser_visitor import Person
from stored_maps import stored_maps
from torch import nn

import fmapboard


def point(person: Person) -> tuple[float, float] | None:
    """The point of the address."""
    found = re.search(r"p\.feature_maps\.pixel=([\d.]+),([\d.]+)", unquote(person.page.url))
    return None if found is None else (float(found[1]), float(found[2]))


def entries(person: Person) -> list[tuple[str, str]]:
    """Name and value of each entry of the list."""
    person.settle()
    names = person.see(".pixel-name").all_text_contents()
    return list(zip(names, person.see(".pixel-value").all_text_contents(), strict=True))


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_channels_are_ordered_by_their_distance_from_their_own_mean_at_the_point(
    address: str, striped_runs: Path, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", step=20)
    person.drawn(20, "block.0")
    before = person.canvas(".grid canvas")
    person.see("button:has-text('Point at a pixel')").click()
    picture = person.see(".pixel figure canvas")
    picture.wait_for()
    box = picture.bounding_box()
    person.page.mouse.click(box["x"] + 0.8 * box["width"], box["y"] + 0.3 * box["height"])
    listed = entries(person)
    assert point(person) == pytest.approx((0.8, 0.3), abs=0.01)
    assert person.canvas(".grid canvas") != before  # cross hairs
    assert "Cell y 4, x 12 of 16×16" in person.see(".pixel-where").text_content()
    maps = stored_maps(striped_runs / "good", "block.0")[20]  # [24, 16, 16]
    true = maps[:, 4, 12]
    assert len(listed) == 24
    channels = [int(name.removeprefix("channel ")) for name, _ in listed]
    assert sorted(channels) == list(range(24))
    spread = maps.std((1, 2))
    away = (true - maps.mean((1, 2))) / np.where(spread > 1e-6, spread, np.inf)
    assert (np.diff(np.abs(away[channels])) <= 0.02).all()  # pictures have 256 levels
    for channel, (_, said) in zip(channels, listed, strict=True):
        if spread[channel] > 1e-6:
            assert number(said.split(" ")[-2]) == pytest.approx(away[channel], abs=0.06)
        assert number(said.split(" ")[0]) == pytest.approx(true[channel], rel=1e-3, abs=1e-4)
    person.see(".pixel-list button").first.click()
    person.see(f"h2:text-is('Channel {channels[0]}')").wait_for()


def test_a_channel_that_is_not_finite_at_the_point_comes_first(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="bad", layer="fmapboard/block.0", step=30, pixel="0.5,0.5")
    person.drawn(30, "block.0")
    listed = entries(person)
    assert listed[0] == ("channel 1", "NaN")
    assert "NaN" not in [value for _, value in listed[1:]]


def test_the_point_moves_by_keys_and_clicks_and_is_left_with_escape(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, run="good", layer="fmapboard/block.0", step=20, tile=64)
    person.drawn(20, "block.0")
    person.press("x")
    person.see(".pixel-where:has-text('y 8, x 8 of 16×16')").wait_for()
    person.press("ArrowRight", "ArrowRight", "ArrowUp")
    person.see(".pixel-where:has-text('y 7, x 10 of 16×16')").wait_for()
    assert point(person) == pytest.approx((10.5 / 16, 7.5 / 16), abs=1e-4)
    canvas = person.see(".grid canvas").first
    canvas.click(position={"x": 10 + 6, "y": 10 + 34})  # tiles of 64 px begin at 10, 10
    person.see(".pixel-where:has-text('y 8, x 1 of 16×16')").wait_for()
    assert "p.feature_maps.channel=" not in person.page.url
    person.reopen()
    person.see(".pixel-where:has-text('y 8, x 1 of 16×16')").wait_for()
    person.press("Escape")
    person.see(".pixel-where").wait_for(state="hidden")
    assert point(person) is None
    person.press("ArrowRight")
    person.drawn(25)
    canvas = person.see(".grid canvas").first
    canvas.click(position={"x": 10 + 34, "y": 10 + 6}, modifiers=["Alt"])
    person.see(".pixel-where:has-text('y 1, x 8 of 16×16')").wait_for()


def test_a_point_in_a_sequence_is_a_position(
    serve: Callable[[Path], str], visit: Callable[..., Person], tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Conv1d(1, 6, 5), nn.Conv1d(6, 4, 3))
    wave = torch.arange(60.0).mul(0.3).sin()[None, None]
    with (
        fmapboard.watch(model, tmp_path / "audio", every=1) as board,
        board.step(0),
        torch.no_grad(),
    ):
        model(wave)
    person = visit(serve(tmp_path), run="audio", layer="fmapboard/0", pixel="0.5,0.5")
    person.drawn(0, "0")
    listed = entries(person)
    assert "position 28 of the sequence" in person.see(".pixel-where").text_content()
    maps = stored_maps(tmp_path / "audio", "0")[0][:, 0]
    away = np.abs(maps[:, 28] - maps.mean(1)) / maps.std(1)
    assert [name for name, _ in listed] == [f"channel {c}" for c in np.argsort(-away)]
    person.press("m")
    person.wait("document.documentElement.dataset.film === 'ready'")
    box = person.see(".film canvas").bounding_box()
    said = set()
    for y in range(24, 80, 6):
        person.page.mouse.move(box["x"] + 260, box["y"] + y)
        said.add(person.see(".film .status").text_content())
    pattern = r"step 0 · channel (\d+) · position (\d+) · (\S+) ± (\S+)"
    (found,) = [match for match in (re.fullmatch(pattern, each) for each in said) if match]
    channel, position = int(found[1]), int(found[2])
    value, unit = number(found[3]), number(found[4])
    stored = stored_maps(tmp_path / "audio", "0")[0]
    assert value == pytest.approx(stored[channel, 0, position], abs=unit)
