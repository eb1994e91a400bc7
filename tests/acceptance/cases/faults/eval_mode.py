"""Planted faults that ``eval_mode`` names."""

from __future__ import annotations

from functools import partial

import torch
from data import P, scenes
from faults import at
from loops import Task, seen, sixty
from losses import masks, named
from nets.classifiers import encoder, head, unit
from nets.dense import LinkNet
from optimizers import SGD, by
from torch import nn, optim


def evaluate(model: nn.Module, _: object) -> None:
    """Validation that switches to eval mode for good."""
    model.eval()
    with torch.no_grad():
        model(P(torch.Generator().manual_seed(9), 16)[0])


def backbone() -> nn.Module:
    """Features of the backbone are looked at before the training, in eval mode."""
    return nn.Sequential(encoder(32), nn.Linear(32, 8))


class Stuck(nn.Sequential):
    """``train`` is overridden to freeze the norms, and forgets to call super.

    After a first evaluation of the parts, ``train()`` reaches no layer.
    """

    def __init__(self) -> None:
        super().__init__(unit(3, 24, stride=2), unit(24, 48, stride=2), *head(48, 8, 0.2))
        for module in self.children():
            module.eval()

    def train(self, mode: bool = True) -> nn.Module:
        self.training = mode
        return self


def groups_and_dropout() -> nn.Module:
    """GroupNorm and dropout: only dropout tells training from evaluation."""
    groups = partial(nn.GroupNorm, 8)
    layers = [unit(3, 24, stride=2, norm=groups), nn.Dropout2d(0.1)]
    layers += [unit(24, 48, stride=2, norm=groups), nn.Dropout2d(0.2)]
    return nn.Sequential(*layers, *head(48, 8, 0.5))


def encoder_left(model: nn.Module, _: object) -> None:
    """Pictures of the encoder's maps are drawn; then it stays in eval mode."""
    model.first.eval()
    model.down.eval()


CASES = seen(
    "2026-11-23T07:48",
    Task("encoder CNN", backbone, P, named).cases(
        eval_backbone=sixty(
            "backbone in eval", SGD, marked=True, prepare=lambda model: model[0].eval()
        )
    ),
    expected="eval_mode",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("encoder CNN", Stuck, P, named).cases(train_overridden=sixty("train() without super")),
    expected="eval_mode",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("CNN, GroupNorm and dropout", groups_and_dropout, P, named).cases(
        accuracy_left=sixty(
            "accuracy in eval mode, left so", by(optim.AdamW, lr=2e-3), after=at(9, evaluate)
        )
    ),
    Task("LinkNet", LinkNet, scenes, masks).cases(
        encoder_left=sixty(
            "encoder left in eval mode",
            by(optim.Adam, lr=2e-3),
            batch=12,
            before=at(20, encoder_left),
        )
    ),
    expected="eval_mode",
)
