"""Recipes of about 100 steps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from loops import Recipe
from optimizers import by, cosine, decay_weights_only, milestones, one_cycle, warm_up
from torch import optim

SGD = Recipe("SGD 0.05", by(optim.SGD, lr=0.05))
MOMENTUM = Recipe("SGD 0.02 momentum 0.9", by(optim.SGD, lr=0.02, momentum=0.9), evaluate=25)
NESTEROV = Recipe(
    "Nesterov 0.05, weight decay 5e-4, milestones",
    by(optim.SGD, lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
    milestones,
    steps=120,
    every=20,
)
ADAM = Recipe("Adam 1e-3", by(optim.Adam, lr=1e-3), zero="before")
ADAMW = Recipe(
    "AdamW 1e-3, decay 0.05, cosine", by(optim.AdamW, lr=1e-3, weight_decay=0.05), cosine
)
WARM = Recipe(
    "AdamW 2e-3, warm-up from 0, cosine, clipping 1",
    decay_weights_only(2e-3, 0.05),
    warm_up,
    clip=1.0,
    steps=120,
)
RMSPROP = Recipe("RMSprop 5e-4", by(optim.RMSprop, lr=5e-4), every=5)
ADAGRAD = Recipe("Adagrad 0.01", by(optim.Adagrad, lr=0.01))
ONE_CYCLE = Recipe(
    "one-cycle peak 0.1", by(optim.SGD, lr=0.01, momentum=0.9), one_cycle(0.1), steps=120
)
HIGH_CYCLE = Recipe(
    "one-cycle peak 0.4, batch 32",
    by(optim.SGD, lr=0.01, momentum=0.9, weight_decay=5e-4),
    one_cycle(0.4),
    batch=32,
    every=5,
    steps=80,
)
TINY_BATCH = Recipe("Adam 3e-4, batch 2", by(optim.Adam, lr=3e-4), batch=2, steps=400, every=50)
LARGE_BATCH = Recipe(
    "SGD 0.1 momentum 0.9, batch 64, warm-up",
    by(optim.SGD, lr=0.1, momentum=0.9),
    partial(warm_up, first=10),
    batch=64,
    steps=40,
    every=5,
)
MICRO = Recipe(
    "AdamW 1e-3, 4 micro-batches of 4", by(optim.AdamW, lr=1e-3), micro=4, batch=4, steps=80
)
HALF = Recipe("Adam 1e-3, bfloat16 autocast", by(optim.Adam, lr=1e-3), autocast=True, steps=60)
EMA = Recipe("AdamW 1e-3, EMA 0.99", by(optim.AdamW, lr=1e-3), ema=0.99, evaluate=20)
SMALL_SET = Recipe(
    "Adam 1e-3 on 64 examples", by(optim.Adam, lr=1e-3), examples=64, steps=120, every=1
)
EPOCHS = Recipe(
    "SGD 0.05 momentum 0.9 over 256 examples, evaluations",
    by(optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-4),
    cosine,
    examples=256,
    batch=32,
    evaluate=8,
    steps=64,
    every=8,
)


def slow(name: str, rate: float) -> Recipe:
    return replace(SIXTY, name=name, optimizer=by(optim.Adam, lr=rate))


EIGHTY_8 = ADAM.but("", steps=80, batch=8)
SIXTY = ADAM.but("", steps=60, every=5)
SIXTY_SGD = replace(SIXTY, name="SGD", optimizer=by(optim.SGD, lr=0.02, momentum=0.9))
