"""The loop that most of the third acceptance set shares, and the loss in eval mode at its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from acceptance_case import HealthyCase, Loss
from acceptance_data import Draw, fixed
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

import fmapboard


class Measured(list[float]):
    """The loss of each step, and ``evaluated``: the loss on held-out data at the end, with the
    running statistics of BatchNorm and without dropout; None for a model without BatchNorm.
    """

    evaluated: float | None = None


def evaluated(model: nn.Module, loss: Callable[[], Tensor]) -> float | None:
    """What `Measured.evaluated` is. Only BatchNorm and dropout are switched to eval mode, so that
    models which return no loss in eval mode, such as detectors, can be measured too.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return None
    modes = {module: module.training for module in model.modules()}
    for module in modes:
        if isinstance(module, _BatchNorm | _DropoutNd):
            module.training = False
    with torch.no_grad():
        found = loss().item()
    for module, mode in modes.items():
        module.training = mode
    return found


def everything(model: nn.Module) -> nn.Module:
    return model


@dataclass(frozen=True)
class Plan:
    """One training with one optimizer; call it with the run's directory and a seed."""

    make: Callable[[], nn.Module]
    draw: Draw
    loss: Loss
    optimizer: Callable[[nn.Module], Optimizer]
    steps: int = 80
    every: int = 8
    batch: int = 16
    schedule: Callable[[Optimizer, int], LRScheduler] | None = None
    clip: float = 0
    examples: int = 0
    """Size of a data set that is repeated; 0 for new crops in each step."""
    autocast: bool = False
    begin: Callable[[nn.Module], object] | None = None
    """Called with the model in training mode, before the optimizer is built."""
    before: Callable[[int, nn.Module, Optimizer], object] | None = None
    after: Callable[[int, nn.Module, Optimizer], object] | None = None
    watched: Callable[[nn.Module], nn.Module] = everything
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, place: Path, seed: int) -> Measured:
        random, model = torch.Generator().manual_seed(seed), self.make()
        draw = fixed(self.draw, self.examples) if self.examples else self.draw
        held_out = self.draw(random, self.batch)
        model.train()
        if self.begin is not None:
            self.begin(model)
        optimizer, losses = self.optimizer(model), Measured()
        scheduler = self.schedule(optimizer, self.steps) if self.schedule else None
        half = torch.autocast("cpu", torch.bfloat16) if self.autocast else nullcontext()
        watched = self.watched(model)
        with fmapboard.watch(watched, place, optimizer=optimizer, every=self.every, **self.options):
            for step in range(self.steps):
                if self.before is not None:
                    self.before(step, model, optimizer)
                with half:
                    loss = self.loss(model, *draw(random, self.batch))
                optimizer.zero_grad()
                loss.backward()
                if self.clip:
                    nn.utils.clip_grad_norm_(model.parameters(), self.clip)
                optimizer.step()
                if scheduler is not None:
                    scheduler.step()
                if self.after is not None:
                    self.after(step, model, optimizer)
                losses.append(loss.item())
        losses.evaluated = evaluated(model, lambda: self.loss(model, *held_out))
        return losses

    def case(self, architecture: str, recipe: str, expected: str = "") -> HealthyCase:
        parts = (architecture, recipe, self.steps, self.every, self)
        return HealthyCase(*parts, expected=expected)
