"""Relative errors between tensors, and what they say of values that are not finite."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fmapboard.model_comparison import relative_error
from fmapboard.model_comparison.relative_error import Error, error_between, same_bits

INF, NAN = math.inf, math.nan


def error(first: list[float] | Tensor, second: list[float] | Tensor) -> Error:
    return error_between([torch.as_tensor(first)], [torch.as_tensor(second)])


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 4.0], [3.0, 9.0], 5 / math.hypot(3, 9)),
        ([3.0, 4.0], [0.0, 0.0], 1.0),
        ([0.0, 0.0], [3.0, 4.0], 1.0),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([3.0, 4.0], [-3.0, -4.0], 2.0),
    ],
)
def test_the_error_is_relative_to_the_larger_norm(
    first: list[float], second: list[float], expected: float
) -> None:
    assert error(first, second).relative == pytest.approx(expected)


def test_values_that_are_not_finite_in_both_are_counted_and_equal() -> None:
    found = error([NAN, INF, -INF, 3.0, 4.0], [NAN, INF, -INF, 3.0, 9.0])
    assert found.relative == pytest.approx(5 / math.hypot(3, 9))
    assert found.nonfinite == (3, 3)


@pytest.mark.parametrize(
    ("first", "second", "counts"),
    [
        ([NAN, 1.0], [1.0, 1.0], "1 in A, 0 in B"),
        ([1.0, 1.0], [INF, 1.0], "0 in A, 1 in B"),
        ([INF, 1.0], [-INF, 1.0], "1 in A, 1 in B"),
        ([NAN, 1.0], [INF, 1.0], "1 in A, 1 in B"),
    ],
)
def test_values_that_are_not_finite_in_one_are_an_infinite_error(
    first: list[float], second: list[float], counts: str
) -> None:
    found = error(first, second)
    assert (found.relative, found.reason) == (INF, f"NaN or infinite values: {counts}")


def test_a_nan_beyond_the_first_part_of_a_large_tensor_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relative_error, "_VALUES_AT_ONCE", 4)
    values = torch.arange(10.0)
    other = values.clone()
    other[9] = 10.0
    norm = float(other.double().norm())
    assert error(values, other).relative == pytest.approx(1 / norm)
    other[5] = NAN
    assert error(values, other).relative == INF


def test_shapes_and_numbers_of_tensors_must_agree() -> None:
    assert error(torch.ones(2, 3), torch.ones(3, 2)).reason == "shape [2, 3] in A, [3, 2] in B"
    assert error_between([], []) == Error()
    found = error_between([torch.ones(1)], [torch.ones(1), torch.ones(1)])
    assert (found.relative, found.reason) == (INF, "1 tensors in A, 2 in B")


def test_the_largest_error_of_several_tensors_counts() -> None:
    found = error_between([torch.ones(2), torch.ones(2)], [torch.ones(2), torch.zeros(2)])
    assert found.relative == 1.0


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float16])
def test_tensors_of_any_dtype_are_compared(dtype: torch.dtype) -> None:
    values = torch.tensor([0, 1, 1, 0]).to(dtype)
    assert error(values, values.clone()).relative == 0.0
    assert error(values, torch.zeros_like(values)).relative == 1.0


def test_values_that_overflow_a_float32_sum_of_squares_are_compared() -> None:
    values = torch.full((4,), 3e38)
    assert error(values, values / 2).relative == pytest.approx(0.5)
    tiny = torch.full((4,), 1e-44)
    assert error(tiny, 2 * tiny).relative == pytest.approx(0.5, rel=0.1)


def test_same_bits_needs_the_same_dtype_shape_and_values() -> None:
    values = torch.tensor([1.0, NAN])
    assert same_bits(values, values.clone())
    assert not same_bits(values, torch.tensor([1.0, 2.0]))
    assert not same_bits(values, values.double())
    assert not same_bits(values, values[None])
