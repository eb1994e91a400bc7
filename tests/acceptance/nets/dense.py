"""Networks that return a map, box, depth or flow, and their losses."""

from __future__ import annotations

import itertools

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


def fcn() -> nn.Module:
    """Convolutions down to a quarter, scores there, bilinear enlargement."""
    layers = [unit(3, 24), unit(24, 32, stride=2), unit(32, 48, stride=2), nn.Conv2d(48, 1, 1)]
    return nn.Sequential(*layers, nn.Upsample(scale_factor=4, mode="bilinear"))


class Pyramid(nn.Module):
    """Dilated convolutions side by side, as in DeepLab."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(unit(3, 24), unit(24, 32, stride=2))
        self.rates = nn.ModuleList(unit(32, 16, dilation=rate) for rate in (1, 2, 4, 6))
        self.last = nn.Sequential(unit(64, 32, 1), nn.Conv2d(32, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)
        y = self.last(torch.cat([rate(y) for rate in self.rates], 1))
        return functional.interpolate(y, x.shape[2:], mode="bilinear", align_corners=False)


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


def autoencoder(norm: bool = True) -> nn.Module:
    def step(into: int, out: int, up: bool = False) -> list[nn.Module]:
        kind = nn.ConvTranspose2d if up else nn.Conv2d
        after = [nn.BatchNorm2d(out)] if norm else []
        return [kind(into, out, 4, 2, 1), *after, nn.ReLU()]

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


class Gate(nn.Module):
    """Attention U-Net's gate on a skip connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Conv2d(width, 12, 1), nn.Conv2d(width, 12, 1, bias=False)
        self.score = nn.Conv2d(12, 1, 1)

    def forward(self, skip: Tensor, below: Tensor) -> Tensor:
        return skip * self.score((self.query(below) + self.key(skip)).relu()).sigmoid()


