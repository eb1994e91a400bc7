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
