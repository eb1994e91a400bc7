"""Networks and tasks on which ``attribution_agreement.py`` and ``attribution_shortcut.py`` measure.

The networks of ``KNOWN`` were looked at while the method was made; those of ``FRESH`` and, later,
of ``LATER`` were written afterwards and run once.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.demo.network import DemoNetwork
from fmapboard.demo.photographs import Photographs

SIDE, CLASSES = 48, 8
PATCH = 24
"""Side of the patch in ``Patches``, px."""

Batch = tuple[Tensor, Tensor]


class FunctionalNet(nn.Module):
    """Residual blocks with functional ReLUs, as in many networks for CIFAR."""

    class Block(nn.Module):
        """Two convolutions; the ReLUs are functions."""

        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
            self.skip = nn.Conv2d(inputs, width, 1, stride, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm2(self.conv2(functional.relu(self.norm1(self.conv1(x)))))
            return functional.relu(y + self.skip(x))

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            self.Block(3, 16, 2), self.Block(16, 32, 2), self.Block(32, 64, 2)
        )
        self.head = nn.Linear(64, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.layers(x).mean((2, 3)))
        return found


def head(width: int) -> list[nn.Module]:
    """The mean of each map, and a linear classifier."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)]


def plain_network() -> nn.Module:
    """Convolutions and SiLUs with GroupNorm, without skips."""
    parts: list[nn.Module] = []
    for inputs, width in ((3, 16), (16, 32), (32, 64)):
        parts += nn.Conv2d(inputs, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU()
        parts += nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU()
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(*parts[:-1], *head(64))


def vgg_network() -> nn.Module:
    """Convolutions with BatchNorm and ReLU, three poolings, without skips."""
    parts: list[nn.Module] = []
    for inputs, width in ((3, 24), (24, 48), (48, 96)):
        for source in (inputs, width):
            parts += nn.Conv2d(source, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
            parts.append(nn.ReLU(inplace=True))
        parts.append(nn.MaxPool2d(2))
    return nn.Sequential(*parts[:-1], *head(96))


class Inverted(nn.Module):
    """An inverted residual of MobileNetV2: 1×1, depthwise 3×3, 1×1, with ReLU6 and BatchNorm."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        wide = 4 * inputs
        self.body = nn.Sequential(
            nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
            nn.ReLU6(), nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip
        self.adds = inputs == width and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return found + x if self.adds else found


def mobile_network() -> nn.Module:
    """A small MobileNetV2."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(),
        Inverted(16, 24, 1), Inverted(24, 24, 1), Inverted(24, 40, 2), Inverted(40, 40, 1),
        nn.Conv2d(40, 96, 1, bias=False), nn.BatchNorm2d(96), nn.ReLU6(), *head(96),
    )  # fmt: skip


class ConvNext(nn.Module):
    """A block of ConvNeXt: depthwise 7×7, normalization over channels, 1×1, GELU, 1×1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 7, padding=3, groups=width), nn.GroupNorm(1, width),
            nn.Conv2d(width, 4 * width, 1), nn.GELU(), nn.Conv2d(4 * width, width, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return found + x


def convnext_network() -> nn.Module:
    """A small ConvNeXt."""
    return nn.Sequential(
        nn.Conv2d(3, 24, 4, 4), nn.GroupNorm(1, 24), ConvNext(24), ConvNext(24),
        nn.Conv2d(24, 48, 2, 2), nn.GroupNorm(1, 48), ConvNext(48), ConvNext(48), *head(48),
    )  # fmt: skip


class PreActivated(nn.Module):
    """A residual block of ResNet v2: BatchNorm and ReLU in front of each 3×3."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(),
            nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
        )  # fmt: skip
        self.skip = nn.Conv2d(inputs, width, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return found + self.skip(x)


def preactivated_network() -> nn.Module:
    """A small ResNet v2, which ends in BatchNorm and ReLU."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), PreActivated(16, 32, 2),
        PreActivated(32, 48, 2), PreActivated(48, 96, 2), nn.BatchNorm2d(96), nn.ReLU(), *head(96),
    )  # fmt: skip


class Squeezed(nn.Module):
    """A block of EfficientNet: 1×1, depthwise 5×5, squeeze-and-excitation, 1×1, with SiLU."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        wide = 4 * inputs
        self.widened = nn.Sequential(
            nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.SiLU(),
            nn.Conv2d(wide, wide, 5, stride, 2, groups=wide, bias=False), nn.BatchNorm2d(wide),
            nn.SiLU(),
        )  # fmt: skip
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, inputs, 1), nn.SiLU(),
            nn.Conv2d(inputs, wide, 1), nn.Sigmoid(),
        )  # fmt: skip
        self.narrowed = nn.Sequential(nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        wide = self.widened(x)
        found: Tensor = self.narrowed(wide * self.gate(wide))
        return found


def efficient_network() -> nn.Module:
    """A small EfficientNet."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
        Squeezed(16, 24, 1), Squeezed(24, 40, 2), Squeezed(40, 64, 1),
        nn.Conv2d(64, 128, 1, bias=False), nn.BatchNorm2d(128), nn.SiLU(), *head(128),
    )  # fmt: skip


class Grouped(nn.Module):
    """A bottleneck of ResNeXt with GroupNorm: 1×1, 3×3 in groups, 1×1."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        inner = width // 2
        self.body = nn.Sequential(
            nn.Conv2d(inputs, inner, 1, bias=False), nn.GroupNorm(8, inner), nn.ReLU(),
            nn.Conv2d(inner, inner, 3, stride, 1, groups=4, bias=False), nn.GroupNorm(8, inner),
            nn.ReLU(), nn.Conv2d(inner, width, 1, bias=False), nn.GroupNorm(8, width),
        )  # fmt: skip
        self.skip = nn.Conv2d(inputs, width, 1, stride, bias=False)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.relu(self.body(x) + self.skip(x))
        return found


def grouped_network() -> nn.Module:
    """A small ResNeXt with GroupNorm."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.GroupNorm(8, 32), nn.ReLU(),
        Grouped(32, 64, 2), Grouped(64, 64, 1), Grouped(64, 128, 2), Grouped(128, 128, 1),
        *head(128),
    )  # fmt: skip


Make = Callable[[], nn.Module]
KNOWN: dict[str, Make] = {
    "demo": DemoNetwork, "functional": FunctionalNet, "plain": plain_network,
}  # fmt: skip
FRESH: dict[str, Make] = {
    "vgg": vgg_network, "mobile": mobile_network, "convnext": convnext_network,
}  # fmt: skip
LATER: dict[str, Make] = {
    "preactivated": preactivated_network, "efficient": efficient_network,
    "grouped": grouped_network,
}  # fmt: skip


class Crops:
    """Crops of the bundled photographs; the class is the photograph. The object fills the image."""

    def __init__(self) -> None:
        self.photographs = Photographs.load()

    def training(self, size: int, made: torch.Generator) -> Batch:
        """A batch of training crops."""
        return self.photographs.training_batch(size, made)

    def held_out(self) -> Batch:
        """The 192 validation crops."""
        return self.photographs.validation_crops()


class Patches(Crops):
    """A patch of a photograph, the class, at a random place on a blurred grey crop of any."""

    def training(self, size: int, made: torch.Generator) -> Batch:
        """A batch of patches of training crops."""
        images, labels = super().training(size, made)
        return self._placed(images, super().training(size, made)[0], made), labels

    def held_out(self) -> Batch:
        """192 patches of validation crops."""
        images, labels = super().held_out()
        made = torch.Generator().manual_seed(7)
        others = images[torch.randperm(len(images), generator=made)]
        return self._placed(images, others, made), labels

    @staticmethod
    def _placed(images: Tensor, others: Tensor, made: torch.Generator) -> Tensor:
        padded = functional.pad(others, (4,) * 4, mode="reflect")
        scene = functional.avg_pool2d(padded, 9, 1).mean(1, keepdim=True) * 0.5
        scene = scene.expand(-1, 3, -1, -1).clone()
        edge = (SIDE - PATCH) // 2
        patches = images[:, :, edge : edge + PATCH, edge : edge + PATCH]
        places = torch.randint(SIDE - PATCH + 1, (len(images), 2), generator=made).tolist()
        for number, (top, left) in enumerate(places):
            scene[number, :, top : top + PATCH, left : left + PATCH] = patches[number]
        return scene


TASKS: dict[str, Callable[[], Crops]] = {"crops": Crops, "patches": Patches}
