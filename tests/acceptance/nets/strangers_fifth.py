"""What a fifth set of faults, which is gone, has left to later ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import data
import torch
from cases.healthy.strangers_maps import bce
from data import Draw
from nets import strangers as nets
from nets.classifiers import unit
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional


def near(discs: Tensor, size: float) -> Tensor:
    """1 where a disc's centre is nearer than ``size``, [N, 1, 32, 32]."""
    along = torch.arange(32.0)
    far = (along - discs[:, :1])[:, None].square() + (along - discs[:, 1:2])[:, :, None].square()
    return (far.sqrt() < size).float()[:, None]


def only_zeros(generator: Generator, count: int) -> tuple[Tensor, ...]:
    images, labels = data.digits(generator, 30 * count)
    return images[labels == 0][:count], labels[labels == 0][:count]


def in_order(draw: Draw, key: Callable[[tuple[Tensor, ...]], Tensor], examples: int = 320) -> Draw:
    """A list sorted by ``key``; the loader does not shuffle."""
    kept: list[tuple[Tensor, ...]] = []
    place = 0

    def again(_: Generator, count: int) -> tuple[Tensor, ...]:
        nonlocal place
        if not kept:
            found = draw(Generator().manual_seed(3), examples)
            kept.append(tuple(part[key(found).argsort(stable=True)] for part in found))
        rows, place = (place + torch.arange(count)) % examples, place + count
        return tuple(part[rows] for part in kept[0])

    return again


def mlp(*widths: int, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in itertools.pairwise(widths):
        layers += [nn.Linear(into, out), act()]
    return nn.Sequential(*layers[:-1])


def changed_weights(model: nn.Module, change: Callable[[Tensor], object]) -> nn.Module:
    for parameter in model.parameters():
        change(parameter.data)
    return model


def fcn() -> nn.Module:
    """VGG and three transposed convolutions."""
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32), (32, 64)):
        layers += [unit(into, out, norm=None), nn.MaxPool2d(2)]
    for into, out in ((64, 32), (32, 16), (16, 1)):
        layers += [nn.ConvTranspose2d(into, out, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def enlarger() -> nn.Module:
    """SRResNet."""
    layers = [nn.Conv2d(3, 24, 9, 1, 4), nn.PReLU(), nets.attended(), nets.attended()]
    return nn.Sequential(*layers, nn.Conv2d(24, 12, 3, 1, 1), nn.PixelShuffle(2))


def through_code() -> nn.Module:
    down = [nn.Conv2d(3, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 16, 4, 2, 1), nn.ReLU()]
    up = [nn.ConvTranspose2d(16, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*down, *up)


def divergence(mean: Tensor, log: Tensor) -> Tensor:
    return -0.5 * (1 + log - mean.square() - log.exp())


def error(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return functional.mse_loss(model(x), y)


def said(found: Tensor, truth: float, kind: Callable[..., Tensor] = bce) -> Tensor:
    return kind(found, torch.full_like(found, truth))


def ends(make: Callable[[], nn.Module], *layers: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(make(), *layers)


def sgd(rate: float, momentum: float = 0.0) -> Callable[[nn.Module], optim.Optimizer]:
    return by(optim.SGD, lr=rate, momentum=momentum)


def adam(rate: float) -> Callable[[nn.Module], optim.Optimizer]:
    return by(optim.Adam, lr=rate)
