"""Small healthy networks of many kinds for 48 px images, with default initialization."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torchvision.models import mobilenet_v3_small, resnet18, shufflenet_v2_x0_5, squeezenet1_1

Make = Callable[[int], nn.Module]
"""Creates a network with the given number of classes."""


def stem(width: int = 16) -> list[nn.Module]:
    """48 px images to maps of 24 px."""
    return [nn.Conv2d(3, width, 5, stride=2, padding=2), nn.ReLU()]


def head(width: int, classes: int) -> list[nn.Module]:
    """Maps to logits."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]


def plain(
    classes: int,
    act: Callable[[], nn.Module] = nn.ReLU,
    norm: Callable[[int], nn.Module] | None = None,
) -> nn.Sequential:
    """Five convolutions with an activation, and a normalization in between if there is one."""
    widths = (3, 16, 32, 32, 64, 64)
    layers: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(pairwise(widths)):
        layers.append(nn.Conv2d(inputs, outputs, 3, stride=1 + index % 2, padding=1))
        if norm is not None:
            layers.append(norm(outputs))
        layers.append(act())
    return nn.Sequential(*layers, *head(64, classes))


class Residual(nn.Module):
    """x + f(x), where f keeps the shape."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C, H, W]."""
        return x + self.body(x)


class Branches(nn.Module):
    """The outputs of several branches, concatenated."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, sum of the branches' channels, H, W]."""
        return torch.cat([branch(x) for branch in self.branches], 1)


class Gate(nn.Module):
    """Squeeze-and-excitation: channels weighted by their means."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 4, 1), nn.ReLU(),
            nn.Conv2d(width // 4, width, 1), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C, H, W]."""
        return x * self.weigh(x)


class Patches(nn.Module):
    """A small vision transformer."""

    def __init__(self, classes: int, width: int = 48) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 8, stride=8)
        layer = nn.TransformerEncoderLayer(width, 4, 96, 0.0, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, H, W] -> [N, classes]."""
        tokens = self.patch(x).flatten(2).transpose(1, 2)  # [N, L, C]
        return self.head(self.encoder(tokens).mean(1))


def residual(classes: int) -> nn.Module:
    """Three residual blocks with BatchNorm."""

    def block() -> nn.Module:
        return Residual(
            nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16),
        )  # fmt: skip

    return nn.Sequential(
        *stem(), block(), nn.ReLU(), block(), nn.ReLU(), block(), *head(16, classes)
    )


def separable(classes: int) -> nn.Module:
    """Depthwise separable convolutions."""
    layers = stem()
    for inputs, outputs in ((16, 32), (32, 32), (32, 64)):
        layers += [
            nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs), nn.BatchNorm2d(inputs),
            nn.ReLU6(), nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU6(),
        ]  # fmt: skip
    return nn.Sequential(*layers, *head(64, classes))


def inception(classes: int) -> nn.Module:
    """Branches with kernels of 1, 3 and 5."""

    def block(inputs: int) -> nn.Module:
        sizes = (1, 3, 5)
        return Branches(
            *(nn.Sequential(nn.Conv2d(inputs, 16, k, padding=k // 2), nn.ReLU()) for k in sizes)
        )

    return nn.Sequential(
        *stem(), block(16), nn.MaxPool2d(2), block(48), block(48), *head(48, classes)
    )


def gated(classes: int) -> nn.Module:
    """Convolutions with squeeze-and-excitation."""
    layers = stem(32)
    for _ in range(3):
        layers += [nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.SiLU(), Gate(32)]
    return nn.Sequential(*layers, *head(32, classes))


def autoencoder(classes: int) -> nn.Module:
    """An encoder, and a decoder of transposed convolutions with kernel 4 and stride 2."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1),
    )  # fmt: skip


def group_norm(width: int) -> nn.Module:
    """Four groups."""
    return nn.GroupNorm(4, width)


NETWORKS: dict[str, Make] = {
    "plain": plain,
    "plain leaky": lambda n: plain(n, nn.LeakyReLU),
    "plain tanh": lambda n: plain(n, nn.Tanh),
    "plain gelu": lambda n: plain(n, nn.GELU),
    "plain elu": lambda n: plain(n, nn.ELU),
    "batch norm": lambda n: plain(n, norm=nn.BatchNorm2d),
    "batch norm hardswish": lambda n: plain(n, nn.Hardswish, nn.BatchNorm2d),
    "group norm": lambda n: plain(n, norm=group_norm),
    "instance norm": lambda n: plain(n, norm=nn.InstanceNorm2d),
    "residual": residual,
    "separable": separable,
    "inception": inception,
    "gated": gated,
    "transformer": Patches,
    "autoencoder": autoencoder,
    "resnet18": lambda n: resnet18(num_classes=n),
    "mobilenet": lambda n: mobilenet_v3_small(num_classes=n),
    "shufflenet": lambda n: shufflenet_v2_x0_5(num_classes=n),
    "squeezenet": lambda n: squeezenet1_1(num_classes=n),
}
