"""Recipes of about 60 steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from loops import Recipe
from optimizers import (
    by,
    cosine,
    decay_weights_only,
    fading,
    one_cycle,
    ramp,
    triangles,
    two_phases,
    warm_up,
)
from torch import optim


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


def small(recipe: Recipe, batch: int = 8, **options: object) -> Recipe:
    """For larger networks; the batch is named."""
    return replace(recipe, name=f"{recipe.name}, batch {batch}", batch=batch, **options)
