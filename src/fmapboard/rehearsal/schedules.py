"""The learning rates ahead, of schedulers that a hook of the optimizer steps."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from torch.optim.lr_scheduler import LRScheduler
from torch.optim.optimizer import Optimizer

from fmapboard.rehearsal.training_copy import TrainingCopy


def stepped_by_hooks(optimizer: Optimizer) -> list[LRScheduler]:
    """The schedulers of an optimizer to which hooks of its ``step`` refer: they run per step."""
    found = []
    for hook in optimizer._optimizer_step_post_hooks.values():
        if not inspect.isfunction(hook):
            continue
        held = inspect.getclosurevars(hook)
        for value in (*held.nonlocals.values(), *held.globals.values()):
            if isinstance(value, LRScheduler) and value.optimizer is optimizer:
                found.append(value)
    return found


def rates_ahead(copy: TrainingCopy, schedule: LRScheduler, steps: int) -> list[float]:
    """The highest rate at each of the next steps, from a copy of the scheduler.

    Returns:
        None of them if it cannot be copied.
    """
    own: Any = copy.own(schedule)
    if own is schedule or own.optimizer is schedule.optimizer:
        return []
    rates = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the optimizer of the copy is not stepped
        for _ in range(steps):
            rates.append(max(float(group["lr"]) for group in own.optimizer.param_groups))
            own.step()
    return rates
