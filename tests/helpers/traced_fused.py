"""Counts the launches and the traffic of the fused kernels in a traced step on fake tensors."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from fmapboard.measure.fused import reader
from fmapboard.measure.fused.plan import Plan, plan
from fmapboard.measure.reducer import Reducer


@dataclass
class FusedCounts:
    """What the kernels were launched with; nothing ran.

    Attributes:
        launches: number of launches, by kernel.
        nbytes: bytes of the tensors given to them, each counted once per launch.
        failures: why the kernels were not used, if they were not.
    """

    launches: dict[str, int] = field(default_factory=lambda: {"statistics": 0, "tiles": 0})
    nbytes: int = 0
    failures: list[str] = field(default_factory=list)

    def kernel(self, name: str) -> Any:
        """A stand-in for a Triton kernel."""
        return _Kernel(functools.partial(self._launched, name))

    def _launched(self, name: str, *arguments: Any, **constants: Any) -> None:
        self.launches[name] += 1
        given = {id(a): a for a in arguments if isinstance(a, Tensor)}
        self.nbytes += sum(tensor.numel() * tensor.element_size() for tensor in given.values())


@dataclass
class _Kernel:
    launched: Callable[..., None]

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return self.launched


class _Reader(reader.FusedReader):
    """Takes fake tensors, which have no address, for tensors of a device with compiled kernels."""

    def covers(self, maps: Tensor) -> bool:
        return maps.dtype in reader.DTYPES

    @staticmethod
    def _plan(maps: Tensor) -> Plan | None:
        return plan(tuple(maps.shape), maps.stride(), True)


@contextlib.contextmanager
def counted_fused_kernels() -> Iterator[FusedCounts]:
    """Inside the block, sessions read with the fused kernels, whose launches are counted."""
    from fmapboard.measure.fused import launch, tiles_kernel

    counts = FusedCounts()
    for_model = Reducer.for_model

    def fused(model: torch.nn.Module, **options: Any) -> Reducer:
        return for_model(model, **{**options, "fused": _Reader(counts.failures.append)})

    with (
        mock.patch.object(launch, "statistics_kernel", counts.kernel("statistics")),
        mock.patch.object(tiles_kernel, "tiles_kernel", counts.kernel("tiles")),
        mock.patch.object(reader, "_current", return_value=contextlib.nullcontext()),
        mock.patch.object(Reducer, "for_model", fused),
    ):
        yield counts
