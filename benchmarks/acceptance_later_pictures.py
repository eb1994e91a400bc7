"""Networks of the later acceptance trainings that make pictures, and their losses."""

from __future__ import annotations

import math

import torch
from acceptance_classic import unit
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.demo.network import load_trained


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


class SuperResolution(nn.Module):
    """SRResNet: PReLU, BatchNorm, PixelShuffle; 16 × 16 to 32 × 32 px."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 32, 9, padding=4), nn.PReLU())
        self.blocks = nn.ModuleList(
            nn.Sequential(
                unit(32, 32, act=nn.PReLU), nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32)
            )
            for _ in range(3)
        )
        self.up = nn.Sequential(nn.Conv2d(32, 128, 3, padding=1), nn.PixelShuffle(2), nn.PReLU())
        self.last = nn.Conv2d(32, 3, 9, padding=4)

    def forward(self, x: Tensor) -> Tensor:
        first = y = self.first(x)
        for block in self.blocks:
            y = y + block(y)
        return self.last(self.up(first + y))


class WithPerceptualLoss(nn.Module):
    """A network and, as a part of the same module, the frozen one that judges its pictures."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.judge = load_trained().eval().requires_grad_(False)

    def train(self, mode: bool = True) -> WithPerceptualLoss:
        super().train(mode)
        self.judge.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        small = functional.interpolate(images, scale_factor=0.5, mode="bicubic", antialias=True)
        found = self.net(small)
        return functional.l1_loss(found, images) + 0.02 * functional.mse_loss(
            self.judge((found - 0.45) * 4), self.judge((images - 0.45) * 4)
        )


class Coupling(nn.Module):
    """RealNVP's affine coupling; the last convolution begins at zero."""

    def __init__(self, width: int, swap: bool) -> None:
        super().__init__()
        self.swap = swap
        layers = [nn.Conv2d(width // 2, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 1)]
        self.net = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(32, width, 3, padding=1))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        kept, changed = x.chunk(2, 1)[:: -1 if self.swap else 1]
        shift, scale = self.net(kept).chunk(2, 1)
        scale = scale.tanh()
        return torch.cat([kept, changed * scale.exp() + shift], 1), scale.sum((1, 2, 3))


class Flow(nn.Module):
    """Four couplings on 2 × 2 px as channels; returns bits per number, without the constant."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList(Coupling(12, bool(step % 2)) for step in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = functional.pixel_unshuffle(x + torch.rand_like(x) / 32, 2)
        total = torch.zeros(len(x))
        for step in self.steps:
            x, change = step(x)
            total = total + change
        return (x.square().sum((1, 2, 3)) / 2 - total).mean() / x[0].numel() + 1


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


class Recurrent(nn.Module):
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


class Sine(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (30 * x).sin()


def siren() -> nn.Module:
    """Coordinates to colours, as convolutions of size 1, with SIREN's initialization."""
    layers: list[nn.Module] = []
    for number, (into, out) in enumerate(((2, 48), (48, 48), (48, 48))):
        conv = nn.Conv2d(into, out, 1)
        bound = 1 / into if number == 0 else math.sqrt(6 / into) / 30
        nn.init.uniform_(conv.weight, -bound, bound)
        layers += [conv, Sine()]
    last = nn.Conv2d(48, 3, 1)
    nn.init.uniform_(last.weight, -math.sqrt(6 / 48) / 30, math.sqrt(6 / 48) / 30)
    return nn.Sequential(*layers, last)


def style_net() -> nn.Module:
    """Johnson's network for style transfer: reflection padding, InstanceNorm, upsampling."""
    layers: list[nn.Module] = []
    for into, out, size, stride in ((3, 16, 9, 1), (16, 32, 3, 2), (32, 32, 3, 1), (32, 16, 3, -2)):
        layers += [nn.Upsample(scale_factor=2)] if stride < 0 else []
        layers += [nn.ReflectionPad2d(size // 2), nn.Conv2d(into, out, size, max(stride, 1))]
        layers += [nn.InstanceNorm2d(out, affine=True), nn.ReLU()]
    return nn.Sequential(*layers, nn.ReflectionPad2d(4), nn.Conv2d(16, 3, 9))


def painted(planes: int = 6) -> nn.Module:
    """From one-hot planes to a photograph."""
    layers = [unit(planes, 32), unit(32, 48, stride=2), unit(48, 48), nn.Upsample(scale_factor=2)]
    return nn.Sequential(*layers, unit(48, 24), nn.Conv2d(24, 3, 3, padding=1), nn.Tanh())


def to_photo(model: nn.Module, planes: Tensor, images: Tensor) -> Tensor:
    return functional.l1_loss(model(planes), images)
