"""2-norms of many gradients at once, on their own devices; a host sync on the CPU alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fmapboard.model.distributed import Sharding, local, sharding, summed
from fmapboard.records import Nonfinite

LARGE, SMALL = 1e15, 1e-15
"""Beyond these, squares and sums of float32 values may overflow or vanish."""

_RUN = 4096


@dataclass(frozen=True, slots=True)
class PendingNorms:
    """Norms by name, still on the device: f64 [P], or None where there are none."""

    names: tuple[str, ...] = ()
    values: Tensor | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        if self.values is not None:
            yield self.values

    def to_host(self) -> dict[str, float]:
        """Wait for the device and copy."""
        values = [] if self.values is None else self.values.tolist()
        return dict(zip(self.names, values, strict=True))


NO_NORMS = PendingNorms()


class GradientNorms:
    """Norms of gradients as they are read, and of the whole tensors where they are sharded.

    Attributes:
        nonfinite: by name, how many values of a gradient on the CPU are not finite; without
            entries where all are.
    """

    def __init__(self) -> None:
        self._parts: dict[str, Tensor] = {}
        self._shardings: dict[str, Sharding | None] = {}
        self.nonfinite: dict[str, Nonfinite] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read(self, gradients: Mapping[str, Tensor], scale: Tensor | None = None) -> None:
        """Take the norms of gradients on one kind of device.

        Args:
            gradients: by parameter name, of any shape, floating type and layout.
            scale: what the gradients are still multiplied by; None for 1.
        """
        own = {name: dense(gradient) for name, gradient in gradients.items()}
        for (name, gradient), norm in zip(own.items(), norms(list(own.values())), strict=True):
            self._shardings[name] = sharding(gradients[name])
            self._parts[name] = norm if scale is None else norm / scale.to(norm.device)
            if norm.device.type == "cpu" and not math.isfinite(norm):
                self.nonfinite[name] = _count(gradient)

    def pending(self) -> PendingNorms:
        """The norms of the whole gradients, in the order in which they were read.

        Where parameters are sharded all ranks must call this.
        """
        whole = summed(list(self._parts.values()), list(self._shardings.values()))
        stacked = torch.stack([n.to(whole[0].device) for n in whole]) if whole else None
        return PendingNorms(tuple(self._parts), stacked)


def dense(gradient: Tensor) -> Tensor:
    """This process's part of a gradient, real; of a sparse one the rows that it has, each once."""
    part = local(gradient.detach())
    values = part.coalesce().values() if part.is_sparse else part
    return torch.view_as_real(values) if values.is_complex() else values


def norms(gradients: list[Tensor]) -> list[Tensor]:
    """The 2-norm of each gradient, f64 [] on its device; of float32 (or wider) squares.

    Float32 sums over runs of values and float64 sums over the runs: one float32 sum of 25 million
    squares is wrong in the third digit.

    Args:
        gradients: as `dense` gives them, each of any shape, floating type and device.
    """
    found: list[Tensor] = [torch.empty(0)] * len(gradients)
    places: dict[torch.device, list[int]] = {}
    for place, gradient in enumerate(gradients):
        places.setdefault(gradient.device, []).append(place)
    for device, members in places.items():
        runs = [_runs(gradients[place]) for place in members]
        of_device = list(torch._foreach_norm(runs, 2, dtype=torch.float64))
        if device.type == "cpu":
            values = torch.stack(of_device).tolist()
            for number, value in enumerate(values):
                if not SMALL < value < LARGE:  # squares may have left float32
                    of_device[number] = _wide(gradients[members[number]])
        for place, norm in zip(members, of_device, strict=True):
            found[place] = norm
    return found


def norms_of_runs(values: Tensor, run: int, dtype: torch.dtype | None = None) -> Tensor:
    """2-norms [..., R] of consecutive runs of at most ``run`` values along the last axis [..., S].

    To be added up in float64: a float32 sum of many like squares drifts.
    """
    whole = values.shape[-1] // run * run
    cut = values[..., :whole].view(*values.shape[:-1], -1, run)  # [..., R, run]
    runs: Tensor = torch.linalg.vector_norm(cut, dim=-1, dtype=dtype)
    if whole == values.shape[-1]:
        return runs
    rest: Tensor = torch.linalg.vector_norm(values[..., whole:], dim=-1, keepdim=True, dtype=dtype)
    return torch.cat([runs, rest], -1)


def _runs(gradient: Tensor) -> Tensor:
    """Norms of runs of a large gradient, f32 or f64; a small one as it is."""
    flat = gradient.reshape(-1)
    if flat.numel() <= _RUN:
        return flat
    dtype = torch.float64 if flat.dtype == torch.float64 else torch.float32
    return norms_of_runs(flat, _RUN, dtype)


def _wide(gradient: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(gradient, dtype=torch.float64)
    return norm


def _count(gradient: Tensor) -> Nonfinite:
    """How many values of a dense, real gradient are NaN, +Inf and -Inf."""
    infinite = (int((gradient == end).sum()) for end in (torch.inf, -torch.inf))
    return Nonfinite(int(torch.isnan(gradient).sum()), *infinite)
