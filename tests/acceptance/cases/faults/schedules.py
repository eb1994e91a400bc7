"""Faults: a schedule that takes the rate away."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
from data import HALF, P
from draws.images import keypoints
from draws.series import engines
from draws.texts import names
from loops import Losses, descend, seen, train
from losses import error, mu_law
from nets import signals
from nets.dense import autoencoder
from nets.images import next_net
from nets.maps import atrous, pointer
from nets.series import GAUGES, WaveNet
from nets.texts import language
from recipes import FEW, MANY, adam, bad, loop, sgd
from torch import Generator, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import (
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    PolynomialLR,
    ReduceLROnPlateau,
)


def epochs(step: int, _: nn.Module, optimizer: optim.Optimizer) -> None:
    """``adjust_learning_rate`` of the ImageNet example, called for each batch."""
    for group in optimizer.param_groups:
        group["lr"] = 0.02 * 0.1 ** (step // 10)


def plateau(place: Path, seed: int) -> Losses:
    """ReduceLROnPlateau with a patience of three epochs, called for each batch."""
    model = pointer()
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    schedule = ReduceLROnPlateau(optimizer, patience=3)

    def step(_: int, random: Generator) -> float:
        images, where = keypoints(random, 16)
        found = descend(optimizer, functional.mse_loss(model(images), where))
        schedule.step(found)
        return found

    return train(place, seed, model, step, 150, 12, optimizer)


MEDIUM = {"steps": 150, "every": 12}

CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "exponential_batches",
            "rate_vanished",
            "ExponentialLR(0.9), called for each batch",
            "CRNN",
            signals.Recurrent,
            data.spectrograms,
            optimizer=adam(2e-3),
            schedule=lambda o, _: ExponentialLR(o, 0.9),
            **MEDIUM,
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        loop(
            "impatient",
            "rate_vanished",
            "ReduceLROnPlateau, called for each batch",
            "CNN of keypoints",
            plateau,
            150,
            12,
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "line_of_epochs",
            "rate_vanished",
            "LinearLR of ten epochs, called for each batch",
            "WaveNet",
            partial(WaveNet, 64),
            data.tones(256),
            mu_law,
            adam(3e-3),
            schedule=lambda o, _: LinearLR(o, 1.0, 1e-3, 10),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "factor_of_factor",
            "rate_vanished",
            "MultiplicativeLR with the factor of LambdaLR",
            "autoencoder, BatchNorm",
            autoencoder,
            HALF,
            losses.again,
            adam(2e-3),
            schedule=lambda o, _: MultiplicativeLR(o, lambda step: 0.99**step),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "adjusted_rate",
            "rate_vanished",
            "a rate of epochs, set for each batch",
            "1-D CNN",
            GAUGES,
            engines,
            error,
            sgd(0.02, 0.9),
            before=epochs,
            **MANY,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "halved_in_batches",
            "rate_vanished",
            "halved each epoch, called for each batch",
            "LSTM of names",
            language,
            names,
            optimizer=adam(3e-3),
            schedule=lambda o, _: LambdaLR(o, lambda epoch: 0.5**epoch),
            **MANY,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "poly_of_epochs",
            "rate_vanished",
            "PolynomialLR of ten epochs, called for each batch",
            "DeepLab",
            atrous,
            data.scenes,
            losses.masks,
            sgd(0.02, 0.9),
            schedule=lambda o, _: PolynomialLR(o, 10, 0.9),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "steps_of_epochs",
            "rate_vanished",
            "a tenth each third epoch, called for each batch",
            "ResNeXt",
            next_net,
            P,
            optimizer=sgd(0.02, 0.9),
            schedule=lambda o, _: optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.1 ** (epoch // 3)),
            **FEW,
        ),
    ),
]
