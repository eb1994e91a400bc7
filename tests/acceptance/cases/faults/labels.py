"""Faults: the order, number and truth of the examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import data
import optimizers as o
import torch
from data import Draw, P, changed
from draws.images import relabelled
from draws.series import beats, currents
from draws.tables import bikes, penguins
from draws.texts import tickets
from loops import seen
from losses import error
from nets import classifiers as cnn
from nets import library, signals
from nets.graphs import point_net
from nets.parts import mlp
from nets.series import meter, pulse
from nets.texts import bag
from recipes import ROWS, adam, bad, sgd
from torch import Generator, Tensor, nn, optim
from torchvision.transforms import v2

CROP = v2.RandomResizedCrop(28, (0.02, 0.1))


def in_order(draw: Draw, key: Callable[[tuple[Tensor, ...]], Tensor], examples: int = 320) -> Draw:
    """A list sorted by ``key``; the loader does not shuffle."""
    kept: list[tuple[Tensor, ...]] = []
    place = 0

    def again(_: Generator, count: int) -> tuple[Tensor, ...]:
        nonlocal place
        if not kept:
            found = draw(Generator().manual_seed(3), examples)
            kept.append(tuple(part[key(found).argsort(stable=True)] for part in found))
        rows, place = (place + torch.arange(count)) % examples, place + count
        return tuple(part[rows] for part in kept[0])

    return again


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "hires_shuffled",
            "none",
            "a join has lost the order of the rows",
            "MLP",
            partial(mlp, 5, 48, 48, 1),
            relabelled(bikes, lambda y: y[torch.randperm(len(y))]),
            error,
            adam(3e-3),
            **ROWS,
        ),
        bad(
            "rare_beats",
            "none",
            "one beat in 100 is of each other kind",
            "1-D CNN",
            pulse,
            beats(0.01),
            optimizer=adam(5e-4),
        ),
        bad(
            "vit_of_few",
            "none",
            "24 pictures",
            "ViT",
            library.vit,
            data.fixed(P, 24),
            optimizer=o.by(optim.AdamW, lr=1e-3),
        ),
        bad(
            "guessed_clouds",
            "none",
            "60 % of the labels are guessed",
            "PointNet",
            point_net,
            relabelled(
                data.points,
                lambda y: torch.where(torch.rand(len(y)) < 0.6, torch.randint(4, y.shape), y),
            ),
            optimizer=adam(3e-3),
        ),
        bad(
            "digits_cropped",
            "none",
            "crops of 2 to 10 % of a picture",
            "CNN, BatchNorm",
            partial(cnn.plain, 1, 10, norm=nn.BatchNorm2d),
            changed(data.digits, lambda images: torch.stack([CROP(x) for x in images])),
            optimizer=adam(3e-3),
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "sorted_sounds",
            "sorted_labels,one_label",
            "a folder for each class, no shuffle",
            "CRNN",
            signals.Recurrent,
            in_order(data.spectrograms, lambda part: part[1], 600),
            optimizer=adam(3e-3),
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "sorted_clouds",
            "sorted_labels,one_label",
            "a folder for each class, no shuffle",
            "PointNet",
            point_net,
            in_order(data.points, lambda part: part[1], 640),
            optimizer=adam(3e-3),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "sorted_penguins",
            "sorted_labels,one_label",
            "a table sorted by species, no shuffle",
            "MLP",
            partial(mlp, 4, 32, 16, 3),
            in_order(penguins, lambda part: part[1], 960),
            optimizer=sgd(0.05, 0.9),
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "sorted_currents",
            "sorted_labels,one_label",
            "a folder for each device, no shuffle",
            "1-D CNN",
            meter,
            in_order(currents, lambda part: part[1], 640),
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "sorted_tickets",
            "sorted_labels,one_label",
            "a file for each department, no shuffle",
            "fastText",
            bag,
            in_order(tickets, lambda part: part[1], 640),
            optimizer=adam(5e-3),
        ),
    ),
]
