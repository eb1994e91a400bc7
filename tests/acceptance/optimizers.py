"""Optimizers, and schedules of their rates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import timm.optim
import timm.utils
from torch import nn, optim
from torch.optim import Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler


def by(kind: type[Optimizer], **options: Any) -> Callable[[nn.Module], Optimizer]:
    """An optimizer over the parameters that require a gradient."""
    return lambda model: kind([p for p in model.parameters() if p.requires_grad], **options)


def cosine(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.CosineAnnealingLR(optimizer, steps)


def one_cycle(peak: float) -> Callable[[Optimizer, int], LRScheduler]:
    return lambda optimizer, steps: lr_scheduler.OneCycleLR(optimizer, peak, steps + 1)


def warm_up(optimizer: Optimizer, steps: int, *, first: int = 20) -> LRScheduler:
    """Linear from rate 0 over the first steps, then a cosine to 0."""

    def factor(step: int) -> float:
        if step < first:
            return step / first
        return 0.5 + 0.5 * math.cos(math.pi * (step - first) / (steps - first))

    return lr_scheduler.LambdaLR(optimizer, factor)


def lion(model: nn.Module) -> Optimizer:
    return timm.optim.Lion(model.parameters(), 2e-4, weight_decay=0.1)


def adafactor(model: nn.Module) -> Optimizer:
    return optim.Adafactor(model.parameters(), lr=0.01)


def poly(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.PolynomialLR(optimizer, steps, 0.9)


def adaptive(model: nn.Module) -> Optimizer:
    """NFNets' clipping of each gradient to a share of its weight's norm, before each step."""
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    clip = timm.utils.agc.adaptive_clip_grad
    optimizer.register_step_pre_hook(lambda *_: clip(model.parameters(), 0.02))
    return optimizer


def fading(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Exponential decay to a tenth."""
    return lr_scheduler.ExponentialLR(optimizer, 0.1 ** (1 / steps))


def ramp(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Linear warm-up from a tenth over a fifth of the steps, then constant."""
    return lr_scheduler.LinearLR(optimizer, 0.1, 1.0, steps // 5)


def two_phases(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Five steps of warm-up, then a cosine, chained as PyTorch's own classes."""
    first = lr_scheduler.LinearLR(optimizer, 0.01, 1.0, 5)
    then = lr_scheduler.CosineAnnealingLR(optimizer, steps - 5, eta_min=1e-6)
    return lr_scheduler.SequentialLR(optimizer, [first, then], [5])


def stairs(optimizer: Optimizer, steps: int) -> LRScheduler:
    """A third of the rate after each third of the steps."""
    return lr_scheduler.StepLR(optimizer, steps // 3, 0.3)


def linear_down(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.PolynomialLR(optimizer, steps, 1.0)


def again(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.CosineAnnealingWarmRestarts(optimizer, steps // 2, eta_min=1e-5)


ADAM = by(optim.Adam, lr=1e-3)
SGD = by(optim.SGD, lr=0.02, momentum=0.9)
