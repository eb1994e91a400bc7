"""How much a step changes each parameter; a file of its own, as the one that reads weights twice.

Rows of 16 values that are adjacent in memory, one cache line in float32, cost far less to read than
as many single values. All rows of one dtype and device are copied in one operation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.arithmetic import ceil_div, coprime
from fmapboard.capture.isolation import aside
from fmapboard.gradients.outside_changes import OutsideChanges
from fmapboard.model.distributed import PLAIN, local
from fmapboard.model.tensors import packed
from fmapboard.records import UpdateRatio

Floats = npt.NDArray[np.float64]

ROW = 16
"""Values per row."""

MAX_WHOLE = 65_536
"""Parameters with at most this many values are read whole, but for fewer than one row at the end of
those with 1024 values or more."""

_ROWS_IN_PART = 4096
"""About how many rows are read of a larger parameter, spread evenly over it."""

_ON_ACCELERATOR = 2048
"""As many on an accelerator."""

_RAW_ROWS = 4096
"""Up to this many rows of an accelerator are sent as they are: 512 KiB, instead of two launches."""

_LEAST_CHANGED = 256
"""Fewer changed rows of an embedding do not tell how large the whole update is."""

_MOST_ERROR = 0.1
"""Of tall parameters: the relative standard error of the ratio and the relative error of the
gradient's norm up to which the ratio is logged. It is then within 15 %."""

_DTYPES = frozenset(
    {torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.complex128}
)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
_SQUARES = ("exp_avg_sq", "square_avg")
"""What an optimizer calls its averages of squared gradients, by whose root it divides."""


class InPart(NamedTuple):
    """Names of the parameters that are read in part.

    Attributes:
        names: all of them.
        tables: weights of embeddings: an update may change few values.
        tall: those with more outputs than rows are read, such as a head of many classes: most of
            the gradient, and of the update, may be that of a few outputs. Without embeddings.
    """

    names: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    tall: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class PendingUpdates:
    """Rows of parameters of one dtype and device, before and after one optimizer step.

    Attributes:
        names: names of the parameters.
        rows: how many rows were read of each.
        before: the rows [R, 16] before the step, in the order of the names; if an accelerator has
            many, their 2-norms [R].
        after: the same rows after the step, or the 2-norms [R] of the changes.
        in_part: those of all parameters that were read in part; of the tall ones, without those
            whose update is even.
        gradients: tall parameter -> 2-norm [] of its gradient, as the rows tell it.
    """

    names: tuple[str, ...]
    rows: tuple[int, ...]
    before: Tensor
    after: Tensor
    in_part: InPart
    gradients: Mapping[str, Tensor]

    def ratios(self, norms: Mapping[str, float]) -> dict[str, UpdateRatio]:
        """Wait for the device: name -> 2-norm of the update over that of the parameter before it.

        A parameter is left out if all values read were 0, or if one is not finite; an embedding
        that was read in part also if fewer than 256 of the rows read have changed; and a tall
        parameter if rows that carry most of the update may have been missed: if the standard error
        of the ratio is above 10 %, or the norm of the gradient that its rows tell is 10 % off.

        Args:
            norms: 2-norms of the gradients, by parameter name.
        """
        sizes, changes = self._norms()
        in_part = self.in_part
        found = {}
        end = 0
        for name, count in zip(self.names, self.rows, strict=True):
            start = end
            end += count
            own_changes = changes[start:end]
            with np.errstate(over="ignore", invalid="ignore"):
                squares = own_changes**2
                squared_sizes = sizes[start:end] ** 2
                size = float(np.sqrt(squared_sizes.sum()))
                change = float(np.sqrt(squares.sum()))
            ratio = change / size if size else math.nan
            if not math.isfinite(ratio):
                continue
            changed = np.count_nonzero(own_changes)
            if name in in_part.tables and changed < _LEAST_CHANGED:
                continue
            if name in in_part.tall and not self._is_even(name, squares, norms):
                continue
            found[name] = UpdateRatio(ratio, size, is_estimate=name in in_part.names)
        return found

    def _is_even(self, name: str, squares: Floats, norms: Mapping[str, float]) -> bool:
        """True if the rows read of a tall parameter tell the size of the whole update.

        Args:
            name: of the parameter.
            squares: of the norms of the changes of its rows, [R].
            norms: as of ``ratios``.
        """
        if name not in self.gradients or name not in norms:
            return False
        norm = norms[name]
        norm_of_rows = float(self.gradients[name])
        if not abs(norm_of_rows - norm) <= _MOST_ERROR * norm:
            return False
        return standard_error(squares) <= _MOST_ERROR

    def _norms(self) -> tuple[Floats, Floats]:
        """2-norms [R] of the rows before the update and of their changes, f64."""
        before = self.before.cpu()
        after = self.after.cpu()
        if before.dim() == 2:
            wide = torch.promote_types(before.dtype, torch.float32)
            change = after.to(wide) - before.to(wide)
            before = _row_norms(before, dtype=torch.float64)
            after = _row_norms(change, dtype=torch.float64)
        return before.double().numpy(), after.double().numpy()


