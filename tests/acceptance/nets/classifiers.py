"""Convolutional classifiers: plain, residual, branched and small ones."""

from __future__ import annotations

from collections.abc import Callable

import timm
import torch
from data import P
from losses import named
from torch import Tensor, nn, optim

from fmapboard.demo.network import load_trained

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


def tutorial() -> nn.Module:
    """The network of the MNIST example: two convolutions, dropout, two Linear layers."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Dropout(0.25), nn.Flatten(), nn.Linear(32 * 144, 64), nn.ReLU()),
        *(nn.Dropout(0.5), nn.Linear(64, 10)),
    )


def lenet(act: Callable[[], nn.Module] = nn.Tanh) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), act(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 5), act(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), act(), nn.Linear(120, 84), act(), nn.Linear(84, 10)),
    )


def alexnet() -> nn.Module:
    """AlexNet's layout for 48 px: wide first kernels, local response normalization."""
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 7, 2, 3), nn.ReLU(True), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(True), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(3, 2), nn.Flatten()),
        *(nn.Dropout(), nn.Linear(256, 128), nn.ReLU(True), nn.Linear(128, 8)),
    )


def all_convolutions() -> nn.Module:
    """Strides in place of pooling."""
    layers = [unit(3, 32), unit(32, 32, stride=2), unit(32, 64), unit(64, 64, stride=2)]
    layers += [unit(64, 64), unit(64, 64, 1)]
    return nn.Sequential(*layers, nn.Conv2d(64, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def resnet(
    widths: tuple[int, ...] = (16, 32, 64, 64),
    blocks: int = 1,
    channels: int = 3,
    classes: int = 8,
    bottleneck: bool = False,
    **options: object,
) -> nn.Module:
    """timm's ResNet, slim, without the first pooling."""
    kind = timm.models.resnet.Bottleneck if bottleneck else timm.models.resnet.BasicBlock
    options = {"stem_width": 32, "zero_init_last": False, "channels": widths} | options
    model = timm.models.ResNet(kind, (blocks,) * 4, classes, channels, **options)
    model.maxpool = nn.Identity()
    return model


def convmixer() -> nn.Module:
    return timm.models.convmixer.ConvMixer(48, 3, 5, 4, num_classes=8)


def encoder(out: int = 32, norm: bool = True) -> nn.Module:
    make = nn.BatchNorm2d if norm else None
    layers = [unit(3, 24, stride=2, norm=make), unit(24, 48, stride=2, norm=make)]
    return nn.Sequential(*layers, unit(48, 64, norm=make), *head(64, out))


def trunk(width: int = 32) -> nn.Module:
    """A small residual backbone that ends in a vector of 2 × width."""

    class Block(nn.Module):
        def __init__(self, into: int, out: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.conv2 = unit(into, out, stride=stride), unit(out, out)
            self.skip = nn.Conv2d(into, out, 1, stride)

        def forward(self, x: Tensor) -> Tensor:
            return self.skip(x) + self.conv2(self.conv1(x))

    layers = [unit(3, width, stride=2), Block(width, width, 1), Block(width, 2 * width, 2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def classifier(width: int = 24) -> nn.Module:
    return nn.Sequential(trunk(width), nn.Linear(2 * width, 8))


def pretrained(make: Callable[[], nn.Module]) -> nn.Module:
    """A network trained on colour photographs, unwatched, before it is fine-tuned on grey ones."""
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model, random = make(), torch.Generator().manual_seed(11)
        optimizer = optim.AdamW(model.parameters(), lr=2e-3)
        for _ in range(60):
            loss = named(model, *P(random, 16))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def stack(
    depth: int, width: int = 24, act: Callable[[], nn.Module] = nn.ReLU, scale: float = 0.0
) -> nn.Module:
    """Convolutions without norm or shortcut; ``scale`` is the deviation of their weights."""
    layers: list[nn.Module] = [unit(3, width, norm=None, act=act), nn.MaxPool2d(2)]
    layers += [unit(width, width, norm=None, act=act) for _ in range(depth)]
    model = nn.Sequential(*layers, *head(width, 8))
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and scale:
            nn.init.normal_(module.weight, 0, scale)
    return model


def with_norm() -> nn.Module:
    return encoder(8)


def bundled(keep_head: bool = False) -> nn.Module:
    """The bundled trained network, by default with a new head."""
    model = load_trained().train()
    if not keep_head:
        model.head = nn.Linear(96, 8)
    return model


class Function(nn.Module):
    """A function as a layer."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def small_classifier() -> nn.Module:
    return nn.Sequential(unit(3, 24), nn.MaxPool2d(2), unit(24, 48), *head(48, 8))
