"""Weights that other code changes between two steps of the optimizer.

A few values of each parameter are copied when a logged step opens, which is right after the
previous optimizer step if these are counted, and again right before its own optimizer step; if the
user marks the step, also right after that and when the step ends: no hook, no call in a step that
is not logged, and nothing waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.isolation import aside
from fmapboard.model.distributed import PLAIN
from fmapboard.records import OutsideChange

Floats = npt.NDArray[np.float64]

MOST_VALUES = 256
"""About as many values are read of a parameter, evenly spaced in memory; half to twice as many."""
MOST_PARAMETERS = 512
"""Parameters that are read, evenly spread over the model."""
_ROUNDING = 1e-5
"""Relative change up to which it may be rounding: weights moved away and back again."""
_DTYPES = frozenset({torch.float32, torch.bfloat16, torch.float16, torch.float64})


class _Copies(NamedTuple):
    """A few values of parameters on one device.

    Attributes:
        names: names of the parameters.
        ends: where the values of each end.
        values: all of them, one parameter behind the other, [V].
    """

    names: tuple[str, ...]
    ends: tuple[int, ...]
    values: Tensor

    def by_name(self) -> dict[str, Floats]:
        """Wait for the device: name -> its values, f64."""
        parts = np.split(self.values.cpu().double().numpy(), self.ends[:-1])
        return dict(zip(self.names, parts, strict=True))


@dataclass(frozen=True, eq=False, slots=True)
class PendingChanges:
    """A few values of parameters at two moments between which no optimizer has updated them.

    Attributes:
        first: copies at the first moment, of these and perhaps other parameters.
        second: copies at the second one.
    """

    first: _Copies
    second: _Copies

    def found(self) -> dict[str, OutsideChange]:
        """Wait for the device: name -> how much the parameter was changed.

        Without parameters that no other code has changed, or whose values are 0 or not finite.
        """
        found = dict[str, OutsideChange]()
        first = self.first.by_name()
        for name, values in self.second.by_name().items():
            old = first[name]
            if old.shape != values.shape:
                continue
            with np.errstate(over="ignore", invalid="ignore"):
                size = np.square(old).sum()
                change = np.square(values - old).sum()
                ratio = math.sqrt(change / size) if size else math.nan
            if math.isfinite(ratio) and ratio > _ROUNDING:
                is_clamped = np.array_equal(old.clip(values.min(), values.max()), values)
                limit = float(np.abs(values[values != old]).max()) if is_clamped else None
                found[name] = OutsideChange(ratio, limit)
        return found


class OutsideChanges:
    """Compares weights at moments between which no optimizer updates them.

    Used on the training thread. Sharded parameters are left out.

    Attributes:
        is_marked: the open step may go on after that of the optimizer, since the user ends it.
    """

    def __init__(self) -> None:
        self.is_marked = False
        self._opened: _Copies | None = None
        self._left = dict[str, Tensor]()  # updated in this step, and not again
        self._copies_left = list[_Copies]()
        self._found = list[PendingChanges]()

    def opens(self, parameters: Mapping[str, Tensor], *, is_marked: bool) -> None:
        """Called when a logged step opens.

        Args:
            parameters: those that are trained, by name.
            is_marked: see the attribute.
        """
        self.forget()
        self.is_marked = is_marked
        plain = [own for own in parameters.items() if type(own[1]) in PLAIN and not own[1].is_meta]
        step = ceil_div(len(plain), MOST_PARAMETERS) or 1
        chosen = dict(plain[::step])
        first = next(iter(chosen.values()), None)
        if first is not None:
            with aside(first.device.type):
                self._opened = _copied(chosen)

    def before(self, parameters: Mapping[str, Tensor]) -> None:
        """Called right before an optimizer updates parameters, given by name, for the first time.

        Call it inside ``isolation.aside``.
        """
        if self._opened is not None:
            self._compare(self._opened, parameters)

    def after(self, parameters: Mapping[str, Tensor]) -> None:
        """Called right after that, like ``before``, if the step is marked."""
        opened = self._opened
        if opened is None:
            return
        known = {name: parameters[name] for name in opened.names if name in parameters}
        copies = _copied(known)
        if copies is not None:
            self._left |= known
            self._copies_left.append(copies)

    def updated_again(self, names: Iterable[str]) -> None:
        """Called before an optimizer updates parameters, perhaps once more in this step."""
        for name in names:
            self._left.pop(name, None)

    def closes(self) -> tuple[PendingChanges, ...]:
        """Called when the logged step ends: what was compared in it."""
        for copies in self._copies_left:
            with aside(copies.values.device.type):
                self._compare(copies, self._left)
        return tuple(self._found)

    def forget(self) -> None:
        """Discard what was read."""
        self._opened = None
        self._left = {}
        self._copies_left = []
        self._found = []

    def _compare(self, first: _Copies, parameters: Mapping[str, Tensor]) -> None:
        """Compare copies with the values that some of their parameters have now."""
        known = {name: parameters[name] for name in first.names if name in parameters}
        second = _copied(known)
        if second is not None:
            self._found.append(PendingChanges(first, second))


def _copied(parameters: Mapping[str, Tensor]) -> _Copies | None:
    """Copies of a few values of parameters on the device of the first; None if there are none.

    Those that are not dense in memory are left out.
    """
    names = list[str]()
    ends = list[int]()
    parts = list[Tensor]()
    end = 0
    for name, parameter in parameters.items():
        total = parameter.numel()
        if not total or parameter.dtype not in _DTYPES:
            continue
        if parts and parameter.device != parts[0].device:
            continue
        values = parameter.detach()
        is_dense = values.is_contiguous() or torch.ops.aten.is_non_overlapping_and_dense(values)
        if not is_dense:
            continue
        step = total // MOST_VALUES | 1  # an odd step reads all columns of an even width
        count = len(range(0, total, step))
        end += count
        names.append(name)
        ends.append(end)
        parts.append(values.as_strided((count,), (step,)))
    return _Copies(tuple(names), tuple(ends), torch.cat(parts)) if parts else None