def standard_error(squares: Floats) -> float:
    """The relative standard error of the root of a sum that a sample [S] of its terms tells."""
    mean = squares.mean()
    if not mean:
        return 0.0
    spread = squares.std() / mean
    return float(spread / math.sqrt(len(squares)) / 2)


class _Rows:
    """Rows of parameters on one type of device before an optimizer's step.

    Args:
        parameters: the parameters, by name; referenced until the step has ended. Those that have no
            rows are left out.
        tall: names of parameters of whose gradients rows are read as well.
        scale: factor by which the gradients are still multiplied; None for 1.

    Attributes:
        parameters: those that have rows.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], tall: frozenset[str], scale: Tensor | None
    ) -> None:
        self.parameters: dict[str, Tensor] = {}
        views = list[Tensor]()
        for name, parameter in parameters.items():
            view = rows_of(parameter)
            if view is not None:
                self.parameters[name] = parameter
                views.append(view)
        self._places = _places(self.parameters.values())
        self._views = views
        self.device_type = "cpu"
        if views:
            self.device_type = views[0].device.type
        self._before = packed(views)
        self._gradients: dict[str, Tensor] = {}
        for name in tall & self.parameters.keys():
            norm = _norm_in_rows(self.parameters[name], scale)
            if norm is not None:
                self._gradients[name] = norm

    def read_again(self, optimizer: Optimizer, in_part: InPart) -> list[PendingUpdates]:
        """The rows before and after the step; none if a parameter cannot be read any more."""
        parameters = self.parameters
        views = self._views
        before = self._before
        if not self._places or _places(parameters.values()) != self._places:
            views = [view for view in map(rows_of, parameters.values()) if view is not None]
        after = packed(views)
        if after.members != before.members or after.sizes != before.sizes:
            return []
        tall = in_part.tall & parameters.keys()
        uneven = [name for name in tall if not _is_divided(optimizer, parameters[name])]
        in_part = in_part._replace(tall=frozenset(uneven))
        names = list(parameters)
        found = []
        for number, members in enumerate(before.members):
            old, new = _compared(before.pieces[number], after.pieces[number])
            updates = PendingUpdates(
                tuple([names[member] for member in members]),
                rows=before.sizes[number],
                before=old,
                after=new,
                in_part=in_part,
                gradients=self._gradients,
            )
            found.append(updates)
        return found


def _norm_in_rows(parameter: Tensor, scale: Tensor | None) -> Tensor | None:
    """2-norm [] of a parameter's gradient, by the rows that are read of the parameter, unscaled.

    None if they cannot be read, or are other ones.
    """
    gradient = parameter.grad
    if gradient is None or gradient.is_sparse or gradient.stride() != parameter.stride():
        return None
    rows = rows_of(gradient)
    if rows is None:
        return None
    wide = torch.promote_types(rows.dtype, torch.float32)
    count = gradient.numel()
    if gradient.is_complex():
        count *= 2
    norm_of_rows: Tensor = torch.linalg.vector_norm(rows, dtype=wide)
    norm = norm_of_rows * math.sqrt(count / rows.numel())
    if scale is None:
        return norm
    return norm / scale.to(norm.device)


def _is_divided(optimizer: Optimizer, parameter: Tensor) -> bool:
    """True if the optimizer divides the parameter's gradient by its usual size, as Adam does.

    The largest values of the gradient then do not make up most of the update.
    """
    state = optimizer.state.get(parameter, {})
    return any(name in state for name in _SQUARES)


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
        optimizer: the optimizer.
        depth: how many calls of ``step`` are open: one may call that of its base class.
        versions: version counters of parameters before a closure was evaluated, by ``id``.
        rows: what was read before the update.
        updates: what was read after it; replaced if an outer call of ``step`` ends later.
    """

    optimizer: Optimizer
    depth: int = 0
    versions: dict[int, int] = field(default_factory=dict)
    rows: list[_Rows] = field(default_factory=list)
    updates: list[PendingUpdates] = field(default_factory=list)


