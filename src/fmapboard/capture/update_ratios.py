"""Reads parameters right before and right after an optimizer updates them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.isolation import aside
from fmapboard.measure.parameter_rows import rows_of
from fmapboard.measure.spare_memory import SpareMemory
from fmapboard.measure.updates import PendingUpdates, joined, joined_after
from fmapboard.model.distributed import local

_DTYPES = frozenset(
    {torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.complex128}
)

_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


@dataclass(frozen=True, eq=False, slots=True)
class _Begun:
    """Parameters of one dtype and device that an optimizer is updating.

    Attributes:
        optimizer: the ``id`` of the optimizer.
        parameters: name -> the parameter, and the view of its rows before the update; referenced
            only until the update has ended.
        counts: how many rows each has.
        values: a copy of the rows.
    """

    optimizer: int
    parameters: dict[str, tuple[Tensor, Tensor]]
    counts: tuple[int, ...]
    values: Tensor


class UpdateReader:
    """Estimates the size of the update that each parameter gets in one optimizer step.

    Runs on the training thread. Of sharded parameters it reads this process's shard.

    Args:
        model: the unwrapped model, in which it looks for embeddings.
        enabled: False reads nothing.
    """

    def __init__(self, model: nn.Module, *, enabled: bool = True) -> None:
        self._model, self._is_enabled = model, enabled
        self._known, self._tables = set[int](), frozenset[str]()
        self._versions: dict[int, int] = {}
        self._depths = Counter[int]()
        self._memory = SpareMemory()
        self._begun: list[_Begun] = []
        self._ended: list[PendingUpdates] = []

    def forget(self) -> None:
        """Discard what was read."""
        self._versions, self._begun, self._ended = {}, [], []
        self._depths.clear()

    def announce(self, optimizer: Optimizer, parameters: Iterable[Tensor]) -> None:
        """Called before an optimizer's step, also before its closure is evaluated.

        A closure whose optimizer changes parameters around it (sharpness-aware minimization) calls
        ``before`` too late; those parameters are then left out.
        """
        self._depths[id(optimizer)] += 1  # a step may call that of its base class
        self._versions.update((id(p), p._version) for p in parameters)

    def before(self, optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> None:
        """Copy a subsample of the parameters that the optimizer is about to update.

        Args:
            optimizer: the optimizer; ``after`` recognizes it.
            parameters: by name. Those without a gradient, which are not updated, are left out.
        """
        if not self._is_enabled:
            return
        groups: defaultdict[tuple[Any, ...], dict[str, tuple[Tensor, Tensor]]] = defaultdict(dict)
        matrices = []
        with torch.no_grad():
            for name, parameter in parameters.items():
                if parameter.grad is None:
                    continue
                if self._versions.get(id(parameter), parameter._version) != parameter._version:
                    continue
                rows = _rows(parameter)
                if rows is not None:
                    groups[_kind(rows)][name] = parameter, rows
                    if parameter.dim() == 2:
                        matrices.append((name, parameter))
        self._find_tables(matrices)
        for device in {device for device, *_ in groups}:
            with aside(device):
                for kind, own in groups.items():
                    if kind[0] == device:
                        every = [rows for _, rows in own.values()]
                        counts = tuple(rows.shape[0] for rows in every)
                        values = joined(every, sum(counts), self._memory)
                        self._begun.append(_Begun(id(optimizer), own, counts, values))

    def _find_tables(self, matrices: Iterable[tuple[str, Tensor]]) -> None:
        """Remember which parameters are weights of embeddings; listing modules takes long."""
        fresh = {id(parameter): name for name, parameter in matrices} if matrices else {}
        if fresh.keys() <= self._known:
            return
        self._known |= fresh.keys()
        tables = {id(m.weight) for m in self._model.modules() if isinstance(m, _EMBEDDINGS)}
        self._tables |= {name for found, name in fresh.items() if found in tables}

    def after(self, optimizer: Optimizer | None = None) -> None:
        """Called when an optimizer has updated its parameters: read them again.

        Args:
            optimizer: the optimizer; None for all of them.
        """
        if optimizer is not None:
            self._depths[id(optimizer)] -= 1
            if self._depths[id(optimizer)]:
                return
        done = [one for one in self._begun if optimizer is None or one.optimizer == id(optimizer)]
        self._begun = [one for one in self._begun if one not in done]
        for device in {one.values.device.type for one in done}:
            with aside(device):
                for one in done:
                    if one.values.device.type == device:
                        self._read_again(one)

    def _read_again(self, begun: _Begun) -> None:
        """Copy the rows after the update; none if one of the parameters cannot be read any more."""
        rows = []
        for parameter, before in begun.parameters.values():
            again = _same_rows(parameter, before)
            if again is None:
                return
            rows.append(again)
        both = joined_after(begun.values, rows, self._memory)
        tables = self._tables & begun.parameters.keys()
        memory = self._memory if both[0].is_cpu else None
        names = tuple(begun.parameters)
        self._ended.append(PendingUpdates(names, begun.counts, *both, tables, memory))

    def pending(self) -> tuple[PendingUpdates, ...]:
        """All updates that have ended."""
        return tuple(self._ended)


def _rows(parameter: Tensor) -> Tensor | None:
    """``rows_of`` this process's part of a parameter; None if it cannot be read."""
    part = local(parameter)
    if not part.numel() or part.dtype not in _DTYPES:
        return None
    return rows_of(part)


def _same_rows(parameter: Tensor, rows: Tensor) -> Tensor | None:
    """The rows again, also if the optimizer has given the parameter other memory."""
    part = local(parameter)
    if part is rows:
        return rows
    if part.untyped_storage()._cdata == rows.untyped_storage()._cdata:
        return rows
    found = _rows(parameter)
    alike = found is not None and (found.shape, found.device) == (rows.shape, rows.device)
    return found if alike else None


def _kind(rows: Tensor) -> tuple[Any, ...]:
    """Type of device first; rows with the same result are joined."""
    if rows.is_cpu:  # contiguous tensors are joined faster among themselves
        return "cpu", rows.dtype, 0 if rows.dim() == 1 else rows.shape[1], rows.is_contiguous()
    return rows.device.type, rows.device, rows.dtype, rows.shape[1]
