"""Ranks, and tensors that are sharded over several processes.

Under DistributedDataParallel every rank holds complete, already reduced gradients when the
optimizer steps, so only rank 0 records. Under FSDP2 (``fully_shard``) each rank holds one shard of
every parameter. Norms and kernels then need all ranks: every rank records the same steps, and
rank 0 writes.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from fmapboard.errors import interrupt_in

# Parameters that ``FullyShardedDataParallel`` (FSDP1) has flattened.
#
# Each rank holds a piece of one long vector. The layers' weights are views of it: whole during a
# pass, afterwards cut to this rank's piece, or without memory, and then reading one ends the
# process.


_FLATTENED = "_fsdp_flattened"


def are_flattened(model: nn.Module) -> bool:
    """True if any parameter of the model is flattened."""
    return any(getattr(parameter, _FLATTENED, False) for parameter in model.parameters())


def not_flattened(parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of the parameters, by name, that this rank holds completely."""
    return {name: p for name, p in parameters.items() if not getattr(p, _FLATTENED, False)}


PLAIN = frozenset({Tensor, nn.Parameter})
"""Types of tensors with memory of their own: no sharded, fake or quantized ones."""

TIMEOUT = timedelta(seconds=120)
"""How long a worker thread waits for those of the other ranks, which may have steps to write."""


def rank() -> int:
    """This process's rank; 0 in a single-process run."""
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def world_size() -> int:
    """How many processes train together; 1 in a single-process run."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_sharded(model: nn.Module) -> bool:
    """True if any of the model's parameters is sharded over several processes."""
    return bool([p for p in model.parameters() if type(p) not in PLAIN and is_dtensor(p)])


def local(tensor: Tensor) -> Tensor:
    """This process's shard of a sharded tensor; any other tensor unchanged."""
    if not is_dtensor(tensor):
        return tensor
    part: Tensor = tensor.to_local()  # type: ignore[attr-defined]  # only DTensor has it
    return part


def local_parts(tensors: Iterable[Tensor]) -> list[Tensor]:
    """``local`` of each tensor."""
    return [one if type(one) in PLAIN else local(one) for one in tensors]


def whole(tensor: Tensor) -> Tensor:
    """A sharded tensor gathered from all ranks; any other tensor unchanged.

    Collective for a sharded tensor: every rank must call it.
    """
    if not is_dtensor(tensor):
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


class Agreement:
    """Lets the ranks that share a model's parameters decide something together.

    The answers travel between the hosts, over a group of fmapboard's own, so nobody waits for a
    device.

    Args:
        group: those ranks; None if there is only this one.
        is_possible: False if there are others, but no way to ask them.
    """

    def __init__(self, group: Any = None, *, is_possible: bool = True) -> None:
        self._group, self._is_possible = group, is_possible

    @classmethod
    def among(cls, model: nn.Module) -> Agreement:
        """Set up the group. Collective if parameters are sharded: every rank must call it."""
        ways = sharded_names(dict(model.named_parameters()))
        meshes: list[Any] = [way.sharding.mesh for way in ways]
        ranks = sorted({int(one) for mesh in meshes for one in mesh.mesh.flatten()})
        if len(ranks) < 2:
            return cls()
        try:
            # No time limit of its own: the pass that follows would wait for a late rank as well.
            return cls(host_group(ranks))
        except Exception as error:
            if interrupt_in(error) is not None:
                raise
            return cls(is_possible=False)

    @property
    def why_not(self) -> str:
        """What to say if this rank says yes and the answer is no."""
        if self._is_possible:
            return "it failed on another rank"
        return "the ranks cannot ask each other whether all of them can run it"

    def all_say(self, yes: bool) -> bool:
        """True if every rank says yes. Collective: every rank must call it.

        Waits for the other ranks' hosts to get there. If they cannot be reached, the answer is no
        from then on.
        """
        if self._group is None:
            return yes and self._is_possible
        answer = torch.tensor([int(yes)], device="cpu")
        try:
            dist.all_reduce(answer, dist.ReduceOp.MIN, group=self._group)
        except Exception:
            self._group, self._is_possible = None, False
            raise
        return bool(answer)


def host_group(ranks: list[int] | None = None, timeout: timedelta | None = None) -> Any:
    """A process group of fmapboard's own, for messages between hosts.

    Collective: each of the ranks must call it, with the same argument.

    Args:
        ranks: its members; None for all ranks.
        timeout: how long a message is waited for; None for torch's default.
    """
    return dist.new_group(
        ranks, timeout=timeout, backend="gloo", use_local_synchronization=ranks is not None
    )


@dataclass(frozen=True, slots=True)
class Sharding:
    """The process groups over which a tensor is sharded; equal for tensors sharded in the same way.

    Attributes:
        mesh: the ``DeviceMesh``.
        axes: mesh dimensions over which the tensor is split.
    """

    mesh: Hashable
    axes: tuple[int, ...]

    def shards(self) -> int:
        """How many parts the tensor has."""
        mesh: Any = self.mesh
        return math.prod(mesh.size(axis) for axis in self.axes)

    def total(self, squares: Tensor) -> Tensor:
        """Sum a tensor over all shards, in place.

        Collective: every rank must call it, in the same order.
        """
        mesh: Any = self.mesh
        for axis in self.axes:
            dist.all_reduce(squares, group=mesh.get_group(axis))
        return squares


def shardings(tensors: Mapping[str, Tensor]) -> dict[str, Sharding]:
    """How the sharded ones among tensors are sharded, by name."""
    found = {}
    for name, tensor in tensors.items():
        if type(tensor) not in PLAIN and is_dtensor(tensor):
            placed: Any = tensor
            cut = tuple(axis for axis, place in enumerate(placed.placements) if place.is_shard())
            if cut:
                found[name] = Sharding(placed.device_mesh, cut)
    return found


def is_dtensor(tensor: Tensor) -> bool:
    """True for a tensor that is distributed over a device mesh, sharded or replicated."""
    if type(tensor) in PLAIN or not (dist.is_available() and dist.is_initialized()):
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


@dataclass(frozen=True, slots=True)
class ShardedNames:
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
            sent, failed = (
                torch.zeros(2, len(self.names), dtype=self.dtype, device=self.device),
                error,
            )
        squares, counts = self.sharding.total(sent)
        whole_norms = torch.where(counts == self.sharding.shards(), squares.sqrt(), -1.0)
        return dict(zip(self.names, whole_norms.unbind(), strict=True)), failed

    def _sent(self, norms: Mapping[str, Tensor]) -> Tensor:
        """Squares of the norms, and 1 for each that is known: [2, P]."""
        zero = torch.zeros((), dtype=self.dtype, device=self.device)
        one = torch.ones_like(zero)
        known = [norms.get(name) for name in self.names]
        values = [zero if norm is None else norm.to(self.device, self.dtype) for norm in known]
        flags = [zero if norm is None else one for norm in known]
        return torch.stack([torch.stack(values).square(), torch.stack(flags)])  # [2, P]


def sharded_names(parameters: Mapping[str, Tensor]) -> tuple[ShardedNames, ...]:
    """The sharded ones among parameters, by how they are sharded; the same on every rank."""
    ways: dict[Sharding, list[str]] = {}
    for name, way in shardings(parameters).items():
        ways.setdefault(way, []).append(name)
    found = []
    for way, names in ways.items():
        device = local(parameters[names[0]]).device
        is_wide = device.type == "cpu" or any(
            parameters[name].dtype == torch.float64 for name in names
        )
        dtype = torch.float64 if is_wide else torch.float32
        found.append(ShardedNames(way, tuple(names), device, dtype))
    return tuple(found)
