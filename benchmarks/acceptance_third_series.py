"""Networks of the third set for series, sounds and rays."""

from __future__ import annotations

import math

import torch
from acceptance_data import photos
from torch import Generator, Tensor, nn
from torch.nn import functional


class InceptionTime(nn.Module):
    """Three blocks of parallel kernels; a BatchNorm in front takes the sensors' units."""

    def __init__(self) -> None:
        super().__init__()

        class Block(nn.Module):
            def __init__(self, into: int) -> None:
                super().__init__()
                self.neck = nn.Conv1d(into, 16, 1, bias=False)
                kernels = (9, 19, 39)
                self.convs = nn.ModuleList(
                    nn.Conv1d(16, 12, k, padding=k // 2, bias=False) for k in kernels
                )
                self.pooled = nn.Conv1d(into, 12, 1, bias=False)
                self.norm, self.skip = nn.BatchNorm1d(48), nn.Conv1d(into, 48, 1)

            def forward(self, x: Tensor) -> Tensor:
                neck = self.neck(x)
                parts = [conv(neck) for conv in self.convs]
                parts.append(self.pooled(functional.max_pool1d(x, 3, 1, 1)))
                return (self.norm(torch.cat(parts, 1)) + self.skip(x)).relu()

        self.norm = nn.BatchNorm1d(6)
        self.blocks, self.last = nn.Sequential(Block(6), Block(48)), nn.Linear(48, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.blocks(self.norm(x)).mean(2))


class Reversible(nn.Module):
    """A forecaster in kW with RevIN: each series is standardized, the forecast scaled back."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Conv1d(1, 32, 25, padding=12), nn.GELU()]
        for dilation in (1, 2, 4):
            layers += [nn.Conv1d(32, 32, 3, padding=dilation, dilation=dilation), nn.GELU()]
        self.body, self.last = nn.Sequential(*layers), nn.Linear(96, 24)
        self.mix = nn.Conv1d(32, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        mean, spread = x.mean(2, keepdim=True), x.std(2, keepdim=True)
        return self.last(self.mix(self.body((x - mean) / spread))) * spread + mean


def percent(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """Error relative to the series' size."""
    return ((model(past) - future).abs() / past.mean(2, keepdim=True)).mean()


class Separated(nn.Module):
    """Conv-TasNet: encoder of 16 samples, stride 8, masks, transposed convolution back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, 48, 16, 8, bias=False)
        self.neck = nn.Sequential(nn.GroupNorm(1, 48), nn.Conv1d(48, 32, 1))
        self.blocks = nn.ModuleList()
        for dilation in (1, 2, 4, 8):
            deep = nn.Conv1d(48, 48, 3, padding=dilation, dilation=dilation, groups=48)
            layers = [nn.Conv1d(32, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48), deep, nn.PReLU()]
            self.blocks.append(nn.Sequential(*layers, nn.GroupNorm(1, 48), nn.Conv1d(48, 32, 1)))
        self.masks, self.decoder = (
            nn.Conv1d(32, 96, 1),
            nn.ConvTranspose1d(48, 1, 16, 8, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        code = self.encoder(x).relu()
        y = self.neck(code)
        for block in self.blocks:
            y = y + block(y)
        shown = self.masks(y).relu().unflatten(1, (2, 48)) * code[:, None]
        return self.decoder(shown.flatten(0, 1)).view(len(x), 2, -1)


def noise_ratio(model: nn.Module, mixed: Tensor, voices: Tensor) -> Tensor:
    """Negative signal-to-noise ratio in dB; plus 30, so that it falls from above 0."""
    error = (model(mixed) - voices).square().sum(2)
    return 30 - 10 * (voices.square().sum(2) / (error + 1e-6)).log10().mean()


class Rays(nn.Module):
    """NeRF in the plane: Fourier features of a place, density and colour, summed along rays."""

    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Linear(3 * 16, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU()]
        self.body, self.density = nn.Sequential(*layers), nn.Linear(96, 1)
        self.colour = nn.Sequential(nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 3), nn.Sigmoid())

    def forward(self, places: Tensor) -> Tensor:
        angles = (places[..., None] * 2.0 ** torch.arange(8) * math.pi).flatten(-2)
        y = self.body(torch.cat([angles.sin(), angles.cos()], -1))
        dense = functional.softplus(self.density(y)[..., 0] - 1) * 0.25
        left = (-torch.cumsum(dense, 1) + dense).exp()
        return ((left * (1 - (-dense).exp()))[..., None] * self.colour(y)).sum(1)


def rays(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Straight rays of 8 places through a slab, and the colour of one photograph there."""
    picture = photos(48, "unit")(Generator().manual_seed(5), 1)[0][0]
    y, x = torch.randint(48, (2, count), generator=generator)
    flat = torch.stack([x, y], 1) / 24 - 1
    deep = (torch.arange(8) + torch.rand(count, 8, generator=generator)) / 4 - 1
    places = torch.cat([flat[:, None].expand(-1, 8, -1), deep[..., None]], 2)
    return places, picture[:, y, x].T


def rendered(model: nn.Module, places: Tensor, colours: Tensor) -> Tensor:
    return functional.mse_loss(model(places), colours)
