"""The contact sheet of the overview: one channel per layer, each cell between its own ends."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tab_answers import array_of, unpacked
from tab_client import Tab, open_tab
from torch import Tensor, nn

import fmapboard
from fmapboard.plugin import shown_channels
from fmapboard.plugin.stored_record import records_at

STEPS, SIDE = [0, 1, 2], 12
NAN, NOT_DRAWN = 251, 250


class Scaled(nn.Module):
    """Channel 0 is flat, channel 1 the image, channel 2 ten times smaller and upside down."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(x), x, -0.1 * x], 1)


def ramp(offset: float = 0.0) -> Tensor:
    """An image [1, 1, 12, 12] that grows from left to right."""
    return torch.linspace(0, 1, SIDE).expand(1, 1, SIDE, SIDE) + offset


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Tab:
    """Two runs of two layers: at step 2 a value is NaN; in ``other`` the input is another there."""
    root = tmp_path_factory.mktemp("sheet")
    for run, by in (("same", 0.0), ("other", 0.3)):
        torch.manual_seed(0)
        model = nn.Sequential(Scaled(), nn.Conv2d(3, 2, 3))
        model[1].weight.data[1] *= 10
        with fmapboard.watch(model, root / run, layers=["0", "1"], every=1) as board:
            for step in STEPS:
                x = ramp() * (1 - by * (step == 2))
                if step == 2:
                    model[1].weight.data[1] = torch.nan
                with board.step(step):
                    model(x).sum().backward()
    return open_tab(root)


def sheet(tab: Tab, run: str = "same", **more: Any) -> tuple[list[dict[str, Any]], Any, Any]:
    """Rows, maps [row][step], and ends by name."""
    query = {"key": ["fmapboard/0", "fmapboard/1"], "step": STEPS, "cell": SIDE, **more}
    facts, body = tab.open("data/sheet", run=run, **query)
    listed = facts["arrays"]
    pixels = array_of(listed.pop("pixels"), body)
    arrays = unpacked(listed, body)
    sides = np.stack([arrays["height"], arrays["width"]], -1).astype(int)
    ends = np.cumsum(sides.prod(-1)).reshape(sides.shape[:-1])
    maps = [
        [pixels[end - side.prod() : end].reshape(side) for end, side in zip(*row, strict=True)]
        for row in zip(ends, sides, strict=True)
    ]
    assert ends[-1, -1] == len(pixels)
    return facts["rows"], maps, arrays


def test_the_channel_with_the_largest_spread_is_shown_between_its_own_ends(tab: Tab) -> None:
    (row, _), maps, ends = sheet(tab)
    assert (row["key"], row["channel"], maps[0][0].shape) == ("fmapboard/0", 1, (12, 12))
    expected = np.floor(np.linspace(0, 1, SIDE) * 249.999)
    assert np.abs(maps[0][0].astype(int) - expected).max() <= 2
    assert (ends["lo"][0, 0], ends["hi"][0, 0]) == (0, 1)


def test_the_range_of_a_difference_is_that_of_all_its_pixels(tmp_path: Path) -> None:
    model = nn.Conv2d(1, 1, 1)
    nn.init.constant_(model.weight, 1.0)
    nn.init.zeros_(model.bias)
    other = copy.deepcopy(model)
    nn.init.constant_(other.weight, 1.5)
    images = torch.full((1, 1, 64, 64), 0.1)
    images[0, 0, 20, 20], images[0, 0, 40, 40] = -0.4, 1.0
    fmapboard.diff(nn.Sequential(model), nn.Sequential(other), images, log_dir=tmp_path)
    tab = open_tab(tmp_path)
    _, maps, ends = sheet(tab, "difference", key=["fmapboard/0"], step=[0], cell=16)
    assert maps[0][0].shape == (16, 16)
    found = [ends[name][0, 0] for name in ("lo", "hi", "least", "most")]
    assert found == pytest.approx([-0.5, 0.5, -0.2, 0.5], abs=0.003)


def test_a_map_is_averaged_to_fit_a_small_cell_and_sent_as_stored_for_a_large_one(
    tab: Tab,
) -> None:
    _, small, _ = sheet(tab, cell=8)
    _, large, _ = sheet(tab, cell=24)
    assert small[0][0].shape == (8, 8)
    assert (np.diff(small[0][0].astype(int)) > 0).all()
    assert (large[0][0] == sheet(tab)[1][0][0]).all()


def test_a_row_of_pixels_keeps_the_extremes_of_each_part_of_a_cell(tmp_path: Path) -> None:
    signal = torch.zeros(1, 1, 200)
    signal[..., 77], signal[..., 78], signal[..., 150] = 1, -1, torch.nan
    model = nn.Sequential(nn.Conv1d(1, 1, 1))
    nn.init.ones_(model[0].weight)
    with fmapboard.watch(model, tmp_path / "run", every=1) as board, board.step(0):
        model(signal).sum().backward()
    tab = open_tab(tmp_path)
    query = {"run": "run", "key": ["fmapboard/0"], "step": [0]}
    ((small,),) = sheet(tab, **query, cell=10)[1]
    pairs = small.reshape(10, 2).tolist()
    assert pairs[3] == [0, NOT_DRAWN - 1]
    assert pairs[7] == [NAN, NAN]
    (rest,) = {tuple(pair) for i, pair in enumerate(pairs) if i not in (3, 7)}
    assert rest[0] == rest[1]
    ((whole,),) = sheet(tab, **query, cell=100)[1]
    assert whole.shape == (1, 200)


