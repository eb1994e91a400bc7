"""Convolutional classifiers of the acceptance trainings: the plain and the residual ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

Make = Callable[[int], nn.Module]


def he(model: nn.Module) -> nn.Module:
    """Kaiming's initialization of convolutions, as in VGG."""
    for module in model.modules():
        if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    return model


def head(width: int, classes: int, dropout: float = 0.0) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(width, classes)]


def unit(
    into: int,
    out: int,
    size: int = 3,
    stride: int = 1,
    norm: Make | None = nn.BatchNorm2d,
    act: Callable[[], nn.Module] = nn.ReLU,
    groups: int = 1,
    dilation: int = 1,
) -> nn.Sequential:
    """Convolution, norm, activation."""
    pad = dilation * (size - 1) // 2
    conv = nn.Conv2d(into, out, size, stride, pad, dilation, groups, bias=norm is None)
    return nn.Sequential(conv, *([norm(out)] if norm else []), act())


def plain(
    channels: int = 3,
    classes: int = 8,
    widths: tuple[int, ...] = (16, 32, 64),
    norm: Make | None = None,
    act: Callable[[], nn.Module] = nn.ReLU,
    dropout: float = 0.0,
) -> nn.Module:
    """Convolution and pooling at each width, then a mean over the map."""
    layers: list[nn.Module] = []
    for into, out in zip((channels, *widths), widths, strict=False):
        layers += [unit(into, out, norm=norm, act=act), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, *head(widths[-1], classes, dropout))


def tutorial(channels: int = 1, size: int = 28, classes: int = 10) -> nn.Module:
    """The network of the MNIST example: two convolutions, dropout, two Linear layers."""
    flat = 32 * ((size - 4) // 2) ** 2
    return nn.Sequential(
        *(nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(flat, 64), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(64, classes)),
    )


def lenet(act: Callable[[], nn.Module] = nn.Tanh) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), act(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), act(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), act(), nn.Linear(120, 84), act(), nn.Linear(84, 10)),
    )


def vgg(norm: Make | None = nn.BatchNorm2d, channels: int = 3) -> nn.Module:
    """Eight convolutions, three poolings, and two Linear layers with dropout."""
    layers: list[nn.Module] = []
    into = channels
    for out, count in ((24, 2), (48, 2), (64, 2), (96, 2)):
        for _ in range(count):
            layers.append(unit(into, out, norm=norm, act=partial(nn.ReLU, inplace=True)))
            into = out
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(96 * 4, 128), nn.ReLU(inplace=True), nn.Dropout(0.3)]
    return he(nn.Sequential(*layers, nn.Linear(128, 8)))


def alexnet() -> nn.Module:
    """AlexNet's layout for 48 px: wide first kernels, local response normalization."""
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 7, 2, 3), nn.ReLU(True), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(True), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(3, 2), nn.Flatten()),
        *(nn.Dropout(), nn.Linear(256, 128), nn.ReLU(True), nn.Linear(128, 8)),
    )


