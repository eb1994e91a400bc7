"""``GradientSums``: gradients of tensors, summed over the backward passes that count."""

from __future__ import annotations

import contextlib
import weakref
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor

from fmapboard.capture.guard import Guard, is_out_of_memory
from fmapboard.capture.isolation import aside
from fmapboard.records import ONE_PASS, PassCount

_MAX_NODES = 256
"""How many nodes behind a tensor are searched for leaves."""

_MAX_LEAVES = 4
"""How many leaves behind a tensor are asked whether a backward pass reaches them."""

Select = Callable[[Tensor], Tensor | None]
"""Returns the part of a gradient that is needed, possibly a view; None if it cannot be read."""

Record = Callable[[Tensor | None, PassCount], None]
"""Receives each new sum, and the count alone if a gradient could not be added to it."""


class GradientSums:
    """Follows the gradients of tensors of one forward pass through its backward passes.

    What is recorded of a tensor is the sum of its gradients over those backward passes that
    contribute to the gradients of the step. Left out are passes

    - whose gradients were cleared before another one,
    - that follow when the gradients of the step are complete,
    - that accumulate nothing, such as those of ``torch.autograd.grad``,

    unless no other pass has reached the tensor.

    A gradient is copied only if its backward pass keeps the graph: otherwise no other pass can
    follow it. Copies are dropped as soon as the gradients of the step are complete.

    Args:
        guard: handles errors.
    """

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._followed: list[_Followed] = []
        self._spare: dict[torch.device, int] = {}  # bytes
        self.times_cleared = 0
        self.are_complete = False

    def follow(self, about: str, tensor: Tensor, select: Select, record: Record) -> None:
        """Follow the gradient of a tensor that the forward pass has just computed.

        Args:
            about: name under which the guard handles errors.
            tensor: requires a gradient.
            select: see ``Select``.
            record: see ``Record``; it must not keep the tensor, which is changed later.
        """
        followed = _Followed(self, about, tensor, select, record)
        self._followed.append(followed)
        tensor.register_hook(followed.arrives)  # type: ignore[no-untyped-call]  # torch

    def ended(self, nodes: Collection[Any], begins: Callable[[], None]) -> None:
        """Called when the forward pass has ended.

        Args:
            nodes: the nodes of the model's output.
            begins: called when a backward pass reaches a tensor that one of these nodes has
                computed: hooks of a tensor run before those of its node.
        """
        for followed in self._followed:
            if followed.is_at(nodes):
                followed.begins = begins

    def cleared(self) -> None:
        """Called when the gradients of earlier backward passes were cleared."""
        self.times_cleared += 1

    def complete(self) -> None:
        """Called when the gradients of the step are complete."""
        self.are_complete = True
        for followed in self._followed:
            followed.kept = None

    def discard(self) -> None:
        """Ignore gradients of this forward pass that arrive later."""
        for followed in self._followed:
            followed.is_alive = False
            followed.kept = None
        self._followed.clear()
        self.times_cleared = 0
        self.are_complete = False

    def copy(self, gradient: Tensor) -> Tensor | None:
        """A copy; None if there is not enough memory for it."""
        device = gradient.device
        if device.type == "cuda":
            spare = self._spare[device] if device in self._spare else _spare_bytes(device)
            if gradient.nbytes > spare:
                return None
            self._spare[device] = spare - gradient.nbytes
        return _sum(None, gradient)