class AttentionUNet(nn.Module):
    """Two levels with gated skips; logits at two scales in training (deep supervision)."""

    def __init__(self, out: int = 1) -> None:
        super().__init__()
        self.down1, self.down2, self.middle = unit(3, 16), unit(16, 32), unit(32, 48)
        self.up2, self.up1 = nn.Conv2d(48, 32, 1), nn.Conv2d(32, 16, 1)
        self.gate2, self.gate1 = Gate(32), Gate(16)
        self.join2, self.join1 = unit(64, 32), unit(32, 16)
        self.coarse, self.fine = nn.Conv2d(32, out, 1), nn.Conv2d(16, out, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        y = functional.interpolate(
            self.up2(self.middle(functional.max_pool2d(second, 2))), scale_factor=2
        )
        half = self.join2(torch.cat([self.gate2(second, y), y], 1))
        y = functional.interpolate(self.up1(half), scale_factor=2)
        full = self.fine(self.join1(torch.cat([self.gate1(first, y), y], 1)))
        return full, functional.interpolate(self.coarse(half), scale_factor=2, mode="bilinear")


def deep_masks(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    fine, coarse = model(images)
    entropy = functional.binary_cross_entropy_with_logits
    return entropy(fine, mask) + 0.4 * entropy(coarse, mask)


class VolumeUNet(nn.Module):
    """As nnU-Net: 3-D, InstanceNorm, LeakyReLU."""

    def __init__(self) -> None:
        super().__init__()

        def block(into: int, out: int, stride: int = 1) -> nn.Module:
            conv = nn.Conv3d(into, out, 3, stride, 1)
            return nn.Sequential(conv, nn.InstanceNorm3d(out, affine=True), nn.LeakyReLU(0.01))

        self.first, self.down, self.middle = block(1, 12), block(12, 24, 2), block(24, 24)
        self.up, self.join = nn.ConvTranspose3d(24, 12, 2, 2), block(24, 12)
        self.last = nn.Conv3d(12, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        y = self.up(self.middle(self.down(first)))
        return self.last(self.join(torch.cat([first, y], 1)))


def dice_entropy(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    logits = model(images)
    found = logits.sigmoid()
    dice = 1 - 2 * (found * mask).sum() / (found.sum() + mask.sum() + 1e-5)
    return dice + functional.binary_cross_entropy_with_logits(logits, mask)


class Hourglass(nn.Module):
    """Two stacked hourglasses with a heat map after each."""

    def __init__(self) -> None:
        super().__init__()
        self.first = unit(3, 24)
        self.downs = nn.ModuleList(unit(24, 24) for _ in range(4))
        self.outs = nn.ModuleList(nn.Conv2d(24, 1, 1) for _ in range(2))
        self.back = nn.Conv2d(1, 24, 1)

    def forward(self, x: Tensor) -> list[Tensor]:
        x, found = self.first(x), []
        for stack in range(2):
            y = self.downs[2 * stack](functional.max_pool2d(x, 2))
            y = self.downs[2 * stack + 1](functional.max_pool2d(y, 2))
            x = x + functional.interpolate(y, scale_factor=4, mode="bilinear")
            found.append(self.outs[stack](x))
            x = x + self.back(found[-1])
        return found


def stacked_heat(model: nn.Module, images: Tensor, _m: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    along = torch.arange(32.0)
    across = (along - discs[:, :1])[:, None, :].square()
    spot = (-(across + (along - discs[:, 1:2])[:, :, None].square()) / 8).exp()[:, None]
    return torch.stack([functional.mse_loss(y, spot) for y in model(images)]).sum() * 10


class Register(nn.Module):
    """VoxelMorph: a field of shifts, begun near zero, that moves one image onto the other."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(2, 24, 3, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 32, 3, 2, 1)]
        layers += [nn.LeakyReLU(0.2), nn.Conv2d(32, 32, 3, padding=1), nn.LeakyReLU(0.2)]
        self.net = nn.Sequential(*layers, nn.Upsample(scale_factor=4, mode="bilinear"))
        self.flow = nn.Conv2d(32, 2, 3, padding=1)
        nn.init.normal_(self.flow.weight, 0, 1e-5)
        nn.init.zeros_(self.flow.bias)

    def forward(self, x: Tensor) -> Tensor:
        field = self.flow(self.net(x))
        same = torch.eye(2, 3).expand(len(x), 2, 3)
        grid = functional.affine_grid(same, [len(x), 1, *x.shape[2:]], align_corners=False)
        grid = grid + field.permute(0, 2, 3, 1)
        moved = functional.grid_sample(x[:, :1], grid, align_corners=False)
        return functional.mse_loss(moved, x[:, 1:]) + 0.1 * field.diff(dim=2).square().mean()


class ConvLstm(nn.Module):
    """A convolutional LSTM; predicts each next frame of [N, T, 1, H, W]; returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.last = nn.Conv2d(17, 64, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, frames: Tensor) -> Tensor:
        shape = (len(frames), 16, *frames.shape[3:])
        hidden, cell, losses = torch.zeros(shape), torch.zeros(shape), []
        for time in range(frames.shape[1] - 1):
            parts = self.gates(torch.cat([frames[:, time], hidden], 1)).chunk(4, 1)
            cell = parts[0].sigmoid() * cell + parts[1].sigmoid() * parts[2].tanh()
            hidden = parts[3].sigmoid() * cell.tanh()
            guess = frames[:, time] + self.last(hidden)
            losses.append(functional.mse_loss(guess, frames[:, time + 1]))
        return torch.stack(losses).mean()


def style_net() -> nn.Module:
    """Johnson's network for style transfer: reflection padding, InstanceNorm, upsampling."""
    layers: list[nn.Module] = []
    for into, out, size, stride in ((3, 16, 9, 1), (16, 32, 3, 2), (32, 32, 3, 1), (32, 16, 3, -2)):
        layers += [nn.Upsample(scale_factor=2)] if stride < 0 else []
        layers += [nn.ReflectionPad2d(size // 2), nn.Conv2d(into, out, size, max(stride, 1))]
        layers += [nn.InstanceNorm2d(out, affine=True), nn.ReLU()]
    return nn.Sequential(*layers, nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9))


class Holistic(nn.Module):
    """HED: a map of edges from each stage, and one fused from them."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 16, 32, 48)
        pairs = itertools.pairwise(widths)
        self.stages = nn.ModuleList(nn.Sequential(unit(a, b), unit(b, b)) for a, b in pairs)
        self.sides = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in widths[1:])
        self.fuse = nn.Conv2d(3, 1, 1)
        nn.init.constant_(self.fuse.weight, 1 / 3)

    def forward(self, x: Tensor) -> list[Tensor]:
        size, found = x.shape[2:], []
        for stage, side in zip(self.stages, self.sides, strict=True):
            x = stage(x)
            found.append(functional.interpolate(side(x), size, mode="bilinear"))
            x = functional.max_pool2d(x, 2)
        return [*found, self.fuse(torch.cat(found, 1))]


def balanced(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    weight = torch.where(target > 0, 0.85, 0.15)
    entropy = functional.binary_cross_entropy_with_logits
    return sum(entropy(shown, target, weight) for shown in model(images))


def density() -> nn.Module:
    """CSRNet: dilated convolutions, and a map of how many there are."""
    layers = [unit(3, 24), nn.MaxPool2d(2), unit(24, 32)]
    layers += [unit(32, 32, dilation=2), unit(32, 32, dilation=2), nn.Conv2d(32, 1, 1)]
    return nn.Sequential(*layers)


def counted(model: nn.Module, images: Tensor, target: Tensor) -> Tensor:
    return functional.mse_loss(model(images), 4 * functional.avg_pool2d(target, 2))


class Centres(nn.Module):
    """CenterNet: heat of the centres and radius; a bias of -2.19 for rare centres."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(3, 24, stride=2), unit(24, 48, stride=2), unit(48, 48)]
        self.back = nn.Sequential(*layers, nn.ConvTranspose2d(48, 32, 4, 2, 1), nn.ReLU())
        self.heat = nn.Sequential(unit(32, 32, norm=None), nn.Conv2d(32, 1, 1))
        self.size = nn.Sequential(unit(32, 32, norm=None), nn.Conv2d(32, 1, 1))
        nn.init.constant_(self.heat[-1].bias, -2.19)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.back(x)
        return self.heat(y), self.size(y)


def centres(model: nn.Module, images: Tensor, _mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The penalty-reduced focal loss, and L1 of the radius at the centre."""
    heat, size = model(images)
    along, places = torch.arange(16.0), discs[:, :2] / 2
    far = (along[:, None] - places[:, 1, None, None]).square()
    far = far + (along - places[:, 0, None, None]).square()
    column, row = places.round().long().clamp(0, 15).T
    which, goal = torch.arange(len(images)), (-far / 2).exp()
    goal[which, row, column] = 1
    share = heat[:, 0].sigmoid().clamp(1e-4, 1 - 1e-4)
    hit = ((1 - share).square() * share.log())[which, row, column]
    miss = ((1 - goal) ** 4 * share.square() * (1 - share).log()).sum((1, 2))
    return -(hit + miss).mean() + 0.1 * (size[which, 0, row, column] - discs[:, 2]).abs().mean()


class Pose(nn.Module):
    """Simple baseline: a stem and three transposed convolutions of 4 px with BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 24, 32, 48, 64)
        pairs = itertools.pairwise(widths)
        layers: list[nn.Module] = [unit(a, b, stride=2) for a, b in pairs]
        for into in (64, 32, 32):
            conv = nn.ConvTranspose2d(into, 32, 4, 2, 1, bias=False)
            layers += [conv, nn.BatchNorm2d(32), nn.ReLU()]
        self.body, self.last = nn.Sequential(*layers), nn.Conv2d(32, 1, 1)
        nn.init.normal_(self.last.weight, std=0.001)

    def forward(self, x: Tensor) -> Tensor:
        y = self.last(self.body(x))
        return functional.interpolate(y, x.shape[2:], mode="bilinear")


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


def unblurred(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """From pictures blurred by a motion of 5 px to the pictures."""
    shown = sum(images.roll(k, 3) for k in range(-2, 3)) / 5
    return functional.l1_loss(model(shown), images)


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
