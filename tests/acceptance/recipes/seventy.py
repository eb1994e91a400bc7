"""Recipes of about 70 steps."""

from __future__ import annotations

from functools import partial
from typing import Any

import optimizers as o
from loops import Recipe
from torch import optim
from torch.optim import SGD, AdamW

BASE = Recipe("", o.ADAM, steps=70, every=7, batch=24)


def adam(rate: float, schedule: Any = o.cosine, **options: Any) -> Recipe:
    return BASE.by(
        _named(f"Adam {rate:g}", schedule, options), optim.Adam, schedule, lr=rate, **options
    )


def momentum(rate: float, schedule: Any = o.cosine, **options: Any) -> Recipe:
    name = _named(f"SGD {rate:g} momentum 0.9, decay 1e-4", schedule, options)
    return BASE.by(name, SGD, schedule, lr=rate, momentum=0.9, weight_decay=1e-4, **options)


def _named(text: str, schedule: Any, options: dict[str, Any]) -> str:
    kind = getattr(schedule, "__name__", "constant").replace("_", " ")
    return f"{text}, {kind}" + "".join(f", {key} {value}" for key, value in options.items())


PLAIN_SGD = BASE.by("SGD 0.1, batch 32, stairs", SGD, o.stairs, lr=0.1, batch=32)
CLIPPED = BASE.by("SGD 0.1, clipping 1, linear", SGD, o.linear_down, lr=0.1, clip=1.0)
NESTEROV = BASE.by(
    "Nesterov 0.04, decay 5e-4, warm-up",
    *(SGD, partial(o.warm_up, first=8)),
    **{"lr": 0.04, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
)
ADAMW = BASE.by("AdamW 1e-3, decay 0.05, linear", AdamW, o.linear_down, lr=1e-3, weight_decay=0.05)
RESTARTS = BASE.by("AdamW 2e-3, warm restarts", AdamW, o.again, lr=2e-3, weight_decay=0.02)
WARM = BASE.but(
    "AdamW 2e-3, decay 0.1 not for norms, warm-up, clipping 1",
    optimizer=o.decay_weights_only(2e-3, 0.1),
    schedule=partial(o.warm_up, first=10),
    clip=1.0,
)
CYCLE = {"lr": 0.01, "momentum": 0.9, "steps": 72, "every": 6}
ONE_CYCLE = BASE.by("one cycle to 0.1", SGD, o.one_cycle(0.1), **CYCLE)
SUPER = BASE.by("AdamW, one cycle to 4e-3", AdamW, o.one_cycle(4e-3), lr=1e-3, weight_decay=0.01)
RMSPROP = BASE.by("RMSprop 1e-3, stairs", optim.RMSprop, o.stairs, lr=1e-3)
RMS_MOVING = BASE.by("RMSprop 2e-4, cosine", optim.RMSprop, o.cosine, lr=2e-4, momentum=0.9)
ADAGRAD = BASE.by("Adagrad 0.01, batch 32", optim.Adagrad, lr=0.01, batch=32)
NADAM = BASE.by("NAdam 1e-3, cosine", optim.NAdam, o.cosine, lr=1e-3)
DECAY = {"lr": 1e-3, "weight_decay": 0.05, "examples": 192, "steps": 72, "every": 6}
EPOCHS = BASE.by("AdamW 1e-3, 192 examples in epochs, cosine", AdamW, o.cosine, **DECAY)
MICRO = BASE.by("Adam 1e-3, 3 micro-batches of 8", optim.Adam, lr=1e-3, batch=8, micro=3)
HALF = BASE.by("AdamW 2e-3, cosine, bfloat16", AdamW, o.cosine, lr=2e-3, autocast=True)
DECAYED = BASE.by("Adam 1e-3, L2 1e-4, stairs", optim.Adam, o.stairs, lr=1e-3, weight_decay=1e-4)
BETAS = BASE.by("AdamW 1e-3, betas 0.9 and 0.95", AdamW, o.poly, lr=1e-3, betas=(0.9, 0.95))
