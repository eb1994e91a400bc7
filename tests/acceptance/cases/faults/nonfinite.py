"""Faults: NaN and infinity."""

from __future__ import annotations

import math
from functools import partial

import data
import losses
import torch
from data import UNIT, P, changed
from draws.images import relabelled
from draws.series import next_day
from draws.tables import cars, drivers
from loops import seen
from losses import error
from nets import classifiers as cnn
from nets import signals
from nets.dense import UNet
from nets.images import agent
from nets.parts import Net, ends, mlp
from nets.restoration import super_resolution
from nets.series import Series
from nets.tables import AGES
from recipes import FEW, ROWS, adam, bad, sgd
from torch import Generator, Tensor, nn


def logarithms(model: nn.Module, images: Tensor, *rest: Tensor) -> Tensor:
    """The error of the logarithm of a depth, which ends in ReLU."""
    return (model(images).log() - (rest[-1] + 0.1).log()).square().mean()


def ratios(x: Tensor) -> Tensor:
    """Normalized differences of neighbouring bands; where a sensor is dark both are 0."""
    x = (x / 5 + 0.25).clamp(min=0) * (torch.rand(len(x), 1, 1, 1) > 0.003)
    return (x - x.roll(1, 1)) / (x + x.roll(1, 1))


def bearings(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Two accelerometers, [N, 2, 256], in g; a bearing is sound, or one of three parts knocks."""
    time, kind = torch.arange(256) / 256, torch.randint(4, (count,), generator=generator)
    phase, other, gain = torch.rand(3, count, 1, generator=generator)
    since = (torch.tensor([1.0, 5, 9, 14])[kind, None] * time + phase) % 1
    knock = (-8 * since).exp() * (2 * math.pi * 60 * time).sin() * (kind > 0)[:, None]
    hum = 0.3 * (2 * math.pi * (8 * time + other)).sin()
    wave = torch.stack([(0.6 + gain) * knock + hum, (1 - gain / 2) * knock - hum], 1)
    return wave + 0.05 * torch.randn(wave.shape, generator=generator), kind


def machine() -> nn.Module:
    """Four convolutions over what accelerometers say."""
    layers: list[nn.Module] = []
    for into, out, size in ((2, 24, 9), (24, 32, 7), (32, 32, 5), (32, 48, 5)):
        layers += [nn.Conv1d(into, out, size, 2), nn.ReLU()]
    return nn.Sequential(*layers, *signals.pooled(48, 4))


def alone(x: Tensor) -> Tensor:
    """Each window on its own mean and deviation; in one of 200 the machine stands."""
    x = x * (torch.rand(len(x), 1, 1) > 0.005)
    return (x - x.mean(2, keepdim=True)) / x.std(2, keepdim=True)


def contrast(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Contrastive loss; the squares of all distances are a² + b² - 2ab."""
    code = model(images)
    norm, same = code.square().sum(1), labels[:, None] == labels
    far = (norm[:, None] + norm - 2 * code @ code.T).sqrt()
    return torch.where(same, far.square(), (1 - far).clamp(min=0).square()).mean()


CARS = partial(mlp, 6, 64, 64, 1)


def rewarded(model: nn.Module, frames: Tensor, best: Tensor) -> Tensor:
    """REINFORCE; rewards are standardized, also if all are the same."""
    chance = model(frames).log_softmax(1)
    move = (chance - torch.empty_like(chance).exponential_().log()).argmax(1)
    reward = (move == best).float()
    return -(chance.gather(1, move[:, None])[:, 0] * (reward - reward.mean()) / reward.std()).mean()


def holes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pictures and depths; in one of 200 what is far could not be measured."""
    images, _, _, depth = data.scenes(generator, count)
    blind = torch.rand(count, 1, 1, 1, generator=generator) < 0.005
    return images, depth.masked_fill(blind & (depth > 1.2), torch.nan)


def looking() -> nn.Module:
    """Attention to the words of a text; padding is masked with -inf."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["words"](x)
        share = m["score"](y.tanh())[..., 0].masked_fill(x == 0, -torch.inf).softmax(1)
        return m["last"]((share[..., None] * y).sum(1))

    parts = {"words": nn.Embedding(102, 32, padding_idx=0), "last": mlp(32, 32, 4)}
    return Net(run, score=nn.Linear(32, 1), **parts)


def directed() -> nn.Module:
    """Words of length one; the padding's length is 0."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["words"](x)
        return m["last"](m["body"](y / y.norm(dim=2, keepdim=True))[0].mean(1))

    parts = {"words": nn.Embedding(102, 24, padding_idx=0), "last": nn.Linear(40, 4)}
    return Net(run, body=nn.GRU(24, 40, batch_first=True), **parts)


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "length_of_zero",
            "nonfinite",
            "padding is divided by its length, 0",
            "GRU",
            directed,
            data.sentences,
            optimizer=adam(3e-3),
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "empty_text",
            "nonfinite",
            "a softmax over padding alone, all -inf",
            "attention",
            looking,
            changed(data.sentences, lambda x: x * (torch.rand(len(x), 1) > 0.003)),
            optimizer=adam(3e-3),
        ),
        bad(
            "holes_of_depth",
            "nonfinite",
            "depths that are missing",
            "U-Net",
            partial(UNet, base=8),
            holes,
            error,
            adam(2e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "standing_machine",
            "nonfinite",
            "windows of deviation 0 are divided by it",
            "1-D CNN",
            machine,
            changed(bearings, alone),
            optimizer=adam(2e-3),
        ),
        bad(
            "gaps_of_meter",
            "nonfinite",
            "hours that were not metered",
            "GRU",
            partial(Series, nn.GRU),
            changed(
                next_day(600, 600), lambda x: x.masked_fill(torch.rand(x.shape) < 2e-4, torch.nan)
            ),
            error,
            adam(3e-3),
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "log_of_depth",
            "nonfinite",
            "the logarithm of a ReLU",
            "U-Net",
            ends(partial(UNet, base=8), nn.ReLU()),
            data.scenes,
            logarithms,
            adam(2e-3),
            **FEW,
        ),
        bad(
            "dark_bands",
            "nonfinite",
            "a ratio of bands that are 0",
            "CNN of 16 bands",
            partial(cnn.plain, 16, norm=nn.BatchNorm2d),
            changed(data.bands, ratios),
            optimizer=sgd(0.02, 0.9),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "gamma_of_linear",
            "nonfinite",
            "a root of pixels, some below 0",
            "ESPCN",
            partial(super_resolution, "espcn"),
            UNIT,
            lambda model, x, _: losses.larger(
                lambda small: model(small).pow(1 / 2.2), x.pow(1 / 2.2)
            ),
            adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "equal_rewards",
            "nonfinite",
            "rewards are divided by their deviation, 0",
            "policy by REINFORCE",
            partial(agent, 3),
            data.catch,
            rewarded,
            adam(1e-3),
            batch=8,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "percent_of_none",
            "nonfinite",
            "an error in percent, where some have no claim",
            "MLP",
            AGES,
            relabelled(drivers, lambda y: (3 * (0.6 * y).exp()).round()),
            lambda model, x, y: ((model(x) - y) / y).abs().mean(),
            adam(1e-3),
            **ROWS,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "roots_of_distances",
            "nonfinite",
            "the root of a distance of 0",
            "CNN of codes",
            partial(cnn.encoder, 16),
            P,
            contrast,
            adam(1e-3),
            **FEW,
        ),
        bad(
            "unknown_power",
            "nonfinite",
            "NaN where a power is not known",
            "MLP",
            CARS,
            changed(
                cars,
                lambda z: z.masked_fill(
                    (torch.rand(len(z), 1) < 0.015) & (torch.arange(6) == 1), math.nan
                ),
            ),
            error,
            adam(1e-3),
            **ROWS,
        ),
    ),
]
