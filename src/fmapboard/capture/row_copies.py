"""Copies the rows of parameters that tell how large an update is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside
from fmapboard.measure.parameter_rows import rows_of
from fmapboard.measure.spare_memory import SpareMemory
from fmapboard.measure.updates import joined, joined_after
from fmapboard.model.distributed import local

_DTYPES = frozenset(
    {torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64, torch.complex128}
)


@dataclass(frozen=True, eq=False, slots=True)
class RowCopy:
    """Rows of parameters of one dtype and device before an update.

    Attributes:
        parameters: name -> the parameter, and the view of its rows; to be referenced only until the
            update has ended.
        counts: how many rows each has.
        values: a copy of the rows.
    """

    parameters: dict[str, tuple[Tensor, Tensor]]
    counts: tuple[int, ...]
    values: Tensor

    @property
    def device_type(self) -> str:
        """The type of device of the parameters."""
        return self.values.device.type


def row_copies(parameters: Mapping[str, Tensor], memory: SpareMemory) -> list[RowCopy]:
    """Copy the rows of parameters; of sharded ones, of this process's shard.

    Args:
        parameters: by name. Those that cannot be read are left out.
        memory: memory on the CPU.
    """
    groups: defaultdict[tuple[Any, ...], dict[str, tuple[Tensor, Tensor]]] = defaultdict(dict)
    with torch.no_grad():
        for name, parameter in parameters.items():
            rows = _rows(parameter)
            if rows is not None:
                groups[_kind(rows)][name] = parameter, rows
    found = []
    for device in {device for device, *_ in groups}:
        with aside(device):
            for kind, own in groups.items():
                if kind[0] == device:
                    every = [rows for _, rows in own.values()]
                    counts = tuple(rows.shape[0] for rows in every)
                    found.append(RowCopy(own, counts, joined(every, sum(counts), memory)))
    return found


def read_again(copy: RowCopy, memory: SpareMemory) -> tuple[Tensor, Tensor] | None:
    """The rows before and after the update, as ``PendingUpdates`` holds them.

    Call it inside `aside`.

    Args:
        copy: the rows before the update.
        memory: as for `row_copies`.

    Returns:
        None if one of the parameters cannot be read any more.
    """
    rows = []
    for parameter, before in copy.parameters.values():
        again = _same_rows(parameter, before)
        if again is None:
            return None
        rows.append(again)
    return joined_after(copy.values, rows, memory)


def _rows(parameter: Tensor) -> Tensor | None:
    """``rows_of`` this process's part of a parameter; None if it cannot be read."""
    part = local(parameter)
    if not part.numel() or part.dtype not in _DTYPES:
        return None
    return rows_of(part)


def _same_rows(parameter: Tensor, rows: Tensor) -> Tensor | None:
    """The rows again, also if the optimizer has given the parameter other memory."""
    if type(parameter) in PLAIN and parameter.data_ptr() == rows.data_ptr():
        return rows  # no other tensor can be where `rows` keeps the memory
    part = local(parameter)
    if part is rows:
        return rows
    if part.untyped_storage()._cdata == rows.untyped_storage()._cdata:
        return rows
    found = _rows(parameter)
    alike = found is not None and (found.shape, found.device) == (rows.shape, rows.device)
    return found if alike else None


PLAIN = frozenset({Tensor, torch.nn.Parameter})
"""Types of tensors that have memory of their own: not those of sharded or fake tensors."""


def _kind(rows: Tensor) -> tuple[Any, ...]:
    """Type of device first; rows with the same result are joined."""
    if rows.is_cpu:
        return "cpu", rows.dtype, 0 if rows.dim() == 1 else rows.shape[1]
    return rows.device.type, rows.device, rows.dtype, rows.shape[1]
