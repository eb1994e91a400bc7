"""Planted faults that ``copied_channels`` names."""

from __future__ import annotations

import math

import torch
from data import CROPS, P, voxels
from loops import Task, seen, sixty
from losses import again, named
from nets.classifiers import encoder, unit, with_norm
from optimizers import SGD
from torch import Generator, nn


def widened() -> nn.Module:
    """Each channel of the second layer twice, and the next layer's weights halved."""
    model = encoder(8, norm=False)
    second, third = model[1][0], model[2][0]
    wide, after = nn.Conv2d(24, 96, 3, 2, 1), nn.Conv2d(96, 64, 3, 1, 1)
    wide.weight.data.copy_(torch.cat([second.weight, second.weight]))
    wide.bias.data.copy_(torch.cat([second.bias, second.bias]))
    after.weight.data.copy_(torch.cat([third.weight, third.weight], 1) / 2)
    after.bias.data.copy_(third.bias)
    model[1][0], model[2][0] = wide, after
    return model


def inflated() -> nn.Module:
    """A first layer for 32 channels made of one trained edge filter, and BatchNorm after it."""
    model = with_norm()
    kernel = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 4
    model[0][0].weight.data.copy_(kernel.expand(24, 3, 3, 3) / 3)
    return model


def reseeded() -> nn.Module:
    """A 3-D network whose own initialization seeds a generator for each filter."""
    layers: list[nn.Module] = []
    for into, out in ((1, 12), (12, 24)):
        conv = nn.Conv3d(into, out, 3, 2, 1)
        for kernel in conv.weight.data:
            kernel.normal_(0, math.sqrt(2 / kernel.numel()), generator=Generator().manual_seed(0))
        nn.init.zeros_(conv.bias)
        layers += [conv, nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(24, 4))


def broadcast_kernels() -> nn.Module:
    """Own initialization of a transposed convolution: one kernel, broadcast to all outputs."""
    up = nn.ConvTranspose2d(32, 24, 4, 2, 1)
    up.weight.data[:] = torch.randn(32, 1, 4, 4) / math.sqrt(32 * 4)
    nn.init.zeros_(up.bias)
    down = [unit(3, 24, 4, 2), unit(24, 32)]
    return nn.Sequential(*down, up, nn.LeakyReLU(0.1), nn.Conv2d(24, 3, 3, padding=1))


CASES = seen(
    "2026-11-23T07:48",
    Task("encoder CNN, no norm", widened, P, named).cases(widened=sixty("widened by copies")),
    Task("encoder CNN", inflated, P, named).cases(inflated=sixty("one filter for all", SGD)),
    expected="copied_channels",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("3-D CNN", reseeded, voxels, named).cases(reseeded=sixty("a seed per filter")),
    expected="copied_channels",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("autoencoder", broadcast_kernels, CROPS, again).cases(
        broadcast=sixty("one kernel for all outputs, transposed")
    ),
    expected="copied_channels",
)
