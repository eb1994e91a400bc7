"""Ranks, and tensors that are sharded over several processes.

Under DistributedDataParallel every rank holds complete, already reduced gradients when the
optimizer steps, so only rank 0 records. Under FSDP2 (``fully_shard``) each rank holds one shard of
every parameter. Norms and kernels then need all ranks: every rank records the same steps, and
rank 0 writes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def rank() -> int:
    """This process's rank; 0 in a single-process run."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def is_sharded(model: nn.Module) -> bool:
    """True if any of the model's parameters is sharded over several processes."""
    return any(_is_dtensor(parameter) for parameter in model.parameters())


def local(tensor: Tensor) -> Tensor:
    """This process's shard of a sharded tensor; any other tensor unchanged."""
    if not _is_dtensor(tensor):
        return tensor
    part: Tensor = tensor.to_local()  # type: ignore[attr-defined]  # only DTensor has it
    return part


def whole(tensor: Tensor) -> Tensor:
    """A sharded tensor gathered from all ranks; any other tensor unchanged.

    Collective for a sharded tensor: every rank must call it.
    """
    if not _is_dtensor(tensor):
        return tensor
    gathered: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]  # only DTensor has it
    return gathered


def reshard(model: nn.Module) -> None:
    """Free the parameters that FSDP gathered for one of fmapboard's own forward passes.

    FSDP's root module keeps its gathered parameters for the backward pass. No backward pass follows
    here, and the user's next forward pass would use the kept values, from before the optimizer
    step.
    """
    for module in model.modules():
        release = getattr(module, "reshard", None)
        if callable(release) and type(module).__name__.startswith("FSDP"):
            release()


@dataclass(frozen=True, slots=True)
class Sharding:
    """The process groups over which a tensor is sharded; equal for tensors sharded in the same way.

    Attributes:
        mesh: the ``DeviceMesh``.
        axes: mesh dimensions over which the tensor is split.
    """

    mesh: Hashable
    axes: tuple[int, ...]

    def total(self, squares: Tensor) -> Tensor:
        """Sum a tensor over all shards, in place.

        Collective: every rank must call it, in the same order.
        """
        mesh: Any = self.mesh
        for axis in self.axes:
            dist.all_reduce(squares, group=mesh.get_group(axis))
        return squares


def sharding(tensor: Tensor) -> Sharding | None:
    """How a tensor is sharded; None for a tensor that this process holds completely."""
    if not _is_dtensor(tensor):
        return None
    placed: Any = tensor
    cut = tuple(axis for axis, place in enumerate(placed.placements) if place.is_shard())
    return Sharding(placed.device_mesh, cut) if cut else None


def _is_dtensor(tensor: Tensor) -> bool:
    if type(tensor) is Tensor or not dist.is_available() or not dist.is_initialized():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor) or isinstance(getattr(tensor, "data", None), DTensor)


def summed(norms: list[Tensor], cuts: list[Sharding | None]) -> list[Tensor]:
    """Turn the norms of shards into the norms of whole tensors.

    One all-reduce per kind of sharding. Collective where a tensor is sharded: every rank must call
    it, with the tensors in the same order.

    Args:
        norms: [] each, f64 on the CPU, the norm of this process's shard.
        cuts: how each tensor is sharded; None where the norm is already that of the whole tensor.
    """
    whole_norms = list(norms)
    for cut in dict.fromkeys(cut for cut in cuts if cut is not None):
        places = [number for number, other in enumerate(cuts) if other == cut]
        squares = torch.stack([norms[number].square() for number in places])
        for number, norm in zip(places, cut.total(squares).sqrt(), strict=True):
            whole_norms[number] = norm
    return whole_norms
