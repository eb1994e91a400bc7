"""Networks of the acceptance trainings that make pictures, and their losses."""

from __future__ import annotations

import torch
from acceptance_classic import unit
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


class VAE(nn.Module):
    """Images in [-1, 1] to 32 latent numbers and back; returns the loss per pixel."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1)]
        self.encode = nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.Flatten())
        self.mean, self.spread = nn.Linear(48 * 64, 32), nn.Linear(48 * 64, 32)
        self.start = nn.Linear(32, 48 * 64)
        layers = [nn.Unflatten(1, (48, 8, 8)), nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.ReLU()]
        self.decode = nn.Sequential(*layers, nn.ConvTranspose2d(24, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        y = self.encode(x)
        mean, spread = self.mean(y), self.spread(y)
        again = self.decode(self.start(mean + (spread / 2).exp() * torch.randn_like(mean)))
        divergence = -0.5 * (1 + spread - mean.square() - spread.exp()).mean()
        return functional.mse_loss(again, x) + 0.01 * divergence


class VectorQuantized(nn.Module):
    """VQ-VAE with a straight-through estimate; returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(unit(3, 24, 4, 2), unit(24, 32, stride=2), nn.Conv2d(32, 16, 1))
        self.book = nn.Embedding(64, 16)
        nn.init.uniform_(self.book.weight, -1, 1)
        layers = [nn.ConvTranspose2d(16, 24, 4, 2, 1), nn.ReLU()]
        self.decode = nn.Sequential(*layers, nn.ConvTranspose2d(24, 3, 4, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        code = self.encode(functional.pad(x, (0, 1, 0, 1)))
        flat = code.permute(0, 2, 3, 1)
        near = torch.cdist(flat.flatten(0, 2), self.book.weight).argmin(1)
        found = self.book(near).view_as(flat).permute(0, 3, 1, 2)
        commit = functional.mse_loss(code, found.detach()) * 0.25
        again = self.decode(code + (found - code).detach())
        return functional.mse_loss(again, x) + functional.mse_loss(found, code.detach()) + commit


class Residue(nn.Module):
    """EDSR's block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.2 * self.conv2(functional.relu(self.conv1(x)))


def super_resolution(kind: str) -> nn.Module:
    """16 × 16 to 32 × 32 px: "espcn", "edsr" (both PixelShuffle) or "fsrcnn" (transposed)."""
    if kind == "espcn":
        layers = [nn.Conv2d(3, 48, 5, padding=2), nn.Tanh(), nn.Conv2d(48, 24, 3, padding=1)]
        return nn.Sequential(
            *layers, nn.Tanh(), nn.Conv2d(24, 12, 3, padding=1), nn.PixelShuffle(2)
        )
    if kind == "edsr":
        layers = [nn.Conv2d(3, 32, 3, padding=1), *(Residue(32) for _ in range(3))]
        layers += [nn.Conv2d(32, 128, 3, padding=1), nn.PixelShuffle(2)]
        return nn.Sequential(*layers, nn.Conv2d(32, 3, 3, padding=1))
    layers = [nn.Conv2d(3, 32, 5, padding=2), nn.PReLU(32), nn.Conv2d(32, 12, 1), nn.PReLU(12)]
    layers += [nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12), nn.Conv2d(12, 32, 1), nn.PReLU(32)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 8, 2, 3))


class Denoiser(nn.Module):
    """DnCNN: the network finds the noise, which is subtracted."""

    def __init__(self, depth: int = 5, channels: int = 3) -> None:
        super().__init__()
        middle = [unit(24, 24) for _ in range(depth - 2)]
        first = unit(channels, 24, norm=None)
        self.body = nn.Sequential(first, *middle, nn.Conv2d(24, channels, 3, padding=1))

    def forward(self, x: Tensor) -> Tensor:
        return x - self.body(x)


class Timed(nn.Module):
    """A small U-Net with GroupNorm and the time of the diffusion, as in DDPM."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 48), nn.SiLU(), nn.Linear(48, 2 * width))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm1, self.norm2 = nn.GroupNorm(6, 2 * width), nn.GroupNorm(6, 2 * width)
        self.conv1 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.conv2 = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.norm3, self.last = nn.GroupNorm(6, 2 * width), nn.Conv2d(2 * width, 3, 3, padding=1)
        nn.init.zeros_(self.last.weight)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        rates = torch.exp(torch.linspace(0, 6, 8))
        waves = torch.cat([(time[:, None] * rates).sin(), (time[:, None] * rates).cos()], 1)
        first = self.first(x)
        y = self.down(first) + self.time(waves)[:, :, None, None]
        y = y + self.conv1(functional.silu(self.norm1(y)))
        y = y + self.conv2(functional.silu(self.norm2(y)))
        y = torch.cat([first, self.up(y)], 1)
        return self.last(functional.silu(self.norm3(y)))


class Masked(nn.Conv2d):
    """PixelCNN's convolution, which sees only earlier pixels."""

    def __init__(self, into: int, out: int, size: int, own: bool) -> None:
        super().__init__(into, out, size, padding=size // 2)
        seen = torch.zeros(size, size)
        seen[: size // 2] = 1
        seen[size // 2, : size // 2 + own] = 1
        self.register_buffer("seen", seen)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight * self.seen, self.bias)


def pixel_cnn() -> nn.Module:
    """16 grey levels of a printed digit, pixel by pixel."""
    layers = [Masked(1, 24, 7, False), nn.ReLU(), Masked(24, 24, 3, True), nn.ReLU()]
    return nn.Sequential(*layers, Masked(24, 24, 3, True), nn.ReLU(), nn.Conv2d(24, 16, 1))


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
