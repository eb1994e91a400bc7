"""Which values of a parameter are read to estimate the size of its update: rows, as a view.

Rows of values that are adjacent in memory cost far less to read than as many single values. On the
CPU a row has 64 values: 512 of them, spread evenly over a parameter, estimate its update as well
as 2048 rows of 16, in half the time (measured on ResNet-18, whose weights are in no cache then).
About 600 are read: from 32,769 values on, torch copies a tensor on several threads. Accelerators
read 2048 rows of 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import torch
from torch import Tensor

_WHOLE = 80_000
"""Of parameters with at most this many values, every row is read.

With sizes of 64 or 128 and kernels of 3x3, the next possible distance of rows is 5.
"""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """How parameters are read.

    Attributes:
        length: values per row.
        most: about this many rows of a large parameter are read.
        repeats: how often each value is read of a parameter that has fewer than 1024 values (on
            the CPU 4096) and does not consist of whole rows.
    """

    length: int
    most: int
    repeats: int

    @property
    def least(self) -> int:
        """In a parameter with fewer values than this, the last row is never left out."""
        return 64 * self.length


_CPU = _Pattern(64, 600, 1)
_ACCELERATOR = _Pattern(16, 2048, 16)  # repeated: so all rows have one length and share launches


def rows_of(parameter: Tensor) -> Tensor | None:
    """The rows [R, 64] that are read of a parameter: a view; on accelerators [R, 16].

    All values of a parameter are in the rows if it has at most 80,000, except fewer than one row
    at its end; of fewer than 4096 values (on accelerators 1024) none is left out. On the CPU each
    of those may be a row of its own, [R, 1], and a vector of at most 80,000 values is returned
    itself, [R].

    Args:
        parameter: of any floating-point or complex dtype, not empty.

    Returns:
        None if the parameter is not dense in memory.
    """
    real = torch.view_as_real(parameter) if parameter.is_complex() else parameter
    if real.is_cpu and real.dim() == 1 and real.numel() <= _WHOLE and real.is_contiguous():
        return real
    if not (real.is_contiguous() or _is_dense(real)):
        return None
    return real.as_strided(*_layout(real.shape, real.is_cpu))


@lru_cache(maxsize=1024)
def _layout(shape: torch.Size, is_cpu: bool) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size and stride of ``rows_of``, for memory that is filled densely."""
    total, pattern = shape.numel(), _CPU if is_cpu else _ACCELERATOR
    if total % pattern.length and total < pattern.least:
        return (total, pattern.repeats), (1, 0)
    rows = total // pattern.length
    step = 1 if total <= _WHOLE else _step(-(-rows // pattern.most), shape)
    return (-(-rows // step), pattern.length), (step * pattern.length, 1)


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
