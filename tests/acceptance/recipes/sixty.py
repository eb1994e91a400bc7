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


def dense_then_sparse(step: int) -> bool:
    return step < 5 or step % 15 == 0


BASE = Recipe("", o.ADAM, steps=60, every=6)


def adam(rate: float = 2e-3, **options: object) -> Recipe:
    return BASE.by(f"Adam {rate:g}", optim.Adam, lr=rate, **options)


def small(recipe: Recipe, batch: int = 8, **options: object) -> Recipe:
    """For larger networks; the batch is named."""
    return replace(recipe, name=f"{recipe.name}, batch {batch}", batch=batch, **options)


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
AMSGRAD = adam(2e-3, amsgrad=True, clip=0.5, zero="before")
LATE = BASE.by("AdamW, logged late", AdamW, lr=2e-3, weight_decay=0.01, every=late, steps=72)
WARM = BASE.but(
    "AdamW 3e-3, decay 0.05 not for norms, warm-up, clipping 1",
    optimizer=o.decay_weights_only(3e-3, 0.05),
    schedule=partial(o.warm_up, first=12),
    clip=1.0,
)
ADAGRAD = BASE.by("Adagrad 0.02, ramp", optim.Adagrad, o.ramp, lr=0.02)
ADAMAX = BASE.by("Adamax 4e-3, marked", optim.Adamax, lr=4e-3, batch=4, micro=4, marked=True)
AVERAGED = BASE.by("ASGD 0.1", optim.ASGD, lr=0.1, t0=30, every=dense_then_sparse, steps=80)
