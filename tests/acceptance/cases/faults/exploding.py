"""Planted faults that ``exploding`` names."""

from __future__ import annotations

from functools import partial

from data import P
from faults import Unrolled, at, each, swept
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import head, stack, unit
from optimizers import SLOW, by
from torch import Tensor, nn, optim

SLOWER = by(optim.Adam, lr=1e-5)


def jump(_: nn.Module, optimizer: optim.Optimizer) -> None:
    optimizer.param_groups[0]["lr"] = 1.0


def larger(model: nn.Module, factor: float) -> nn.Module:
    return each(model, nn.Conv2d, lambda conv: conv.weight.data.mul_(factor))


class Doubling(nn.Module):
    """A residual network from which BatchNorm was removed: its values double per block."""

    def __init__(self, blocks: int = 18) -> None:
        super().__init__()
        self.first, self.blocks = unit(3, 24, stride=2, norm=None), nn.ModuleList()
        for _ in range(blocks):
            block = nn.Sequential(unit(24, 24, norm=None), nn.Conv2d(24, 24, 3, padding=1))
            self.blocks.append(each(block, nn.Conv2d, he))
        self.last = nn.Sequential(*head(24, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


def he(conv: nn.Conv2d) -> None:
    nn.init.kaiming_normal_(conv.weight)


def sum_pools() -> nn.Module:
    """Windows are summed in place of averaged (``divisor_override=1``), four times."""
    layers: list[nn.Module] = []
    for into, out in ((3, 24), (24, 32), (32, 48), (48, 64)):
        conv = nn.Conv2d(into, out, 3, padding=1)
        he(conv)
        layers += [conv, nn.ReLU(), nn.AvgPool2d(2, divisor_override=1)]
        layers += [nn.Conv2d(out, out, 1), nn.ReLU(), nn.AvgPool2d(3, 1, 1, divisor_override=1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 4, 8))


CASES = seen(
    "2026-11-22T18:59",
    swept("rate jumps", after=at(30, jump), expected="exploding,nonfinite,dead,update_ratio"),
    swept("large weights, deep", lambda: larger(stack(9, 16), 5), expected="exploding,nonfinite"),
    expected="exploding",
)
CASES += seen(
    "2026-11-23T07:48",
    Task("12 plain layers", partial(stack, 12, act=nn.LeakyReLU, scale=0.2), P, named).cases(
        exploding_depth=sixty("normal 0.2", SLOW)
    ),
    Task("unrolled convolution", partial(Unrolled, 24, 2.0, nn.LeakyReLU(0.2)), P, named).cases(
        exploding_unrolled=sixty("gain 2, 24 times", SLOWER)
    ),
    expected="exploding",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("ResNet without norm", Doubling, P, named).cases(doubling=sixty("18 blocks", SLOWER)),
    expected="exploding",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("VGG-like CNN, no norm", sum_pools, P, named).cases(
        sum_pools=sixty("sums for means in pools", SLOWER)
    ),
    expected="exploding",
)
