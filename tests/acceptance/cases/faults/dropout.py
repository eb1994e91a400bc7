"""Faults: too much dropout."""

from __future__ import annotations

from functools import partial

import data
from data import P
from draws.series import engines
from draws.texts import names
from loops import seen
from losses import error
from nets.classifiers import Function
from nets.images import in_network
from nets.series import watcher
from nets.texts import language
from recipes import FEW, MANY, adam, bad
from torch import nn


def dropped(share: float) -> nn.Module:
    """A mean of words, with dropout of each layer."""
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Dropout(share), nn.Linear(64, 64), nn.ReLU()]
    start = [nn.Embedding(102, 32), Function(lambda x: x.mean(1)), nn.Dropout(share)]
    return nn.Sequential(*start, *layers, nn.Dropout(share), nn.Linear(64, 4))


CASES = [
    *seen(
        "2026-11-28T11:40",
        bad(
            "dropout_of_words",
            "dropout_high",
            "dropout of 0.9 behind each layer",
            "word bag, MLP",
            partial(dropped, 0.9),
            data.sentences,
            optimizer=adam(5e-3),
            batch=32,
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "dropout_of_gauges",
            "dropout_high",
            "dropout of 0.9, meant as what is kept",
            "transformer of a series",
            partial(watcher, 0.9),
            engines,
            error,
            adam(1e-3),
            **MANY,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "dropout_of_letters",
            "dropout_high",
            "dropout of 0.9, meant as what is kept",
            "LSTM of names",
            partial(language, 0.9),
            names,
            optimizer=adam(3e-3),
            **MANY,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "dropout_of_maps",
            "dropout_high",
            "Dropout2d of 0.8, meant as what is kept",
            "network in network",
            partial(in_network, drop=0.8),
            P,
            optimizer=adam(2e-3),
            **FEW,
        ),
    ),
]
