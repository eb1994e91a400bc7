"""Several processes that train one model: who writes, and sums over shards.

Under DistributedDataParallel gradients are whole and reduced when the optimizer steps, so rank 0
alone observes. Under FSDP2 (`fully_shard`) each rank holds a part of every parameter: norms and
kernels need all ranks, which therefore all observe, in the same steps, and rank 0 writes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


def rank() -> int:
    """This process's rank; 0 where there is one process."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def is_sharded(model: nn.Module) -> bool:
    """Does the model hold parameters of which this process has a part?"""
    return any(_is_dtensor(parameter) for parameter in model.parameters())


def local(tensor: Tensor) -> Tensor:
    """This process's part of a sharded tensor; any other tensor as it is."""
    if not _is_dtensor(tensor):
        return tensor
    part: Tensor = tensor.to_local()  # type: ignore[attr-defined]  # only DTensor has it
    return part


def whole(tensor: Tensor) -> Tensor:
    """A sharded tensor gathered from all ranks, which all must call this; any other as it is."""
    if not _is_dtensor(tensor):
        return tensor
    gathered: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]  # only DTensor has it
    return gathered


def reshard(model: nn.Module) -> None:
    """Let go of parameters that FSDP gathered for a forward pass of ours.

    The root keeps them for a backward pass that will not come, and would use them, stale, in the
    next forward pass after the optimizer's step.
    """
    for module in model.modules():
        release = getattr(module, "reshard", None)
        if callable(release) and type(module).__name__.startswith("FSDP"):
            release()


@dataclass(frozen=True, slots=True)
class Sharding:
    """Over which process groups the parts of a tensor lie; equal for tensors cut alike."""

    mesh: Hashable
    axes: tuple[int, ...]

    def total(self, squares: Tensor) -> Tensor:
        """The sum of a tensor over all parts. Every rank must call it, in the same order."""
        mesh: Any = self.mesh
        for axis in self.axes:
            dist.all_reduce(squares, group=mesh.get_group(axis))
        return squares


def sharding(tensor: Tensor) -> Sharding | None:
    """How a tensor is cut; None for one that this process holds whole."""
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
    """Norms of parts to norms of whole tensors: one sum a way of cutting.

    Args:
        norms: f64 [] each, of this process's part.
        cuts: how each tensor is cut.
    """
    whole_norms = list(norms)
    for cut in dict.fromkeys(cut for cut in cuts if cut is not None):
        places = [number for number, other in enumerate(cuts) if other == cut]
        squares = torch.stack([norms[number].double().square() for number in places])
        for number, norm in zip(places, cut.total(squares).sqrt(), strict=True):
            whole_norms[number] = norm
    return whole_norms
