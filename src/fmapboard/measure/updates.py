"""Estimate the size of an update from rows of parameters read before and after it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.measure.spare_memory import SpareMemory

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_RAW_ROWS = 4096
"""Up to this many rows are sent as they are: at most 512 KiB, instead of two launches."""

_LEAST_CHANGED = 256
"""Fewer changed rows of an embedding do not tell how large the whole update is."""


@dataclass(frozen=True, slots=True)
class PendingUpdates:
    """Rows of parameters before and after an update, or their norms, still on the device.

    Attributes:
        names: names of the parameters.
        rows: how many rows were read of each.
        before: the rows [R, n] of ``parameter_rows`` before the update, in the order of the names.
            From an accelerator, their 2-norms [R].
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
        sizes, changes = self._norms()
        if self.memory is not None:
            self.memory.give_back(self.before, self.after)
        ends: Ints = np.cumsum(self.rows)
        starts: Ints = ends - np.asarray(self.rows)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = np.sqrt(_sums(changes, starts)) / np.sqrt(_sums(sizes, starts))
        return {
            name: float(ratio)
            for name, ratio, start, end in zip(self.names, found, starts, ends, strict=True)
            if math.isfinite(ratio) and not self._is_too_sparse(name, changes[start:end])
        }

    def _is_too_sparse(self, name: str, changes: Floats) -> bool:
        """True if too few of the rows that were read of an embedding have changed."""
        if name not in self.tables or len(changes) <= _LEAST_CHANGED:
            return False
        return int(np.count_nonzero(changes)) < _LEAST_CHANGED

    def _norms(self) -> tuple[Floats, Floats]:
        """2-norms [R] of the rows before the update and of their changes, f64."""
        before, after = self.before.cpu(), self.after.cpu()
        if before.dim() == 1:
            return before.double().numpy(), after.double().numpy()
        sizes = _norms_of_rows(before, torch.float64)
        changes = _norms_of_rows(_wide(after) - _wide(before), torch.float64)
        return sizes.numpy(), changes.numpy()


def _sums(norms: Floats, starts: Ints) -> Floats:
    """Sum of the squares of each part of norms [R], which begin at ``starts``."""
    sums: Floats = np.add.reduceat(norms**2, starts)
    return sums


def _wide(values: Tensor) -> Tensor:
    """Half precision as single; other dtypes as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def joined(rows: Sequence[Tensor], count: int, memory: SpareMemory) -> Tensor:
    """A copy [R, n] of rows of one dtype, device and length, one below the other.

    On an accelerator it is the first half of a tensor whose second half `joined_after` fills; on
    the CPU it is in ``memory``.

    Args:
        rows: [R, n] each, or all of them vectors [R] on the CPU, which give [R, 1].
        count: how many rows these are.
        memory: memory on the CPU.
    """
    if rows[0].is_cpu:
        is_flat = rows[0].dim() == 1
        copied = memory.take((count, 1 if is_flat else rows[0].shape[1]), rows[0].dtype)
        torch.cat(list(rows), out=copied.view(-1) if is_flat else copied)
        return copied
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
        return before, joined(rows, before.shape[0], memory)
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
