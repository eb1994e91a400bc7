"""A training on which the checks are judged, and the loop that most of them share."""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from data import Draw, fixed
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

import fmapboard

Loss = Callable[..., Tensor]
"""Of a model and a batch."""
Optimize = Callable[[nn.Module], Optimizer]
Schedule = Callable[[Optimizer, int], LRScheduler]
Hook = Callable[[int, nn.Module, Optimizer], object]


class Losses(list[float]):
    """The loss of each step, and ``evaluated``: the loss on held-out data at the end, with the
    running statistics of BatchNorm and without dropout; None for a model without BatchNorm.
    """

    evaluated: float | None = None


Run = Callable[[Path, int], Losses]


@dataclass(frozen=True)
class CaseResult:
    """The training loss at the start and at the end; whether they are those of a healthy run."""

    start: float
    end: float
    healthy: bool
    evaluated: float | None = None


@dataclass(frozen=True)
class Case:
    """One training: call ``train`` with the directory of its run and a seed."""

    name: str
    architecture: str
    recipe: str
    steps: int
    every: int
    run: Run
    expected: str = ""
    """For a planted fault, the kinds of finding that name it, separated by commas."""
    falls: bool = True
    """False for a discriminator's loss, which must neither vanish nor grow."""
    first_seen: str = ""
    """When the checks first saw it. Rules that were changed later may have been fitted to it."""
    held_out: bool = False
    """Healthy only if half of what was learned also shows in eval mode."""

    def train(self, run: Path, seed: int) -> CaseResult:
        torch.manual_seed(seed)
        losses = self.run(run, seed)
        few = max(3, len(losses) // 10)
        start, end = statistics.fmean(losses[:few]), statistics.fmean(losses[-few:])
        healthy = end < 0.93 * start if self.falls else 0.05 < end < 2 * start
        healthy &= all(map(math.isfinite, losses))
        evaluated = getattr(losses, "evaluated", None)
        if self.held_out and evaluated is not None:
            half_way = end + 0.5 * max(0.0, start - end)
            healthy &= evaluated <= min(half_way, 1.5 * end + 0.3)
        return CaseResult(start, end, healthy, evaluated)


def _all(model: nn.Module) -> nn.Module:
    return model


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    name: str
    optimizer: Optimize
    schedule: Schedule | None = None
    steps: int = 100
    every: int | Callable[[int], bool] = 10
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
    """When gradients are cleared: "before" the forward pass, "after" the step, then to zeros
    ("keep"), or "never"."""
    prepare: Callable[[nn.Module], object] | None = None
    """Called with the model in training mode before the first step and after each evaluation."""
    before: Hook | None = None
    """Called before each step with its number, the model and the optimizer."""
    after: Hook | None = None
    watched: Callable[[nn.Module], nn.Module] = _all
    """The part of the model that is watched."""
    watch: dict[str, Any] = field(default_factory=dict)

    def by(
        self, name: str, kind: type[Optimizer], schedule: Schedule | None = None, **options: Any
    ) -> Recipe:
        """With another optimizer and schedule; options of the optimizer, or those of `Recipe`."""
        own = {part.name: options.pop(part.name) for part in fields(self) if part.name in options}
        return replace(self, name=name, optimizer=by(kind, **options), schedule=schedule, **own)

    def but(self, name: str, **changes: Any) -> Recipe:
        """A variant; ``name`` is appended to the name."""
        return replace(self, name=", ".join(filter(None, (self.name, name))), **changes)


@dataclass(frozen=True)
class Fit:
    """A training as a user's script does it; call it with the run's directory and a seed."""

    make: Callable[[], nn.Module]
    draw: Draw
    loss: Loss
    recipe: Recipe
    held_out: bool = False

    def __call__(self, place: Path, seed: int) -> Losses:
        """Train and watch; the loss of each step, and that of held-out data at the end."""
        model, recipe = self.make(), self.recipe
        draw = fixed(self.draw, recipe.examples) if recipe.examples else self.draw
        judged = None
        if self.held_out:
            judged = draw(Generator().manual_seed(seed + 1000), recipe.examples or 48)
        generator = Generator().manual_seed(seed)
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
                    loss = self.loss(forward, *batch) / recipe.micro
                loss.backward()
                total += loss.item()
            if recipe.clip:
                nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
            optimizer.step()
            if recipe.zero in ("after", "keep"):
                optimizer.zero_grad(set_to_none=recipe.zero == "after")
            if scheduler is not None:
                scheduler.step()
            return total

        counted = {} if recipe.marked else {"optimizer": optimizer}
        losses = Losses()
        options = {"every": recipe.every, **counted, **recipe.watch}
        with fmapboard.watch(recipe.watched(model), place, **options) as board:
            for step in range(recipe.steps):
                if recipe.before is not None:
                    recipe.before(step, model, optimizer)
                with board.step(step) if recipe.marked else nullcontext():
                    losses.append(train_step())
                if recipe.after is not None:
                    recipe.after(step, model, optimizer)
                if average is not None:
                    follow(average, model, recipe.ema)
                if recipe.evaluate and (step + 1) % recipe.evaluate == 0:
                    model.eval()
                    with torch.no_grad():
                        self.loss(model, *held_out)
                        if average is not None:
                            self.loss(average.eval(), *held_out)
                    _to_training(model, recipe)
        losses.evaluated = evaluated(model, lambda: self.loss(model, *(judged or held_out)))
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


def evaluated(model: nn.Module, loss: Callable[[], Tensor]) -> float | None:
    """What `Losses.evaluated` is. Only BatchNorm and dropout are switched to eval mode, so that
    models which return no loss in eval mode, such as detectors, can be measured too.
    """
    if not any(isinstance(module, _BatchNorm) for module in model.modules()):
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


def descend(optimizer: Optimizer, loss: Tensor) -> float:
    """One step of the optimizer along the gradients of ``loss``; the loss's value."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(
    place: Path,
    seed: int,
    model: nn.Module,
    step: Callable[[int, Generator], float],
    steps: int = 60,
    every: int = 5,
    optimizer: Optimizer | None = None,
    **options: Any,
) -> Losses:
    """Watch ``model`` while ``step`` is called with 0, 1, … and the run's generator.

    Without an optimizer the steps are marked.
    """
    random, losses = Generator().manual_seed(seed), Losses()
    counted = {} if optimizer is None else {"optimizer": optimizer}
    with fmapboard.watch(model, place, every=every, **counted, **options) as board:
        for number in range(steps):
            with board.step(number) if optimizer is None else nullcontext():
                losses.append(step(number, random))
    return losses


def duel(
    place: Path,
    seed: int,
    nets: tuple[nn.Module, nn.Module],
    rates: tuple[float, float],
    step: Callable[[int, Generator, Optimizer, Optimizer], float],
    steps: int = 60,
    every: int | tuple[int, int] = 5,
    betas: tuple[float, float] = (0.5, 0.999),
) -> Losses:
    """Watch a generator and its critic, each with an Adam of its own, which ``step`` uses."""
    random = Generator().manual_seed(seed)
    both = [optim.Adam(n.parameters(), lr=r, betas=betas) for n, r in zip(nets, rates, strict=True)]
    often = every if isinstance(every, tuple) else (every, every)
    with (
        fmapboard.watch(nets[0], place, optimizer=both[0], every=often[0], name="generator"),
        fmapboard.watch(nets[1], place, optimizer=both[1], every=often[1], name="critic"),
    ):
        return Losses(step(number, random, *both) for number in range(steps))


@dataclass(frozen=True)
class Task:
    """What is trained: a network and its name, batches, and the loss of both."""

    architecture: str
    make: Callable[[], nn.Module]
    draw: Draw
    loss: Loss

    def cases(self, **recipes: Recipe | tuple[Recipe, ...]) -> list[Case]:
        """A case per recipe; the second and later recipes of a name have a number."""
        return self.faults("", **recipes)

    def faults(self, kinds: str, **recipes: Recipe | tuple[Recipe, ...]) -> list[Case]:
        """Cases with a planted fault, which each of ``kinds`` names."""
        made = []
        note = getattr(self.loss, "__name__", "loss").replace("_", " ")
        for name, chosen in recipes.items():
            for number, recipe in enumerate(chosen if isinstance(chosen, tuple) else (chosen,), 1):
                own = name if number == 1 else f"{name}_{number}"
                known = note in ("loss", "named", "<lambda>")
                text = recipe.name if known else f"{recipe.name}, {note}"
                every = recipe.every
                if callable(every):
                    every = max(1, recipe.steps // sum(map(every, range(recipe.steps))))
                run = Fit(self.make, self.draw, self.loss, recipe)
                parts = (own, self.architecture, text, recipe.steps, every, run, kinds)
                made.append(Case(*parts))
        return made


def own_loop(
    name: str,
    architecture: str,
    recipe: str,
    run: Run,
    steps: int = 60,
    every: int = 5,
    falls: bool = True,
) -> list[Case]:
    """A case with a loop of its own."""
    return [Case(name, architecture, recipe, steps, every, run, falls=falls)]


def seen(when: str, *groups: list[Case], expected: str = "", held_out: bool = False) -> list[Case]:
    """These cases, with the date and time at which the checks first saw them."""
    made = []
    for one in (case for group in groups for case in group):
        run = replace(one.run, held_out=True) if held_out and isinstance(one.run, Fit) else one.run
        kinds = one.expected or expected
        made.append(replace(one, run=run, expected=kinds, first_seen=when, held_out=held_out))
    return made
