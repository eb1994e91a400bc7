"""Healthy: two networks against each other."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import torch
from data import CROPS
from loops import Losses, descend, duel, follow, own_loop, seen, train
from nets.composed import INSTANCE
from nets.dense import UNet, style_net
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

Adam = optim.Optimizer
entropy = functional.binary_cross_entropy_with_logits


def translation(place: Path, seed: int) -> Losses:
    """pix2pix: grey to colour, L1 and a patch discriminator that sees both."""
    maker = UNet(1, 3, norm=INSTANCE)
    layers = [nn.Conv2d(4, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1)]
    layers += [nn.InstanceNorm2d(32), nn.LeakyReLU(0.2), nn.Conv2d(32, 1, 4, 1, 1)]
    critic = nn.Sequential(*layers)

    def step(_: int, random: Generator, first: Adam, second: Adam) -> float:
        (real,) = CROPS(random, 8)
        grey = real.mean(1, keepdim=True)
        fake = maker(grey)
        found = critic(torch.cat([grey, fake.detach()], 1))
        truth = critic(torch.cat([grey, real], 1))
        loss = entropy(found, torch.zeros_like(found))
        descend(second, loss + entropy(truth, torch.ones_like(truth)))
        critic.requires_grad_(False)
        found = critic(torch.cat([grey, fake], 1))
        close = functional.l1_loss(fake, real)
        descend(first, entropy(found, torch.ones_like(found)) + 50 * close)
        critic.requires_grad_(True)
        return close.item()

    return duel(place, seed, (maker, critic), (5e-4, 2e-4), step, 80, 10)


def cycles(place: Path, seed: int) -> Losses:
    """CycleGAN between light and dark photographs; the loss of the cycles."""
    makers = nn.ModuleDict({"there": style_net(), "back": style_net()})
    layers = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 1, 4, 2, 1)]
    critics = nn.ModuleDict({name: nn.Sequential(*copy.deepcopy(layers)) for name in makers})
    first = optim.Adam(makers.parameters(), lr=1e-3, betas=(0.5, 0.999))
    second = optim.Adam(critics.parameters(), lr=2e-4, betas=(0.5, 0.999))

    def step(_: int, random: Generator) -> float:
        light, dark = CROPS(random, 4)[0], CROPS(random, 4)[0] * 0.4 - 0.5
        fakes = makers["there"](light), makers["back"](dark)
        again = makers["back"](fakes[0]), makers["there"](fakes[1])
        loop = functional.l1_loss(again[0], light) + functional.l1_loss(again[1], dark)
        named = list(zip(critics.values(), fakes, (dark, light), strict=True))
        fooled = sum((critic(fake) - 1).square().mean() for critic, fake, _ in named)
        descend(first, 10 * loop + fooled)
        judged = [
            (c(real) - 1).square().mean() + c(f.detach()).square().mean() for c, f, real in named
        ]
        descend(second, sum(judged))
        return loop.item()

    return train(place, seed, makers, step, optimizer=first)


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


def style_based(place: Path, seed: int) -> Losses:
    """Non-saturating loss, R1 every 8 steps, an average of the generator; distance of moments."""
    maker = Styled()
    average = copy.deepcopy(maker).eval().requires_grad_(False)
    layers = [Equalized(3, 24, 3), nn.LeakyReLU(0.2), nn.AvgPool2d(2), Equalized(24, 32, 3)]
    layers += [nn.LeakyReLU(0.2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32 * 64, 1)]
    critic = nn.Sequential(*layers)

    def step(number: int, random: Generator, first: Adam, second: Adam) -> float:
        (real,) = CROPS(random, 12)
        fake = maker(torch.randn(12, 32))
        loss = functional.softplus(-critic(real)).mean()
        loss = loss + functional.softplus(critic(fake.detach())).mean()
        if number % 8 == 0:
            real.requires_grad_()
            (slope,) = torch.autograd.grad(critic(real).sum(), real, create_graph=True)
            loss = loss + 8 * 0.5 * slope.square().sum((1, 2, 3)).mean()
        descend(second, loss)
        descend(first, functional.softplus(-critic(fake)).mean())
        follow(average, maker, 0.98)
        apart = (fake.mean((0, 2, 3)) - real.mean((0, 2, 3))).abs().mean()
        return (apart + (fake.std(0) - real.std(0)).abs().mean()).item()

    return duel(place, seed, (maker, critic), (2e-3, 2e-3), step, 100, 8, (0.0, 0.99))


CASES = seen(
    "2026-11-23T03:56",
    own_loop("pix2pix", "pix2pix", "L1 and patch discriminator", translation, 80, 10),
)
CASES += seen(
    "2026-11-23T07:48",
    own_loop("cyclegan", "CycleGAN", "one Adam for two generators", cycles),
)
CASES += seen(
    "2026-11-23T08:43",
    own_loop("style_based", "StyleGAN", "R1, two Adams", style_based, 100, 8),
)