def test_nan_fills_its_cell_however_small_it_is(tab: Tab) -> None:
    (_, row), maps, _ = sheet(tab, cell=8)
    assert row["channel"] == 1  # the one with large weights, as long as they are finite
    assert (maps[1][2] == NAN).all()
    assert all((of < NOT_DRAWN).all() for of in maps[1][:2])


def test_a_step_without_a_picture_is_an_empty_cell(tab: Tab) -> None:
    _, maps, ends = sheet(tab, step=[0, 7])
    assert [[of.size for of in row] for row in maps] == [[144, 0], [100, 0]]
    assert np.isnan(ends["lo"][:, 1]).all()
    assert not np.isnan(ends["lo"][:, 0]).any()


def test_a_page_is_made_again_only_while_pictures_are_missing(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, read = [], tab.provider.read_blob
    monkeypatch.setattr(tab.provider, "read_blob", lambda *a, **k: reads.append(k) or read(*a, **k))

    def asked(route: str, **query: Any) -> tuple[bytes, bool]:
        reads.clear()
        query = {"run": "same", "cell": 10, **query}
        return tab.get(f"data/{route}", **query).data, bool(reads)

    for route, of in (("sheet", {"key": ["fmapboard/0"]}), ("sheet_input", {})):
        first, again = (asked(route, step=STEPS, **of) for _ in range(2))
        assert again == (first[0], False)
        assert first[1]
        assert [asked(route, step=[0, 7], **of)[1] for _ in range(2)] == [True, True]
    assert asked("sheet", key=["fmapboard/0"], step=STEPS, cell=11)[1]


@pytest.mark.parametrize(("run", "same"), [("same", True), ("other", False)])
def test_whether_the_input_was_the_same_at_all_steps_is_compared(
    tab: Tab, run: str, same: bool
) -> None:
    facts, body = tab.open("data/sheet_input", run=run, step=STEPS, cell=SIDE)
    pixels = array_of(facts["arrays"]["pixels"], body)
    assert facts["same"] is same
    assert facts["kept"] == [True] * 3
    assert pixels.shape == (3, SIDE, SIDE, 3)
    assert (pixels[0] == pixels[2]).all() == same


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"cell": 4}, 400),
        ({"cell": 1000}, 400),
        ({"step": ["x"]}, 400),
        ({"step": [0] * 3000}, 400),
        ({"key": ["fmapboard/none"]}, 404),
    ],
)
def test_what_cannot_be_asked_for_is_refused(tab: Tab, query: dict[str, Any], status: int) -> None:
    asked = {"key": ["fmapboard/0", "fmapboard/1"], "step": STEPS, "cell": SIDE, **query}
    assert tab.get("data/sheet", run="same", **asked).status_code == status


class Scales(nn.Module):
    """Four channels: the image, twice smaller, and four times larger; ``change`` changes them."""

    step = 0

    def __init__(self, change: Callable[[Tensor, int], None]) -> None:
        super().__init__()
        self.change = change

    def forward(self, x: Tensor) -> Tensor:
        maps = torch.cat([x, 0.5 * x, 0.25 * x, 4 * x], 1)
        self.change(maps, self.step)
        return maps


def _nan_in_channel_2(maps: Tensor, step: int) -> None:
    if step >= 7:
        maps[:, 2, 3, 3] = torch.nan
    if step >= 9:
        maps[:] = torch.nan


def _large_in_channel_1(maps: Tensor, step: int) -> None:
    if step >= 7:
        maps[:, 1] *= 1e5


def _mostly_constant(maps: Tensor, step: int) -> None:
    if step >= 7:
        maps[:, :3] = 0.5


def _other_in_the_middle(maps: Tensor, step: int) -> None:
    if step in (10, 11):
        maps[:, 0] *= 30


@pytest.mark.parametrize(
    ("change", "channel"),
    [
        (_nan_in_channel_2, 2),
        (_large_in_channel_1, 1),
        (_mostly_constant, 0),
        (_other_in_the_middle, 3),
    ],
)
def test_one_channel_is_shown_in_the_whole_run_the_guilty_one_if_there_is_one(
    tmp_path: Path, change: Callable[[Tensor, int], None], channel: int
) -> None:
    scales = Scales(change)
    model = nn.Sequential(scales)
    with fmapboard.watch(model, tmp_path / "run", layers=["0"], every=1) as board:
        for scales.step in range(20):
            with board.step(scales.step):
                model(ramp())
    tab = open_tab(tmp_path)
    for step in ([0, 19], [10, 11], list(range(20))):
        facts, _ = tab.open("data/sheet", run="run", key=["fmapboard/0"], step=step, cell=SIDE)
        assert facts["rows"][0]["channel"] == channel
    history, _ = tab.open("data/history", run="run", key="fmapboard/0")
    assert history["shown"] == channel


def test_the_channels_of_all_layers_are_chosen_from_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Sequential(*[nn.Conv2d(1, 1, 3, padding=1) for _ in range(6)])
    with fmapboard.watch(model, tmp_path / "run", every=1) as board:
        for step in range(6):
            with board.step(step):
                model(ramp())
    asked: list[int] = []

    def counted(provider: Any, points: Any) -> Any:
        asked.append(len(points))
        return records_at(provider, points)

    monkeypatch.setattr(shown_channels, "records_at", counted)
    key = [f"fmapboard/{layer}" for layer in range(6)]
    tab = open_tab(tmp_path)
    for steps in ([0, 5], [1, 4]):
        tab.open("data/sheet", run="run", key=key, step=steps, cell=SIDE)
    assert asked == [6 * len([0, 1, 4])]  # steps 0, 1 and 4 of each layer, once
