"""Planted faults that ``dead`` names."""

from __future__ import annotations

from data import P
from faults import bare, each, swept
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import unit, with_norm
from optimizers import ADAM, SGD, by
from torch import Tensor, nn, optim
from torch.nn import functional


def low_biases(model: nn.Module, *_: object) -> nn.Module:
    """Biases of convolutions are -20."""
    return each(model, nn.Conv2d, lambda conv: nn.init.constant_(conv.bias, -20.0))


def low_after(model: nn.Module) -> optim.Optimizer:
    return ADAM(low_biases(model))


def zero_scales() -> nn.Module:
    """Scale 0 for every BatchNorm, as it is done for the last one of a residual block."""
    return each(with_norm(), nn.BatchNorm2d, lambda norm: nn.init.zeros_(norm.weight))


def relu_last() -> nn.Module:
    """A denoiser of standardized pictures that ends in ReLU."""
    layers = [unit(3, 24, norm=None), unit(24, 24, norm=None), nn.Conv2d(24, 3, 3, padding=1)]
    nn.init.constant_(layers[-1].bias, -0.5)
    return nn.Sequential(*layers, nn.ReLU())


def below(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Targets are below 0: log-density of dark pictures."""
    return functional.mse_loss(model(images), -images.abs() - 0.5)


def spiked(step: int, _: nn.Module, optimizer: optim.Optimizer) -> None:
    """A warm-up that ends at 3 in place of 0.03, for four steps."""
    optimizer.param_groups[0]["lr"] = 3.0 if 10 <= step < 14 else 0.01


CASES = seen(
    "2026-11-22T18:59",
    swept("negative biases", optimizer=low_after),
    expected="dead",
)
CASES += seen(
    "2026-11-23T07:48",
    bare(dying=sixty("Adam 0.1", by(optim.Adam, lr=0.1))),
    expected="dead",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("encoder CNN", zero_scales, P, named).faults(
        "dead,vanishing,unchanged_weights", zero_scales=sixty("scale 0 in every BatchNorm")
    ),
    Task("denoiser", relu_last, P, below).cases(
        relu_last=sixty("ReLU at the end, targets below 0")
    ),
    expected="dead",
)
CASES += seen(
    "2026-11-23T10:59",
    bare(spike=sixty("rate 3 for four steps, ends in NaN", SGD, before=spiked)),
    expected="dead",
)
