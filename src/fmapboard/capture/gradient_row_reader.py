"""Reads rows of gradients while an optimizer updates the parameters."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fmapboard.measure.cpu_values import CpuValues, in_bytes
from fmapboard.measure.gradient_rows import GradientRows
from fmapboard.measure.parameter_rows import rows_of
from fmapboard.measure.spare_memory import SpareMemory


class GradientRowReader:
    """The gradients of parameters on the CPU of which only some rows are read.

    Made before the update, on the training thread.

    Args:
        parameters: plain ones of one dtype, by name, each with a gradient.
        memory: where the memory comes from.
    """

    def __init__(self, parameters: Mapping[str, Tensor], memory: SpareMemory) -> None:
        self._parameters, self._memory = parameters, memory
        own = parameters.items()
        self._gradients = {name: g for name, p in own if (g := p.grad) is not None}
        self._versions = self._current()

    def read(self) -> GradientRows | None:
        """Read the rows; on any thread, inside `aside`. None if there are none."""
        own = {}
        for name, gradient in self._gradients.items():
            rows = rows_of(gradient) if _is_alike(gradient, self._parameters[name]) else None
            if rows is not None:
                own[name] = rows
        if not own:
            return None
        values = CpuValues(list(own.values()), self._memory)
        values.read(in_bytes(list(own.values())))
        parts = dict(zip(own, values.parts, strict=True))
        shares = {n: part.nbytes / self._parameters[n].nbytes for n, part in parts.items()}
        return GradientRows(parts, shares, values.all)

    def is_unchanged(self) -> bool:
        """True if nobody has changed a gradient since this object was made."""
        return self._current() == self._versions

    def _current(self) -> list[int]:
        return [gradient._version for gradient in self._gradients.values()]


def _is_alike(gradient: Tensor, parameter: Tensor) -> bool:
    """True if the values are at the same places in memory."""
    return (
        type(gradient) is Tensor
        and gradient.layout == parameter.layout
        and gradient.dtype == parameter.dtype
        and gradient.is_cpu
        and gradient.shape == parameter.shape
        and gradient.stride() == parameter.stride()
    )
