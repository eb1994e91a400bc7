"""Optimizers, schedules and losses of the acceptance trainings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from acceptance_case import Loss, Recipe
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.optim import Optimizer, lr_scheduler
from torch.optim.lr_scheduler import LRScheduler


def by(kind: type[Optimizer], **options: Any) -> Callable[[nn.Module], Optimizer]:
    """An optimizer over the parameters that require a gradient."""
    return lambda model: kind([p for p in model.parameters() if p.requires_grad], **options)


def decay_weights_only(lr: float, decay: float) -> Callable[[nn.Module], Optimizer]:
    """AdamW with weight decay for kernels and matrices, none for biases and norms."""

    def make(model: nn.Module) -> Optimizer:
        wide = [p for p in model.parameters() if p.ndim > 1]
        flat = [p for p in model.parameters() if p.ndim <= 1]
        groups = [{"params": wide, "weight_decay": decay}, {"params": flat, "weight_decay": 0.0}]
        return optim.AdamW(groups, lr=lr)

    return make


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


def milestones(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.MultiStepLR(optimizer, [steps // 2, steps * 3 // 4], 0.1)


def restarts(optimizer: Optimizer, steps: int) -> LRScheduler:
    return lr_scheduler.CosineAnnealingWarmRestarts(optimizer, steps // 3)


SGD = Recipe("SGD 0.05", by(optim.SGD, lr=0.05))
MOMENTUM = Recipe("SGD 0.02 momentum 0.9", by(optim.SGD, lr=0.02, momentum=0.9), evaluate=25)
NESTEROV = Recipe(
    "Nesterov 0.05, weight decay 5e-4, milestones",
    by(optim.SGD, lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
    milestones,
    steps=120,
    every=20,
)
ADAM = Recipe("Adam 1e-3", by(optim.Adam, lr=1e-3), zero="before")
ADAMW = Recipe(
    "AdamW 1e-3, decay 0.05, cosine", by(optim.AdamW, lr=1e-3, weight_decay=0.05), cosine
)
WARM = Recipe(
    "AdamW 2e-3, warm-up from 0, cosine, clipping 1",
    decay_weights_only(2e-3, 0.05),
    warm_up,
    clip=1.0,
    steps=120,
)
RMSPROP = Recipe("RMSprop 5e-4", by(optim.RMSprop, lr=5e-4), every=5)
ADAGRAD = Recipe("Adagrad 0.01", by(optim.Adagrad, lr=0.01))
ONE_CYCLE = Recipe(
    "one-cycle peak 0.1", by(optim.SGD, lr=0.01, momentum=0.9), one_cycle(0.1), steps=120
)
HIGH_CYCLE = Recipe(
    "one-cycle peak 0.4, batch 32",
    by(optim.SGD, lr=0.01, momentum=0.9, weight_decay=5e-4),
    one_cycle(0.4),
    batch=32,
    every=5,
    steps=80,
)
TINY_BATCH = Recipe("Adam 3e-4, batch 2", by(optim.Adam, lr=3e-4), batch=2, steps=400, every=50)
LARGE_BATCH = Recipe(
    "SGD 0.1 momentum 0.9, batch 64, warm-up",
    by(optim.SGD, lr=0.1, momentum=0.9),
    partial(warm_up, first=10),
    batch=64,
    steps=40,
    every=5,
)
MICRO = Recipe(
    "AdamW 1e-3, 4 micro-batches of 4", by(optim.AdamW, lr=1e-3), micro=4, batch=4, steps=80
)
HALF = Recipe("Adam 1e-3, bfloat16 autocast", by(optim.Adam, lr=1e-3), autocast=True, steps=60)
EMA = Recipe("AdamW 1e-3, EMA 0.99", by(optim.AdamW, lr=1e-3), ema=0.99, evaluate=20)
SMALL_SET = Recipe(
    "Adam 1e-3 on 64 examples", by(optim.Adam, lr=1e-3), examples=64, steps=120, every=1
)
EPOCHS = Recipe(
    "SGD 0.05 momentum 0.9 over 256 examples, evaluations",
    by(optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-4),
    cosine,
    examples=256,
    batch=32,
    evaluate=8,
    steps=64,
    every=8,
)


def classes(smoothing: float = 0.0) -> Loss:
    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(model(images), labels, label_smoothing=smoothing)

    return loss


def mixup(alpha: float = 0.2) -> Loss:
    """Cross-entropy of blended images, in training mode."""

    def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        share = float(torch.distributions.Beta(alpha, alpha).sample())
        order = torch.randperm(len(images))
        logits = model(share * images + (1 - share) * images[order])
        first = functional.cross_entropy(logits, labels)
        return share * first + (1 - share) * functional.cross_entropy(logits, labels[order])

    return loss


def cut_out(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy with a square of each batch erased."""
    side = images.shape[-1]
    top, left = torch.randint(0, side - side // 3, (2,)).tolist()
    images = images.clone()
    images[..., top : top + side // 3, left : left + side // 3] = 0
    return functional.cross_entropy(model(images), labels)


def flip(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of images flipped and jittered in brightness."""
    images = images.flip(3) if torch.rand(()) < 0.5 else images
    gain = 0.8 + 0.4 * torch.rand(len(images), 1, 1, 1)
    return functional.cross_entropy(model(images * gain), labels)


def two_losses(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Of a model with an auxiliary head in training mode."""
    found = model(images)
    if isinstance(found, tuple):
        first, second = (functional.cross_entropy(logits, labels) for logits in found)
        return first + 0.3 * second
    return functional.cross_entropy(found, labels)
