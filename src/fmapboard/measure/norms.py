"""2-norms of many gradients at once, computed on the gradients' own devices.

Nothing here waits for an accelerator; only norms on the CPU are read and checked at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.formats.training_facts import Nonfinite
from fmapboard.model.distributed import ShardedNames, Sharding, local_parts, shardings
from fmapboard.model.tensors import alike

SMALL = 1e-15
LARGE = 1e15
"""Outside this range, squares and sums of squares of float32 values may overflow or underflow."""

Factor = float | Tensor
"""A loss scale: a number, or f32 [] on an accelerator."""

_RUN = 4096


class PendingNorms(NamedTuple):
    """Norms still on the device, one per name; None if there are none.

    A norm below 0 is not known, because another rank could not read its part of the gradient.
    They are float64 on the CPU and of float64 gradients, otherwise float32: not every accelerator
    has float64.
    """

    names: tuple[str, ...] = ()
    values: Tensor | None = None

    def to_host(self) -> dict[str, float]:
        """Wait for the device and copy: name -> norm, for each norm that is known."""
        if self.values is None:
            return {}
        found = dict[str, float]()
        for name, norm in zip(self.names, self.values.tolist(), strict=True):
            if not norm < 0:  # NaN is known
                found[name] = norm
        return found


NO_NORMS = PendingNorms()


class GradientNorms:
    """Collects gradient norms; for sharded parameters, of the whole gradient.

    Attributes:
        parts: Parameter name -> norm [] of this process's part of its gradient.
        nonfinite: Parameter name -> counts of non-finite values, for gradients on the CPU that have
            any.
    """

    def __init__(self) -> None:
        self.parts: dict[str, Tensor] = {}
        self._shardings: dict[str, Sharding] = {}
        self.nonfinite: dict[str, Nonfinite] = {}

    def read(self, gradients: Mapping[str, Tensor], scale: Tensor | None = None) -> None:
        """Compute the norms of gradients.

        Args:
            gradients: By parameter name, all on one type of device, of any shape, floating-point or
                complex dtype, and layout.
            scale: Factor by which the gradients are still multiplied (loss scaling); None for 1.
        """
        own = dense(gradients.values())
        if own and own[0].is_cpu:
            values = norms(own)
            for name, gradient, value in zip(gradients, own, values.tolist(), strict=True):
                if not math.isfinite(value):
                    nan = int(torch.isnan(gradient).sum())
                    up = int((gradient == torch.inf).sum())
                    down = int((gradient == -torch.inf).sum())
                    self.nonfinite[name] = Nonfinite(nan, up, down)
            if scale is not None:
                values = values / scale.to(values.device)
            found = list(values.unbind())
        else:
            found = device_norms(own, scale)
        self.parts |= zip(gradients, found, strict=True)
        self._shardings |= shardings(gradients)

    def pending(self, sharded: tuple[ShardedNames, ...] = ()) -> PendingNorms:
        """Norms of the whole gradients, in the order in which they were read.

        Args:
            sharded: The model's sharded parameters. If there are any, all ranks must call this.
        """
        known = dict[str, Tensor]()
        for name, norm in self.parts.items():
            if name not in self._shardings:
                known[name] = norm
        failed = None
        for group in sharded:
            own = dict[str, Tensor]()
            for name, sharding in self._shardings.items():
                if sharding == group.sharding:
                    own[name] = self.parts[name]
            combined, error = group.combined(own)
            for name in own:
                if name in combined:
                    known[name] = combined[name]
            failed = failed or error
        if failed is not None:
            raise failed
        if not known:
            return NO_NORMS
        names = [name for name in self.parts if name in known]
        whole = [known[name] for name in names]
        device = whole[0].device
        dtype = whole[0].dtype
        for norm in whole:
            if device.type == "cpu":
                device = norm.device
            if norm.dtype.itemsize < dtype.itemsize:
                dtype = norm.dtype
        values = torch.stack([norm.to(device, dtype) for norm in whole])
        return PendingNorms(tuple(names), values)


def dense(gradients: Iterable[Tensor]) -> list[Tensor]:
    """This process's parts of gradients as real, dense tensors.

    A sparse gradient gives its stored rows, each once; a complex one its real and imaginary parts.
    """
    detached = [gradient.detach() for gradient in gradients]
    found = []
    for part in local_parts(detached):
        values = part.coalesce().values() if part.is_sparse else part
        if values.is_complex():
            values = torch.view_as_real(values)
        found.append(values)
    return found


def norms(gradients: list[Tensor]) -> Tensor:
    """2-norm of each gradient on the CPU, f64 [P], from squares in float32 or wider.

    Runs of 4096 values are summed in float32 and the runs in float64: a single float32 sum of 25
    million squares is wrong in the third digit.

    Args:
        gradients: As returned by ``dense``, at least one: any shape and floating-point dtype.
    """
    runs = []
    for gradient in gradients:
        flat = gradient.reshape(-1)
        if flat.numel() > _RUN:
            flat = norms_of_runs(flat, _RUN)
        runs.append(flat)
    whole = torch._foreach_norm(runs, 2, dtype=torch.float64)
    result = torch.stack(whole)
    for number, value in enumerate(result.tolist()):
        if not SMALL < value < LARGE:  # squares may have overflowed or underflowed
            gradient = gradients[number]
            result[number] = torch.linalg.vector_norm(gradient, dtype=torch.float64)
    return result


def device_norms(gradients: list[Tensor], scale: Tensor | None = None) -> list[Tensor]:
    """2-norm of each gradient on its accelerator, divided by ``scale``: f64 [] of f64, else f32.

    All gradients of a device and dtype share a few launches, and the norms one tensor. Accelerators
    sum in a tree, so float32 suffices. A norm above 1.8e19 is infinite, since its square leaves the
    float32 range.

    Args:
        gradients: As for ``norms``.
        scale: None for 1.
    """
    result = list(gradients)
    for members in alike(gradients):
        own = [gradients[number] for number in members]
        dtype = torch.promote_types(own[0].dtype, torch.float32)
        norms_of_group = torch._foreach_norm(own, 2, dtype=dtype)
        found = torch.stack(norms_of_group)  # [P]
        if scale is not None:
            found.div_(scale.to(found.device))
        for number, norm in zip(members, found.unbind(), strict=True):
            result[number] = norm
    return result


def norms_of_runs(values: Tensor, run: int) -> Tensor:
    """2-norms [..., R] of consecutive runs of at most ``run`` values along the last axis.

    In float32 or wider. Combine them in float64: a float32 sum of many similar squares drifts.
    """
    dtype = torch.promote_types(values.dtype, torch.float32)
    *outer, size = values.shape
    whole = size // run * run
    cut = values[..., :whole].view(*outer, -1, run)  # [..., R, run]
    runs: Tensor = torch.linalg.vector_norm(cut, dim=-1, dtype=dtype)
    if whole == size:
        return runs
    left = values[..., whole:]
    rest: Tensor = torch.linalg.vector_norm(left, dim=-1, keepdim=True, dtype=dtype)
    return torch.cat([runs, rest], -1)
