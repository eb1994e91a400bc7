"""How the trainings of the cases are optimized, and how a case is made of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import losses
import optimizers as o
from data import Draw, P
from loops import Case, Hook, Loss, Recipe, Run, Task
from torch import nn, optim
from torch.optim import Optimizer

SHORT = {"steps": 80, "every": 8}
MEDIUM = {"steps": 150, "every": 12}
LONG = {"steps": 182, "every": 13}
LONGER = {"steps": 195, "every": 13}
PLAY = {"steps": 200, "every": 16, "batch": 64}
FEW = {"steps": 104, "every": 8, "batch": 8}
MANY = {"batch": 32}
ROWS = MEDIUM | {"batch": 64}

ADAMW = {"kind": optim.AdamW, "weight_decay": 0.01}
DECAY = {"kind": optim.AdamW, "weight_decay": 0.05}
MAE = {"betas": (0.9, 0.95)} | DECAY
NANO = {"kind": optim.AdamW, "betas": (0.9, 0.95), "weight_decay": 0.1, "clip": 1.0}
NESTEROV = {"kind": optim.SGD, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4}

FLAT = [1] * 4
"""One block in each of four stages."""
BASE = Recipe("", o.ADAM, steps=96, every=8, zero="before")


def how(
    lr: float, schedule: Any = None, note: str = "", kind: Any = optim.Adam, **options: Any
) -> Recipe:
    """96 steps, of which each eighth is logged; options of the optimizer, or those of `Recipe`."""
    if not isinstance(kind, type):  # makes an optimizer of a model
        return BASE.but(note, optimizer=kind, schedule=schedule, **options)
    text = ", ".join(filter(None, (f"{kind.__name__} {lr:g}", note)))
    return BASE.by(text, kind, schedule, lr=lr, **options)


FIT = partial(how, steps=120, every=10)
SGD = partial(FIT, kind=optim.SGD, momentum=0.9)


def sgd(rate: float, momentum: float = 0.0) -> Callable[[nn.Module], Optimizer]:
    return o.by(optim.SGD, lr=rate, momentum=momentum)


def adam(rate: float) -> Callable[[nn.Module], Optimizer]:
    return o.by(optim.Adam, lr=rate)


def one(name: str, net: Any, draw: Draw, loss: Loss, recipe: Recipe, text: str) -> list[Case]:
    """A healthy training; ``text`` names the network."""
    return Task(text, net, draw, loss).cases(**{name: recipe})


def wrong(
    name: str,
    kinds: str,
    words: str,
    architecture: str,
    make: Callable[[], nn.Module],
    draw: Draw = P,
    loss: Loss = losses.named,
    optimizer: Callable[[nn.Module], Optimizer] = o.ADAM,
    **options: object,
) -> list[Case]:
    """96 steps with the fault that ``words`` tell, whose cause each of ``kinds`` names."""
    recipe = Recipe(words, optimizer, **({"steps": 96, "every": 8, "zero": "before"} | options))
    return Task(architecture, make, draw, loss).faults(kinds, **{name: recipe})


bad = partial(wrong, steps=120, every=10)


def loop(name: str, kinds: str, words: str, architecture: str, run: Run, *steps: int) -> list[Case]:
    """The same with a loop of its own."""
    return [Case(name, architecture, words, *steps, run, kinds)]


def at(step: int, change: Callable[[nn.Module, Optimizer], object]) -> Hook:
    """A hook that does something at one step."""
    return lambda number, model, optimizer: number == step and change(model, optimizer)
