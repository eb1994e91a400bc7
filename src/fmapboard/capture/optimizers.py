"""The optimizers of a training: the one that a user gives, and those that hold a parameter."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer

from fmapboard.errors import ConfigurationError

_HOOKS = "_optimizer_step_post_hooks"
_BY_HAND = "or leave optimizer= out and mark steps: with board.step(i):"


def unwrapped(given: Any) -> Optimizer:
    """The torch optimizer inside what a user gives as ``optimizer=``.

    The wrappers of accelerate, Fabric and others hold it as ``optimizer``.

    Raises:
        ConfigurationError: it is no optimizer, or one whose steps cannot be noticed.
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
            f"cannot be counted; call it there, {_BY_HAND}"
        )
    raise ConfigurationError(
        f"optimizer={name}: expected a torch.optim.Optimizer, "
        "as in optimizer=torch.optim.SGD(model.parameters(), lr=0.1), "
        f"{_BY_HAND}"
    )


def _refuse(given: Any) -> None:
    """Refuse, with the fix, what stands beside optimizers in training scripts."""
    name = type(given).__name__
    if isinstance(given, type):
        raise ConfigurationError(
            f"optimizer={given.__name__}: that is the class; give the optimizer that you made of it"
        )
    if isinstance(given, LRScheduler) or hasattr(given, "get_last_lr"):
        raise ConfigurationError(
            f"optimizer={name}: that is a learning-rate scheduler; give the optimizer that it was "
            "made with"
        )
    if isinstance(given, (list, tuple, dict, set)):
        raise ConfigurationError(
            f"optimizer={name} of {len(given)}: give the optimizer that steps last; the others are "
            f"noticed when they step, {_BY_HAND}"
        )


def in_no_optimizer(parameters: Mapping[str, Tensor]) -> list[str]:
    """Names of the parameters that no optimizer of this process holds.

    It looks through all objects of the process, which takes tens of ms.
    """
    held = {id(p) for optimizer in _living() for p in _parameters(optimizer)}
    return [name for name, parameter in parameters.items() if id(parameter) not in held]


def _living() -> Iterator[Optimizer]:
    # By type alone: isinstance() would ask lazy proxies what they stand for.
    return (found for found in gc.get_objects() if issubclass(type(found), Optimizer))


def _parameters(optimizer: Optimizer) -> Iterator[Tensor]:
    for group in getattr(optimizer, "param_groups", ()):
        yield from group["params"]
