"""Batches of measured series, made up."""

from __future__ import annotations

import math

import data
import torch
from data import Draw, changed
from draws.images import relabelled
from torch import Generator, Tensor
from torch.nn import functional

SITES = torch.randint(4, (3, 8), generator=Generator().manual_seed(6))


def genes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """64 bases, [N, 4, 64], and which of three sites they have, or none."""
    kind = torch.randint(4, (count,), generator=generator)
    bases = torch.randint(4, (count, 64), generator=generator)
    place = torch.randint(56, (count, 1), generator=generator) + torch.arange(8)
    found = bases.scatter(1, place, SITES[(kind - 1).clamp(min=0)])
    return functional.one_hot(torch.where(kind[:, None] > 0, found, bases), 4).mT.float(), kind


def currents(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """What a device draws, [N, 1, 160], standardized: heater, dimmer, charger, motor, saw."""
    kind = torch.randint(5, (count,), generator=generator)
    phase, gain = torch.rand(2, count, 1, generator=generator)
    angle = 2 * math.pi * (torch.arange(160) / 40 + phase)
    wave, late = angle.sin(), ((angle / math.pi) % 1 > 0.5).float()
    motor = 0.8 * (angle - 0.6).sin() + 0.5 * (3 * angle).sin()
    kinds = [wave, 1.4 * wave * late, 1.8 * wave**7, motor, (angle / 2).tan().atan() / 2]
    noise = 0.15 * torch.randn(count, 160, generator=generator)
    return ((0.7 + gain) * torch.stack(kinds)[kind, torch.arange(count)] + noise)[:, None], kind


def quakes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Three components of a station, [N, 3, 200]: noise, a near quake, a far one, a blast."""
    time, kind = torch.arange(200) / 200, torch.randint(4, (count,), generator=generator)
    begin, phase, gain = torch.rand(3, count, 1, generator=generator)
    since = (time - 0.1 - 0.2 * begin).clamp(min=0)
    lag = torch.tensor([0.1, 0.12, 0.4, 0.0])[kind, None]
    late = (since - lag).clamp(min=0)
    first = since.sign() * (-12 * since).exp() * (2 * math.pi * (30 * since + phase)).sin()
    second = late.sign() * (-7 * late).exp() * (2 * math.pi * (14 * late + phase)).sin()
    parts = [first + 0.3 * second, second - 0.2 * first, 0.8 * second + 0.2 * first]
    wave = torch.stack(parts, 1) * (0.7 + gain[..., None]) * (kind > 0)[:, None, None]
    return 2 * wave + 0.1 * torch.randn(wave.shape, generator=generator), kind


TONES = data.tones()


def strokes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Where a pen was, [N, 2, 64]: a circle, a square, a triangle, a spiral or a star."""
    kind = torch.randint(5, (count,), generator=generator)
    turn, start, size = torch.rand(3, count, 1, generator=generator)
    way = torch.arange(64) / 64
    angle, along = 2 * math.pi * (way + start), 2 * math.pi * (way + start + turn)
    third = (along % (2 * math.pi / 3) - math.pi / 3).cos()
    square = 0.8 / torch.maximum(along.sin().abs(), along.cos().abs())
    kinds = [torch.ones_like(along), square, 0.6 / third, (0.3 + way).expand_as(along)]
    far = torch.stack([*kinds, 0.8 + 0.3 * (5 * along).cos()])[kind, torch.arange(count)]
    place = ((0.8 + 0.6 * size) * far)[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return place + 0.04 * torch.randn(count, 2, 64, generator=generator), kind


def engines(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six gauges of an engine, [N, 6, 48], and how long it will last. All are standardized."""
    left, where = torch.rand(2, count, 1, 1, generator=generator)
    wear = (-3 * (left + (1 - torch.arange(48) / 48) / 4)).exp() * 2.5 - 0.8
    sign = torch.tensor([1.0, 0.8, 1.2, -1, 0.6, -0.9])[:, None]
    own = 0.4 * (2 * math.pi * (torch.arange(48) / 24 + where)).sin()
    x = wear * sign + own + 0.3 * torch.randn(count, 6, 48, generator=generator)
    return x, (left[:, :, 0] - 0.5) * 12**0.5


def spectra(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Near-infrared absorption, [N, 1, 160], of a mixture, and three shares, standardized."""
    share = torch.rand(count, 3, 1, generator=generator)
    along = torch.arange(160) / 160
    centre, wide = torch.tensor([[0.25, 0.45, 0.7], [0.06, 0.1, 0.08]])[..., None]
    bands = (share * (-((along - centre) / wide).square()).exp()).sum(1)
    slope = torch.randn(count, 1, generator=generator) * (along - 0.5)
    x = 2 * bands + 0.3 * slope + 0.03 * torch.randn(count, 160, generator=generator) - 0.6
    return x[:, None], (share[..., 0] - 0.5) * 12**0.5


def beats(share: float = 0.25) -> Draw:
    """Heart beats in mV, [N, 1, 160]; ``share`` each are wide, lack a wave, end upside down."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        time, chance = torch.arange(160) / 160, torch.tensor([1 - 3 * share, *[share] * 3])
        kind = torch.multinomial(chance, count, True, generator=generator)[:, None]
        place, gain = torch.rand(2, count, 1, generator=generator)
        wide = torch.where(kind == 1, 0.05, 0.015)

        def bump(at: float, size: Tensor | float) -> Tensor:
            return (-((time - 0.4 - 0.2 * place - at) / size).square() / 2).exp()

        before, after = 0.2 * bump(-0.2, 0.03) * (kind != 2), 0.35 * bump(0.24, 0.05)
        wave = (0.7 + 0.6 * gain) * (bump(0, wide) + before + torch.where(kind == 3, -1, 1) * after)
        noise = 0.03 * torch.randn(wave.shape, generator=generator)
        return (wave + noise)[:, None], kind[:, 0]

    return draw


def next_day(x: float, y: float, middle: float = 1200) -> Draw:
    """Four days of electricity, every third hour, and the next day's mean; in ``x``, ``y`` kW."""
    draw = changed(data.demand, lambda found: (found.mT[:, ::3] - middle) / x)
    return relabelled(draw, lambda found: (found.mean(2) - middle) / y)
