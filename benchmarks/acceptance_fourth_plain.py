"""Classifiers of the fourth set with unusual norms, activations, pooling or initializations."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from acceptance_classic import head, unit
from acceptance_data import photos
from acceptance_fourth_blocks import Coordinates
from torch import Generator, Tensor, nn
from torch.nn import functional


class Function(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def convs(
    norm: Callable[[int], nn.Module] | None,
    act: Callable[[], nn.Module],
    widths: tuple[int, ...] = (24, 48, 64),
    grow: int = 1,
) -> nn.Module:
    """Three strided convolutions; ``grow`` is how many channels an activation makes of one."""
    layers: list[nn.Module] = []
    into = 3
    for out in widths:
        layers += [unit(into, out, stride=2, norm=norm, act=act)]
        into = out * grow
    return nn.Sequential(*layers, *head(into, 8))


class Standardized(nn.Conv2d):
    """Weight standardization: mean 0 and deviation 1 per kernel before it is used."""

    def forward(self, x: Tensor) -> Tensor:
        flat = self.weight.flatten(1)
        spread = flat.std(1, keepdim=True) * math.sqrt(flat.shape[1])
        weight = ((flat - flat.mean(1, True)) / (spread + 1e-5)).view_as(self.weight)
        return functional.conv2d(x, weight, self.bias, self.stride, self.padding)


def standardized() -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 64)):
        layers += [Standardized(into, out, 3, 2, 1), nn.GroupNorm(8, out), nn.ReLU()]
    return nn.Sequential(*layers, *head(64, 8))


class Response(nn.Module):
    """Filter response normalization with its learned threshold."""

    def __init__(self, width: int) -> None:
        super().__init__()
        shape = (1, width, 1, 1)
        self.scale, self.shift = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.least = nn.Parameter(torch.full(shape, -1.0))

    def forward(self, x: Tensor) -> Tensor:
        x = x * (x.square().mean((2, 3), keepdim=True) + 1e-6).rsqrt()
        return torch.maximum(self.scale * x + self.shift, self.least)


class Switchable(nn.Module):
    """A learned mixture of Instance-, Layer- and BatchNorm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(
            [nn.InstanceNorm2d(width), nn.GroupNorm(1, width), nn.BatchNorm2d(width)]
        )
        self.shares = nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        return sum(s * n(x) for s, n in zip(self.shares.softmax(0), self.norms, strict=True))


