"""Copies the rows of parameters that tell how large an update is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.measure.cpu_updates import ValuesOnCpu
from fmapboard.measure.gradient_rows import GradientRows
from fmapboard.measure.parameter_rows import rows_of
from fmapboard.measure.spare_memory import SpareMemory
from fmapboard.measure.updates import Copy, RowsOnAccelerator, Updates
from fmapboard.model.distributed import local

_DTYPES = frozenset(
    {torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.complex128}
)


@dataclass(frozen=True, eq=False, slots=True)
class RowCopy:
    """Rows of parameters of one dtype and device before an update.

    Attributes:
        names: names of the parameters.
        parameters: the parameters; to be referenced only until the update has ended.
        views: what is read of them, in their memory.
        places: addresses of the parameters' values; None if one has no memory of its own.
        copied: what was read.
        device_type: the type of device.
        in_part: those of the parameters, by name, that are on the CPU, have memory of their own and
            are read in part.
    """

    names: tuple[str, ...]
    parameters: tuple[Tensor, ...]
    views: tuple[Tensor, ...]
    places: list[int] | None
    copied: Copy
    device_type: str
    in_part: dict[str, Tensor]


def row_copies(parameters: Mapping[str, Tensor], memory: SpareMemory) -> list[RowCopy]:
    """Copy the rows of parameters; of sharded ones, of this process's shard.

    Args:
        parameters: by name. Those that cannot be read are left out.
        memory: memory on the CPU.
    """
    groups: defaultdict[tuple[Any, ...], dict[str, Tensor]] = defaultdict(dict)
    with torch.no_grad():
        for name, parameter in parameters.items():
            rows = _rows(parameter)
            if rows is not None:
                groups[_kind(rows)][name] = rows
    found = []
    for device in {device for device, *_ in groups}:
        with aside(device):
            for kind, own in groups.items():
                if kind[0] == device:
                    found.append(_copied({name: parameters[name] for name in own}, own, memory))
    return found


def _copied(
    parameters: Mapping[str, Tensor], rows: Mapping[str, Tensor], memory: SpareMemory
) -> RowCopy:
    """A copy of rows that are of one kind."""
    own, views = tuple(parameters.values()), tuple(rows.values())
    places = [p.data_ptr() for p in own] if all(type(p) in PLAIN for p in own) else None
    copied = ValuesOnCpu(views, memory) if views[0].is_cpu else RowsOnAccelerator(views)
    device, in_part = views[0].device.type, dict[str, Tensor]()
    if device == "cpu" and places is not None:
        in_part = {name: parameters[name] for name, view in rows.items() if view.dim() > 1}
    return RowCopy(tuple(rows), own, views, places, copied, device, in_part)


def read_again(
    copy: RowCopy, tables: frozenset[str], gradients: GradientRows | None = None
) -> Updates | None:
    """The rows before and after the update.

    Call it inside `aside`.

    Args:
        copy: the rows before the update.
        tables: names of parameters whose updates may change few values.
        gradients: rows of the gradients at the same places.

    Returns:
        None if one of the parameters cannot be read any more.
    """
    views = None
    # No other tensor can be where the views keep the memory.
    if copy.places is None or [p.data_ptr() for p in copy.parameters] != copy.places:
        found = map(_same_rows, copy.parameters, copy.views)
        views = [view for view in found if view is not None]
        if len(views) < len(copy.views):
            return None
    return copy.copied.read_again(copy.names, views, tables, gradients)


def _rows(parameter: Tensor) -> Tensor | None:
    """``rows_of`` this process's part of a parameter; None if it cannot be read."""
    part = local(parameter)
    if not part.numel() or part.dtype not in _DTYPES:
        return None
    return rows_of(part)


def _same_rows(parameter: Tensor, rows: Tensor) -> Tensor | None:
    """The rows again, also if the optimizer has given the parameter other memory."""
    part = local(parameter)
    if part is rows or part.untyped_storage()._cdata == rows.untyped_storage()._cdata:
        return rows
    found = _rows(parameter)
    alike = found is not None and (found.shape, found.device) == (rows.shape, rows.device)
    return found if alike else None


PLAIN = frozenset({Tensor, torch.nn.Parameter})
"""Types of tensors that have memory of their own: not those of sharded or fake tensors."""


def _kind(rows: Tensor) -> tuple[Any, ...]:
    """Type of device first; rows with the same result are copied together."""
    if rows.is_cpu:
        return "cpu", rows.dtype
    return rows.device.type, rows.device, rows.dtype, rows.shape[1]
