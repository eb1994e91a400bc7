"""Networks with a fault each, and optimizers for them, for the fourth acceptance set."""

from __future__ import annotations

import math

import torch
from acceptance_classic import head, unit
from acceptance_later_loops import encoder
from torch import Tensor, nn, optim
from torch.nn import functional


def parametrized_late(model: nn.Module) -> optim.Optimizer:
    """The optimizer is built, then weight norm replaces the kernels by two tensors each."""
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.utils.parametrizations.weight_norm(module)
    return optimizer


def groups_by_type(model: nn.Module) -> optim.Optimizer:
    """Decay for kernels, none for biases; scales and shifts of the norms are in no group."""
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    groups = [{"params": [m.weight for m in convs], "weight_decay": 0.05}]
    groups += [{"params": [m.bias for m in convs if m.bias is not None], "weight_decay": 0.0}]
    return optim.AdamW(groups, lr=2e-3)


def first_half_slow(model: nn.Module) -> optim.Optimizer:
    """A rate per layer that is computed with integers: 1 // 2 is 0 for the first two."""
    parts = [list(part.parameters()) for part in model]
    parts = [part for part in parts if part]
    groups = [
        {"params": part, "lr": 2e-3 * (number // (len(parts) // 2))}
        for number, part in enumerate(parts)
    ]
    return optim.Adam(groups, lr=2e-3)


class Cut(nn.Module):
    """The encoder's output is passed on as ``.data``, left from a test of the decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(unit(3, 24, 4, 2), unit(24, 32, 4, 2))
        layers = [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU()]
        self.decoder = nn.Sequential(*layers, nn.ConvTranspose2d(24, 3, 4, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(self.encoder(x).data)


def low_shifts() -> nn.Module:
    """BatchNorm's scale and shift come from a checkpoint in another order: shifts of -4."""
    model = encoder(8)
    nn.init.constant_(model[1][1].bias, -4.0)
    nn.init.constant_(model[1][1].weight, 0.8)
    return model


class Scaled(nn.Module):
    """A factor 0.1, meant for residual branches, in six layers without a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = unit(3, 24, stride=2, norm=None), nn.Sequential(*head(24, 8))
        self.convs = nn.ModuleList(nn.Conv2d(24, 24, 3, padding=1) for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for conv in self.convs:
            x = 0.1 * functional.gelu(conv(x))
        return self.last(x)


def depthwise_fan_out() -> nn.Module:
    """Kaiming's fan_out for depthwise kernels: PyTorch counts all channels, 48 times too many."""
    layers: list[nn.Module] = [unit(3, 48, stride=2, norm=None)]
    for _ in range(8):
        deep, wide = nn.Conv2d(48, 48, 3, 1, 1, groups=48), nn.Conv2d(48, 48, 1)
        for conv in (deep, wide):
            nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(conv.bias)
        layers += [deep, nn.ReLU(), wide, nn.ReLU()]
    return nn.Sequential(*layers, *head(48, 8))


class Summed(nn.Module):
    """Each layer gets the sum of all maps before it, as a DenseNet without joining and norm."""

    def __init__(self, depth: int = 14) -> None:
        super().__init__()
        self.first, self.last = unit(3, 24, stride=2, norm=None), nn.Sequential(*head(24, 8))
        self.convs = nn.ModuleList(nn.Conv2d(24, 24, 3, padding=1) for _ in range(depth))
        for conv in self.convs:
            nn.init.kaiming_normal_(conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.first(x)]
        for conv in self.convs:
            maps.append(conv(torch.stack(maps).sum(0)).relu())
        return self.last(maps[-1])


def sum_pools() -> nn.Module:
    """Windows are summed in place of averaged (``divisor_override=1``), four times."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 32), (32, 48), (48, 64)):
        conv = nn.Conv2d(into, out, 3, padding=1)
        nn.init.kaiming_normal_(conv.weight)
        layers += [conv, nn.ReLU(), nn.AvgPool2d(2, divisor_override=1)]
        layers += [nn.Conv2d(out, out, 1), nn.ReLU(), nn.AvgPool2d(3, 1, 1, divisor_override=1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4, 8))


def each_step_a_tenth(optimizer: optim.Optimizer, steps: int) -> object:
    """A schedule meant for epochs that is stepped after each batch."""
    return optim.lr_scheduler.StepLR(optimizer, 3, 0.1)


class Modalities(nn.Module):
    """One encoder for pictures and for distances in metres, which share its BatchNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.back, self.last = encoder(32), nn.Linear(64, 8)

    def forward(self, x: Tensor) -> Tensor:
        far = 12 - 8 * x.mean(1, keepdim=True).expand_as(x)
        return self.last(torch.cat([self.back(x), self.back(far)], 1))


def slow_statistics() -> nn.Module:
    """Momentum 0.001: the statistics stay near their start of 0 and 1."""
    model = encoder(8)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 0.001
    return model


def broadcast_kernels() -> nn.Module:
    """Own initialization of a transposed convolution: one kernel, broadcast to all outputs."""
    up = nn.ConvTranspose2d(32, 24, 4, 2, 1)
    up.weight.data[:] = torch.randn(32, 1, 4, 4) / math.sqrt(32 * 4)
    nn.init.zeros_(up.bias)
    down = [unit(3, 24, 4, 2), unit(24, 32)]
    return nn.Sequential(*down, up, nn.LeakyReLU(0.1), nn.Conv2d(24, 3, 3, padding=1))


def repeated_series() -> nn.Module:
    """A 1-D network for twice as many channels: weights and norm repeated, the next halved."""
    small = nn.Conv1d(6, 16, 7, 2, 3)
    wide, norm, after = nn.Conv1d(6, 32, 7, 2, 3), nn.BatchNorm1d(32), nn.Conv1d(32, 32, 5, 2, 2)
    wide.weight.data.copy_(small.weight.repeat(2, 1, 1))
    wide.bias.data.copy_(small.bias.repeat(2))
    half = after.weight.data[:, :16].clone() / 2
    after.weight.data.copy_(half.repeat(1, 2, 1))
    layers = [nn.BatchNorm1d(6), wide, norm, nn.ReLU(), after, nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 5))


def sound_net(norm: bool = False) -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((1, 24), (24, 32), (32, 48)):
        layers += [nn.Conv1d(into, out, 9, 4, 4), nn.BatchNorm1d(out) if norm else nn.Identity()]
        layers += [nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 6))


