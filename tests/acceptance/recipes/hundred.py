"""Recipes of about 100 steps."""

from __future__ import annotations

from functools import partial

import optimizers as o
from loops import Recipe
from torch import optim

BASE = Recipe("", o.ADAM)
MOMENTUM = BASE.by("SGD 0.02 momentum 0.9", optim.SGD, lr=0.02, momentum=0.9, evaluate=25)
ADAM = BASE.but("Adam 1e-3", zero="before")
ADAMW = BASE.by("AdamW 1e-3, decay 0.05, cosine", optim.AdamW, o.cosine, lr=1e-3, weight_decay=0.05)
WARM = BASE.but(
    "AdamW 2e-3, warm-up from 0, cosine, clipping 1",
    optimizer=o.decay_weights_only(2e-3, 0.05),
    schedule=o.warm_up,
    clip=1.0,
    steps=120,
)
ONE_CYCLE = BASE.by(
    "one-cycle peak 0.1", optim.SGD, o.one_cycle(0.1), lr=0.01, momentum=0.9, steps=120
)
HIGH_CYCLE = BASE.by(
    "one-cycle peak 0.4, batch 32",
    *(optim.SGD, o.one_cycle(0.4)),
    **{"lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4, "batch": 32, "every": 5, "steps": 80},
)
TINY_BATCH = BASE.by("Adam 3e-4, batch 2", optim.Adam, lr=3e-4, batch=2, steps=400, every=50)
LARGE_BATCH = BASE.by(
    "SGD 0.1 momentum 0.9, batch 64, warm-up",
    *(optim.SGD, partial(o.warm_up, first=10)),
    **{"lr": 0.1, "momentum": 0.9, "batch": 64, "steps": 40, "every": 5},
)
HALF = BASE.but("Adam 1e-3, bfloat16 autocast", autocast=True, steps=60)
EMA = BASE.by("AdamW 1e-3, EMA 0.99", optim.AdamW, lr=1e-3, ema=0.99, evaluate=20)
SMALL_SET = BASE.but("Adam 1e-3 on 64 examples", examples=64, steps=120, every=1)
EIGHTY_8 = ADAM.but("", steps=80, batch=8)
SIXTY = ADAM.but("", steps=60, every=5)
