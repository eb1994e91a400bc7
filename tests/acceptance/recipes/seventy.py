"""Recipes of about 70 steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from loops import Recipe
from optimizers import (
    again,
    by,
    cosine,
    decay_weights_only,
    linear_down,
    one_cycle,
    poly,
    stairs,
    warm_up,
)
from torch import optim
from torch.optim import Optimizer

BASE = Recipe("", by(optim.Adam, lr=1e-3), steps=70, every=7, batch=24)


def made(name: str, kind: type[Optimizer], schedule: Any = None, **options: Any) -> Recipe:
    """A recipe; options of the optimizer, and those of `Recipe` that have the same name there."""
    fields = ("steps", "every", "batch", "clip", "micro", "examples", "autocast", "zero", "marked")
    own = {key: options.pop(key) for key in fields if key in options}
    return replace(BASE, name=name, optimizer=by(kind, **options), schedule=schedule, **own)


def adam(rate: float, schedule: Any = cosine, **options: Any) -> Recipe:
    kind = getattr(schedule, "__name__", "constant").replace("_", " ")
    extra = "".join(f", {key} {value}" for key, value in options.items() if key != "every")
    return made(f"Adam {rate:g}, {kind}{extra}", optim.Adam, schedule, lr=rate, **options)


def momentum(rate: float, schedule: Any = cosine, **options: Any) -> Recipe:
    kind = getattr(schedule, "__name__", "constant").replace("_", " ")
    extra = "".join(f", {key} {value}" for key, value in options.items() if key != "every")
    name = f"SGD {rate:g} momentum 0.9, decay 1e-4, {kind}{extra}"
    fixed = {"momentum": 0.9, "weight_decay": 1e-4}
    return made(name, optim.SGD, schedule, lr=rate, **fixed, **options)


PLAIN_SGD = made("SGD 0.1, batch 32, stairs", optim.SGD, stairs, lr=0.1, batch=32)
CLIPPED = made("SGD 0.1, clipping 1, linear", optim.SGD, linear_down, lr=0.1, clip=1.0)
NESTEROV = made(
    "Nesterov 0.04, decay 5e-4, warm-up",
    optim.SGD,
    partial(warm_up, first=8),
    lr=0.04,
    momentum=0.9,
    nesterov=True,
    weight_decay=5e-4,
)
ADAMW = made("AdamW 1e-3, decay 0.05, linear", optim.AdamW, linear_down, lr=1e-3, weight_decay=0.05)
RESTARTS = made("AdamW 2e-3, warm restarts", optim.AdamW, again, lr=2e-3, weight_decay=0.02)
WARM = replace(
    BASE,
    name="AdamW 2e-3, decay 0.1 not for norms, warm-up, clipping 1",
    optimizer=decay_weights_only(2e-3, 0.1),
    schedule=partial(warm_up, first=10),
    clip=1.0,
)
ONE_CYCLE = made(
    "one cycle to 0.1", optim.SGD, one_cycle(0.1), lr=0.01, momentum=0.9, steps=72, every=6
)
SUPER = made("AdamW, one cycle to 4e-3", optim.AdamW, one_cycle(4e-3), lr=1e-3, weight_decay=0.01)
RMSPROP = made("RMSprop 1e-3, stairs", optim.RMSprop, stairs, lr=1e-3)
RMS_MOVING = made(
    "RMSprop 2e-4, momentum 0.9, cosine", optim.RMSprop, cosine, lr=2e-4, momentum=0.9
)
ADAGRAD = made("Adagrad 0.01, batch 32", optim.Adagrad, lr=0.01, batch=32)
NADAM = made("NAdam 1e-3, cosine", optim.NAdam, cosine, lr=1e-3)
SHORT = adam(1e-3, None, batch=12, steps=96, every=8)
EPOCHS = made(
    "AdamW 1e-3, 192 examples in epochs, cosine",
    *(optim.AdamW, cosine),
    lr=1e-3,
    weight_decay=0.05,
    examples=192,
    steps=72,
    every=6,
)
MICRO = made("Adam 1e-3, 3 micro-batches of 8", optim.Adam, lr=1e-3, batch=8, micro=3)
HALF = made("AdamW 2e-3, cosine, bfloat16", optim.AdamW, cosine, lr=2e-3, autocast=True)
DECAYED = made("Adam 1e-3 with L2 1e-4, stairs", optim.Adam, stairs, lr=1e-3, weight_decay=1e-4)
BETAS = made("AdamW 1e-3, betas 0.9 and 0.95, poly", optim.AdamW, poly, lr=1e-3, betas=(0.9, 0.95))
LONGER = replace(SUPER, name=f"{SUPER.name} in 110 steps", steps=110, every=11)
