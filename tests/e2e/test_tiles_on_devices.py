"""Tiles that a (simulated) accelerator has quantized are those that the CPU draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from device_training import (
    STEPS,
    assert_same_records,
    batch_with_nonfinite_values,
    logged,
    offset_batch,
    on_device,
    plain_batch,
)

from fmapboard.capture import tile_coder
from fmapboard.records import LoggedStep, Picture, PixelMark


@pytest.fixture(autouse=True)
def coded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Code every group, however small the network; numbers of groups that were coded."""
    monkeypatch.setattr(tile_coder, "_LAUNCHES_PER_TENSOR", 1e9)
    monkeypatch.setattr(tile_coder, "_SAVED_PER_LAUNCH", -1e9)
    counts: list[int] = []
    code = tile_coder._code

    def counted(measured: Any, groups: Any, centered: bool) -> None:
        counts.append(len(groups))
        code(measured, groups, centered)

    monkeypatch.setattr(tile_coder, "_code", counted)
    return counts


OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "averaged": {"max_tile": 7},
    "signed": {"colormap": "signed", "max_tile": 9},
    "everything": {"inputs": True, "activation_gradients": True, "samples": 3},
    "probe": {"probe": torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)},
    "bytes": {"max_bytes_per_step": 20_000},
}


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_the_records_are_those_of_the_cpu(
    coded: list[int], kind: str, options: dict[str, Any]
) -> None:
    steps, machine = on_device(kind, plain_batch(), **options)
    assert machine.waits_on("MainThread") == []
    assert machine.uploads == 0
    expected = logged("cpu", plain_batch(), **options)
    assert len(steps) == len(coded) == STEPS
    for step, other in zip(steps, expected, strict=True):
        assert_same_records(step, other)


def marks(picture: Picture) -> Any:
    """u8 [H, W]: the marks in a picture, 0 for values."""
    if picture.palette is None:
        return np.zeros_like(picture.pixels)
    return np.where(picture.pixels >= PixelMark.PADDING, picture.pixels, 0)


def assert_same_marks(step: LoggedStep, expected: LoggedStep) -> None:
    for own, other in zip(step.pictures, expected.pictures, strict=True):
        for one, two in zip(own.samples, other.samples, strict=True):
            np.testing.assert_array_equal(marks(one), marks(two), err_msg=own.tag)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize("options", [{}, {"max_tile": 7}, {"inputs": True, "samples": 4}])
def test_every_nonfinite_pixel_is_marked_also_at_the_first_step(
    coded: list[int], kind: str, options: dict[str, Any]
) -> None:
    batch = batch_with_nonfinite_values()
    steps, machine = on_device(kind, batch, **options)
    expected = logged("cpu", batch, **options)
    assert len(coded) == STEPS
    assert machine.waits_on("MainThread") == []
    assert any(marks(p.samples[0]).any() for p in expected[0].pictures)
    for step, other in zip(steps, expected, strict=True):
        assert_same_marks(step, other)
    assert_same_records(steps[1], expected[1])


def test_values_far_from_0_are_drawn_in_full_contrast(coded: list[int]) -> None:
    steps, _ = on_device("cuda", offset_batch())
    for step, other in zip(steps, logged("cpu", offset_batch()), strict=True):
        assert_same_records(step, other)
    assert len(coded) == STEPS


@pytest.mark.parametrize("scale", ["layer", "locked"])
def test_a_scale_of_several_planes_is_left_to_the_worker(coded: list[int], scale: str) -> None:
    steps, _ = on_device("cuda", plain_batch(), scale=scale)
    assert coded == []
    for step, other in zip(steps, logged("cpu", plain_batch(), scale=scale), strict=True):
        assert_same_records(step, other)