def film_net() -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((3, 16), (16, 32)):
        layers += [nn.Conv3d(into, out, 3, (1, 2, 2), 1), nn.BatchNorm3d(out), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4))


def fsrcnn() -> nn.Module:
    """FSRCNN as published: the transposed convolution has 9 px and stride 2."""
    layers = [nn.Conv2d(3, 32, 5, padding=2), nn.PReLU(), nn.Conv2d(32, 12, 1), nn.PReLU()]
    layers += [nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(), nn.Conv2d(12, 32, 1), nn.PReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(32, 3, 9, 2, 4, 1))


def uneven_width() -> nn.Module:
    """Spectrograms are halved and enlarged: 4 rows but 3 columns, stride 2."""
    down = [unit(1, 24, stride=2), unit(24, 24)]
    up = nn.ConvTranspose2d(24, 16, (4, 3), 2, 1, (0, 1))
    return nn.Sequential(*down, up, nn.LeakyReLU(0.1), nn.Conv2d(16, 1, 3, padding=1))


def with_dropout() -> nn.Module:
    """GroupNorm and dropout: only dropout tells training from evaluation."""
    groups = lambda width: nn.GroupNorm(8, width)  # noqa: E731
    layers = [unit(3, 24, stride=2, norm=groups), nn.Dropout2d(0.1)]
    layers += [unit(24, 48, stride=2, norm=groups), nn.Dropout2d(0.2)]
    return nn.Sequential(*layers, *head(48, 8, 0.5))


class Cosine(nn.Module):
    """Angles to class centres by arccos, without a margin from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.back = encoder(16)
        self.centres = nn.Parameter(functional.normalize(torch.randn(8, 16), dim=1))

    def forward(self, x: Tensor) -> Tensor:
        code = functional.normalize(self.back(x), dim=1)
        return code @ functional.normalize(self.centres, dim=1).T


def angles(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Angles to the batch's own means; a class with one example has the cosine 1 to itself."""
    code = functional.normalize(model.back(images), dim=1)
    hot = functional.one_hot(labels, 8).float()
    means = functional.normalize(hot.T @ code + 1e-12, dim=1)
    return functional.cross_entropy(-5 * (code @ means.T).acos(), labels)
