"""Reads rows of the gradients of parameters that are about to be updated."""

from __future__ import annotations

from collections.abc import Mapping

import torch
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
        """Read the rows; on any thread, inside `aside`.

        Returns:
            None if there are none, or if they cannot be read: the update is known without them.
        """
        try:
            return self._read()
        except Exception:
            return None

    def _read(self) -> GradientRows | None:
        own = self._views()
        if not own:
            return None
        views = list(own.values())
        values = CpuValues(views, self._memory)
        values.read(in_bytes(views))
        parts = dict(zip(own, values.parts, strict=True))
        shares = {n: part.nbytes / self._parameters[n].nbytes for n, part in parts.items()}
        return GradientRows(parts, shares, values.all)

    def _views(self) -> dict[str, Tensor]:
        """The rows of each gradient, in its memory."""
        own = {}
        for name, gradient in self._gradients.items():
            rows = rows_of(gradient) if _is_alike(gradient, self._parameters[name]) else None
            if rows is not None:
                own[name] = rows
        return own

    def is_unchanged(self) -> bool:
        """True if no gradient's version has changed since this object was made."""
        return self._current() == self._versions

    def holds(self, read: GradientRows) -> bool:
        """True if the gradients begin with what was read; to find changes through ``.data``."""
        pairs = [(view[0], read.rows[name][0]) for name, view in self._views().items()]
        return all(torch.equal(*in_bytes(pair)) for pair in pairs)  # as bytes: NaN equals NaN

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
