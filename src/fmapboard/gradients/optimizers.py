"""Find optimizers: the one inside the object a user passes, and those that hold a parameter."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer

from fmapboard.errors import ConfigurationError
from fmapboard.interrupts import WeakTable
from fmapboard.model.living import living

_HOOKS = "_optimizer_step_post_hooks"
COPY = "_is_copy_by_fmapboard"
"""Attribute of an optimizer that trains a copy of a network."""
_BY_HAND = "or omit optimizer= and mark each step: with board.step(i):"


def unwrapped(given: Any) -> Optimizer:
    """The torch optimizer inside what the user passed as ``optimizer=``.

    Wrappers such as those of accelerate and Fabric hold it in their attribute ``optimizer``.

    Raises:
        ConfigurationError: it is not an optimizer, or its steps cannot be observed.
    """
    _refuse(given)
    found = given
    for _ in range(8):  # wrappers inside wrappers
        if isinstance(found, Optimizer) and _HOOKS in vars(found):
            return found
        inner = getattr(found, "optimizer", None)
        if inner is None or inner is found:
            break
        found = inner
    name = type(given).__name__
    if isinstance(given, Optimizer):
        raise ConfigurationError(
            f"optimizer={name}: its constructor does not call Optimizer.__init__, so its steps "
            f"cannot be counted; add the call, {_BY_HAND}"
        )
    raise ConfigurationError(
        f"optimizer={name}: expected a torch.optim.Optimizer, "
        "as in optimizer=torch.optim.SGD(model.parameters(), lr=0.1), "
        f"{_BY_HAND}"
    )


def _refuse(given: Any) -> None:
    """Reject objects that are easily passed by mistake; the errors say what to pass instead."""
    name = type(given).__name__
    if isinstance(given, type):
        raise ConfigurationError(
            f"optimizer={given.__name__}: expected an instance, not the class; pass "
            f"{given.__name__}(model.parameters(), ...)"
        )
    if isinstance(given, LRScheduler) or hasattr(given, "get_last_lr"):
        raise ConfigurationError(
            f"optimizer={name}: expected an optimizer, not a learning-rate scheduler; pass the "
            "scheduler's optimizer"
        )
    if isinstance(given, (list, tuple, dict, set)):
        raise ConfigurationError(
            f"optimizer={name} of {len(given)}: expected one optimizer; pass the one that steps "
            f"last (the gradients of the others are logged too), {_BY_HAND}"
        )


def holding(parameters: Collection[int]) -> list[Optimizer]:
    """The optimizers of this process that hold a parameter with one of these ``id``.

    Scans all objects that the garbage collector tracks, which takes tens of ms.
    """
    return [o for o in living(Optimizer) if any(id(p) in parameters for p in parameters_of(o))]


def parameters_of(optimizer: Optimizer) -> list[Tensor]:
    """The parameters that an optimizer updates."""
    groups = getattr(optimizer, "param_groups", ())
    return [parameter for group in groups for parameter in group["params"]]


def holds_copies(optimizer: Optimizer, parameters: Mapping[str, Tensor]) -> bool:
    """True if the optimizer holds float32 copies of a model's parameters in half precision.

    These "master weights" are a tensor per parameter, or flat ones that several share: together
    they have as many values.

    Args:
        optimizer: the optimizer.
        parameters: those of the model that are trained, by name.
    """
    held = {id(p): p for p in parameters_of(optimizer)}
    own = {id(p) for p in parameters.values()}
    missing = [p for p in parameters.values() if id(p) not in held]
    if not any(p.dtype in (torch.float16, torch.bfloat16) for p in missing):
        return False
    copies = [p for key, p in held.items() if key not in own and p.dtype == torch.float32]
    return sum(p.numel() for p in copies) == sum(p.numel() for p in missing)


class OptimizerMembership:
    """Knows the optimizers of a model, without keeping them alive.

    Parameters that none of those seen so far holds are searched for in all optimizers of the
    process. That takes tens of ms, so while it finds nothing new it is done at the 1st, 2nd, 4th,
    8th, ... logged step with such parameters.
    """

    def __init__(self) -> None:
        self._known: WeakTable[Optimizer, bool] = WeakTable()
        self._searches = 0
        self._missing: frozenset[int] = frozenset()

    def stepping(self, optimizer: Optimizer) -> None:
        """Called when an optimizer of the model steps."""
        self._known[optimizer] = True

    def not_held(
        self, trainable: Mapping[str, Tensor], versions: Mapping[int, int]
    ) -> tuple[str, ...] | None:
        """Names of the parameters that no optimizer holds and that nothing else has changed.

        Args:
            trainable: those that are trained in a logged step in which an optimizer stepped.
            versions: their version counters when the step opened, by ``id``.

        Returns:
            None if no optimizer of the model is known.
        """
        if not any(True for _ in self._known):
            return None
        unseen = self._unseen(trainable)
        if unseen:
            self._search(frozenset(unseen))
            unseen = self._unseen(trainable)
        if unseen and any(holds_copies(optimizer, trainable) for optimizer in self._known):
            return ()
        return tuple(
            name for key, name in unseen.items() if versions.get(key) == trainable[name]._version
        )

    def knows(self, trainable: Mapping[str, Tensor]) -> bool:
        """True if an optimizer that was seen so far holds one of these parameters."""
        held = self._held()
        return any(id(parameter) in held for parameter in trainable.values())

    def holds_any(self, trainable: Mapping[str, Tensor]) -> bool:
        """True if an optimizer of this process holds one of these parameters."""
        if not self.knows(trainable):
            self._search(frozenset(map(id, trainable.values())))
        return self.knows(trainable)

    def _search(self, missing: frozenset[int]) -> None:
        is_new = not missing <= self._missing
        self._searches = 1 if is_new else self._searches + 1
        self._missing = missing
        if self._searches & (self._searches - 1) == 0:
            for optimizer in holding(missing):
                self._known[optimizer] = True

    def _unseen(self, trainable: Mapping[str, Tensor]) -> dict[int, str]:
        held = self._held()
        return {id(p): name for name, p in trainable.items() if id(p) not in held}

    def _held(self) -> set[int]:
        return {id(p) for optimizer in self._known for p in parameters_of(optimizer)}
