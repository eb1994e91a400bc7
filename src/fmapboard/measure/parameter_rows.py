"""Which values of a parameter are read to estimate the size of its update, as a view.

Rows of values that are adjacent in memory cost far less to read than as many single values.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import count

import torch
from torch import Tensor

from fmapboard.measure.balanced_rows import balanced_rows

_WHOLE = 65_536
"""On the CPU, parameters with at most this many values are read whole."""

_CPU = 64, 600
"""Values per row, and about how many rows are read of a parameter without `balanced_rows`."""

_ACCELERATOR = 16, 2048
_ALL_ROWS = 80_000
"""On an accelerator, every row of parameters with at most this many values is read."""

_REPEATS = 16
"""How often an accelerator reads each value of a parameter that has fewer than 1024 and does not
consist of whole rows: so all rows have one length and share launches."""


def rows_of(parameter: Tensor) -> Tensor | None:
    """The values that are read of a parameter: a view.

    On the CPU, all of them [S] if they are at most 65,536, else some hundred rows [..., n] of 32
    values, or of 64 if there are few output channels. On accelerators rows [R, 16], about 2048, or
    all if the parameter has at most 80,000 values, except for fewer than one row at its end.

    Args:
        parameter: of any floating-point or complex dtype, not empty.

    Returns:
        None if the parameter is not dense in memory.
    """
    real = torch.view_as_real(parameter) if parameter.is_complex() else parameter
    if not (real.is_contiguous() or _is_dense(real)):
        return None
    if not real.is_cpu:
        return real.as_strided(*_short_rows(real.shape))
    if real.numel() <= _WHOLE:
        return real.as_strided((real.numel(),), (1,))
    return real.as_strided(*_long_rows(real.shape, real.stride()))


@lru_cache(maxsize=1024)
def _long_rows(
    shape: torch.Size, strides: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Size and stride of the rows on the CPU."""
    _, outputs = max((stride, n) for stride, n in zip(strides, shape, strict=True) if n > 1)
    balanced = balanced_rows(outputs, shape.numel() // outputs)
    return _at_one_distance(shape, *_CPU) if balanced is None else (balanced.size, balanced.stride)


@lru_cache(maxsize=1024)
def _short_rows(shape: torch.Size) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size and stride of the rows on an accelerator."""
    total, (length, most) = shape.numel(), _ACCELERATOR
    if total % length and total < 64 * length:
        return (total, _REPEATS), (1, 0)
    if total <= _ALL_ROWS:
        return (total // length, length), (length, 1)
    return _at_one_distance(shape, length, most)


def _at_one_distance(
    shape: torch.Size, length: int, most: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size and stride of about ``most`` rows, spread evenly over a parameter."""
    rows = shape.numel() // length
    step = _step(-(-rows // most), shape)
    return (-(-rows // step), length), (step * length, 1)


def _step(about: int, shape: torch.Size) -> int:
    """The distance between two rows that are read, in rows: as close to ``about`` as possible.

    It shares no factor with an axis, so that the rows cover all channels and positions.
    """
    below = next(step for step in range(about, 0, -1) if _is_coprime(step, shape))
    above = next(step for step in count(about) if _is_coprime(step, shape))
    return below if about * about <= below * above else above


def _is_coprime(step: int, shape: torch.Size) -> bool:
    return all(math.gcd(step, side) == 1 for side in shape)


def _is_dense(tensor: Tensor) -> bool:
    """True if the tensor fills its memory without gaps or repetitions, in any order of axes."""
    expected = 1
    axes = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, size in sorted(axis for axis in axes if axis[1] > 1):
        if stride != expected:
            return False
        expected *= size
    return True
