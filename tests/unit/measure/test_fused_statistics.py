"""The fused statistics kernel, interpreted, agrees with float64 for any values and strides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from fused_reads import launched, planned, statistics_of
from torch import Tensor
from triton_process import TritonProcess

from fmapboard.measure.fused import plan as plans
from fmapboard.measure.subsample import sample, step_between


def expected(maps: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Min, max, mean, std [4, C] of the finite values in float64; counts [3, C] of the others."""
    numbers, counts = [], []
    for values in maps.double().transpose(0, 1).flatten(1).numpy():
        finite = values[np.isfinite(values)]
        unit = max(abs(finite).max(), 1e-300) if finite.size else 1.0
        scaled = finite / unit
        numbers.append(
            [finite.min(), finite.max(), scaled.mean() * unit, scaled.std() * unit]
            if finite.size
            else [np.nan] * 4
        )
        counts.append([np.isnan(values).sum(), (values == np.inf).sum(), (values == -np.inf).sum()])
    return np.array(numbers).T, np.array(counts).T


def check(found: tuple[np.ndarray, np.ndarray], maps: Tensor, rtol: float = 1e-6) -> None:
    (lo, hi, mean, std), nonfinite = found
    (low, high, middle, spread), counts = expected(maps)
    np.testing.assert_array_equal(lo, low)
    np.testing.assert_array_equal(hi, high)
    np.testing.assert_array_equal(nonfinite, counts)
    np.testing.assert_allclose(std, spread, rtol=rtol)
    error = np.abs(mean - middle) / np.maximum(np.maximum(spread, np.abs(middle)), 1e-300)
    assert np.array_equal(np.isnan(mean), np.isnan(middle))
    assert np.nanmax(error, initial=0.0) <= rtol


def with_nonfinite(shape: tuple[int, ...]) -> Tensor:
    maps = torch.randn(shape)
    maps[0, 0], maps[:, 1] = torch.nan, torch.nan  # a plane and a channel without finite values
    maps[-1, 0, 0, 0], maps[-1, -1, 0, 0] = -torch.inf, torch.inf
    maps[:, :, 0, 0] = torch.where(maps[:, :, 0, 0].isfinite(), torch.nan, maps[:, :, 0, 0])
    return maps


def with_outlier(shape: tuple[int, ...], at: int) -> Tensor:
    maps = torch.ones(shape)
    maps.view(-1)[at] = 1e30
    return maps


CASES: dict[str, Callable[[tuple[int, ...]], Tensor]] = {
    "random": torch.randn,
    "non-finite": with_nonfinite,
    "only infinities": lambda shape: torch.full(shape, torch.inf),
    "mean 1e4, spread 1e-3": lambda shape: torch.randn(shape) * 1e-3 + 1e4,
    "constant": lambda shape: torch.full(shape, 0.1),
    "zero": torch.zeros,
    "one outlier, first": lambda shape: with_outlier(shape, 0),
    "one outlier, last": lambda shape: with_outlier(shape, -1),
    "±3e38": lambda shape: torch.randn(shape).sign() * 3e38,
    "3e38 and small": lambda shape: torch.where(torch.rand(shape) < 0.5, 3e38, -1e-3),
    "denormal": lambda shape: torch.randn(shape) * 1e-41,
    "denormal, far from 0": lambda shape: torch.randn(shape) * 1e-43 + 5e-40,
    "small squares": lambda shape: torch.randn(shape) * 1e-25,
}
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


