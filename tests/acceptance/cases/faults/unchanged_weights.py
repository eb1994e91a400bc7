"""Planted faults that ``unchanged_weights`` names."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from data import CROPS, P
from faults import normed, swept
from loops import Losses, Task, own_loop, seen, sixty, train
from losses import again, named, of_type
from nets.classifiers import Function, encoder, head, unit, without_norm
from optimizers import ADAM, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim import lr_scheduler


def integer_warm_up(optimizer: optim.Optimizer, steps: int) -> lr_scheduler.LRScheduler:
    """``//`` in place of ``/``: the rate is 0 until the warm-up has ended."""
    return lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step // 500))


class Detached(nn.Module):
    """Features that somebody computed under no_grad to save memory, and left so."""

    def __init__(self) -> None:
        super().__init__()
        parts = list(encoder(8))
        self.stem, self.rest = nn.Sequential(*parts[:2]), nn.Sequential(*parts[2:])

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.stem(x)
        return self.rest(x)


class Borrowed(nn.Module):
    """A decoder that uses a frozen copy of its kernel in place of the one it registers."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 32, 4, 2, 1), nn.Conv2d(32, 32, 3, padding=1)
        self.up = nn.Conv2d(32, 12, 3, padding=1)
        self.used = self.middle.weight.detach().clone()

    def forward(self, x: Tensor) -> Tensor:
        y = functional.conv2d(self.down(x).relu(), self.used, self.middle.bias, padding=1)
        return functional.pixel_shuffle(self.up(y.relu()), 2)


def coder(*layers: nn.Module, cut: object) -> nn.Module:
    """An encoder whose codes are changed before the decoder gets them."""
    into = layers[-1].out_channels if isinstance(layers[-1], nn.Conv2d) else 32
    up = [nn.ConvTranspose2d(into, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*layers, Function(cut), *up)


def rounded() -> nn.Module:
    """Codes are rounded without a straight-through estimate: nothing flows to the encoder."""
    layers = [unit(3, 24, stride=2), nn.Conv2d(24, 12, 3, 2, 1)]
    return coder(*layers, cut=lambda x: (x.tanh() * 3).round() / 3)


class SideHead(nn.Module):
    """A second task whose weight in the loss was left at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.back = nn.Sequential(unit(3, 24, stride=2), unit(24, 48, stride=2))
        self.last = nn.Sequential(*head(48, 8))
        self.side = nn.Sequential(unit(48, 32, norm=None), nn.Conv2d(32, 1, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.back(x)
        return self.last(y), self.side(y)


def weight_zero(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    told, shown = model(images)
    grey = functional.avg_pool2d(images.mean(1, keepdim=True), 4)
    return functional.cross_entropy(told, labels) + 0.0 * functional.mse_loss(shown, grey)


def first_half_slow(model: nn.Module) -> optim.Optimizer:
    """A rate per layer that is computed with integers: 1 // 2 is 0 for the first two."""
    parts = [part for part in (list(layer.parameters()) for layer in model) if part]
    half = len(parts) // 2
    return optim.Adam([{"params": p, "lr": 2e-3 * (n // half)} for n, p in enumerate(parts)])


SAVED: dict[str, Tensor] = {}


def restored(step: int, model: nn.Module, _: object) -> None:
    """The averaged weights are swapped in for evaluation; what is put back was saved once."""
    if step == 0:
        SAVED.update(copy.deepcopy(model.state_dict()))
    model.load_state_dict(SAVED)


def never_stepped(place: Path, seed: int) -> Losses:
    """Accumulation with a condition that is never true."""
    model = encoder(8)
    optimizer = ADAM(model)

    def step(_: int, random: Generator) -> float:
        optimizer.zero_grad()
        loss = named(model, *P(random, 16))
        loss.backward()
        return loss.item()

    return train(place, seed, model, step)


def cleared_too_late(place: Path, seed: int) -> Losses:
    """``zero_grad`` stands between ``backward`` and ``step``; gradients are kept as zeros."""
    model = encoder(8)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(_: int, random: Generator) -> float:
        loss = named(model, *P(random, 16))
        loss.backward()
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        return loss.item()

    return train(place, seed, model, step, optimizer=optimizer)


BOTH = "unchanged_weights,update_ratio"
CASES = seen(
    "2026-11-22T18:59",
    swept("rate zero by mistake", optimizer=by(optim.SGD, lr=1e-12, momentum=0.9)),
    expected=BOTH,
)
CASES += seen(
    "2026-11-23T07:48",
    normed(integer_warm_up=sixty("rate 0 by //", schedule=integer_warm_up)),
    Task("CNN, stem under no_grad", Detached, P, named).cases(
        no_grad_stem=sixty("no_grad left on")
    ),
    Task("autoencoder, frozen copy", Borrowed, CROPS, again).cases(
        frozen_copy=sixty("tied to a copy")
    ),
    own_loop("never_stepped", "encoder CNN", "no optimizer step", never_stepped),
    expected="unchanged_weights",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("rounding autoencoder", rounded, CROPS, again).cases(rounded=sixty("no straight-through")),
    Task("two-task CNN", SideHead, P, weight_zero).faults(
        "unchanged_weights,vanishing", weight_zero=sixty("a loss's weight is 0")
    ),
    normed(restored=sixty("old weights put back after each step", after=restored)),
    Task(
        "encoder CNN, no norm", lambda: without_norm().bfloat16(), P, of_type(torch.bfloat16)
    ).faults(
        BOTH,
        small_half=sixty("bfloat16, rate 1e-6", by(optim.AdamW, lr=1e-6, weight_decay=0.0)),
    ),
    expected="unchanged_weights",
)
CASES += seen(
    "2026-11-23T10:59",
    normed(half_rates=sixty("rates of layers by //", first_half_slow)),
    own_loop(
        "cleared_too_late",
        "encoder CNN",
        "zero_grad between backward and step",
        cleared_too_late,
    ),
    expected="unchanged_weights",
)
