"""Recipes of the fourth acceptance set, and a training by the loop of `acceptance_case.fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from acceptance_case import CaseResult, HealthyCase, Loss, Recipe, fit
from acceptance_data import Draw, fixed
from acceptance_recipes import by, cosine, decay_weights_only, one_cycle, warm_up
from acceptance_third_loop import Measured, evaluated
from torch import nn, optim
from torch.optim import Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler


class FourthCase(HealthyCase):
    """Healthy only if the loss in eval mode is near the training loss: half of what was learned
    must show there, too.
    """

    def train(self, run: Path, seed: int) -> CaseResult:
        result = super().train(run, seed)
        if result.evaluated is None:
            return result
        half_way = result.end + 0.5 * max(0.0, result.start - result.end)
        most = min(half_way, 1.5 * result.end + 0.3)
        return replace(result, healthy=result.healthy and result.evaluated <= most)


@dataclass(frozen=True)
class Trained:
    """One training; call it with the run's directory and a seed."""

    make: Callable[[], nn.Module]
    draw: Draw
    loss: Loss
    recipe: Recipe

    def __call__(self, place: Path, seed: int) -> Measured:
        model, recipe = self.make(), self.recipe
        draw = fixed(self.draw, recipe.examples) if recipe.examples else self.draw
        random = torch.Generator().manual_seed(seed + 1000)
        shown = draw(random, recipe.examples or 48)
        once = replace(recipe, examples=0)
        losses = Measured(fit(place, seed, model, draw, self.loss, once))
        losses.evaluated = evaluated(model, lambda: self.loss(model, *shown))
        return losses

    def case(self, architecture: str, note: str = "", expected: str = "") -> HealthyCase:
        recipe = self.recipe
        name = f"{recipe.name}, {note}".removesuffix(", ")
        logged = recipe.every
        if callable(logged):
            logged = max(1, recipe.steps // sum(map(logged, range(recipe.steps))))
        kind = HealthyCase if expected else FourthCase
        return kind(architecture, name, recipe.steps, logged, self, expected=expected)


def triangles(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Up and down between a tenth of the rate and the rate, three times."""
    rate = optimizer.param_groups[0]["lr"]
    options = {"step_size_up": steps // 6, "cycle_momentum": False}
    return lr_scheduler.CyclicLR(optimizer, rate / 10, rate, mode="triangular2", **options)


def fading(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Exponential decay to a tenth."""
    return lr_scheduler.ExponentialLR(optimizer, 0.1 ** (1 / steps))


def ramp(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Linear warm-up from a tenth over a fifth of the steps, then constant."""
    return lr_scheduler.LinearLR(optimizer, 0.1, 1.0, steps // 5)


def two_phases(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Five steps of warm-up, then a cosine, chained as PyTorch's own classes."""
    first = lr_scheduler.LinearLR(optimizer, 0.01, 1.0, 5)
    then = lr_scheduler.CosineAnnealingLR(optimizer, steps - 5, eta_min=1e-6)
    return lr_scheduler.SequentialLR(optimizer, [first, then], [5])


def late(step: int) -> bool:
    """Logged from step 30 on, each sixth step."""
    return step >= 30 and step % 6 == 0


def seldom(step: int) -> bool:
    return step in (0, 3, 20, 55)


def dense_then_sparse(step: int) -> bool:
    return step < 5 or step % 15 == 0


BASE = Recipe("", by(optim.Adam, lr=1e-3), steps=60, every=6)


def adam(rate: float = 2e-3, **options: object) -> Recipe:
    return replace(BASE, name=f"Adam {rate:g}", optimizer=by(optim.Adam, lr=rate), **options)


MOMENTUM = replace(
    BASE,
    name="SGD 0.03 momentum 0.9, decay 5e-4, cosine",
    optimizer=by(optim.SGD, lr=0.03, momentum=0.9, weight_decay=5e-4),
    schedule=cosine,
)
BIG = replace(MOMENTUM, name="SGD 0.05 momentum 0.9, batch 64, cosine", batch=64, steps=40, every=4)
HUGE = replace(
    BASE,
    name="SGD 0.1 momentum 0.9, batch 128, two phases",
    optimizer=by(optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4),
    schedule=two_phases,
    batch=128,
    steps=40,
    every=5,
)
CYCLIC = replace(
    BASE,
    name="Nesterov 0.05, triangular rates",
    optimizer=by(optim.SGD, lr=0.05, momentum=0.9, nesterov=True),
    schedule=triangles,
    steps=72,
)
FADING = replace(adam(3e-3), name="Adam 3e-3, exponential decay", schedule=fading)
BETAS = replace(
    BASE,
    name="Adam 1e-3, betas 0.5 and 0.99, each step logged",
    optimizer=by(optim.Adam, lr=1e-3, betas=(0.5, 0.99)),
    every=1,
    steps=40,
)
LATE = replace(
    BASE,
    name="AdamW 2e-3, logged from step 30 on",
    optimizer=by(optim.AdamW, lr=2e-3, weight_decay=0.01),
    every=late,
    steps=72,
)
FEW = replace(
    BASE,
    name="AdamW 2e-3, decay 0.1, four logged steps",
    optimizer=by(optim.AdamW, lr=2e-3, weight_decay=0.1),
    every=seldom,
)
NADAM = replace(
    BASE,
    name="NAdam 2e-3, decoupled decay, steps marked",
    optimizer=by(optim.NAdam, lr=2e-3, weight_decay=0.01, decoupled_weight_decay=True),
    marked=True,
)
RADAM = replace(BASE, name="RAdam 5e-3, marked", optimizer=by(optim.RAdam, lr=5e-3), marked=True)
CENTRED = replace(
    BASE,
    name="RMSprop 3e-4, centered, momentum 0.9",
    optimizer=by(optim.RMSprop, lr=3e-4, centered=True, momentum=0.9, alpha=0.9, eps=1e-3),
)
ADAGRAD = replace(
    BASE, name="Adagrad 0.02, ramp", optimizer=by(optim.Adagrad, lr=0.02), schedule=ramp
)
ADADELTA = replace(
    BASE, name="Adadelta 1, rho 0.95", optimizer=by(optim.Adadelta, lr=1.0, rho=0.95), every=10
)
ADAMAX = replace(
    BASE,
    name="Adamax 4e-3, 4 micro-batches of 4, marked",
    optimizer=by(optim.Adamax, lr=4e-3),
    batch=4,
    micro=4,
    marked=True,
)
PAIRS = replace(adam(2e-3), name="Adam 2e-3, 8 micro-batches of 2", batch=2, micro=8, steps=50)
AMSGRAD = replace(
    BASE,
    name="AMSGrad 2e-3, clipping 0.5, cleared before",
    optimizer=by(optim.Adam, lr=2e-3, amsgrad=True),
    clip=0.5,
    zero="before",
)
AVERAGED = replace(
    BASE,
    name="ASGD 0.1, logged densely at first",
    optimizer=by(optim.ASGD, lr=0.1, t0=30),
    every=dense_then_sparse,
    steps=80,
)
EMA = replace(adam(2e-3), name="Adam 2e-3, EMA 0.95, evaluations", ema=0.95, evaluate=20)
HALF = replace(
    MOMENTUM, name="SGD 0.03 momentum 0.9, bfloat16 autocast", autocast=True, schedule=None
)
WARM = replace(
    BASE,
    name="AdamW 3e-3, decay 0.05 not for norms, warm-up, clipping 1",
    optimizer=decay_weights_only(3e-3, 0.05),
    schedule=partial(warm_up, first=12),
    clip=1.0,
)
PEAK = replace(
    BASE,
    name="AdamW, one cycle to 5e-3",
    optimizer=by(optim.AdamW, lr=1e-3, betas=(0.9, 0.95)),
    schedule=one_cycle(5e-3),
)
EPOCHS = replace(
    adam(2e-3), name="Adam 2e-3, 96 examples in epochs", examples=96, batch=24, evaluate=12
)
KEPT = replace(
    MOMENTUM,
    name="SGD 0.02 momentum 0.95, gradients kept as zeros",
    optimizer=by(optim.SGD, lr=0.02, momentum=0.95),
    schedule=None,
    zero="keep",
)
WHOLE = replace(
    BASE, name="Rprop, one batch of 64", optimizer=by(optim.Rprop, lr=1e-3), examples=64, batch=64
)
MORE = replace(
    adam(1e-3),
    name="Adam 1e-3, inputs and gradients logged",
    watch={"inputs": True, "activation_gradients": True, "samples": 2},
    every=12,
)
