"""Networks and helpers of the trainings whose faults were written without knowing the checks."""

from __future__ import annotations

from collections.abc import Callable

from data import Draw, P
from loops import Case, Loss, Recipe, Run, Task
from losses import named
from nets.classifiers import Function
from optimizers import ADAM, Optimizer
from torch import Generator, Tensor, nn


def wrong(
    name: str,
    kinds: str,
    words: str,
    architecture: str,
    make: Callable[[], nn.Module],
    draw: Draw = P,
    loss: Loss = named,
    optimizer: Callable[[nn.Module], Optimizer] = ADAM,
    **options: object,
) -> list[Case]:
    """96 steps with the fault that ``words`` tell, whose cause each of ``kinds`` names."""
    recipe = Recipe(words, optimizer, **({"steps": 96, "every": 8, "zero": "before"} | options))
    return Task(architecture, make, draw, loss).faults(kinds, **{name: recipe})


def loop(name: str, kinds: str, words: str, architecture: str, run: Run, *steps: int) -> list[Case]:
    """The same of a loop of its own."""
    return [Case(name, architecture, words, *steps, run, kinds)]


def then(net: nn.Module, function: Callable[[Tensor], Tensor]) -> nn.Module:
    return nn.Sequential(net, Function(function))


def relabelled(draw: Draw, change: Callable[[Tensor], Tensor]) -> Draw:
    """``change`` is applied to the labels or masks."""

    def again(generator: Generator, count: int) -> tuple[Tensor, ...]:
        images, labels, *rest = draw(generator, count)
        return images, change(labels), *rest

    return again