def network_in_network() -> nn.Module:
    def block(into: int, out: int, size: int) -> list[nn.Module]:
        return [unit(into, out, size), unit(out, out, 1), unit(out, out, 1)]

    pool = partial(nn.MaxPool2d, 3, 2, 1)
    last = nn.Conv2d(64, 8, 1)
    layers = [*block(3, 32, 5), pool(), nn.Dropout(0.3), *block(32, 64, 5), pool()]
    return nn.Sequential(*layers, *block(64, 64, 3), last, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def all_convolutions() -> nn.Module:
    """Strides in place of pooling."""
    layers = [unit(3, 32), unit(32, 32, stride=2), unit(32, 64), unit(64, 64, stride=2)]
    layers += [unit(64, 64), unit(64, 64, 1)]
    return nn.Sequential(*layers, nn.Conv2d(64, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


class Residual(nn.Module):
    """Two convolutions, or three with a bottleneck, beside a shortcut."""

    def __init__(
        self,
        into: int,
        out: int,
        stride: int = 1,
        norm: Make = nn.BatchNorm2d,
        act: Callable[[], nn.Module] = nn.ReLU,
        groups: int = 1,
        bottleneck: bool = False,
        squeeze: bool = False,
        survive: float = 1.0,
        zero: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        mid = out // 2 if bottleneck else out
        steps = [unit(into, mid, 1, 1, norm, act)] if bottleneck else []
        steps.append(unit(mid if bottleneck else into, mid, 3, stride, norm, act, groups))
        steps.append(nn.Dropout(dropout))
        size = 1 if bottleneck else 3
        steps += [nn.Conv2d(mid, out, size, padding=size // 2, bias=False), norm(out)]
        if zero:
            nn.init.zeros_(steps[-1].weight)
        self.body = nn.Sequential(*steps)
        self.squeeze = Squeeze(out) if squeeze else nn.Identity()
        same = stride == 1 and into == out
        shortcut = [nn.Conv2d(into, out, 1, stride, bias=False), norm(out)]
        self.shortcut = nn.Identity() if same else nn.Sequential(*shortcut)
        self.act, self.survive = act(), survive

    def forward(self, x: Tensor) -> Tensor:
        if self.training and self.survive < 1 and torch.rand(()) > self.survive:
            return self.act(self.shortcut(x))
        y = self.squeeze(self.body(x))
        return self.act(self.shortcut(x) + y)


class Squeeze(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, width: int, ratio: int = 4, gate: type[nn.Module] = nn.Sigmoid) -> None:
        super().__init__()
        self.down = nn.Conv2d(width, max(4, width // ratio), 1)
        self.up = nn.Conv2d(max(4, width // ratio), width, 1)
        self.gate = gate()

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.down(x.mean((2, 3), keepdim=True)))
        return x * self.gate(self.up(y))


class Pre(nn.Module):
    """Residual block with norm and activation before the convolutions."""

    def __init__(self, into: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(into), nn.BatchNorm2d(out)
        self.conv1 = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        same = stride == 1 and into == out
        self.shortcut = None if same else nn.Conv2d(into, out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(x))
        shortcut = x if self.shortcut is None else self.shortcut(y)
        return shortcut + self.conv2(functional.relu(self.norm2(self.conv1(y))))


def resnet(
    widths: tuple[int, ...] = (16, 32, 64),
    blocks: int = 1,
    channels: int = 3,
    classes: int = 8,
    **options: object,
) -> nn.Module:
    layers: list[nn.Module] = [unit(channels, widths[0])]
    into = widths[0]
    for level, out in enumerate(widths):
        for number in range(blocks):
            layers.append(Residual(into, out, 2 if level and not number else 1, **options))
            into = out
    return nn.Sequential(*layers, *head(into, classes))


def pre_resnet() -> nn.Module:
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), Pre(16, 16), Pre(16, 32, 2)]
    layers += [Pre(32, 32), Pre(32, 64, 2), Pre(64, 64), nn.BatchNorm2d(64), nn.ReLU()]
    return he(nn.Sequential(*layers, *head(64, 8)))


class Scaled(nn.Module):
    """Residual block without a norm whose branch starts at 0, as in SkipInit."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv2(functional.relu(self.conv1(functional.relu(x))))
        return x + self.gain * y


def without_norm() -> nn.Module:
    layers = [nn.Conv2d(3, 32, 3, padding=1), Scaled(32), Scaled(32), nn.AvgPool2d(2)]
    layers += [nn.Conv2d(32, 48, 1), Scaled(48), Scaled(48), nn.ReLU()]
    return he(nn.Sequential(*layers, *head(48, 8)))


class Dense(nn.Module):
    """Dense block: each convolution sees all maps before it."""

    def __init__(self, into: int, growth: int, count: int) -> None:
        super().__init__()
        self.steps = nn.ModuleList()
        for number in range(count):
            width = into + number * growth
            conv = nn.Conv2d(width, growth, 3, padding=1, bias=False)
            self.steps.append(nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), conv))

    def forward(self, x: Tensor) -> Tensor:
        for step in self.steps:
            x = torch.cat([x, step(x)], 1)
        return x


def densenet() -> nn.Module:
    def down(into: int, out: int) -> list[nn.Module]:
        layers = [nn.BatchNorm2d(into), nn.ReLU(), nn.Conv2d(into, out, 1, bias=False)]
        return [*layers, nn.AvgPool2d(2)]

    layers = [nn.Conv2d(3, 16, 3, padding=1), Dense(16, 12, 3), *down(52, 26), Dense(26, 12, 3)]
    layers += [*down(62, 31), Dense(31, 12, 3), nn.BatchNorm2d(67), nn.ReLU()]
    return nn.Sequential(*layers, *head(67, 8))
