"""Optimizers that users write or take from papers, for the later acceptance trainings."""

from __future__ import annotations

from collections.abc import Callable

import timm.optim
import timm.utils
import torch
from torch import nn, optim
from torch.optim import Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler


class ByParameter(Optimizer):
    """Applies `update` to each parameter that has a gradient."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    mean = self.state[p].setdefault("mean", torch.zeros_like(p))
                    self.update(p, mean, group["lr"], group["decay"])

    def update(self, p: torch.Tensor, mean: torch.Tensor, lr: float, decay: float) -> None:
        raise NotImplementedError


class Lion(ByParameter):
    """The sign of an interpolated momentum."""

    def update(self, p: torch.Tensor, mean: torch.Tensor, lr: float, decay: float) -> None:
        p.mul_(1 - lr * decay)
        p.add_(mean.lerp(p.grad, 0.1).sign(), alpha=-lr)
        mean.lerp_(p.grad, 0.01)


class Lars(ByParameter):
    """SGD with momentum; the rate of each matrix is scaled by its norm over its gradient's."""

    def update(self, p: torch.Tensor, mean: torch.Tensor, lr: float, decay: float) -> None:
        move = p.grad
        if p.ndim > 1:
            move = move + decay * p
            move = move * (0.02 * p.norm() / (move.norm() + 1e-9))
        p.sub_(mean.mul_(0.9).add_(move), alpha=lr)


class Lookahead(Optimizer):
    """Every fifth step goes back to half of the way."""

    def __init__(self, inner: Optimizer) -> None:
        super().__init__([p for g in inner.param_groups for p in g["params"]], {})
        self.inner, self.steps = inner, 0

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:
        params = [p for g in self.param_groups for p in g["params"]]
        for p in params:
            self.state[p].setdefault("slow", p.clone())
        self.inner.step()
        self.steps += 1
        if self.steps % 5 == 0:
            for p in params:
                slow = self.state[p]["slow"]
                p.copy_(slow.lerp_(p, 0.5))


def lion(model: nn.Module) -> Optimizer:
    return Lion(model.parameters(), {"lr": 2e-4, "decay": 0.1})


def lars(model: nn.Module) -> Optimizer:
    return Lars(model.parameters(), {"lr": 0.3, "decay": 1e-4})


def lookahead(model: nn.Module) -> Optimizer:
    return Lookahead(optim.AdamW(model.parameters(), lr=2e-3))


def adafactor(model: nn.Module) -> Optimizer:
    return optim.Adafactor(model.parameters(), lr=0.01)


def layer_decay(model: nn.Module) -> Optimizer:
    """timm's rates that shrink by 0.6 per layer, from 5e-4."""
    return timm.optim.create_optimizer_v2(model, "adamw", 5e-4, 0.05, layer_decay=0.6)


def fused(model: nn.Module) -> Optimizer:
    return optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def clipped_by_value(model: nn.Module) -> Optimizer:
    """Gradients are clipped by a hook on each parameter."""
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    return optim.RMSprop(model.parameters(), lr=3e-4, momentum=0.9)


def poly(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.PolynomialLR(optimizer, steps, 0.9)


def slow_warm_up(optimizer: Optimizer, steps: int) -> LRScheduler:
    """From a millionth of the rate over half of the training."""
    return lr_scheduler.LinearLR(optimizer, 1e-6, 1.0, steps // 2)


def down_to_zero(optimizer: Optimizer, steps: int) -> LRScheduler:
    """Zero over the last fifth."""
    return lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / (0.8 * steps)))


def adaptive(model: nn.Module) -> Optimizer:
    """NFNets' clipping of each gradient to a share of its weight's norm, before each step."""
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    clip = timm.utils.agc.adaptive_clip_grad
    optimizer.register_step_pre_hook(lambda *_: clip(model.parameters(), 0.02))
    return optimizer
