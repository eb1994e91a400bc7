"""What the planted faults share."""

from __future__ import annotations

from collections.abc import Callable

from data import Draw, P, photos
from loops import Case, Hook, Recipe, Task
from losses import named
from nets.classifiers import sweep_net, with_norm, without_norm
from optimizers import ADAM
from torch import nn
from torch.optim import Optimizer

COLOUR = photos(48, "own")


def normed(draw: Draw = P, **recipes: Recipe) -> list[Case]:
    """Cases of a small network with BatchNorm, which names the classes of photographs."""
    return Task("encoder CNN", with_norm, draw, named).cases(**recipes)


def bare(draw: Draw = P, **recipes: Recipe) -> list[Case]:
    """The same without BatchNorm."""
    return Task("encoder CNN, no norm", without_norm, draw, named).cases(**recipes)


def swept(
    name: str,
    make: Callable[[], nn.Module] = sweep_net,
    draw: Draw = COLOUR,
    optimizer: Callable[[nn.Module], Optimizer] = ADAM,
    expected: str = "",
    **options: object,
) -> list[Case]:
    """160 steps with one thing wrong."""
    recipe = Recipe(name, optimizer, **({"steps": 160, "every": 16, "zero": "before"} | options))
    return Task("plain CNN", make, draw, named).faults(expected, **{name: recipe})


def each(
    model: nn.Module, kind: type[nn.Module], change: Callable[[nn.Module], object]
) -> nn.Module:
    """Change every module of a kind."""
    for module in model.modules():
        if isinstance(module, kind):
            change(module)
    return model


def at(step: int, change: Callable[[nn.Module, Optimizer], object]) -> Hook:
    """A hook that does something at one step."""
    return lambda number, model, optimizer: number == step and change(model, optimizer)
