"""Relative errors between the tensors that two layers received or returned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.capture.passes import Side
from fmapboard.model.tensors import dense, is_observable

_VALUES_AT_ONCE = 2**22
"""Values converted to float64 at a time."""


class Error(NamedTuple):
    """How much some tensors of one model differ from those of another.

    Attributes:
        relative: Norm of the difference divided by the larger of the two norms, from 0 to 2; the
            largest of all tensors. Infinite if they cannot be compared, or differ in where they
            are not finite. None if there is no tensor.
        nonfinite: Number of NaN and infinite values in both models' tensors.
        reason: Why the tensors cannot be compared; else empty.
        has_other_shapes: Their shapes or number differ.
    """

    relative: float | None = None
    nonfinite: tuple[int, int] = (0, 0)
    reason: str = ""
    has_other_shapes: bool = False

    def worst(self, other: Error) -> Error:
        """The errors of several tensors, or of several images, as one."""
        relative = (self.relative, other.relative)
        known = [error for error in relative if error is not None]
        first_a, first_b = self.nonfinite
        second_a, second_b = other.nonfinite
        return Error(
            max(known, default=None),
            nonfinite=(first_a + second_a, first_b + second_b),
            reason=self.reason or other.reason,
            has_other_shapes=self.has_other_shapes or other.has_other_shapes,
        )


class Errors(dict[tuple[str | None, Side], Error]):
    """Errors by label of a call and by what it received or returned; None is the model's output.

    An error that was not measured is an ``Error()``.
    """

    def __missing__(self, key: tuple[str | None, Side]) -> Error:
        return Error()

    def include(self, other: Errors) -> None:
        """Keep the larger one of each two errors."""
        for key, error in other.items():
            self[key] = self[key].worst(error)


def error_between(expected: Sequence[Tensor], actual: Sequence[Tensor]) -> Error:
    """Compare tensors one by one.

    Integer and boolean tensors are compared as numbers. NaN equals NaN, and an infinity equals one
    of the same sign; the error is that of the other values.

    Args:
        expected: The first model's tensors, of any shape, dtype and device.
        actual: The second model's.
    """
    if len(expected) != len(actual):
        reason = f"{len(expected)} tensors in A, {len(actual)} in B"
        return Error(math.inf, reason=reason, has_other_shapes=True)
    found = Error()
    for first, second in zip(expected, actual, strict=True):
        found = found.worst(_error_of_one(first, second))
    return found


def is_same(received: Sequence[Tensor], returned: Sequence[Tensor]) -> bool:
    """True if there are tensors and none of them differs."""
    return bool(received) and error_between(received, returned).relative == 0.0


def same_bits(first: Tensor, second: Tensor) -> bool:
    """True if two tensors have the same dtype, device, shape and values; NaN equals NaN."""
    if first.dtype != second.dtype:
        return False
    if first.device != second.device:
        return False
    if first.shape != second.shape:
        return False
    if not first.is_floating_point():
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=0.0, atol=0.0, equal_nan=True)


def _error_of_one(first: Tensor, second: Tensor) -> Error:
    if first.shape != second.shape:
        reason = f"shape {list(first.shape)} in A, {list(second.shape)} in B"
        return Error(math.inf, reason=reason, has_other_shapes=True)
    if first.numel() == 0:
        return Error(0.0)
    if not (is_observable(first) and is_observable(second)):
        return Error()
    sums = _Sums()
    flat_a = _flat(first)
    flat_b = _flat(second)
    for start in range(0, flat_a.numel(), _VALUES_AT_ONCE):
        part = slice(start, start + _VALUES_AT_ONCE)
        a = flat_a[part].cpu()  # accelerators may lack float64
        b = flat_b[part].cpu()
        sums.add(a.double(), b.double())
    return sums.error()


class _Sums:
    """Sums over the values of two tensors, which are added in parts."""

    def __init__(self) -> None:
        self._difference = 0.0  # of squares, as the next two
        self._a = 0.0
        self._b = 0.0
        self._nonfinite_a = 0
        self._nonfinite_b = 0
        self._matching = True
        """False if values that are not finite differ."""

    def add(self, a: Tensor, b: Tensor) -> None:
        """Add a part of both tensors, f64 [N] on the CPU."""
        difference, squares_a, squares_b = _squares(a, b)
        if not math.isfinite(difference + squares_a + squares_b):
            finite_a = a.isfinite()
            finite_b = b.isfinite()
            finite = finite_a & finite_b
            are_nan = a.isnan() & b.isnan()
            matching = finite | are_nan | (a == b)
            self._nonfinite_a += int((~finite_a).sum())
            self._nonfinite_b += int((~finite_b).sum())
            if not bool(matching.all()):
                self._matching = False
            difference, squares_a, squares_b = _squares(a[finite], b[finite])
        self._difference += difference
        self._a += squares_a
        self._b += squares_b

    def error(self) -> Error:
        """The error of all values that were added."""
        in_a = self._nonfinite_a
        in_b = self._nonfinite_b
        nonfinite = (in_a, in_b)
        if not self._matching:
            reason = f"NaN or infinite values: {in_a:,} in A, {in_b:,} in B"
            return Error(math.inf, nonfinite, reason)
        difference = math.sqrt(self._difference)
        if difference == 0.0:
            return Error(0.0, nonfinite)
        larger = max(self._a, self._b)
        norm = math.sqrt(larger)
        return Error(difference / norm, nonfinite)


def _squares(a: Tensor, b: Tensor) -> tuple[float, float, float]:
    """Sums of squares of the difference and of both tensors."""
    squares_a = float(torch.dot(a, a))
    squares_b = float(torch.dot(b, b))
    if torch.equal(a, b):
        return 0.0, squares_a, squares_b
    difference = b - a
    squares = float(torch.dot(difference, difference))
    return squares, squares_a, squares_b


def _flat(tensor: Tensor) -> Tensor:
    tensor = dense(tensor)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)
