"""Ranks, and tensors that are sharded over several processes.

Under DistributedDataParallel every rank holds complete, already reduced gradients when the
optimizer steps, so only rank 0 records. Under FSDP2 (``fully_shard``) each rank holds one shard of
every parameter. Norms and kernels then need all ranks: every rank records the same steps, and
rank 0 writes. Under FSDP1 (``FullyShardedDataParallel``) each rank holds a piece of one long,
flattened vector. The layers' weights are views of it: whole during a pass, afterwards cut to this
rank's piece, or without memory, and then reading one ends the process.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor

PLAIN = frozenset({Tensor, nn.Parameter})
"""Types of tensors with memory of their own: no sharded, fake or quantized ones."""

_FLATTENED = "_fsdp_flattened"
"""What FSDP1 sets on a parameter."""

TIMEOUT = timedelta(seconds=120)
"""How long a worker thread waits for those of the other ranks, which may have steps to write."""


def rank() -> int:
    """This process's rank; 0 in a single-process run."""
    return dist.get_rank() if _is_initialized() else 0


def world_size() -> int:
    """How many processes train together; 1 in a single-process run."""
    return dist.get_world_size() if _is_initialized() else 1


def _is_initialized() -> bool:
    return dist.is_available() and dist.is_initialized()


def is_sharded(model: nn.Module) -> bool:
    """True if any of the model's parameters is sharded over several processes."""
    others = [parameter for parameter in model.parameters() if type(parameter) not in PLAIN]
    return any(map(is_dtensor, others))


def local(tensor: Tensor) -> Tensor:
    """This process's shard of a sharded tensor; any other tensor unchanged."""
    return tensor.to_local() if is_dtensor(tensor) else tensor


def local_parts(tensors: Iterable[Tensor]) -> list[Tensor]:
    """``local`` of each tensor."""
    return [tensor if type(tensor) in PLAIN else local(tensor) for tensor in tensors]


def whole(tensor: Tensor) -> Tensor:
    """A sharded tensor gathered from all ranks; any other tensor unchanged.

    Collective for a sharded tensor: every rank must call it.
    """
    return tensor.full_tensor() if is_dtensor(tensor) else tensor


Sharding = tuple[Any, tuple[int, ...]]
"""A ``DeviceMesh``, and its dimensions over which a tensor is split."""


def shardings(tensors: Mapping[str, Tensor]) -> dict[str, Sharding]:
    """How the sharded ones among tensors are sharded, by name."""
    found = {}
    for name, tensor in tensors.items():
        if type(tensor) in PLAIN or not is_dtensor(tensor):
            continue
        placements = enumerate(tensor.placements)
        axes = tuple(axis for axis, placement in placements if placement.is_shard())
        if axes:
            found[name] = tensor.device_mesh, axes
    return found


def is_dtensor(tensor: Tensor) -> TypeGuard[DTensor]:
    """True for a tensor that is distributed over a device mesh, sharded or replicated."""
    if type(tensor) in PLAIN:
        return False
    if not _is_initialized():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


class ShardedNames(NamedTuple):
    """Parameters that are sharded in the same way, in the model's order.

    Attributes:
        sharding: how they are sharded.
        names: their names.
        device: where the norms of their gradients are combined.
        dtype: dtype of the combined norms.
    """

    sharding: Sharding
    names: tuple[str, ...]
    device: torch.device
    dtype: torch.dtype

    def combined(self, norms: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Exception | None]:
        """Norms of whole gradients from the norms of this rank's shards, in one all-reduce.

        Collective. What is sent depends on the parameters alone, so a rank that could not read some
        norms, or any, does not keep the others waiting. A norm is -1 unless every rank has read its
        shard.

        Returns:
            All norms [] by name, and the error that kept this rank from sending its own, if any.
        """
        failed = None
        try:
            sent = self._sent(norms)
        except Exception as error:
            failed = error
            sent = torch.zeros(2, len(self.names), dtype=self.dtype, device=self.device)
        mesh, axes = self.sharding
        for axis in axes:
            dist.all_reduce(sent, group=mesh.get_group(axis))
        squares, counts = sent
        shards = math.prod(mesh.size(axis) for axis in axes)
        whole_norms = torch.where(counts == shards, squares.sqrt(), -1.0)
        by_name = dict(zip(self.names, whole_norms.unbind(), strict=True))
        return by_name, failed

    def _sent(self, norms: Mapping[str, Tensor]) -> Tensor:
        """Squares of the norms, and 1 for each that is known: [2, P]."""
        no = torch.zeros((), dtype=self.dtype, device=self.device)
        yes = torch.ones_like(no)
        values = list[Tensor]()
        is_known = list[Tensor]()
        for name in self.names:
            norm = norms.get(name)
            if norm is None:
                values.append(no)
                is_known.append(no)
            else:
                values.append(norm.to(self.device, self.dtype))
                is_known.append(yes)
        squares = torch.stack(values).square()
        return torch.stack([squares, torch.stack(is_known)])  # [2, P]


def sharded_names(parameters: Mapping[str, Tensor]) -> tuple[ShardedNames, ...]:
    """The sharded ones among parameters, by how they are sharded; the same on every rank."""
    ways: dict[Sharding, list[str]] = {}
    for name, way in shardings(parameters).items():
        ways.setdefault(way, []).append(name)
    found = []
    for way, names in ways.items():
        first = parameters[names[0]]
        device = local(first).device
        dtypes = {parameters[name].dtype for name in names}
        dtype = torch.float32
        if device.type == "cpu" or torch.float64 in dtypes:
            dtype = torch.float64
        own = ShardedNames(way, tuple(names), device, dtype)
        found.append(own)
    return tuple(found)


def are_flattened(model: nn.Module) -> bool:
    """True if any parameter of the model is flattened."""
    return any(getattr(parameter, _FLATTENED, False) for parameter in model.parameters())


def not_flattened(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of the parameters, by name, that this rank holds completely."""
    return {name: p for name, p in parameters.items() if not getattr(p, _FLATTENED, False)}
