"""Networks for sounds, series, films, volumes, bands and several inputs."""

from __future__ import annotations

import math

import torch
from nets.classifiers import unit
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations


def pooled(width: int, classes: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, classes)]


def waveform() -> nn.Module:
    """M5: a wide first kernel, then pooling, on raw sound."""
    layers: list[nn.Module] = [nn.Conv1d(1, 24, 40, 4), nn.BatchNorm1d(24), nn.ReLU()]
    for into, out in ((24, 24), (24, 48)):
        layers += [nn.MaxPool1d(2), nn.Conv1d(into, out, 3), nn.BatchNorm1d(out), nn.ReLU()]
    return nn.Sequential(*layers, *pooled(48, 6))


class Causal(nn.Module):
    """TCN's block: two dilated causal convolutions with weight norm and dropout."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.pad = (2 * dilation, 0)
        conv = [nn.Conv1d(width, width, 3, dilation=dilation) for _ in range(2)]
        self.conv1, self.conv2 = map(parametrizations.weight_norm, conv)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.drop(functional.relu(self.conv1(functional.pad(x, self.pad))))
        y = self.drop(functional.relu(self.conv2(functional.pad(y, self.pad))))
        return functional.relu(x + y)


def tcn() -> nn.Module:
    layers = [nn.Conv1d(1, 24, 7, 2, 3), *(Causal(24, 2**level) for level in range(5))]
    return nn.Sequential(*layers, *pooled(24, 6))


class Recurrent(nn.Module):
    """Convolutions over a spectrogram, then a GRU over time."""

    def __init__(self) -> None:
        super().__init__()
        layers = [unit(1, 16), nn.MaxPool2d(2), unit(16, 32), nn.MaxPool2d((4, 2))]
        self.conv = nn.Sequential(*layers)
        self.gru, self.head = nn.GRU(32 * 4, 32, batch_first=True), nn.Linear(32, 6)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.conv(x).permute(0, 3, 1, 2).flatten(2)
        return self.head(self.gru(steps)[0].mean(1))


def clip_net() -> nn.Module:
    """C3D-like."""

    def block(into: int, out: int) -> list[nn.Module]:
        return [nn.Conv3d(into, out, 3, padding=1), nn.BatchNorm3d(out), nn.ReLU()]

    layers = [*block(3, 16), nn.MaxPool3d((1, 2, 2)), *block(16, 24), nn.MaxPool3d(2)]
    layers += [*block(24, 32), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4)]
    return nn.Sequential(*layers)


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


def rendered(model: nn.Module, places: Tensor, colours: Tensor) -> Tensor:
    return functional.mse_loss(model(places), colours)


class Eeg(nn.Module):
    """EEGNet: time, then electrodes depthwise, then separable; ELU, pooling, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, (1, 15), padding=(0, 7), bias=False),
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 16, (6, 1), groups=8, bias=False),
            nn.BatchNorm2d(16),
            *(nn.ELU(), nn.AvgPool2d((1, 4)), nn.Dropout(0.25)),
            nn.Conv2d(16, 16, (1, 7), padding=(0, 3), groups=16, bias=False),
            nn.Conv2d(16, 16, 1, bias=False),
            *(nn.BatchNorm2d(16), nn.ELU(), nn.AvgPool2d((1, 4)), nn.Dropout(0.25)),
            *(nn.Flatten(), nn.LazyLinear(5)),
        )
        self.layers(torch.zeros(2, 1, 6, 96))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers((x - x.mean(2, keepdim=True))[:, None])
