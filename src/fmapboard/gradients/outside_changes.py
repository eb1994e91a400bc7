"""Weights that other code changes between two steps of the optimizer.

A few values of each parameter are copied when a logged step opens, which is right after the
previous optimizer step if these are counted, and again right before its own optimizer step: no
hook, no call in a step that is not logged, and nothing waits for a device.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.isolation import aside
from fmapboard.model.distributed import PLAIN

MOST_VALUES = 256
"""About as many values are read of a parameter, evenly spaced in memory; half to twice as many."""
MOST_PARAMETERS = 512
"""Parameters that are read, evenly spread over the model."""
_ROUNDING = 1e-5
"""Relative change up to which it may be rounding: weights moved away and back again."""
_DTYPES = frozenset({torch.float32, torch.bfloat16, torch.float16, torch.float64})


@dataclass(frozen=True, eq=False, slots=True)
class PendingChanges:
    """A few values of parameters, after one optimizer step and before the next one.

    Attributes:
        names: names of the parameters.
        places: where the values of each begin and end in ``after``.
        after: values of these and perhaps other parameters after the step, [V].
        before: their values before the next one, one behind the other.
    """

    names: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    after: Tensor
    before: Tensor

    def ratios(self) -> dict[str, float]:
        """Wait for the device: name -> 2-norm of the change over that of the values before it.

        Without parameters that no other code has changed, or whose values are 0 or not finite.
        """
        found = dict[str, float]()
        after = self.after.cpu().double().numpy()
        before = self.before.cpu().double().numpy()
        end = 0
        for name, (start, stop) in zip(self.names, self.places, strict=True):
            old = after[start:stop]
            begin = end
            end += len(old)
            change = before[begin:end] - old
            with np.errstate(over="ignore", invalid="ignore"):
                squares = np.square(old).sum()
                ratio = math.sqrt(np.square(change).sum() / squares) if squares else math.nan
            if math.isfinite(ratio) and ratio > _ROUNDING:
                found[name] = ratio
        return found


class OutsideChanges:
    """Compares weights after one optimizer step with those before the next one.

    Used on the training thread. Sharded parameters are left out.
    """

    def __init__(self) -> None:
        self._places = dict[int, tuple[int, int]]()  # where the values of each parameter are
        self._after: Tensor | None = None
        self._found: list[PendingChanges] = []

    def opens(self, parameters: Collection[Tensor]) -> None:
        """Called when a logged step opens, with the parameters that are trained."""
        self.forget()
        step = ceil_div(len(parameters), MOST_PARAMETERS) or 1
        chosen = [p for p in parameters if type(p) in PLAIN and not p.is_meta][::step]
        if not chosen:
            return
        device = chosen[0].device
        parts = list[Tensor]()
        end = 0
        with aside(device.type):
            for parameter in chosen:
                part = _few(parameter, device)
                if part is not None:
                    start = end
                    end += len(part)
                    self._places[id(parameter)] = (start, end)
                    parts.append(part)
            if parts:
                self._after = torch.cat(parts)

    def before(self, parameters: Mapping[str, Tensor]) -> None:
        """Called right before an optimizer updates parameters, given by name.

        Call it inside ``isolation.aside``. A parameter counts once per logged step.
        """
        after = self._after
        if after is None:
            return
        names = list[str]()
        places = list[tuple[int, int]]()
        parts = list[Tensor]()
        for name, parameter in parameters.items():
            place = self._places.pop(id(parameter), None)
            if place is None:
                continue
            part = _few(parameter, after.device)
            start, stop = place
            if part is not None and len(part) == stop - start:
                names.append(name)
                places.append(place)
                parts.append(part)
        if parts:
            changes = PendingChanges(tuple(names), tuple(places), after, torch.cat(parts))
            self._found.append(changes)

    def forget(self) -> None:
        """Discard what was read."""
        self._places = {}
        self._after = None
        self._found = []

    def pending(self) -> tuple[PendingChanges, ...]:
        """What was compared in this logged step."""
        return tuple(self._found)


def _few(parameter: Tensor, device: torch.device) -> Tensor | None:
    """A view [V] of a few values; None if there are none, they are elsewhere or not dense."""
    total = parameter.numel()
    if not total or parameter.device != device or parameter.dtype not in _DTYPES:
        return None
    values = parameter.detach()
    is_dense = values.is_contiguous() or torch.ops.aten.is_non_overlapping_and_dense(values)
    if not is_dense:
        return None
    step = total // MOST_VALUES | 1  # an odd step reads all columns of an even width
    return values.as_strided((len(range(0, total, step)),), (step,))
