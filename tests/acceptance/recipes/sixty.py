"""Recipes of about 60 steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import optimizers as o
from loops import Recipe
from torch import optim
from torch.optim import SGD, AdamW


def late(step: int) -> bool:
    """Logged from step 30 on, each sixth step."""
    return step >= 30 and step % 6 == 0


def seldom(step: int) -> bool:
    return step in (0, 3, 20, 55)


def dense_then_sparse(step: int) -> bool:
    return step < 5 or step % 15 == 0


BASE = Recipe("", o.ADAM, steps=60, every=6)


def adam(rate: float = 2e-3, **options: object) -> Recipe:
    return BASE.by(f"Adam {rate:g}", optim.Adam, lr=rate, **options)


def small(recipe: Recipe, batch: int = 8, **options: object) -> Recipe:
    """For larger networks; the batch is named."""
    return replace(recipe, name=f"{recipe.name}, batch {batch}", batch=batch, **options)


DECAY = {"momentum": 0.9, "weight_decay": 5e-4}
MOMENTUM = BASE.by("SGD 0.03 momentum 0.9, decay 5e-4, cosine", SGD, o.cosine, lr=0.03, **DECAY)
BIG = replace(MOMENTUM, name="SGD 0.05 momentum 0.9, batch 64, cosine", batch=64, steps=40, every=4)
HUGE = replace(
    BASE.by("SGD 0.1, batch 128", SGD, o.two_phases, lr=0.1, momentum=0.9, weight_decay=1e-4),
    **{"batch": 128, "steps": 40, "every": 5},
)
CYCLIC = BASE.by(
    "Nesterov 0.05, triangular rates",
    SGD,
    o.triangles,
    lr=0.05,
    momentum=0.9,
    nesterov=True,
    steps=72,
)
FADING = adam(3e-3, schedule=o.fading)
PAIRS = adam(2e-3, batch=2, micro=8, steps=50)
AMSGRAD = adam(2e-3, amsgrad=True, clip=0.5, zero="before")
EMA = adam(2e-3, ema=0.95, evaluate=20)
EPOCHS = adam(2e-3, examples=96, batch=24, evaluate=12)
LATE = BASE.by("AdamW, logged late", AdamW, lr=2e-3, weight_decay=0.01, every=late, steps=72)
FEW = BASE.by("AdamW, four logged steps", AdamW, lr=2e-3, weight_decay=0.1, every=seldom)
PEAK = BASE.by("AdamW, one cycle to 5e-3", AdamW, o.one_cycle(5e-3), lr=1e-3, betas=(0.9, 0.95))
WARM = BASE.but(
    "AdamW 3e-3, decay 0.05 not for norms, warm-up, clipping 1",
    optimizer=o.decay_weights_only(3e-3, 0.05),
    schedule=partial(o.warm_up, first=12),
    clip=1.0,
)
DECOUPLED = {"weight_decay": 0.01, "decoupled_weight_decay": True}
NADAM = BASE.by("NAdam 2e-3, steps marked", optim.NAdam, lr=2e-3, **DECOUPLED, marked=True)
CENTER = {"centered": True, "momentum": 0.9, "alpha": 0.9, "eps": 1e-3}
CENTRED = BASE.by("RMSprop 3e-4, centered, momentum 0.9", optim.RMSprop, lr=3e-4, **CENTER)
ADAGRAD = BASE.by("Adagrad 0.02, ramp", optim.Adagrad, o.ramp, lr=0.02)
ADADELTA = BASE.by("Adadelta 1, rho 0.95", optim.Adadelta, lr=1.0, rho=0.95, every=10)
ADAMAX = BASE.by("Adamax 4e-3, marked", optim.Adamax, lr=4e-3, batch=4, micro=4, marked=True)
AVERAGED = BASE.by("ASGD 0.1", optim.ASGD, lr=0.1, t0=30, every=dense_then_sparse, steps=80)