class UpdateReader:
    """Estimates the size of the update that each parameter gets in one optimizer step.

    Runs on the training thread, in the hooks right before and right after the step, whatever has
    happened to the weights since the forward pass. Of sharded parameters it reads this process's
    shard. Only the first step of each optimizer in a logged step counts.

    Args:
        model: the unwrapped model, in which it looks for embeddings.
        enabled: False reads nothing.

    Attributes:
        outside: compares the weights that an optimizer is about to update with those that the step
            before has left.
    """

    def __init__(self, model: nn.Module, *, enabled: bool = True) -> None:
        self._model = model
        self._is_enabled = enabled
        self._known = set[int]()  # parameters that are read in part, by ``id``
        self._in_part = InPart()
        self._steps: dict[int, _Step] = {}
        self._ended: list[PendingUpdates] = []
        self.outside = OutsideChanges()

    def opens(self, parameters: Mapping[str, Tensor], *, is_marked: bool) -> None:
        """Called when a logged step opens; see ``OutsideChanges.opens``."""
        if self._is_enabled:
            self.outside.opens(parameters, is_marked=is_marked)

    def forget(self) -> None:
        """Discard what was read."""
        self.outside.forget()
        self._steps = {}
        self._ended = []

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
        step = self._steps.setdefault(id(optimizer), _Step(optimizer))
        step.depth += 1
        for parameter in parameters:
            step.versions[id(parameter)] = parameter._version

    def before(
        self,
        optimizer: Optimizer,
        parameters: Mapping[str, Tensor],
        scale: Tensor | None = None,
    ) -> None:
        """Copy rows of the parameters that the optimizer is about to update.

        Call it inside ``isolation.aside``.

        Args:
            optimizer: the optimizer.
            parameters: those that have a gradient, by name, all on one type of device.
            scale: factor by which the gradients are still multiplied (loss scaling); None for 1.
        """
        step = self._steps.get(id(optimizer))
        if step is None or not parameters:
            return
        own = parameters
        known = step.versions
        if known:
            own = {n: p for n, p in own.items() if known.get(id(p), p._version) == p._version}
        large = {name: p for name, p in own.items() if p.numel() > MAX_WHOLE}
        self._note(large)
        rows = _Rows(own, self._in_part.tall, scale)
        step.rows.append(rows)
        self.outside.before(own)

    def after(self, optimizer: Optimizer | None = None) -> None:
        """Called when an optimizer has updated its parameters: read them again.

        Args:
            optimizer: the optimizer; None for all of them.
        """
        ended = list(self._steps) if optimizer is None else [id(optimizer)]
        for key in ended:
            step = self._steps.get(key)
            if step is None or not step.depth:
                continue
            step.depth -= 1
            step.updates = []
            for rows in step.rows:
                with aside(rows.device_type):
                    step.updates += rows.read_again(step.optimizer, self._in_part)
                    if self.outside.is_marked and not step.depth:
                        self.outside.after(rows.parameters)
            if not step.depth:
                self._ended += step.updates
                step.rows = []
                step.updates = []

    def pending(self) -> tuple[PendingUpdates, ...]:
        """All updates that have ended."""
        found = list(self._ended)
        for step in self._steps.values():
            found += step.updates
        return tuple(found)

    def _note(self, parameters: Mapping[str, Tensor]) -> None:
        """Remember parameters that are read in part; listing modules takes long."""
        fresh = {id(parameter): name for name, parameter in parameters.items()}
        if fresh.keys() <= self._known:
            return
        self._known |= fresh.keys()
        modules = self._model.modules()
        weights = {id(module.weight) for module in modules if isinstance(module, _EMBEDDINGS)}
        tables = {name for number, name in fresh.items() if number in weights}
        tall = {name for name, parameter in parameters.items() if _is_tall(parameter)}
        known = self._in_part
        self._in_part = InPart(
            known.names | parameters.keys(),
            tables=known.tables | tables,
            tall=known.tall | (tall - tables),
        )


def _is_tall(parameter: Tensor) -> bool:
    return parameter.dim() > 1 and parameter.shape[0] > _most_rows(parameter)


def _most_rows(parameter: Tensor) -> int:
    """About how many rows are read of a parameter that is read in part."""
    return _ROWS_IN_PART if parameter.is_cpu else _ON_ACCELERATOR


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
    real = part.detach()
    if real.is_complex():
        real = torch.view_as_real(real)
    is_dense = real.is_contiguous() or torch.ops.aten.is_non_overlapping_and_dense(real)
    if not is_dense:
        return None
    size, stride = _size_and_stride(real.shape, _most_rows(real))
    return real.as_strided(size, stride)


@lru_cache(maxsize=1024)
def _size_and_stride(shape: torch.Size, most: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size and stride of the rows of a parameter.

    Args:
        shape: of its real values.
        most: about how many rows are read of one that is read in part.
    """
    total = shape.numel()
    rows = total // ROW
    if total % ROW and total < 64 * ROW:
        return (total, ROW), (1, 0)
    if total <= MAX_WHOLE:
        return (rows, ROW), (ROW, 1)
    about = ceil_div(rows, most)
    below = coprime(about, shape, -1)
    step = coprime(about, shape)
    if about * about <= below * step:  # the one below is closer
        step = below
    count = ceil_div(rows, step)
    return (count, ROW), (step * ROW, 1)


def _places(parameters: Collection[Tensor]) -> list[int]:
    """Addresses of the parameters' values; none if one has no memory of its own."""
    if not PLAIN.issuperset(map(type, parameters)):
        return []
    return [parameter.data_ptr() for parameter in parameters]


_row_norms = partial(torch.linalg.vector_norm, dim=1)
"""2-norms [R] of the rows of [R, 16], computed and returned in ``dtype``."""
