"""The fused tiles kernel, interpreted, draws what ``Quantizer`` draws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from fused_reads import tiles_of
from torch import Tensor
from triton_process import TritonProcess

from fmapboard.records import Planes
from fmapboard.render.quantize import Quantizer


def with_nonfinite(shape: tuple[int, ...]) -> Tensor:
    maps = torch.randn(shape)
    maps[0, 0], maps[0, 1, 0, 0], maps[0, 2] = torch.nan, torch.nan, torch.inf
    maps[1, 0, 1, -1], maps[1, 1, 2, -1], maps[1, 2] = torch.inf, -torch.inf, 3.0
    maps[1, 2, -1, -1] = torch.nan
    return maps


CASES: dict[str, Callable[[tuple[int, ...]], Tensor]] = {
    "random": torch.randn,
    "after ReLU": lambda shape: torch.randn(shape).relu(),
    "non-finite": with_nonfinite,
    "constant": lambda shape: torch.rand(*shape[:2], 1, 1).expand(shape).clone(),
    "negative constant": lambda shape: torch.full(shape, -0.1),
    "zero": torch.zeros,
    "±3e38": lambda shape: torch.randn(shape).sign() * 3e38,
    "denormal": lambda shape: torch.randn(shape) * 1e-41,
    "mean 1e4, spread 1e-3": lambda shape: torch.randn(shape) * 1e-3 + 1e4,
    "one outlier": lambda shape: torch.where(torch.rand(shape) < 0.01, 1e30, torch.rand(shape)),
}
SIZES = [((2, 3, 7, 9), None), ((2, 3, 17, 13), 8), ((2, 3, 70, 71), None), ((2, 3, 5, 2), 3)]


def differences(found: Planes, expected: Planes) -> int:
    """Largest difference of two pixels, after everything else was compared."""
    assert found.block == expected.block
    np.testing.assert_array_equal(found.flat, expected.flat)
    marks = np.zeros_like(found.pixels) if found.marks is None else found.marks
    assert (found.marks is None) == (expected.marks is None)
    np.testing.assert_array_equal(marks, 0 if expected.marks is None else expected.marks)
    np.testing.assert_allclose(found.lo, expected.lo, rtol=1e-6, atol=2e-45)
    np.testing.assert_allclose(found.hi, expected.hi, rtol=1e-6, atol=2e-45)
    return int(np.abs(found.pixels.astype(int) - expected.pixels).max())


@pytest.mark.parametrize("centered", [False, True], ids=["", "zero-centered"])
@pytest.mark.parametrize(("shape", "most"), SIZES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_the_pixels_are_those_of_the_quantizer(
    interpreter: TritonProcess,
    case: str,
    shape: tuple[int, ...],
    most: int | None,
    centered: bool,
) -> None:
    maps = CASES[case](shape)
    expected = Quantizer(most, "channel", centered)("", maps.numpy(), shape, shape[1], "")
    found = interpreter(tiles_of, maps, most, centered)
    # `Quantizer` averages in float64 where a sum overflows or a value is not finite, and means of
    # denormals are rounded to denormals.
    is_rounded = expected.block > 1 and case in ("non-finite", "±3e38", "denormal")
    assert differences(found, expected) <= int(is_rounded)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_any_strides_and_dtypes_are_read(interpreter: TritonProcess, dtype: torch.dtype) -> None:
    maps = torch.randn(3, 5, 21, 19).to(dtype)
    for view in (
        maps,
        maps.to(memory_format=torch.channels_last),
        maps[::2, 1:4, 2:, 1:-1],
        maps.transpose(2, 3),
        torch.randn(3, 5, 4, 21, 19).to(dtype)[:, :, 2],
    ):
        values = view.float().contiguous().numpy()
        expected = Quantizer(8)("", values, tuple(view.shape), view.shape[1], "")
        found = interpreter(tiles_of, view, 8)
        assert differences(found, expected) == 0
