"""Estimate the size of an update from rows of parameters read before and after it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.measure.gradient_rows import GradientRows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_RAW_ROWS = 4096
"""Up to this many rows are sent as they are: at most 512 KiB, instead of two launches."""

LEAST_CHANGED = 256
"""Fewer changed rows of an embedding do not tell how large the whole update is."""


class Updates(Protocol):
    """What was read of parameters around their update."""

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        ...

    def ratios(self, gradient_norms: Mapping[str, float]) -> dict[str, float]:
        """Wait for the device: name -> 2-norm of the update over that of the parameter before it.

        A parameter is left out if all values read were 0, or if one is not finite; an embedding
        that was read in part also if fewer than 256 of the rows read have changed.

        To be called once: the memory may be overwritten afterwards.

        Args:
            gradient_norms: 2-norms of the gradients that were there before the update, as far as
                they are known.
        """
        ...


class Copy(Protocol):
    """What was read of parameters of one dtype and device before their update."""

    @property
    def nbytes(self) -> int:
        """Size in bytes of what was read."""
        ...

    def read_again(
        self,
        names: tuple[str, ...],
        views: Sequence[Tensor] | None,
        tables: frozenset[str],
        gradients: GradientRows | None = None,
    ) -> Updates:
        """Called once, after the update.

        Args:
            names: names of the parameters.
            views: ``parameter_rows.rows_of`` each parameter; None if they are where they were.
            tables: names of parameters whose updates may change few values: weights of embeddings.
            gradients: what was read of the gradients.
        """
        ...


@dataclass(frozen=True, slots=True)
class PendingUpdates:
    """Rows of parameters before and after an update, or their norms, still on an accelerator.

    Attributes:
        names: names of the parameters.
        rows: how many rows were read of each.
        before: the rows [R, n] of ``parameter_rows`` before the update, in the order of the names,
            or if they are many, their 2-norms [R].
        after: the same rows after the update, or the 2-norms [R] of the changes.
        tables: names of parameters whose updates may change few values: weights of embeddings.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    before: Tensor
    after: Tensor
    tables: frozenset[str] = frozenset()

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield self.before
        yield self.after

    def ratios(self, gradient_norms: Mapping[str, float]) -> dict[str, float]:
        """As `Updates.ratios`."""
        del gradient_norms  # no rows of gradients are read
        sizes, changes = self._norms()
        ends: Ints = np.cumsum(self.rows)
        starts: Ints = ends - np.asarray(self.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            found = finite_ratios(
                self.names, np.sqrt(_sums(changes, starts)), np.sqrt(_sums(sizes, starts))
            )
        parts = zip(self.names, starts, ends, strict=True)
        left_out = {n for n, s, e in parts if self._is_too_sparse(n, changes[s:e])}
        return {name: ratio for name, ratio in found.items() if name not in left_out}

    def _is_too_sparse(self, name: str, changes: Floats) -> bool:
        """True if too few of the rows that were read of an embedding have changed."""
        if name not in self.tables or len(changes) <= LEAST_CHANGED:
            return False
        return int(np.count_nonzero(changes)) < LEAST_CHANGED

    def _norms(self) -> tuple[Floats, Floats]:
        """2-norms [R] of the rows before the update and of their changes, f64."""
        before, after = self.before.cpu(), self.after.cpu()
        if before.dim() == 1:
            return before.double().numpy(), after.double().numpy()
        sizes = _norms_of_rows(before, torch.float64)
        changes = _norms_of_rows(wide_values(after) - wide_values(before), torch.float64)
        return sizes.numpy(), changes.numpy()


class RowsOnAccelerator:
    """Rows [R, n] of parameters of one dtype on one accelerator, before an update.

    Args:
        views: the rows [., n] of each parameter.

    Attributes:
        nbytes: as `Copy.nbytes`.
    """

    def __init__(self, views: Sequence[Tensor]) -> None:
        self._views, self._counts = list(views), tuple(rows.shape[0] for rows in views)
        total = sum(self._counts)
        self._both = views[0].new_empty((2 * total, views[0].shape[1]))
        torch.cat(self._views, out=self._both[:total])
        self.nbytes = self._both.nbytes // 2

    def read_again(
        self,
        names: tuple[str, ...],
        views: Sequence[Tensor] | None,
        tables: frozenset[str],
        gradients: GradientRows | None = None,
    ) -> PendingUpdates:
        """As `Copy.read_again`; the rows before the update are overwritten."""
        del gradients  # none are read on accelerators
        total = len(self._both) // 2
        before, after = self._both[:total], self._both[total:]
        torch.cat(self._views if views is None else list(views), out=after)
        if total > _RAW_ROWS:
            after.sub_(before)
            wide = torch.float64 if after.dtype == torch.float64 else torch.float32
            norms = _norms_of_rows(self._both, wide)
            before, after = norms[:total], norms[total:]
        return PendingUpdates(names, self._counts, before, after, tables)


def finite_ratios(
    names: Iterable[str], changes: Iterable[float], sizes: Iterable[float]
) -> dict[str, float]:
    """Name -> norm of the change over that of the parameter, if it is a number."""
    every = zip(names, changes, sizes, strict=True)
    found = {name: float(change) / float(size) for name, change, size in every if size}
    return {name: ratio for name, ratio in found.items() if math.isfinite(ratio)}


def _sums(norms: Floats, starts: Ints) -> Floats:
    """Sum of the squares of each part of norms [R], which begin at ``starts``."""
    sums: Floats = np.add.reduceat(norms**2, starts)
    return sums


def wide_values(values: Tensor) -> Tensor:
    """Half precision as single; other dtypes as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _norms_of_rows(values: Tensor, dtype: torch.dtype) -> Tensor:
    """2-norms [R] of the rows of [R, n], computed and returned in ``dtype``."""
    norms: Tensor = torch.linalg.vector_norm(values, dim=1, dtype=dtype)
    return norms
