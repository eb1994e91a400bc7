"""The values that are read of parameters on the CPU before and after an update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fmapboard.measure.spare_memory import SpareMemory
from fmapboard.measure.updates import LEAST_CHANGED, finite_ratios


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
        self._bytes = _in_bytes(views)
        self._before, self._after = _Values(views, memory), _Values(views, memory)
        self._memory = memory
        self._before.read(self._bytes)
        self.nbytes = self._before.all.nbytes

    def read_again(
        self, names: tuple[str, ...], views: Sequence[Tensor] | None, tables: frozenset[str]
    ) -> CpuUpdates:
        """As ``updates.Copy.read_again``."""
        self._after.read(self._bytes if views is None else _in_bytes(views))
        return CpuUpdates(names, self._before, self._after, tables, self._memory)


class _Values:
    """Memory for what is read of several parameters of one dtype.

    Attributes:
        all: all values [S].
        parts: the values of each parameter, in the shape in which they are read.
    """

    def __init__(self, views: Sequence[Tensor], memory: SpareMemory) -> None:
        sizes = [view.numel() for view in views]
        self.all = memory.take((sum(sizes),), views[0].dtype)
        own = zip(self.all.split_with_sizes(sizes), views, strict=True)
        self.parts = [part.view(view.shape) for part, view in own]
        self._bytes = _in_bytes(self.parts)

    def read(self, views: list[Tensor]) -> None:
        """Copy the values as they are now, seen as bytes."""
        torch._foreach_copy_(self._bytes, views)


def _in_bytes(views: Sequence[Tensor]) -> list[Tensor]:
    """Views of the bytes: torch copies 32,769 values and more on several threads, of any size."""
    return [view.view(torch.uint8) for view in views]


@dataclass(frozen=True, eq=False, slots=True)
class CpuUpdates:
    """Values of parameters on the CPU before and after an update.

    Attributes:
        names: names of the parameters.
        before: their values before the update.
        after: the same values after the update.
        tables: names of parameters whose updates may change few values: weights of embeddings.
        memory: gets the values back.
    """

    names: tuple[str, ...]
    before: _Values
    after: _Values
    tables: frozenset[str]
    memory: SpareMemory

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield self.before.all
        yield self.after.all

    def ratios(self) -> dict[str, float]:
        """As ``updates.PendingUpdates.ratios``."""
        sizes, changes = [], []
        left_out = set[str]()
        parts = zip(self.names, self.before.parts, self.after.parts, strict=True)
        for name, before, after in parts:
            earlier = _wide(before)
            change = _wide(after) - earlier
            sizes.append(_norm(earlier))
            changes.append(_norm(change))
            if name in self.tables and _is_too_sparse(change):
                left_out.add(name)
        self.memory.give_back(self.before.all, self.after.all)
        found = finite_ratios(self.names, changes, sizes)
        return {name: ratio for name, ratio in found.items() if name not in left_out}


def _is_too_sparse(change: Tensor) -> bool:
    """True if too few of the rows [..., n] that were read in part have changed."""
    return change.dim() > 1 and int((change != 0).any(-1).sum()) < LEAST_CHANGED


def _norm(values: Tensor) -> float:
    return float(torch.linalg.vector_norm(values, dtype=torch.float64))


def _wide(values: Tensor) -> Tensor:
    """Half precision as single; other dtypes as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
