"""A healthy training: what it trains, and the loop that most of them share."""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from acceptance_data import Draw, fixed
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

import fmapboard

Losses = list[float]
Loss = Callable[..., Tensor]  # of the model and a batch


@dataclass(frozen=True)
class CaseResult:
    """The training loss at the start and at the end; whether they are those of a healthy run.

    ``evaluated`` is the loss in eval mode at the end, where a training measures it.
    """

    start: float
    end: float
    healthy: bool
    evaluated: float | None = None


@dataclass(frozen=True)
class HealthyCase:
    """A training that a user would be content with."""

    architecture: str
    recipe: str
    steps: int
    every: int
    run: Callable[[Path, int], Losses]
    falls: bool = True
    """False for a discriminator's loss, which must neither vanish nor grow."""
    expected: str = ""
    """For a planted fault, the kinds of finding that name it, separated by commas."""

    def train(self, run: Path, seed: int) -> CaseResult:
        torch.manual_seed(seed)
        losses = self.run(run, seed)
        few = max(3, len(losses) // 10)
        start, end = statistics.fmean(losses[:few]), statistics.fmean(losses[-few:])
        finite = all(map(math.isfinite, losses))
        good = end < 0.93 * start if self.falls else 0.05 < end < 2 * start
        told = getattr(losses, "evaluated", None)
        return CaseResult(start, end, finite and good, told)


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    name: str
    optimizer: Callable[[nn.Module], Optimizer]
    schedule: Callable[[Optimizer, int], LRScheduler] | None = None
    steps: int = 100
    every: int = 10
    batch: int = 16
    examples: int = 0
    """Size of a data set that is repeated; 0 for new crops in each step."""
    clip: float = 0
    micro: int = 1
    autocast: bool = False
    ema: float = 0
    evaluate: int = 0
    """Evaluate after each so many steps."""
    compile: bool = False
    marked: bool = False
    """Steps are marked with ``board.step`` and not counted from the optimizer."""
    zero: str = "after"
    prepare: Callable[[nn.Module], object] | None = None
    """Called with the model in training mode before the first step and after each evaluation."""
    watch: dict[str, Any] = field(default_factory=dict)

    def but(self, name: str, **changes: Any) -> Recipe:
        """A variant; ``name`` is appended to the name."""
        return replace(self, name=f"{self.name}, {name}".removesuffix(", "), **changes)


def fit(
    run: Path, seed: int, model: nn.Module, draw: Draw, loss_of: Loss, recipe: Recipe
) -> Losses:
    """Train as a user's script does; the loss of each step."""
    generator = torch.Generator().manual_seed(seed)
    draw = fixed(draw, recipe.examples) if recipe.examples else draw
    held_out = draw(generator, recipe.batch)
    forward = torch.compile(model) if recipe.compile else model
    _to_training(model, recipe)
    optimizer = recipe.optimizer(model)
    scheduler = recipe.schedule(optimizer, recipe.steps) if recipe.schedule else None
    average = copy.deepcopy(model) if recipe.ema else None

    def train_step() -> float:
        total = 0.0
        if recipe.zero == "before":
            optimizer.zero_grad()
        for _ in range(recipe.micro):
            batch = draw(generator, recipe.batch)
            with torch.autocast("cpu", torch.bfloat16, enabled=recipe.autocast):
                loss = loss_of(forward, *batch) / recipe.micro
            loss.backward()
            total += loss.item()
        if recipe.clip:
            nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        if recipe.zero != "before":
            optimizer.zero_grad(set_to_none=recipe.zero != "keep")
        if scheduler is not None:
            scheduler.step()
        return total

    counted = {} if recipe.marked else {"optimizer": optimizer}
    losses = []
    with fmapboard.watch(model, run, every=recipe.every, **counted, **recipe.watch) as board:
        for step in range(recipe.steps):
            if recipe.marked:
                with board.step(step):
                    losses.append(train_step())
            else:
                losses.append(train_step())
            if average is not None:
                follow(average, model, recipe.ema)
            if recipe.evaluate and (step + 1) % recipe.evaluate == 0:
                model.eval()
                with torch.no_grad():
                    loss_of(model, *held_out)
                    if average is not None:
                        loss_of(average.eval(), *held_out)
                _to_training(model, recipe)
    return losses


def _to_training(model: nn.Module, recipe: Recipe) -> None:
    model.train()
    if recipe.prepare is not None:
        recipe.prepare(model)


@torch.no_grad()
def follow(average: nn.Module, model: nn.Module, decay: float) -> None:
    """Move a copy's parameters and buffers towards the model's."""
    for mean, value in zip(average.parameters(), model.parameters(), strict=True):
        mean.lerp_(value, 1 - decay)
    for mean, value in zip(average.buffers(), model.buffers(), strict=True):
        mean.copy_(value)


def case(
    architecture: str,
    make: Callable[[], nn.Module],
    draw: Callable[[], Draw] | Draw,
    loss_of: Loss,
    recipe: Recipe,
    note: str = "",
) -> HealthyCase:
    """A case that the shared loop trains."""

    def run(place: Path, seed: int) -> Losses:
        return fit(place, seed, make(), draw, loss_of, recipe)

    name = f"{recipe.name}{', ' if note else ''}{note}"
    return HealthyCase(architecture, name, recipe.steps, recipe.every, run)
