"""Convolutional classifiers of the acceptance trainings: the branched and the small ones."""

from __future__ import annotations

from collections.abc import Callable

import torch
from acceptance_classic import Squeeze, head, unit
from torch import Tensor, nn
from torch.nn import functional


class Branches(nn.Module):
    """Several modules on the same input, their outputs side by side."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Add(nn.Module):
    """x + f(x), with f dropped at random in training mode if ``survive`` is below 1."""

    def __init__(self, *body: nn.Module, survive: float = 1.0) -> None:
        super().__init__()
        self.body, self.survive = nn.Sequential(*body), survive

    def forward(self, x: Tensor) -> Tensor:
        y = self.body(x)
        if self.training and self.survive < 1:
            kept = torch.rand(len(x), *[1] * (x.ndim - 1)) < self.survive
            y = y * kept / self.survive
        return x + y


def inception_block(into: int, a: int, b: int, c: int, d: int) -> nn.Module:
    return Branches(
        unit(into, a, 1),
        nn.Sequential(unit(into, b // 2, 1), unit(b // 2, b)),
        nn.Sequential(unit(into, c // 2, 1), unit(c // 2, c, 5)),
        nn.Sequential(nn.MaxPool2d(3, 1, 1), unit(into, d, 1)),
    )


class Inception(nn.Module):
    """Two Inception blocks and, in training mode, an auxiliary head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 24), nn.MaxPool2d(2))
        self.first = inception_block(24, 16, 24, 8, 8)
        self.second = inception_block(56, 24, 32, 8, 8)
        self.extra = nn.Sequential(*head(56, 8))
        self.head = nn.Sequential(*head(72, 8, 0.2))

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        x = self.first(self.stem(x))
        y = self.head(self.second(functional.max_pool2d(x, 2)))
        return (y, self.extra(x)) if self.training else y


def fire(into: int, narrow: int, wide: int) -> nn.Module:
    spread = Branches(unit(narrow, wide, 1, norm=None), unit(narrow, wide, 3, norm=None))
    return nn.Sequential(unit(into, narrow, 1, norm=None), spread)


def squeezenet() -> nn.Module:
    layers = [unit(3, 32, norm=None), nn.MaxPool2d(2), fire(32, 8, 24), fire(48, 8, 24)]
    layers += [nn.MaxPool2d(2), fire(48, 16, 32), nn.Dropout(0.2), nn.Conv2d(64, 8, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def separable(into: int, out: int, stride: int = 1) -> list[nn.Module]:
    return [unit(into, into, 3, stride, groups=into), unit(into, out, 1)]


def mobilenet_v1() -> nn.Module:
    layers = [unit(3, 24), *separable(24, 48, 2), *separable(48, 48), *separable(48, 96, 2)]
    return nn.Sequential(*layers, *separable(96, 96), *head(96, 8))


def inverted(
    into: int,
    out: int,
    stride: int = 1,
    act: Callable[[], nn.Module] = nn.ReLU6,
    squeeze: bool = False,
    size: int = 3,
    survive: float = 1.0,
) -> nn.Module:
    """MobileNet's inverted residual: expand four times, depthwise, project."""
    wide = 4 * into
    gate = nn.Hardsigmoid if act is nn.Hardswish else nn.Sigmoid
    steps = [unit(into, wide, 1, act=act), unit(wide, wide, size, stride, act=act, groups=wide)]
    steps += [Squeeze(wide, 8, gate)] if squeeze else []
    steps += [nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out)]
    return Add(*steps, survive=survive) if stride == 1 and into == out else nn.Sequential(*steps)


def mobilenet_v2() -> nn.Module:
    layers = [unit(3, 16, act=nn.ReLU6), inverted(16, 16), inverted(16, 24, 2), inverted(24, 24)]
    return nn.Sequential(*layers, inverted(24, 32, 2), unit(32, 96, 1), *head(96, 8, 0.1))


def mobilenet_v3() -> nn.Module:
    act = nn.Hardswish
    layers = [unit(3, 16, 3, 1, act=act), inverted(16, 16, 1, nn.ReLU, True)]
    layers += [inverted(16, 24, 2, act, True, 5), inverted(24, 24, 1, act, True, 5)]
    return nn.Sequential(*layers, unit(24, 96, 1, act=act), *head(96, 8))


def efficientnet() -> nn.Module:
    act = nn.SiLU
    layers = [unit(3, 16, act=act), inverted(16, 16, 1, act, True, 3, 0.9)]
    layers += [inverted(16, 24, 2, act, True), inverted(24, 24, 1, act, True, 5, 0.8)]
    return nn.Sequential(*layers, inverted(24, 40, 2, act, True), *head(40, 8, 0.2))


class Shuffle(nn.Module):
    """Interleave the channels of two groups."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)


class Split(nn.Module):
    """ShuffleNet v2's block: half of the channels pass, half are convolved."""

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        deep = nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False)
        self.body = nn.Sequential(
            unit(half, half, 1), deep, nn.BatchNorm2d(half), unit(half, half, 1)
        )
        self.shuffle = Shuffle()

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, 1)
        return self.shuffle(torch.cat([left, self.body(right)], 1))


