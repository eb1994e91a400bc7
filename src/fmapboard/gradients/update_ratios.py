"""How much a step changes each parameter; a file of its own, as the one that reads weights twice.

Rows of 16 values that are adjacent in memory, one cache line in float32, cost far less to read than
as many single values. All rows of one dtype and device are copied in one operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.arithmetic import coprime
from fmapboard.capture.isolation import aside
from fmapboard.model.distributed import PLAIN, local
from fmapboard.model.tensors import packed

Floats = npt.NDArray[np.float64]

ROW = 16
"""Values per row."""

MAX_WHOLE = 65_536
"""Parameters with at most this many values are read whole, but for fewer than one row at the end of
those with 1024 values or more."""

_ROWS_IN_PART, _ON_ACCELERATOR = 4096, 2048
"""About how many rows are read of a larger parameter, spread evenly over it."""

_RAW_ROWS = 4096
"""Up to this many rows of an accelerator are sent as they are: 512 KiB, instead of two launches."""

_LEAST_CHANGED = 256
"""Fewer changed rows of an embedding do not tell how large the whole update is."""

_DTYPES = frozenset(
    {torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.complex128}
)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


@dataclass(frozen=True, eq=False, slots=True)
class PendingUpdates:
    """Rows of parameters of one dtype and device, before and after one optimizer step.

    Attributes:
        names: names of the parameters.
        rows: how many rows were read of each.
        before: the rows [R, 16] before the step, in the order of the names; if an accelerator has
            many, their 2-norms [R].
        after: the same rows after the step, or the 2-norms [R] of the changes.
        tables: names of the embeddings that were read in part: an update may change few values.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    before: Tensor
    after: Tensor
    tables: frozenset[str] = frozenset()

    def ratios(self) -> dict[str, float]:
        """Wait for the device: name -> 2-norm of the update over that of the parameter before it.

        A parameter is left out if all values read were 0, or if one is not finite; an embedding
        that was read in part also if fewer than 256 of the rows read have changed.
        """
        sizes, changes = self._norms()
        ends = np.cumsum(self.rows)
        starts = ends - np.asarray(self.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.sqrt(np.add.reduceat(sizes**2, starts))
            change = np.sqrt(np.add.reduceat(changes**2, starts))
        found = {}
        for n, name in enumerate(self.names):
            ratio = float(change[n]) / float(size[n]) if size[n] else math.nan
            changed = np.count_nonzero(changes[starts[n] : ends[n]])
            is_too_sparse = name in self.tables and changed < _LEAST_CHANGED
            if math.isfinite(ratio) and not is_too_sparse:
                found[name] = ratio
        return found

    def _norms(self) -> tuple[Floats, Floats]:
        """2-norms [R] of the rows before the update and of their changes, f64."""
        before, after = self.before.cpu(), self.after.cpu()
        if before.dim() == 2:
            wide = torch.promote_types(before.dtype, torch.float32)
            change = after.to(wide) - before.to(wide)
            before, after = (_row_norms(rows, dtype=torch.float64) for rows in (before, change))
        return before.double().numpy(), after.double().numpy()


class _Rows:
    """Rows of parameters on one type of device before an optimizer's step.

    Args:
        parameters: the parameters, by name; referenced until the step has ended. Those that have no
            rows are left out.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        rows = {name: rows_of(parameter) for name, parameter in parameters.items()}
        self._views = {name: view for name, view in rows.items() if view is not None}
        self._parameters = [parameters[name] for name in self._views]
        self._places = _places(self._parameters)
        self.device_type = self._parameters[0].device.type if self._parameters else "cpu"
        self._before = packed(list(self._views.values()))

    def read_again(self, tables: frozenset[str]) -> list[PendingUpdates]:
        """The rows before and after the step; none if a parameter cannot be read any more."""
        views, before = list(self._views.values()), self._before
        if not self._places or _places(self._parameters) != self._places:
            views = [view for view in map(rows_of, self._parameters) if view is not None]
        after = packed(views)
        if (after.members, after.sizes) != (before.members, before.sizes):
            return []
        names = list(self._views)
        return [
            PendingUpdates(
                tuple(map(names.__getitem__, members)), rows, *_compared(*pieces), tables
            )
            for members, rows, *pieces in zip(
                before.members, before.sizes, before.pieces, after.pieces, strict=True
            )
        ]


def _compared(before: Tensor, after: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of ``PendingUpdates``, or the norms of many rows on an accelerator."""
    if after.is_cpu or len(after) <= _RAW_ROWS:
        return before, after
    wide = torch.promote_types(after.dtype, torch.float32)
    after.sub_(before)
    return _row_norms(before, dtype=wide), _row_norms(after, dtype=wide)


@dataclass(eq=False, slots=True)
class _Step:
    """The step of one optimizer.

    Attributes:
        depth: how many calls of ``step`` are open: one may call that of its base class.
        versions: version counters of parameters before a closure was evaluated, by ``id``.
        rows: what was read before the update.
        updates: what was read after it; replaced if an outer call of ``step`` ends later.
    """

    depth: int
    versions: dict[int, int]
    rows: list[_Rows]
    updates: list[PendingUpdates]


class UpdateReader:
    """Estimates the size of the update that each parameter gets in one optimizer step.

    Runs on the training thread, in the hooks right before and right after the step, whatever has
    happened to the weights since the forward pass. Of sharded parameters it reads this process's
    shard. Only the first step of each optimizer in a logged step counts.

    Args:
        model: the unwrapped model, in which it looks for embeddings.
        enabled: False reads nothing.
    """

    def __init__(self, model: nn.Module, *, enabled: bool = True) -> None:
        self._model, self._is_enabled = model, enabled
        self._known, self._tables = set[int](), frozenset[str]()
        self._steps: dict[int, _Step] = {}
        self._ended: list[PendingUpdates] = []

    def forget(self) -> None:
        """Discard what was read."""
        self._steps, self._ended = {}, []

    def announce(self, optimizer: Optimizer, parameters: Iterable[Tensor]) -> None:
        """Called before an optimizer's step that is not skipped.

        Args:
            optimizer: the optimizer.
            parameters: if the step has a closure, those of the model. The closure of an optimizer
                that changes parameters around it (sharpness-aware minimization) calls ``before``
                too late; those parameters are then left out.
        """
        if not self._is_enabled:
            return
        step = self._steps.setdefault(id(optimizer), _Step(0, {}, [], []))
        step.depth += 1
        step.versions.update((id(p), p._version) for p in parameters)

    def before(self, optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> None:
        """Copy rows of the parameters that the optimizer is about to update.

        Call it inside ``isolation.aside``.

        Args:
            optimizer: the optimizer.
            parameters: those that have a gradient, by name, all on one type of device.
        """
        step = self._steps.get(id(optimizer))
        if step is None or not parameters:
            return
        own = dict(parameters)
        if step.versions:
            known = step.versions
            own = {n: p for n, p in own.items() if known.get(id(p), p._version) == p._version}
        self._find_tables({n: p for n, p in own.items() if p.dim() == 2 and p.numel() > MAX_WHOLE})
        step.rows.append(_Rows(own))

    def after(self, optimizer: Optimizer | None = None) -> None:
        """Called when an optimizer has updated its parameters: read them again.

        Args:
            optimizer: the optimizer; None for all of them.
        """
        for key in [id(optimizer)] if optimizer is not None else list(self._steps):
            step = self._steps.get(key)
            if step is None or not step.depth:
                continue
            step.depth -= 1
            step.updates = []
            for rows in step.rows:
                with aside(rows.device_type):
                    step.updates += rows.read_again(self._tables)
            if not step.depth:
                self._ended += step.updates
                step.rows, step.updates = [], []

    def pending(self) -> tuple[PendingUpdates, ...]:
        """All updates that have ended."""
        return (*self._ended, *(one for step in self._steps.values() for one in step.updates))

    def _find_tables(self, matrices: Mapping[str, Tensor]) -> None:
        """Remember which parameters are weights of embeddings; listing modules takes long."""
        fresh = {id(parameter): name for name, parameter in matrices.items()}
        if fresh.keys() <= self._known:
            return
        self._known |= fresh.keys()
        tables = {id(m.weight) for m in self._model.modules() if isinstance(m, _EMBEDDINGS)}
        self._tables |= {name for found, name in fresh.items() if found in tables}


def rows_of(parameter: Tensor) -> Tensor | None:
    """The values that are read of a parameter, or of this process's part of it.

    Args:
        parameter: of any shape and dtype.

    Returns:
        A view [R, 16]: all whole rows of a parameter of up to 65,536 values, about 4096 of a larger
        one (2048 on an accelerator). Fewer than 1024 values that do not fill their rows are read as
        [n, 16], each value 16 times, so that the ratio is exact. None if the parameter is empty,
        not dense in memory, or of another than a floating-point or complex dtype.
    """
    part = parameter if type(parameter) in PLAIN else local(parameter)
    if not part.numel() or part.dtype not in _DTYPES:
        return None
    real = torch.view_as_real(part.detach()) if part.is_complex() else part.detach()
    if not (real.is_contiguous() or torch.ops.aten.is_non_overlapping_and_dense(real)):
        return None
    return real.as_strided(
        *_size_and_stride(real.shape, _ROWS_IN_PART if real.is_cpu else _ON_ACCELERATOR)
    )


@lru_cache(maxsize=1024)
def _size_and_stride(shape: torch.Size, most: int) -> tuple[tuple[int, int], tuple[int, int]]:
    total, rows = shape.numel(), shape.numel() // ROW
    if total % ROW and total < 64 * ROW:
        return (total, ROW), (1, 0)
    if total <= MAX_WHOLE:
        return (rows, ROW), (ROW, 1)
    about = -(-rows // most)
    below, above = coprime(about, shape, -1), coprime(about, shape)
    step = below if about * about <= below * above else above  # the closer one
    return (-(-rows // step), ROW), (step * ROW, 1)


def _places(parameters: list[Tensor]) -> list[int]:
    """Addresses of the parameters' values; none if one has no memory of its own."""
    if not PLAIN.issuperset(map(type, parameters)):
        return []
    return [p.data_ptr() for p in parameters]


_row_norms = partial(torch.linalg.vector_norm, dim=1)
"""2-norms [R] of the rows of [R, 16], computed and returned in ``dtype``."""
