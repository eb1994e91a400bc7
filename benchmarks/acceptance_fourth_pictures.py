"""Networks of the fourth set that return pictures, and their losses."""

from __future__ import annotations

import itertools

import torch
from acceptance_classic import unit
from torch import Tensor, nn
from torch.nn import functional


def wider(x: Tensor, factor: float = 2.0) -> Tensor:
    return functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)


class Nested(nn.Module):
    """U-Net++: nodes between the levels, two maps whose losses are added."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([unit(3, 16), unit(16, 24), unit(24, 32)])
        self.one, self.two, self.last = unit(40, 16), unit(56, 24), unit(56, 16)
        self.sides = nn.ModuleList(nn.Conv2d(16, 1, 1) for _ in range(2))

    def forward(self, x: Tensor) -> list[Tensor]:
        first = self.down[0](x)
        second = self.down[1](functional.max_pool2d(first, 2))
        third = self.down[2](functional.max_pool2d(second, 2))
        upper = self.one(torch.cat([first, wider(second)], 1))
        lower = self.two(torch.cat([second, wider(third)], 1))
        upper_2 = self.last(torch.cat([first, upper, wider(lower)], 1))
        return [self.sides[0](upper), self.sides[1](upper_2)]


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


class PyramidScene(nn.Module):
    """PSPNet: means over 1, 2, 4 and 8 fields beside the map."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(unit(3, 24, stride=2), unit(24, 48), unit(48, 48, dilation=2))
        self.parts = nn.ModuleList(unit(48, 12, 1, norm=None) for _ in range(4))
        self.last = nn.Sequential(unit(96, 32), nn.Dropout2d(0.1), nn.Conv2d(32, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        y, found = self.body(x), []
        for size, part in zip((1, 2, 4, 8), self.parts, strict=True):
            small = part(functional.adaptive_avg_pool2d(y, size))
            found.append(functional.interpolate(small, y.shape[2:], mode="bilinear"))
        return wider(self.last(torch.cat([y, *found], 1)))


class TwoPaths(nn.Module):
    """BiSeNet: a path with detail, a deep path with context, joined by attention."""

    def __init__(self) -> None:
        super().__init__()
        self.detail = nn.Sequential(unit(3, 24, stride=2), unit(24, 32, stride=2))
        deep = [unit(3, 16, stride=2), unit(16, 32, stride=2), unit(32, 48, stride=2)]
        self.deep, self.gate = nn.Sequential(*deep), nn.Conv2d(48, 48, 1)
        self.join, self.last = unit(80, 48, 1), nn.Conv2d(48, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        deep = self.deep(x)
        deep = deep * self.gate(deep.mean((2, 3), keepdim=True)).sigmoid()
        y = self.join(torch.cat([self.detail(x), wider(deep)], 1))
        return wider(self.last(y), 4.0)


class HighResolution(nn.Module):
    """HRNet: two resolutions in parallel that exchange their maps twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.lower = unit(3, 16), unit(16, 32, stride=2)
        self.high = nn.ModuleList(unit(16, 16) for _ in range(2))
        self.low = nn.ModuleList(unit(32, 32) for _ in range(2))
        self.down = nn.ModuleList(nn.Conv2d(16, 32, 3, 2, 1) for _ in range(2))
        self.up = nn.ModuleList(nn.Conv2d(32, 16, 1) for _ in range(2))
        self.last = nn.Conv2d(48, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        high = self.stem(x)
        low = self.lower(high)
        parts = zip(self.high, self.low, self.down, self.up, strict=True)
        for same, small, down, up in parts:
            high, low = same(high), small(low)
            high, low = high + wider(up(low)), low + down(high)
        return self.last(torch.cat([high, wider(low)], 1))


class Factorized(nn.Module):
    """ERFNet: 3 × 1 and 1 × 3 convolutions, dilated; sub-pixel enlargement."""

    def __init__(self) -> None:
        super().__init__()

        def factors(width: int, dilation: int) -> nn.Module:
            layers: list[nn.Module] = []
            for wide in (1, dilation):
                tall = nn.Conv2d(width, width, (3, 1), padding=(wide, 0), dilation=(wide, 1))
                flat = nn.Conv2d(width, width, (1, 3), padding=(0, wide), dilation=(1, wide))
                layers += [tall, nn.ReLU(), flat, nn.BatchNorm2d(width), nn.ReLU()]
            return nn.Sequential(*layers[:-1], nn.Dropout2d(0.05))

        self.down = nn.ModuleList([unit(3, 24, stride=2), unit(24, 48, stride=2)])
        self.blocks = nn.ModuleList([factors(24, 1), factors(48, 2), factors(48, 4)])
        self.last = nn.Sequential(unit(48, 32), nn.Conv2d(32, 16, 1), nn.PixelShuffle(4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.down[0](x)
        x = self.down[1]((x + self.blocks[0](x)).relu())
        for block in self.blocks[1:]:
            x = (x + block(x)).relu()
        return self.last(x)


def all_masks(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy, also of a list of maps."""
    found = model(images)
    found = found if isinstance(found, list) else [found]
    return sum(functional.binary_cross_entropy_with_logits(y, mask) for y in found)


def tversky(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Misses cost more than false alarms."""
    share = model(images).sigmoid()
    hit, miss, wrong = (share * mask).sum(), ((1 - share) * mask).sum(), (share * (1 - mask)).sum()
    return 1 - (hit + 1) / (hit + 0.7 * miss + 0.3 * wrong + 1)


class RedNet(nn.Module):
    """RED-Net: convolutions, then transposed ones of stride 1, symmetric shortcuts, no norm."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            nn.Conv2d(3 if k == 0 else width, width, 3, padding=1) for k in range(4)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(width, 3 if k == 3 else width, 3, padding=1) for k in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        kept = [x]
        for down in self.down:
            kept.append(down(kept[-1]).relu())
        y = kept.pop()
        for number, up in enumerate(self.up):
            y = up(y) + kept.pop()
            y = y.relu() if number < 3 else y
        return y


class SimpleGate(nn.Module):
    """NAFNet: depthwise convolution, products of halves, no activation function."""

    def __init__(self, width: int = 24, blocks: int = 3) -> None:
        super().__init__()
        self.first, self.last = (nn.Conv2d(*c, 3, padding=1) for c in ((3, width), (width, 3)))
        self.blocks = nn.ModuleList()
        for _ in range(blocks):
            layers = [nn.GroupNorm(1, width), nn.Conv2d(width, 2 * width, 1)]
            layers += [nn.Conv2d(2 * width, 2 * width, 3, 1, 1, groups=2 * width)]
            self.blocks.append(
                nn.ModuleDict(
                    {
                        "in": nn.Sequential(*layers),
                        "attend": nn.Conv2d(width, width, 1),
                        "out": nn.Conv2d(width, width, 1),
                    }
                )
            )
        self.scales = nn.ParameterList(torch.full((1, width, 1, 1), 0.1) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        for block, scale in zip(self.blocks, self.scales, strict=True):
            one, other = block["in"](y).chunk(2, 1)
            z = one * other
            y = y + scale * block["out"](z * block["attend"](z.mean((2, 3), keepdim=True)))
        return x + self.last(y)


class ChannelAttention(nn.Module):
    """RCAN: residual groups with attention to channels, then PixelShuffle."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first, self.bodies, self.gates = nn.Conv2d(3, width, 3, 1, 1), None, None
        self.bodies = nn.ModuleList(
            nn.Sequential(unit(width, width, norm=None), nn.Conv2d(width, width, 3, padding=1))
            for _ in range(3)
        )
        self.gates = nn.ModuleList(
            nn.Sequential(unit(width, 6, 1, norm=None), nn.Conv2d(6, width, 1), nn.Sigmoid())
            for _ in range(3)
        )
        self.last = nn.Sequential(
            nn.Conv2d(width, 48, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(12, 3, 3, padding=1)
        )

    def forward(self, x: Tensor) -> Tensor:
        first = y = self.first(x)
        for body, gate in zip(self.bodies, self.gates, strict=True):
            z = body(y)
            y = y + z * gate(z.mean((2, 3), keepdim=True))
        return self.last(first + y)


def srcnn() -> nn.Module:
    """SRCNN on an enlarged picture: 9, 5 and 5 px."""
    layers = [nn.Conv2d(3, 32, 9, padding=4), nn.ReLU(), nn.Conv2d(32, 24, 5, padding=2)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(24, 3, 5, padding=2))


def sharpened(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From a picture that was made smaller and larger again to the picture."""
    small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
    return functional.mse_loss(model(wider(small)), images) * 10


def unblurred(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From pictures blurred by a motion of 5 px to the pictures."""
    shown = sum(images.roll(k, 3) for k in range(-2, 3)) / 5
    return functional.l1_loss(model(shown), images)


class Hazy(nn.Module):
    """AOD-Net: one map K by which the haze is removed, K(x) · x - K(x) + 1."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((3, 12, 1), (12, 12, 3), (24, 12, 5), (24, 12, 7))
        self.convs = nn.ModuleList(nn.Conv2d(a, b, s, padding=s // 2) for a, b, s in sizes)
        self.last = nn.Conv2d(48, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.convs[0](x).relu()]
        maps.append(self.convs[1](maps[-1]).relu())
        for conv in self.convs[2:]:
            maps.append(conv(torch.cat(maps[-2:], 1)).relu())
        k = self.last(torch.cat(maps, 1))
        return k * x - k + 1


def hazed(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Pictures of 0 to 1 behind haze of random strength."""
    left = 0.3 + 0.5 * torch.rand(len(images), 1, 1, 1)
    return functional.mse_loss(model(images * left + 0.9 * (1 - left)), images)


class Regions(nn.Module):
    """A U-Net of residual U-blocks without strides, as U²-Net."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 24, 32)
        self.ins = nn.ModuleList(unit(a, b) for a, b in itertools.pairwise(widths))
        self.downs = nn.ModuleList(unit(b, 12, dilation=2) for b in widths[1:])
        self.outs = nn.ModuleList(unit(b + 12, b) for b in widths[1:])
        self.last = nn.Conv2d(56, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        found = []
        for first, down, out in zip(self.ins, self.downs, self.outs, strict=True):
            x = first(x)
            small = down(functional.max_pool2d(x, 2, ceil_mode=True))
            near = functional.interpolate(small, x.shape[2:], mode="bilinear")
            x = x + out(torch.cat([x, near], 1))
            found.append(functional.interpolate(x, (32, 32), mode="bilinear"))
            x = functional.max_pool2d(x, 2)
        return self.last(torch.cat(found, 1))
