"""Planted faults that ``not_in_optimizer`` names."""

from __future__ import annotations

import copy

import torch
from data import P, photos
from faults import normed
from loops import Task, seen, sixty
from losses import ArcFace, angular, named
from nets.classifiers import encoder, head, unit
from nets.library import timm_model
from nets.unusual import convs
from optimizers import ADAM
from torch import Tensor, nn, optim


class Branches(nn.Module):
    """Branches in a Python list, which PyTorch does not see."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = unit(3, 24, stride=2), nn.Sequential(*head(48, 8))
        self.branches: object = [unit(24, 24), unit(24, 24, 5)]

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.last(torch.cat([branch(x) for branch in self.branches], 1))


def then_registered(model: Branches) -> optim.Optimizer:
    """The list becomes a ModuleList only after the optimizer is built."""
    optimizer = ADAM(model)
    branches = model.branches
    del model.branches
    model.branches = nn.ModuleList(branches)
    return optimizer


def of_a_copy(model: nn.Module) -> optim.Optimizer:
    """The optimizer has the parameters of the model before it was copied."""
    return optim.SGD(copy.deepcopy(model).parameters(), lr=0.05, momentum=0.9)


def of_the_head(model: nn.Sequential) -> optim.Optimizer:
    """The optimizer gets what is trainable at the start; later the backbone is unfrozen."""
    model[:3].requires_grad_(False)
    return optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=2e-3)


def unfrozen(step: int, model: nn.Module, _: object) -> None:
    if step == 20:
        model.requires_grad_(True)


class Grown(nn.Module):
    """The shortcut's projection is made in the first forward pass, when its width is known."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.body = unit(3, 24, stride=2), unit(24, 48, stride=2)
        self.skip: nn.Module | None = None
        self.last = nn.Sequential(*head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        y = self.body(x)
        if self.skip is None:
            self.skip = nn.Conv2d(x.shape[1], y.shape[1], 1, 2)
        return self.last(y + self.skip(x))


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


CASES = seen(
    "2026-11-23T07:48",
    Task("branches in a list", Branches, P, named).cases(
        listed=sixty("registered late", then_registered, marked=True)
    ),
    Task("encoder CNN", lambda: encoder(8), P, named).faults(
        "not_in_optimizer,unchanged_weights", copied=sixty("copied model", of_a_copy)
    ),
    expected="not_in_optimizer",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("residual CNN", Grown, P, named).cases(
        made_in_forward=sixty("a layer made in the first forward pass")
    ),
    normed(
        unfrozen_late=sixty("unfrozen after the optimizer was built", of_the_head, before=unfrozen)
    ),
    Task("ArcFace CNN", lambda: ArcFace(encoder(32)), P, angular).cases(
        centres=sixty(
            "class centres forgotten",
            lambda model: optim.SGD(model.back.parameters(), lr=0.05, momentum=0.9),
        )
    ),
    expected="not_in_optimizer",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("SiLU CNN", lambda: convs(None, nn.SiLU), P, named).cases(
        weight_norm_late=sixty("weight norm after the optimizer was built", parametrized_late)
    ),
    Task("timm LCNet", lambda: timm_model("lcnet_035"), photos(64), named).cases(
        groups_by_type=sixty("norms in no parameter group", groups_by_type)
    ),
    expected="not_in_optimizer",
)
