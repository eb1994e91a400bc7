"""A small denoiser and the forward process of DDPM under the names of diffusers."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional


class Up(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(functional.interpolate(x, scale_factor=2.0))


class UNet2DModel(nn.Module):
    def __init__(self, **_: object) -> None:
        super().__init__()
        self.conv_in, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.time = nn.Sequential(nn.Linear(1, 8), nn.SiLU(), nn.Linear(8, 8))
        self.norm = nn.GroupNorm(2, 8)
        block = nn.Module()
        block.upsamplers = nn.ModuleList([Up(8)])
        self.up_blocks = nn.ModuleList([block])
        self.conv_out = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, sample: Tensor, timesteps: Tensor) -> SimpleNamespace:
        fine = self.conv_in(sample)
        when = self.time(timesteps[:, None] / 1000)[:, :, None, None]
        coarse = functional.silu(self.norm(self.down(fine)) + when)
        return SimpleNamespace(sample=self.conv_out(fine + self.up_blocks[0].upsamplers[0](coarse)))


class DDPMScheduler:
    def __init__(self, num_train_timesteps: int) -> None:
        self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, num_train_timesteps), 0)

    def add_noise(self, images: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        kept = self.kept[timesteps][:, None, None, None]
        return kept.sqrt() * images + (1 - kept).sqrt() * noise
