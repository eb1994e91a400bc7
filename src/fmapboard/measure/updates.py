"""Subsample parameters before and after an update, to estimate the size of the update.

Parameters are read in rows of 16 values that are adjacent in memory, about one cache line each: a
row costs as much to read as a single value. At most 2048 rows of a parameter are read, spread
evenly over it; of one with fewer than 80,000 values, all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from fmapboard.measure.spare_memory import SpareMemory

ROW = 16
"""Values per row."""

MOST_ROWS = 2048
"""At most this many rows of a large parameter are read."""

_ALL_ROWS = 5000
"""Parameters with at most this many rows are read completely.

With sizes of 64 or 128 and kernels of 3x3, the next possible distance of rows is 5.
"""

_RAW_ROWS = 4096
"""Up to this many rows are sent as they are: at most 512 KiB, instead of two launches."""

_LEAST_CHANGED = 256
"""Fewer changed rows of an embedding do not tell how large the whole update is."""

_REPEATED_BELOW = 64 * ROW
"""In a parameter with fewer values than this, the last row is never left out."""


@dataclass(frozen=True, slots=True)
class PendingUpdates:
    """Rows of parameters before and after an update, or their norms, still on the device.

    Attributes:
        names: names of the parameters.
        rows: how many rows were read of each.
        before: the rows [R, 16] or [R, 1] before the update, in the order of the names. From an
            accelerator, their 2-norms [R].
        after: the same rows after the update. From an accelerator, the 2-norms [R] of the
            changes.
        tables: those of the names whose updates may change few values: weights of embeddings.
        memory: gets the rows back, those on the CPU.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    before: Tensor
    after: Tensor
    tables: frozenset[str] = frozenset()
    memory: SpareMemory | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield self.before
        yield self.after

    def ratios(self) -> dict[str, float]:
        """Wait for the device: name -> 2-norm of the update over that of the parameter before it.

        A parameter is left out if all values read were 0, or if one is not finite; an embedding
        also if fewer than 256 of the rows read have changed.

        To be called once: the rows may be overwritten afterwards.
        """
        sizes, changes = (norms.split_with_sizes(list(self.rows)) for norms in self._norms())
        if self.memory is not None:
            self.memory.give_back(self.before, self.after)
        found = {}
        parts = zip(sizes, changes, strict=True)
        for name, (size, changed) in zip(self.names, parts, strict=True):
            if name in self.tables and len(changed) > _LEAST_CHANGED > int(changed.count_nonzero()):
                continue
            norm = float(torch.linalg.vector_norm(size))
            ratio = float(torch.linalg.vector_norm(changed)) / norm if norm else math.nan
            if math.isfinite(ratio):
                found[name] = ratio
        return found

    def _norms(self) -> tuple[Tensor, Tensor]:
        """2-norms [R] of the rows before the update and of their changes, f64."""
        before, after = self.before.cpu(), self.after.cpu()
        if before.dim() == 1:
            return before.double(), after.double()
        changes = _wide(after) - _wide(before)
        return _norms_of_rows(before, torch.float64), _norms_of_rows(changes, torch.float64)


def _wide(values: Tensor) -> Tensor:
    """Half precision as single; other dtypes as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def rows_of(parameter: Tensor) -> Tensor | None:
    """The rows [n, 16] that are read of a parameter: a view; [n, 1] of some on the CPU.

    All values of a parameter are in the rows if it has fewer than 80,000, except up to 15 at its
    end; of fewer than 1024 values none is left out.

    Args:
        parameter: of any floating-point or complex dtype, not empty.

    Returns:
        None if the parameter is not dense in memory.
    """
    real = torch.view_as_real(parameter) if parameter.is_complex() else parameter
    if not (real.is_contiguous() or _is_dense(real)):
        return None
    return real.as_strided(*_layout(real.shape, real.is_cpu))


@lru_cache(maxsize=1024)
def _layout(shape: torch.Size, is_cpu: bool) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size and stride of ``rows_of``, for memory that is filled densely."""
    total = shape.numel()
    if total % ROW and total < _REPEATED_BELOW:
        # Each value is a row; on accelerators, where rows share launches, repeated 16 times.
        return (total, 1 if is_cpu else ROW), (1, 0)
    rows = total // ROW
    step = _step(rows, shape)
    return (-(-rows // step), ROW), (step * ROW, 1)


def _step(rows: int, shape: torch.Size) -> int:
    """The distance between two rows that are read, in rows.

    It shares no factor with an axis, so that the rows cover all channels and positions.
    """
    if rows <= _ALL_ROWS:
        return 1
    step = -(-rows // MOST_ROWS)
    while any(math.gcd(step, side) > 1 for side in shape):
        step += 1
    return step


def joined(rows: Sequence[Tensor], memory: SpareMemory) -> Tensor:
    """A copy of rows of one dtype, device and length, one below the other.

    On an accelerator it is the first half of a tensor whose second half `joined_after` fills; on
    the CPU it is in ``memory``.
    """
    count = sum(part.shape[0] for part in rows)  # len() of a tensor runs Python code
    if rows[0].is_cpu:
        copied = memory.take((count, rows[0].shape[1]), rows[0].dtype)
        return torch.cat(list(rows), out=copied)
    both = rows[0].new_empty((2 * count, rows[0].shape[1]))
    torch.cat(list(rows), out=both[:count])
    return both


def joined_after(
    before: Tensor, rows: Sequence[Tensor], memory: SpareMemory
) -> tuple[Tensor, Tensor]:
    """The same rows before and after the update, as ``PendingUpdates`` holds them.

    Args:
        before: the result of `joined`; on an accelerator it is overwritten.
        rows: the rows after the update.
        memory: see `joined`.
    """
    if before.is_cpu:
        return before, joined(rows, memory)
    count = len(before) // 2
    first, second = before[:count], before[count:]
    torch.cat(list(rows), out=second)
    if count <= _RAW_ROWS:
        return first, second
    second.sub_(first)
    wide = torch.float64 if before.dtype == torch.float64 else torch.float32
    norms = _norms_of_rows(before, wide)
    return norms[:count], norms[count:]


def _norms_of_rows(values: Tensor, dtype: torch.dtype) -> Tensor:
    """2-norms [R] of the rows of [R, n], computed and returned in ``dtype``."""
    norms: Tensor = torch.linalg.vector_norm(values, dim=1, dtype=dtype)
    return norms


def _is_dense(tensor: Tensor) -> bool:
    """True if the tensor fills its memory without gaps or repetitions, in any order of axes."""
    expected = 1
    axes = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, size in sorted(axis for axis in axes if axis[1] > 1):
        if stride != expected:
            return False
        expected *= size
    return True
