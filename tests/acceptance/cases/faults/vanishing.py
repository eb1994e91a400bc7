"""Planted faults that ``vanishing`` names."""

from __future__ import annotations

from functools import partial

from data import P, gestures
from faults import Unrolled, each, swept
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import head, stack, unit
from nets.signals import pooled
from optimizers import SGD
from torch import Tensor, nn
from torch.nn import functional


def saturated() -> nn.Module:
    """A 1-D network of 14 tanh layers without norm, weights of deviation 0.05."""
    layers: list[nn.Module] = [nn.BatchNorm1d(6), nn.Conv1d(6, 24, 5, padding=2), nn.Tanh()]
    for _ in range(14):
        conv = nn.Conv1d(24, 24, 3, padding=1)
        nn.init.normal_(conv.weight, 0, 0.05)
        layers += [conv, nn.Tanh()]
    return nn.Sequential(*layers, *pooled(24, 5))


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


def tiny() -> nn.Module:
    return each(stack(9, 16), nn.Conv2d, lambda conv: conv.weight.data.mul_(0.1))


CASES = seen(
    "2026-11-22T18:59",
    swept("tiny weights, deep", tiny),
    expected="vanishing",
)
CASES += seen(
    "2026-11-23T07:48",
    Task("30 plain layers", partial(stack, 30), P, named).cases(
        vanishing_relu=sixty("default init", SGD)
    ),
    expected="vanishing",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("recurrent convolution", partial(Unrolled, 30, 0.4, nn.Tanh()), P, named).cases(
        memory=sixty("30 times tanh, gain 0.4", SGD)
    ),
    Task("14 tanh layers (1-D)", saturated, gestures, named).cases(
        saturated=sixty("deviation 0.05", SGD)
    ),
    expected="vanishing",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("6 layers, each times 0.1", Scaled, P, named).cases(scaled_branches=sixty("GELU", SGD)),
    Task("8 separable layers, no norm", depthwise_fan_out, P, named).cases(
        depthwise_fan_out=sixty("fan_out of depthwise kernels", SGD)
    ),
    expected="vanishing",
)