def shufflenet() -> nn.Module:
    layers = [unit(3, 24), nn.MaxPool2d(3, 2, 1), Split(24), Split(24), unit(24, 48, stride=2)]
    return nn.Sequential(*layers, Split(48), Split(48), unit(48, 96, 1), *head(96, 8))


class Ghost(nn.Module):
    """Half of the maps from a convolution, the others from a depthwise one of those."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.main, self.cheap = unit(into, out // 2, 1), unit(out // 2, out // 2, groups=out // 2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.main(x)
        return torch.cat([x, self.cheap(x)], 1)


def ghostnet() -> nn.Module:
    layers = [unit(3, 16), Ghost(16, 32), nn.MaxPool2d(2), Ghost(32, 64), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, Ghost(64, 96), *head(96, 8))


def regnet() -> nn.Module:
    def block(width: int) -> nn.Module:
        last = [nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)]
        return Add(unit(width, width, 1), unit(width, width, groups=width // 8), *last)

    layers = [unit(3, 24), block(24), nn.ReLU(), unit(24, 48, stride=2), block(48), nn.ReLU()]
    layers += [block(48), nn.ReLU(), unit(48, 80, stride=2), block(80), nn.ReLU()]
    return nn.Sequential(*layers, *head(80, 8))


def xception() -> nn.Module:
    def deep(into: int, out: int) -> list[nn.Module]:
        first = nn.Conv2d(into, into, 3, padding=1, groups=into, bias=False)
        return [nn.ReLU(), first, nn.Conv2d(into, out, 1, bias=False), nn.BatchNorm2d(out)]

    layers = [unit(3, 32), *deep(32, 48), nn.MaxPool2d(3, 2, 1), Add(*deep(48, 48), *deep(48, 48))]
    layers += [*deep(48, 64), nn.MaxPool2d(3, 2, 1), Add(*deep(64, 64)), nn.ReLU()]
    return nn.Sequential(*layers, *head(64, 8))


class ChannelNorm(nn.Module):
    """LayerNorm over the channels of [N, C, H, W]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)


class Gain(nn.Module):
    """ConvNeXt's layer scale."""

    def __init__(self, width: int, start: float = 1e-2) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.full((width, 1, 1), start))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * x


def convnext(survive: float = 1.0) -> nn.Module:
    def block(width: int) -> nn.Module:
        deep = nn.Conv2d(width, width, 7, padding=3, groups=width)
        wide = [nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1)]
        return Add(deep, ChannelNorm(width), *wide, Gain(width), survive=survive)

    def down(into: int, out: int) -> list[nn.Module]:
        return [ChannelNorm(into), nn.Conv2d(into, out, 2, 2)]

    layers = [nn.Conv2d(3, 32, 4, 4), ChannelNorm(32), block(32), block(32), *down(32, 64)]
    return nn.Sequential(*layers, block(64), block(64), ChannelNorm(64), *head(64, 8))


def convmixer() -> nn.Module:
    def after(conv: nn.Module) -> list[nn.Module]:
        return [conv, nn.GELU(), nn.BatchNorm2d(48)]

    layers = after(nn.Conv2d(3, 48, 4, 4))
    for _ in range(3):
        layers.append(Add(*after(nn.Conv2d(48, 48, 5, groups=48, padding=2))))
        layers += after(nn.Conv2d(48, 48, 1))
    return nn.Sequential(*layers, *head(48, 8))


class Rep(nn.Module):
    """RepVGG's block in training: 3 × 3, 1 × 1 and identity, each with a norm."""

    def __init__(self, into: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.wide = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.point = nn.Conv2d(into, out, 1, stride, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.same = nn.BatchNorm2d(into) if into == out and stride == 1 else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(self.wide(x)) + self.norm2(self.point(x))
        return functional.relu(y if self.same is None else y + self.same(x))


def repvgg() -> nn.Module:
    layers = [Rep(3, 24), Rep(24, 24), Rep(24, 48, 2), Rep(48, 48), Rep(48, 64, 2), Rep(64, 64)]
    return nn.Sequential(*layers, *head(64, 8))
