"""The values that are read of parameters on the CPU before and after an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fmapboard.measure.cpu_values import CpuValues, in_bytes
from fmapboard.measure.gradient_rows import GradientRows
from fmapboard.measure.spare_memory import SpareMemory
from fmapboard.measure.updates import LEAST_CHANGED, finite_ratios, wide_values


class ValuesOnCpu:
    """Values of parameters of one dtype on the CPU, before an update.

    The memory for the values after the update is taken here too.

    Args:
        views: what is read of each parameter.
        memory: where the memory comes from.

    Attributes:
        nbytes: as ``updates.Copy.nbytes``.
    """

    def __init__(self, views: Sequence[Tensor], memory: SpareMemory) -> None:
        self._bytes = in_bytes(views)
        self._before, self._after = CpuValues(views, memory), CpuValues(views, memory)
        self._memory = memory
        self._before.read(self._bytes)
        self.nbytes = self._before.all.nbytes

    def read_again(
        self,
        names: tuple[str, ...],
        views: Sequence[Tensor] | None,
        tables: frozenset[str],
        gradients: GradientRows | None = None,
    ) -> CpuUpdates:
        """As ``updates.Copy.read_again``."""
        self._after.read(self._bytes if views is None else in_bytes(views))
        return CpuUpdates(names, self._before, self._after, tables, self._memory, gradients)


@dataclass(frozen=True, eq=False, slots=True)
class CpuUpdates:
    """Values of parameters on the CPU before and after an update.

    Attributes:
        names: names of the parameters.
        before: their values before the update.
        after: the same values after the update.
        tables: names of parameters whose updates may change few values: weights of embeddings.
        memory: gets the values back.
        gradients: what was read of their gradients, if anything.
    """

    names: tuple[str, ...]
    before: CpuValues
    after: CpuValues
    tables: frozenset[str]
    memory: SpareMemory
    gradients: GradientRows | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield self.before.all
        yield self.after.all
        if self.gradients is not None:
            yield self.gradients.all

    def ratios(self, gradient_norms: Mapping[str, float]) -> dict[str, float]:
        """As ``updates.Updates.ratios``."""
        sizes, changes = [], []
        left_out = set[str]()
        parts = zip(self.names, self.before.parts, self.after.parts, strict=True)
        for name, before, after in parts:
            earlier = wide_values(before)
            change = wide_values(after) - earlier
            sizes.append(_norm(earlier))
            changes.append(self._norm_of_change(name, change, gradient_norms))
            if name in self.tables and _is_too_sparse(change):
                left_out.add(name)
        self.memory.give_back(*self.tensors())
        found = finite_ratios(self.names, changes, sizes)
        return {name: ratio for name, ratio in found.items() if name not in left_out}

    def _norm_of_change(
        self, name: str, change: Tensor, gradient_norms: Mapping[str, float]
    ) -> float:
        rows, norm = self.gradients, gradient_norms.get(name)
        if rows is None or norm is None or name not in rows.rows:
            return _norm(change)
        return rows.norm(name, change, norm)


def _is_too_sparse(change: Tensor) -> bool:
    """True if too few of the rows [..., n] that were read in part have changed."""
    return change.dim() > 1 and int((change != 0).any(-1).sum()) < LEAST_CHANGED


def _norm(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(values, dtype=torch.float64))