class _Followed:
    """Sums the gradients of one tensor.

    Attributes:
        kept: the sum so far, if another backward pass may add to it.
        begins: called when a gradient arrives.
        is_alive: False once gradients are ignored.
    """

    def __init__(
        self, owner: GradientSums, about: str, tensor: Tensor, select: Select, record: Record
    ) -> None:
        self._owner = owner
        self._about = about
        self._select = select
        self._record = record
        self._tensor = weakref.ref(tensor)
        self._version = tensor._version
        self._leaves = leaves_behind(tensor, _MAX_LEAVES)
        self._count = PassCount(0, 0)
        self._times_cleared = 0
        self._counts = False
        self.kept: Tensor | None = None
        self.begins: Callable[[], None] | None = None
        self.is_alive = True

    def is_at(self, nodes: Collection[Any]) -> bool:
        """True if one of these nodes has computed the tensor, and nothing has changed it since."""
        tensor = self._tensor()
        if tensor is None or tensor._version != self._version:
            return False
        return tensor.grad_fn in nodes

    def arrives(self, gradient: Tensor | None) -> None:
        """The hook of the tensor; a compiled graph calls it with None for an output without use."""
        if gradient is None:
            return
        owner = self._owner
        if self.begins is not None:
            self.begins()
        if not self.is_alive or (owner.are_complete and self._count.seen):
            return
        with owner.guard(self._about):
            part = self._select(gradient)
            if part is not None:
                self._add(part, counts=_accumulates(self._leaves))

    def _add(self, gradient: Tensor, *, counts: bool) -> None:
        owner = self._owner
        is_first = not self._count.seen or self._times_cleared != owner.times_cleared
        if is_first or (counts and not self._counts):
            self._times_cleared = owner.times_cleared
            self._counts = counts
            self._count = ONE_PASS
            self.kept = None
            self._record(gradient, self._count)
            if counts and keeps_graph():
                self.kept = owner.copy(gradient)
        elif counts:
            total = None if self.kept is None else _sum(self.kept, gradient)
            self.kept = None
            summed = self._count.summed if total is None else self._count.summed + 1
            self._count = PassCount(summed, self._count.seen + 1)
            self._record(total, self._count)
            if keeps_graph():
                self.kept = total


def keeps_graph() -> bool:
    """True if another backward pass may follow the one that is running; False if not known."""
    asked = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", None)
    return asked is not None and asked()


def _accumulates(leaves: tuple[Any, ...]) -> bool:
    """True if the running backward pass accumulates gradients in leaves, as far as is known.

    It does not in ``torch.autograd.grad``, nor for leaves that are not among ``inputs=``.
    """
    asked = getattr(torch._C, "_will_engine_execute_node", None)
    if asked is None or not leaves:
        return True
    for leaf in leaves:
        with contextlib.suppress(RuntimeError):  # autograd.grad() returns this leaf's gradient
            if asked(leaf):
                return True
    return False


def leaves_behind(tensor: Tensor, most: int) -> tuple[Any, ...]:
    """The nodes that accumulate the gradients of the nearest leaves, such as a layer's weight.

    They hold the leaves, in the attribute ``variable``, but nothing that leads to the tensor. Of
    what is behind a deep network, leaves may be missing: at most 256 nodes are searched.

    Args:
        tensor: any; a leaf has none behind it.
        most: how many to find.
    """
    found: list[Any] = []
    if tensor.grad_fn is None:
        return ()
    due = deque([tensor.grad_fn])
    seen = {tensor.grad_fn}
    while due and len(found) < most:
        node = due.popleft()
        if type(node).__name__ == "AccumulateGrad":
            found.append(node)
        for following, _ in node.next_functions:
            if following is not None and following not in seen and len(seen) < _MAX_NODES:
                seen.add(following)
                due.append(following)
    return tuple(found)


def _sum(kept: Tensor | None, gradient: Tensor) -> Tensor | None:
    """A copy of a gradient or, in float32 or wider, what it adds up to; None without memory.

    Args:
        kept: the sum so far, whose memory is used if possible; None begins with a copy.
        gradient: what is added.
    """
    try:
        with aside(gradient.device.type, gradient.nbytes):
            if kept is None:
                return gradient.detach().clone()
            return kept.to(torch.promote_types(kept.dtype, torch.float32)).add_(gradient)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        return None


def _spare_bytes(device: torch.device) -> int:
    """How much memory the device has beyond the largest amount that was ever allocated on it.

    A copy within it takes nothing that training has needed so far.
    """
    reserved = torch.cuda.memory_reserved(device)
    free, _ = torch.cuda.mem_get_info(device)
    most = torch.cuda.max_memory_allocated(device)
    return max(0, free + reserved - most)
