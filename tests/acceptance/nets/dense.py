"""Networks that return a map, box, depth or flow, and their losses."""

from __future__ import annotations

import torch
from nets.classifiers import unit
from torch import Tensor, nn
from torch.nn import functional


class UNet(nn.Module):
    """Three levels; the way up is bilinear or by transposed convolutions."""

    def __init__(
        self,
        channels: int = 3,
        out: int = 1,
        base: int = 12,
        norm: object = nn.BatchNorm2d,
        transposed: bool = True,
    ) -> None:
        super().__init__()

        def double(into: int, width: int) -> nn.Module:
            return nn.Sequential(unit(into, width, norm=norm), unit(width, width, norm=norm))

        def up(into: int, width: int) -> nn.Module:
            if transposed:
                return nn.ConvTranspose2d(into, width, 2, 2)
            return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(into, width, 1))

        self.down1, self.down2 = double(channels, base), double(base, 2 * base)
        self.middle = double(2 * base, 4 * base)
        self.up2, self.up1 = up(4 * base, 2 * base), up(2 * base, base)
        self.join2, self.join1 = double(4 * base, 2 * base), double(2 * base, base)
        self.last = nn.Conv2d(base, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        y = self.up2(self.middle(functional.max_pool2d(second, 2)))
        y = self.join2(torch.cat([second, y], 1))
        return self.last(self.join1(torch.cat([first, self.up1(y)], 1)))


class SegNet(nn.Module):
    """Unpooling with the places of the maxima."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.middle = unit(3, 24), unit(24, 32), unit(32, 32)
        self.up2, self.up1 = unit(32, 24), unit(24, 16)
        self.last = nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y, first = functional.max_pool2d(self.down1(x), 2, return_indices=True)
        y, second = functional.max_pool2d(self.down2(y), 2, return_indices=True)
        y = self.up2(functional.max_unpool2d(self.middle(y), second, 2))
        return self.last(self.up1(functional.max_unpool2d(y, first, 2)))


def autoencoder() -> nn.Module:
    def step(into: int, out: int, up: bool = False) -> list[nn.Module]:
        kind = nn.ConvTranspose2d if up else nn.Conv2d
        return [kind(into, out, 4, 2, 1), nn.BatchNorm2d(out), nn.ReLU()]

    layers = [*step(3, 24), *step(24, 48), nn.Conv2d(48, 16, 1), *step(16, 48, True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(48, 3, 4, 2, 1), nn.Tanh())


class Spots(nn.Module):
    """A toy detector on a stride of 4: objectness, and the box's centre and radius."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 16), unit(16, 32, stride=2), unit(32, 48, stride=2))
        self.score = nn.Sequential(unit(48, 32), nn.Conv2d(32, 1, 1))
        self.box = nn.Sequential(unit(48, 32), nn.Conv2d(32, 3, 1))
        nn.init.constant_(self.score[1].bias, -2.0)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.back(x)
        return self.score(y), self.box(y)


def balanced(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    weight = torch.where(target > 0, 0.85, 0.15)
    entropy = functional.binary_cross_entropy_with_logits
    return sum(entropy(shown, target, weight) for shown in model(images))


class LinkNet(nn.Module):
    """Encoder maps are added, not joined; enlargement by transposed convolutions of 4 px."""

    def __init__(self) -> None:
        super().__init__()
        self.first = unit(3, 16, 5)
        self.down = nn.ModuleList(unit(a, b, stride=2) for a, b in ((16, 24), (24, 32), (32, 48)))
        self.ups = nn.ModuleList()
        for into, out in ((48, 32), (32, 24), (24, 16)):
            up = nn.ConvTranspose2d(into // 4, into // 4, 4, 2, 1)
            layers = [unit(into, into // 4, 1), up, nn.BatchNorm2d(into // 4), nn.ReLU()]
            self.ups.append(nn.Sequential(*layers, unit(into // 4, out, 1)))
        self.last = nn.Conv2d(16, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.first(x)]
        for down in self.down:
            maps.append(down(maps[-1]))
        y = maps.pop()
        for up in self.ups:
            y = up(y) + maps.pop()
        return self.last(y)
