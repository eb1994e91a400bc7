"""Planted faults that ``gradients_not_cleared`` names."""

from __future__ import annotations

from pathlib import Path

import torch
from data import P, pictures
from faults import normed
from loops import Losses, Task, descend, duel, own_loop, seen, sixty, train
from losses import named
from nets.classifiers import encoder, head, unit, with_norm
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

SLOW_SGD = by(optim.SGD, lr=0.01)


def head_cleared(step: int, model: nn.Sequential, _: object) -> None:
    """zero_grad of a part of the network."""
    model[-1].zero_grad()


def critic_kept(place: Path, seed: int) -> Losses:
    """A GAN whose discriminator is never cleared: it steps along the generator's gradients too."""
    layers = [nn.Linear(32, 48 * 64), nn.Unflatten(1, (48, 8, 8)), nn.ReLU()]
    layers += [nn.Upsample(scale_factor=2), unit(48, 32), nn.Upsample(scale_factor=2), unit(32, 16)]
    maker = nn.Sequential(*layers, nn.Conv2d(16, 3, 3, padding=1), nn.Tanh())
    critic = nn.Sequential(unit(3, 24, 4, 2), unit(24, 48, 4, 2), *head(48, 1))

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (real,) = pictures(32)(random, 12)
        fake = maker(torch.randn(12, 32))
        loss = functional.softplus(-critic(real)).mean()
        loss = loss + functional.softplus(critic(fake.detach())).mean()
        loss.backward()
        second.step()
        descend(first, functional.softplus(-critic(fake)).mean())
        return loss.item()

    return duel(place, seed, (maker, critic), (5e-4, 2e-4), step)


def quarter(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return named(model, images, labels) / 4


def accumulated(step: int, _: nn.Module, optimizer: optim.Optimizer) -> None:
    """Gradients are to be accumulated over 4 batches, but the optimizer steps after each."""
    if (step + 1) % 4 == 0:
        optimizer.zero_grad()


def one_of_two(place: Path, seed: int) -> Losses:
    """A rate for the backbone and one for the head by two optimizers; one is cleared, twice."""
    model = encoder(8)
    first = optim.Adam(model[:-1].parameters(), lr=1e-3)
    second = optim.Adam(model[-1].parameters(), lr=3e-3)

    def step(_: int, random: Generator) -> float:
        second.zero_grad()
        second.zero_grad()
        loss = named(model, *P(random, 16))
        loss.backward()
        first.step()
        second.step()
        return loss.item()

    return train(place, seed, model, step)


def closure_kept(place: Path, seed: int) -> Losses:
    """A closure without ``zero_grad``, which each optimizer of PyTorch accepts."""
    model = encoder(8)
    optimizer = optim.RMSprop(model.parameters(), lr=3e-4)

    def step(_: int, random: Generator) -> float:
        batch = P(random, 16)

        def closure() -> Tensor:
            loss = named(model, *batch)
            loss.backward()
            return loss

        return optimizer.step(closure).item()

    return train(place, seed, model, step, optimizer=optimizer)


CASES = seen(
    "2026-11-23T07:48",
    normed(
        never_cleared=sixty("no zero_grad", zero="never", marked=True),
        head_cleared=sixty(
            "only the head cleared",
            by(optim.SGD, lr=0.005),
            zero="never",
            marked=True,
            before=head_cleared,
        ),
    ),
    own_loop("critic_kept", "GAN", "critic not cleared", critic_kept),
    expected="gradients_not_cleared",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("encoder CNN", with_norm, P, quarter).cases(
        accumulated=sixty("a step per micro-batch", SLOW_SGD, zero="never", after=accumulated)
    ),
    expected="gradients_not_cleared",
)
CASES += seen(
    "2026-11-23T10:59",
    own_loop("one_of_two", "encoder CNN", "one of two optimizers cleared", one_of_two),
    own_loop("closure_kept", "encoder CNN", "closure, no zero_grad", closure_kept),
    expected="gradients_not_cleared",
)
