"""Norms of updates from some rows, corrected by what the same rows are of the gradient."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fmapboard.measure.gradient_rows import GradientRows

SHARE = 0.1


def rows_and_norm(seed: int) -> tuple[Tensor, float]:
    """Rows [100, 32], a tenth of a gradient of which few rows make up the most; its norm."""
    torch.manual_seed(seed)
    gradient = torch.randn(1000, 32) * torch.randn(1000, 1).exp()
    return gradient[:100], float(gradient.norm())


def norm(change: Tensor, gradient: Tensor, whole: float, share: float = SHARE) -> float:
    return GradientRows({"w": gradient}, {"w": share}, gradient).norm("w", change, whole)


@pytest.mark.parametrize("seed", range(5))
def test_an_update_along_the_gradient_is_known_exactly(seed: int) -> None:
    gradient, whole = rows_and_norm(seed)
    expected = math.sqrt(SHARE) * 0.1 * whole
    assert norm(-0.1 * gradient, gradient, whole) == pytest.approx(expected, rel=1e-4)
    assert abs(float((0.1 * gradient).norm()) / expected - 1) > 0.001  # of the rows alone


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_gradients_of_other_dtypes(dtype: torch.dtype) -> None:
    gradient, whole = rows_and_norm(0)
    found = norm(-0.1 * gradient, gradient.to(dtype), whole)
    assert found == pytest.approx(math.sqrt(SHARE) * 0.1 * whole, rel=0.01)


def test_an_update_that_does_not_follow_the_gradient_is_left_as_it_is() -> None:
    gradient, whole = rows_and_norm(0)
    change = gradient.sign()
    assert norm(change, gradient, whole) == pytest.approx(float(change.norm()), rel=1e-6)


def test_a_row_that_was_not_read_may_hold_nearly_the_whole_gradient() -> None:
    gradient, whole = rows_and_norm(0)
    change = gradient / (gradient.abs() + 1)  # of the row that was not read at most 1
    found = norm(change, gradient, 100 * whole)
    assert found == pytest.approx(float(change.norm()), rel=1e-6)


@pytest.mark.parametrize("factor", [0.5, math.inf, math.nan])
def test_a_norm_that_cannot_be_that_of_the_gradient_is_not_used(factor: float) -> None:
    gradient, _ = rows_and_norm(0)
    change = -0.1 * gradient
    found = norm(change, gradient, factor * float(gradient.norm()))
    assert found == pytest.approx(float(change.norm()), rel=1e-6)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_gradients_that_tell_nothing(value: float) -> None:
    gradient, change = torch.full((100, 32), value), torch.randn(100, 32)
    found = norm(change, gradient, float(10 * gradient.norm()))
    assert found == pytest.approx(float(change.norm()), rel=1e-6)


def test_the_whole_update_is_at_least_as_large_as_its_rows() -> None:
    gradient = torch.tensor([1.0, 1, 1, 10]).sqrt().view(4, 1)
    change = torch.tensor([0.0, 0, 0, 10]).sqrt().view(4, 1)
    found = norm(change, gradient, float(gradient.norm()), share=0.5)
    assert found == pytest.approx(math.sqrt(0.5) * float(change.norm()))