class Snake(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.sin().square()


def both_signs() -> nn.Module:
    return Function(lambda x: torch.cat([x, -x], 1).relu())


def squared_relu() -> nn.Module:
    return Function(lambda x: 0.9 * x.relu().square() - 0.45)


def max_feature() -> nn.Module:
    """LightCNN: the larger one of two halves of the channels."""
    layers: list[nn.Module] = []
    for into, out in ((3, 48), (24, 96), (48, 128)):
        layers += [nn.Conv2d(into, out, 3, 2, 1)]
        layers += [Function(lambda x: torch.maximum(*x.chunk(2, 1))), nn.BatchNorm2d(out // 2)]
    return nn.Sequential(*layers, *head(64, 8, 0.2))


def local_response() -> nn.Module:
    """AlexNet as published: local response normalization, overlapping pools, biases of 1."""
    layers: list[nn.Module] = []
    for number, (into, out, size) in enumerate(((3, 32, 5), (32, 48, 5), (48, 64, 3))):
        conv = nn.Conv2d(into, out, size, padding=size // 2)
        nn.init.kaiming_normal_(conv.weight)
        nn.init.constant_(conv.bias, 0.1 * (number > 0))
        layers += [conv, nn.ReLU(), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*layers, *head(64, 8, 0.3))


def norm_last() -> nn.Module:
    """BatchNorm after ReLU, as some write it."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 48), (48, 64)):
        layers += [nn.Conv2d(into, out, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(out)]
        layers += [nn.AvgPool2d(2)]
    return nn.Sequential(*layers, *head(64, 8))


def isometric() -> nn.Module:
    """14 tanh layers whose kernels are orthogonal in their centre and 0 around it."""
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1), nn.Tanh()]
    for _ in range(14):
        conv = nn.Conv2d(32, 32, 3, padding=1)
        nn.init.dirac_(conv.weight)
        turn = torch.nn.init.orthogonal_(torch.empty(32, 32), 1.05)
        conv.weight.data[:, :, 1, 1] = turn
        nn.init.zeros_(conv.bias)
        layers += [conv, nn.Tanh()]
    return nn.Sequential(*layers, *head(32, 8))


def unit_variance() -> nn.Module:
    """LSUV: six ReLU layers, each scaled so that its output on a batch has deviation 1."""
    layers: list[nn.Module] = [unit(3, 32, stride=2, norm=None)]
    layers += [unit(32, 32, norm=None) for _ in range(5)]
    with torch.no_grad():
        x = photos(32)(Generator().manual_seed(4), 32)[0]
        for layer in layers:
            conv = layer[0]
            nn.init.orthogonal_(conv.weight)
            nn.init.zeros_(conv.bias)
            conv.weight.div_(conv(x).std())
            x = layer(x)
    return nn.Sequential(*layers, *head(32, 8))


class ReZero(nn.Module):
    """x + a · f(x) without norm; a begins at 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.share = nn.Parameter(torch.zeros(()))
        self.body = nn.Sequential(unit(width, width, norm=None), unit(width, width, norm=None))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.share * self.body(x)


def re_zero() -> nn.Module:
    blocks = [ReZero(32) for _ in range(5)]
    return nn.Sequential(unit(3, 32, stride=2, norm=None), *blocks, *head(32, 8))


class Fixup(nn.Module):
    """Fixup: scalar biases, a scale, and a last convolution that begins at 0."""

    def __init__(self, width: int, blocks: int = 4) -> None:
        super().__init__()
        self.first, self.last = (nn.Conv2d(width, width, 3, 1, 1, bias=False) for _ in range(2))
        nn.init.kaiming_normal_(self.first.weight)
        self.first.weight.data.mul_(blocks**-0.5)
        nn.init.zeros_(self.last.weight)
        self.biases = nn.ParameterList(torch.zeros(1) for _ in range(4))
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        one, two, three, four = self.biases
        y = (self.first(x + one) + two).relu()
        return (x + self.last(y + three) * self.scale + four).relu()


def fixup() -> nn.Module:
    last = nn.Linear(48, 8)
    nn.init.zeros_(last.weight)
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    stem = [unit(3, 48, stride=2, norm=None), nn.MaxPool2d(2)]
    return nn.Sequential(*stem, *(Fixup(48) for _ in range(4)), *pooled, last)


def bag_net() -> nn.Module:
    """BagNet: only one 3 × 3 per scale, no padding, logits averaged over places."""
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 48), (48, 64)):
        conv = nn.Conv2d(into, out, 3, 2, bias=False)
        layers += [conv, nn.BatchNorm2d(out), nn.ReLU(), unit(out, out, 1)]
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Conv2d(64, 8, 1), *pooled)


class PyramidPool(nn.Module):
    """SPP: the maximum over 1, 4 and 16 fields, joined."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([functional.adaptive_max_pool2d(x, n).flatten(1) for n in (1, 2, 4)], 1)


def spatial_pyramid() -> nn.Module:
    layers = [unit(3, 24, stride=2), unit(24, 48, stride=2), PyramidPool()]
    return nn.Sequential(*layers, nn.Linear(48 * 21, 64), nn.ReLU(), nn.Linear(64, 8))


class Bilinear(nn.Module):
    """Bilinear pooling: products of channels, signed square root, unit length."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(unit(3, 24, stride=2), unit(24, 32, stride=2))
        self.last = nn.Linear(32 * 32, 8)

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x).flatten(2)
        both = (y @ y.transpose(1, 2) / y.shape[2]).flatten(1)
        return self.last(30 * functional.normalize(both.sign() * (both.abs() + 1e-6).sqrt()))


class Wavelets(nn.Module):
    """Fixed Haar wavelets in place of strides, learned 3 × 3 between them."""

    def __init__(self) -> None:
        super().__init__()
        signs = torch.tensor([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
        self.register_buffer("haar", signs.view(4, 1, 2, 2) / 2)
        self.first, self.second = unit(12, 24), unit(96, 48)
        self.last = nn.Sequential(*head(48, 8))

    def split(self, x: Tensor) -> Tensor:
        width = x.shape[1]
        return functional.conv2d(x, self.haar.repeat(width, 1, 1, 1), None, 2, 0, 1, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.second(self.split(self.first(self.split(x)))))


def coordinates() -> nn.Module:
    """Tells where the disc is."""
    layers = [Coordinates(3, 24), Coordinates(24, 48), Coordinates(48, 64)]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, 3))
