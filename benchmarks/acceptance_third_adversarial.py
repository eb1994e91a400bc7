"""Adversarial trainings of the third set."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import torch
from acceptance_case import follow
from acceptance_classic import unit
from acceptance_data import pictures
from acceptance_third_loop import Measured, evaluated
from torch import Tensor, nn, optim
from torch.nn import functional

import fmapboard


class Equalized(nn.Conv2d):
    """StyleGAN's convolution: weights of deviation 1, scaled in the forward pass."""

    def __init__(self, into: int, out: int, size: int) -> None:
        super().__init__(into, out, size, padding=size // 2)
        nn.init.normal_(self.weight)
        nn.init.zeros_(self.bias)
        self.gain = 1 / math.sqrt(into * size * size)

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight * self.gain, self.bias)


class Styled(nn.Module):
    """A constant, modulated by a style at each of three sizes, with noise."""

    def __init__(self) -> None:
        super().__init__()
        self.mapping = nn.Sequential(nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32))
        self.start = nn.Parameter(torch.randn(1, 32, 8, 8))
        self.convs = nn.ModuleList(Equalized(32, 32, 3) for _ in range(3))
        self.styles = nn.ModuleList(nn.Linear(32, 64) for _ in range(3))
        self.strengths = nn.Parameter(torch.zeros(3))
        self.last = Equalized(32, 3, 1)

    def forward(self, code: Tensor) -> Tensor:
        style, x = self.mapping(code), self.start.expand(len(code), -1, -1, -1)
        for number, (conv, modulate) in enumerate(zip(self.convs, self.styles, strict=True)):
            x = functional.interpolate(x, scale_factor=2.0) if number else x
            x = conv(x) + self.strengths[number] * torch.randn_like(x[:, :1])
            gain, shift = modulate(style)[:, :, None, None].chunk(2, 1)
            x = functional.leaky_relu(functional.instance_norm(x) * (1 + gain) + shift, 0.2)
        return self.last(x)


def style_based(place: Path, seed: int) -> Measured:
    """Non-saturating loss, R1 every 8 steps, an average of the generator; distance of moments."""
    random, draw = torch.Generator().manual_seed(seed), pictures(32)
    maker = Styled()
    average = copy.deepcopy(maker).eval().requires_grad_(False)
    layers = [Equalized(3, 24, 3), nn.LeakyReLU(0.2), nn.AvgPool2d(2), Equalized(24, 32, 3)]
    layers += [nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 1)]
    critic = nn.Sequential(*layers)
    first = optim.Adam(maker.parameters(), lr=2e-3, betas=(0.0, 0.99))
    second = optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.99))
    losses = Measured()
    with (
        fmapboard.watch(maker, place, optimizer=first, every=8, name="G"),
        fmapboard.watch(critic, place, optimizer=second, every=8, name="D"),
    ):
        for step in range(100):
            (real,) = draw(random, 12)
            fake = maker(torch.randn(12, 32))
            loss = functional.softplus(-critic(real)).mean()
            loss = loss + functional.softplus(critic(fake.detach())).mean()
            if step % 8 == 0:
                real.requires_grad_()
                (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
                loss = loss + 8 * 0.5 * slope.square().sum((1, 2, 3)).mean()
            second.zero_grad()
            loss.backward()
            second.step()
            first.zero_grad()
            functional.softplus(-critic(fake)).mean().backward()
            first.step()
            follow(average, maker, 0.98)
            apart = (fake.mean((0, 2, 3)) - real.mean((0, 2, 3))).abs().mean()
            apart = apart + (fake.std(0) - real.std(0)).abs().mean()
            losses.append(apart.item())
    return losses


def feature_matching(place: Path, seed: int) -> Measured:
    """pix2pixHD: two discriminators at two sizes in one module, and matching of their features."""

    class Judges(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [unit(4, 24, 4, 2, norm=None), unit(24, 48, 4, 2), nn.Conv2d(48, 1, 3, 1, 1)]
            self.nets = nn.ModuleList(nn.ModuleList(copy.deepcopy(layers)) for _ in range(2))

        def forward(self, x: Tensor) -> list[list[Tensor]]:
            answers = []
            for net in self.nets:
                answers.append([])
                y = x
                for layer in net:
                    y = layer(y)
                    answers[-1].append(y)
                x = functional.avg_pool2d(x, 2)
            return answers

    random, draw = torch.Generator().manual_seed(seed), pictures(32)
    layers = [unit(1, 24, 7), unit(24, 48, stride=2), unit(48, 48), nn.Upsample(scale_factor=2)]
    maker = nn.Sequential(*layers, unit(48, 24), nn.Conv2d(24, 3, 7, padding=3), nn.Tanh())
    judges, losses = Judges(), Measured()
    first = optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.999))
    second = optim.Adam(judges.parameters(), lr=2e-4, betas=(0.5, 0.999))
    held_out = draw(random, 16)[0]
    with (
        fmapboard.watch(maker, place, optimizer=first, every=6, name="generator"),
        fmapboard.watch(judges, place, optimizer=second, every=6, name="judges"),
    ):
        for _ in range(60):
            (real,) = draw(random, 8)
            grey = real.mean(1, keepdim=True)
            fake = maker(grey)
            true = judges(torch.cat([grey, real], 1))
            false = judges(torch.cat([grey, fake.detach()], 1))
            second.zero_grad()
            sum(
                (t[-1] - 1).square().mean() + f[-1].square().mean()
                for t, f in zip(true, false, strict=True)
            ).backward()
            second.step()
            seen = judges(torch.cat([grey, fake], 1))
            loss = sum((s[-1] - 1).square().mean() for s in seen)
            for s, t in zip(seen, true, strict=True):
                loss = loss + sum(
                    functional.l1_loss(a, b.detach()) for a, b in zip(s[:-1], t[:-1], strict=True)
                )
            near = functional.l1_loss(fake, real)
            first.zero_grad()
            (loss + 10 * near).backward()
            first.step()
            losses.append(near.item())
    told = lambda: functional.l1_loss(maker(held_out.mean(1, keepdim=True)), held_out)  # noqa: E731
    losses.evaluated = evaluated(maker, told)
    return losses