@pytest.mark.parametrize("memory", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_the_statistics_are_those_of_float64(
    interpreter: TritonProcess, case: str, memory: str
) -> None:
    for shape in (
        ((3, 2, 11, 37), (2, 17, 5, 8)) if memory == "channels_last" else ((3, 2, 23, 37),)
    ):
        maps = CASES[case](shape).to(memory_format=FORMATS[memory])
        check(interpreter(statistics_of, maps), maps)


def views() -> dict[str, tuple[Callable[[], Tensor], int]]:
    """Tensors of all layouts, and the number of the variant that reads each."""
    last = torch.channels_last
    return {
        "one value": (lambda: torch.randn(1, 1, 1, 1), 1),
        "N = 1": (lambda: torch.randn(1, 3, 7, 11), 1),
        "C = 1": (lambda: torch.randn(5, 1, 7, 11), 1),
        "one pixel": (lambda: torch.randn(9, 50, 1, 1), 4),
        "[N, C]": (lambda: torch.randn(9, 64), 3),
        "[N, C], few channels": (lambda: torch.randn(9, 3), 1),
        "[N, C, L] of tokens": (lambda: torch.randn(2, 50, 64).transpose(1, 2), 3),
        "planes longer than a tile": (lambda: torch.randn(2, 2, 40, 40), 0),
        "odd planes longer than a tile": (lambda: torch.randn(2, 2, 41, 41), 1),
        "not aligned": (lambda: torch.randn(6401)[1:].view(2, 2, 40, 40), 1),
        "channels_last, 48 channels": (lambda: torch.randn(2, 48, 9, 9).to(memory_format=last), 3),
        "channels_last, 37 channels": (lambda: torch.randn(2, 37, 9, 9).to(memory_format=last), 4),
        "channels_last, 3 channels": (lambda: torch.randn(2, 3, 9, 9).to(memory_format=last), 1),
        "a slice": (lambda: torch.randn(4, 5, 9, 9)[::2, 1:, 1:-1, 2:], 2),
        "a slice, channels_last": (
            lambda: torch.randn(2, 37, 9, 9).to(memory_format=last)[:, 1:, 1:-1, 1:],
            4,
        ),
        "a volume": (lambda: torch.randn(2, 3, 6, 9, 9), 1),
        "a slice of a volume": (lambda: torch.randn(2, 3, 6, 9, 9)[:, :, 1:4, 1:-1, 1:-1], 2),
        "expanded": (lambda: torch.randn(1, 3, 1, 1).expand(4, 3, 8, 8), 1),
    }


@pytest.mark.parametrize("name", views())
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_any_strides_and_dtypes_are_read(
    interpreter: TritonProcess, name: str, dtype: torch.dtype
) -> None:
    build, variant = views()[name]
    maps = build()
    if dtype != torch.float32:
        storage = maps.untyped_storage().nbytes() // 4
        typed = torch.randn(storage).to(dtype)
        maps = typed.as_strided(maps.shape, maps.stride(), maps.storage_offset())
    plan = planned(maps)
    assert plan is not None
    assert plan.variant == plans.VARIANTS[variant]
    check(interpreter(statistics_of, maps), maps)


@pytest.mark.parametrize("case", ["random", "non-finite", "one outlier, last", "3e38 and small"])
def test_programs_that_read_many_tiles_are_as_accurate(
    interpreter: TritonProcess, case: str
) -> None:
    for maps in (
        CASES[case]((3, 2, 71, 73)),
        CASES[case]((3, 18, 21, 23)).to(memory_format=torch.channels_last),
    ):
        check(interpreter(statistics_of, maps, True), maps)


def test_a_program_whose_first_tile_is_not_finite_is_as_accurate(
    interpreter: TritonProcess,
) -> None:
    maps = torch.randn(3, 2, 41, 41) * 1e-2 + 1e4
    maps[0] = torch.nan
    check(interpreter(statistics_of, maps, True), maps)


def test_the_same_launch_copies_what_is_drawn_and_the_histogram_sample(
    interpreter: TritonProcess,
) -> None:
    for maps in (
        torch.randn(3, 5, 9, 9),
        torch.randn(3, 5, 9, 9).to(memory_format=torch.channels_last).bfloat16(),
        torch.randn(3, 40, 9, 9).to(memory_format=torch.channels_last),
        torch.randn(3, 5, 12, 9)[:, :, 1:-1, 2:],
    ):
        step = 7
        _, drawn, sampled = interpreter(launched, maps, (2, 4), (-(-maps.numel() // step), step))
        assert drawn.dtype == maps.dtype
        assert drawn.is_contiguous()
        torch.testing.assert_close(drawn, maps[:2, :4].contiguous(), rtol=0, atol=0)
        order = sorted(range(4), key=maps.stride, reverse=True)
        torch.testing.assert_close(
            sampled, maps.permute(order).reshape(-1)[::step].float(), rtol=0, atol=0
        )


def test_the_histogram_sample_is_the_one_that_plain_operations_take(
    interpreter: TritonProcess,
) -> None:
    maps = torch.randn(2, 40, 23, 27).to(memory_format=torch.channels_last)
    step = step_between(maps.numel(), maps.shape)
    assert step > 1
    _, _, sampled = interpreter(launched, maps, None, (-(-maps.numel() // step), step))
    torch.testing.assert_close(sampled, sample(maps).values, rtol=0, atol=0)


def test_a_tensor_that_int32_cannot_address_is_declined() -> None:
    assert plans.plan((2**16, 2**15), (2**15, 1), True) is None
    assert plans.plan((2, 2, 8, 8), (2**30, 2**31, 8, 1), True) is None
    assert plans.plan((2, 2, 2, 2, 2, 2), (1000, 3, 301, 101, 31, 7), True) is None
    assert plans.plan((64, 64, 112, 112), (64 * 112 * 112, 112 * 112, 112, 1), True) is not None
