"""Which maps a step quantizes on its device, and what happens if it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from simulated_device import moved, simulated_device
from torch import nn

from fmapboard.capture import tile_coder
from fmapboard.capture.tile_coder import TileCoder
from fmapboard.errors import WarnOnce
from fmapboard.measure.code_tiles import NUMBERS
from fmapboard.measure.pending import PendingMaps, PendingMeasurement
from fmapboard.measure.reducer import Reducer
from fmapboard.records import LayerCall

LARGE, SMALL = (1, 16, 56, 56), (1, 16, 7, 7)
WARN = WarnOnce()


def measured(
    *shapes: tuple[int, ...], kind: str = "cuda", dtype: torch.dtype = torch.float32, **options: Any
) -> list[PendingMeasurement]:
    """Measurements of maps of these shapes on a simulated device."""
    reduce, found = Reducer(unsettled=set(), **options), []
    for number, shape in enumerate(shapes):
        maps = torch.randn(shape, generator=torch.Generator().manual_seed(number)).to(dtype)
        there = maps if kind == "cpu" else moved(maps, kind)
        call = LayerCall(f"layer{number}", "Identity", None, position=number)
        found.append(reduce(call, "feature_maps", there, nn.Identity()))
    return found


def is_coded(one: PendingMeasurement) -> bool:
    return isinstance(one.drawn, PendingMaps) and one.drawn.limits is not None


def coded(parts: list[PendingMeasurement]) -> list[bool]:
    TileCoder(WARN)(parts)
    return [is_coded(one) for one in parts]


def test_large_groups_are_coded_and_small_ones_left_to_the_worker() -> None:
    with simulated_device():
        assert coded(measured(*[LARGE] * 36, *[SMALL] * 9)) == [True] * 36 + [False] * 9


def test_a_small_network_is_left_to_the_worker() -> None:
    with simulated_device():
        assert coded(measured(*[LARGE] * 20)) == [False] * 20


def test_planes_are_coded_only_if_that_saves_bytes() -> None:
    with simulated_device():
        assert not any(coded(measured(*[SMALL] * 60)))


@pytest.mark.parametrize(
    "options",
    [{"kind": "cpu"}, {"dtype": torch.float64}, {"scale": "layer"}, {"scale": "locked"}],
    ids=["cpu", "float64", "layer", "locked"],
)
def test_other_maps_are_left_to_the_worker(options: dict[str, Any]) -> None:
    with simulated_device():
        assert not any(coded(measured(*[(1, 16, 64, 64)] * 40, **options)))


def test_a_large_group_is_coded_in_parts() -> None:
    """20 MB: temporary copies of a part take no more than twice 16 MiB."""
    with simulated_device():
        parts = measured(*[(4, 64, 64, 64)] * 5, *[(1, 4)] * 95, samples=4)
        groups = tile_coder._groups(parts)
        assert sorted(len(group) for _, group in groups) == [1, 4]
        assert coded(parts) == [True] * 5 + [False] * 95


def test_one_byte_per_pixel_and_the_limits_are_sent() -> None:
    with simulated_device():
        parts = measured(*[LARGE] * 40)
        coded(parts)
        sent = sum(t.nbytes for one in parts for t in one.drawn.tensors() if one.drawn)
        assert sent == 40 * 16 * (56 * 56 + 4 * NUMBERS)


def test_an_error_leaves_all_maps_to_the_worker_and_is_reported_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise NotImplementedError("no such kernel")

    with simulated_device():
        plain = [one.to_host().planes for one in measured(*[LARGE] * 36)]
        monkeypatch.setattr(torch.Tensor, "div_", fail)
        code = TileCoder(WarnOnce())
        for _ in range(2):
            parts = measured(*[LARGE] * 36)
            code(parts)
            assert not any(map(is_coded, parts))
        assert len(caplog.messages) == 1
        assert "cannot be quantized on their device (no such kernel)" in caplog.text
        for one, expected in zip(parts, plain, strict=True):
            own = one.to_host().planes
            assert own is not None
            assert expected is not None
            np.testing.assert_array_equal(own.pixels, expected.pixels)


def test_the_device_running_out_of_memory_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with simulated_device():
        parts = measured(*[LARGE] * 36)
        monkeypatch.setattr(torch, "cat", fail)
        with pytest.raises(torch.OutOfMemoryError):
            TileCoder(WARN)(parts)
