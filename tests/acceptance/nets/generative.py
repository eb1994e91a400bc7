"""Networks that model pictures, and their losses."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


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


def decoder() -> nn.Module:
    """Strided down, then PixelShuffle up, LayerNorm and GELU between."""
    layers = [nn.Conv2d(3, 32, 4, 4), nn.GroupNorm(1, 32), nn.GELU(), nn.Conv2d(32, 32, 3, 1, 1)]
    return nn.Sequential(*layers, nn.GELU(), nn.Conv2d(32, 48, 1), nn.PixelShuffle(4))
