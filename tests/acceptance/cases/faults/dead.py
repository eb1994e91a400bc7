"""Planted faults that ``dead`` names."""

from __future__ import annotations

import math

from data import P
from faults import at, bare, each, swept
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import encoder, unit, with_norm, without_norm
from optimizers import ADAM, SGD, by
from torch import Tensor, nn, optim
from torch.nn import functional


def low_biases(model: nn.Module, *_: object) -> nn.Module:
    """Biases of convolutions are -20."""
    return each(model, nn.Conv2d, lambda conv: nn.init.constant_(conv.bias, -20.0))


def low_after(model: nn.Module) -> optim.Optimizer:
    return ADAM(low_biases(model))


def prior_everywhere() -> nn.Module:
    """The bias of a detector's class head, put on every convolution."""
    return each(without_norm(), nn.Conv2d, lambda c: nn.init.constant_(c.bias, -math.log(99)))


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


def low_shifts() -> nn.Module:
    """BatchNorm's scale and shift come from a checkpoint in another order: shifts of -4."""
    model = encoder(8)
    nn.init.constant_(model[1][1].bias, -4.0)
    nn.init.constant_(model[1][1].weight, 0.8)
    return model


def spiked(step: int, _: nn.Module, optimizer: optim.Optimizer) -> None:
    """A warm-up that ends at 3 in place of 0.03, for four steps."""
    optimizer.param_groups[0]["lr"] = 3.0 if 10 <= step < 14 else 0.01


CASES = seen(
    "2026-11-22T18:59",
    swept("negative biases", optimizer=low_after),
    swept("biases fall", after=at(30, low_biases)),
    expected="dead",
)
CASES += seen(
    "2026-11-23T07:48",
    bare(dying=sixty("Adam 0.1", by(optim.Adam, lr=0.1))),
    Task("encoder CNN, no norm", prior_everywhere, P, named).cases(
        prior_everywhere=sixty("bias -4.6 everywhere")
    ),
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
    Task("encoder CNN", low_shifts, P, named).cases(
        low_shifts=sixty("shifts of -4 in one BatchNorm", SGD)
    ),
    bare(spike=sixty("rate 3 for four steps, ends in NaN", SGD, before=spiked)),
    expected="dead",
)
