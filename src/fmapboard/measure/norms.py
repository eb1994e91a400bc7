"""2-norms of many gradients at once, computed on the gradients' own devices.

Nothing here waits for an accelerator; only norms on the CPU are read and checked at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fmapboard.model.distributed import ShardedNames, Sharding, local, sharding
from fmapboard.records import Nonfinite

LARGE, SMALL = 1e15, 1e-15
"""Outside this range, squares and sums of squares of float32 values may overflow or underflow."""

_RUN = 4096


@dataclass(frozen=True, slots=True)
class PendingNorms:
    """Norms still on the device, one per name; None if there are none.

    A norm below 0 is not known, because another rank could not read its part of the gradient.
    They are float64 on the CPU and of float64 gradients, otherwise float32: not every accelerator
    has float64.
    """

    names: tuple[str, ...] = ()
    values: Tensor | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        if self.values is not None:
            yield self.values

    def to_host(self) -> dict[str, float]:
        """Wait for the device and copy: name -> norm, for each norm that is known."""
        values = [] if self.values is None else self.values.tolist()
        return {name: v for name, v in zip(self.names, values, strict=True) if not v < 0}


NO_NORMS = PendingNorms()


class GradientNorms:
    """Collects gradient norms; for sharded parameters, of the whole gradient.

    Attributes:
        nonfinite: Parameter name -> counts of non-finite values, for gradients on the CPU that have
            any.
    """

    def __init__(self) -> None:
        self._parts: dict[str, Tensor] = {}
        self._shardings: dict[str, Sharding | None] = {}
        self.nonfinite: dict[str, Nonfinite] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read(self, gradients: Mapping[str, Tensor], scale: Tensor | None = None) -> None:
        """Compute the norms of gradients.

        Args:
            gradients: By parameter name, of any shape, floating-point or complex dtype, and layout.
            scale: Factor by which the gradients are still multiplied (loss scaling); None for 1.
        """
        own = {name: dense(gradient) for name, gradient in gradients.items()}
        for (name, gradient), norm in zip(own.items(), norms(list(own.values())), strict=True):
            self._shardings[name] = sharding(gradients[name])
            self._parts[name] = norm if scale is None else norm / scale.to(norm.device)
            if norm.device.type == "cpu" and not math.isfinite(norm):
                self.nonfinite[name] = _count_nonfinite(gradient)

    def pending(self, sharded: tuple[ShardedNames, ...] = ()) -> PendingNorms:
        """Norms of the whole gradients, in the order in which they were read.

        Args:
            sharded: The model's sharded parameters. If there are any, all ranks must call this.
        """
        known = {name: norm for name, norm in self._parts.items() if not self._shardings[name]}
        failed = None
        for group in sharded:
            own = {n: self._parts[n] for n, way in self._shardings.items() if way == group.sharding}
            combined, error = group.combined(own)
            known.update({name: norm for name, norm in combined.items() if name in own})
            failed = failed or error
        if failed is not None:
            raise failed
        names = tuple(name for name in self._parts if name in known)
        if not names:
            return PendingNorms()
        whole = [known[name] for name in names]
        where = next((norm.device for norm in whole if not norm.is_cpu), whole[0].device)
        dtype = min((norm.dtype for norm in whole), key=lambda dtype: dtype.itemsize)
        stacked = torch.stack([norm.to(where, dtype) for norm in whole])
        return PendingNorms(names, stacked)


def dense(gradient: Tensor) -> Tensor:
    """This process's part of a gradient as a real, dense tensor.

    A sparse gradient gives its stored rows, each once; a complex one its real and imaginary parts.
    """
    part = local(gradient.detach())
    values = part.coalesce().values() if part.is_sparse else part
    return torch.view_as_real(values) if values.is_complex() else values


def norms(gradients: list[Tensor]) -> list[Tensor]:
    """2-norm of each gradient as a scalar on its device, from squares in float32 or wider.

    Runs of 4096 values are summed in float32 and, on the CPU, the runs in float64: a single float32
    sum of 25 million squares is wrong in the third digit. Accelerators sum in a tree, so float32
    suffices there; a norm above 1.8e19 is infinite, since its square leaves the float32 range.

    Args:
        gradients: As returned by ``dense``: any shape, floating-point dtype and device.
    """
    result: list[Tensor] = [torch.empty(0)] * len(gradients)
    by_device: dict[torch.device, list[int]] = {}
    for index, gradient in enumerate(gradients):
        by_device.setdefault(gradient.device, []).append(index)
    for device, members in by_device.items():
        runs = [_runs(gradients[index]) for index in members]
        device_norms = _norms_of(runs, device)
        if device.type == "cpu":
            values = torch.stack(device_norms).tolist()
            for number, value in enumerate(values):
                if not SMALL < value < LARGE:  # squares may have overflowed or underflowed
                    device_norms[number] = _float64_norm(gradients[members[number]])
        for index, norm in zip(members, device_norms, strict=True):
            result[index] = norm
    return result


def _norms_of(runs: list[Tensor], device: torch.device) -> list[Tensor]:
    """2-norm of each tensor: f64 on the CPU, elsewhere f64 of f64 tensors and f32 of others."""
    if device.type == "cpu":
        return list(torch._foreach_norm(runs, 2, dtype=torch.float64))
    found: list[Tensor] = [torch.empty(0)] * len(runs)
    for dtype in (torch.float32, torch.float64):
        is_wide = dtype == torch.float64
        numbers = [n for n, run in enumerate(runs) if (run.dtype == torch.float64) == is_wide]
        own = torch._foreach_norm([runs[n] for n in numbers], 2, dtype=dtype) if numbers else ()
        for number, norm in zip(numbers, own, strict=True):
            found[number] = norm
    return found


def norms_of_runs(values: Tensor, run: int, dtype: torch.dtype | None = None) -> Tensor:
    """2-norms [..., R] of consecutive runs of at most ``run`` values along the last axis.

    Combine them in float64: a float32 sum of many similar squares drifts.
    """
    whole = values.shape[-1] // run * run
    cut = values[..., :whole].view(*values.shape[:-1], -1, run)  # [..., R, run]
    runs: Tensor = torch.linalg.vector_norm(cut, dim=-1, dtype=dtype)
    if whole == values.shape[-1]:
        return runs
    rest: Tensor = torch.linalg.vector_norm(values[..., whole:], dim=-1, keepdim=True, dtype=dtype)
    return torch.cat([runs, rest], -1)


def _runs(gradient: Tensor) -> Tensor:
    """Norms of runs of a large gradient, f32 or f64; a small gradient itself, flattened."""
    flat = gradient.reshape(-1)
    if flat.numel() <= _RUN:
        return flat
    dtype = torch.float64 if flat.dtype == torch.float64 else torch.float32
    return norms_of_runs(flat, _RUN, dtype)


def _float64_norm(gradient: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(gradient, dtype=torch.float64)
    return norm


def _count_nonfinite(gradient: Tensor) -> Nonfinite:
    """Counts of NaN, +Inf and -Inf in a dense, real gradient."""
    infinite = (int((gradient == end).sum()) for end in (torch.inf, -torch.inf))
    return Nonfinite(int(torch.isnan(gradient).sum()), *infinite)
