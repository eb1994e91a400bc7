"""Faults: a loss that does not fit the last layer or the target."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import torch
from data import HALF, UNIT, P
from draws.graphs import cora
from draws.images import keypoints, regions, relabelled, soft_tissue
from draws.series import TONES, currents, genes, next_day, strokes
from draws.tables import cars, ill, penguins, rides
from draws.texts import letters, reviews, tickets
from loops import Losses, descend, duel, seen
from losses import answered, error, ignoring, of_nodes, said, spoken
from nets import classifiers as cnn
from nets import library, signals
from nets.classifiers import Function
from nets.dense import Spots, UNet
from nets.graphs import graph
from nets.images import in_network, next_net
from nets.maps import Gate, atrous, through, through_code
from nets.parts import ends, mlp
from nets.series import Series, genome, meter, pen
from nets.tables import Rows, tabular
from nets.texts import bag, critic, gpt
from recipes import FEW, ROWS, adam, bad, loop, sgd
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

ADAMW = o.by(optim.AdamW, lr=1e-3)

PRAISED = relabelled(reviews, lambda kind: kind[:, None].float())

FOUR = FEW | {"batch": 4}

SOFTMAX = "softmax in front of cross-entropy"


def cosines(model: nn.Module, pair: Tensor, same: Tensor) -> Tensor:
    """CosineEmbeddingLoss, which wants -1 for pairs that differ, not 0."""
    return functional.cosine_embedding_loss(*map(model, pair.split(1, 1)), same)


def game(place: Path, seed: int) -> Losses:
    """A GAN of digits, whose critic ends in a sigmoid."""
    maker = ends(partial(mlp, 24, 128, 784), nn.Tanh())()
    critic = nn.Sequential(mlp(784, 128, 64, 1, act=partial(nn.LeakyReLU, 0.2)), nn.Sigmoid())

    def step(_: int, random: Generator, one: optim.Optimizer, two: optim.Optimizer) -> float:
        real, noise = data.digits(random, 32)[0] * 2 - 1, torch.randn(32, 24, generator=random)
        fake = maker(noise)
        found = descend(two, said(critic(real), 1) + said(critic(fake.detach()), 0))
        descend(one, said(critic(fake), 1))
        return found

    return duel(place, seed, (maker, critic), (1e-3, 1e-3), step, 120, 10)


def near_zero(model: nn.Module, images: Tensor, mask: Tensor, discs: Tensor, *_: Tensor) -> Tensor:
    """The absolute error of a map that is 0 but for a small spot."""
    along = torch.arange(32.0)
    across, down = ((along - discs[:, n : n + 1]).square() for n in (0, 1))
    return functional.l1_loss(model(images)[:, 0], (-(across[:, None] + down[..., None]) / 8).exp())


def twins(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Pairs of pictures, some of them the same file, and whether both show the same digit."""
    (one, kind), (two, other) = (data.digits(generator, count) for _ in range(2))
    same = torch.rand(count, generator=generator) < 0.2
    two, other = torch.where(same[:, None, None, None], one, two), torch.where(same, kind, other)
    return torch.cat([one, two], 1), (kind == other).float()


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "softmax_graph",
            "double_softmax",
            "softmax in front of cross-entropy",
            "GCN",
            partial(graph, 32, nn.Softmax(1)),
            cora,
            of_nodes,
            sgd(0.5, 0.9),
        ),
        bad(
            "softmax_bands",
            "double_softmax",
            "softmax in front of cross-entropy",
            "CNN of 16 bands",
            ends(partial(cnn.plain, 16, norm=nn.BatchNorm2d), nn.Softmax(1)),
            data.bands,
            optimizer=sgd(0.02, 0.9),
        ),
        bad(
            "absolute_spots",
            "constant_output",
            "absolute error of a map that is mostly 0",
            "CNN of maps",
            lambda: nn.Sequential(
                cnn.unit(3, 24, 5, norm=None), cnn.unit(24, 24, 5, norm=None), nn.Conv2d(24, 1, 1)
            ),
            data.scenes,
            near_zero,
            adam(2e-3),
            **FEW,
        ),
        bad(
            "places_in_pixels",
            "initial_loss",
            "places of 0 to 4000 px",
            "CNN, BatchNorm",
            partial(cnn.encoder, 2),
            relabelled(keypoints, lambda y: 2000 * (y + 1)),
            error,
            adam(2e-3),
        ),
        bad(
            "softmax_of_one",
            "constant_output,unchanged_weights,saturated",
            "softmax over one output",
            "MLP",
            ends(partial(mlp, 8, 32, 32, 1), nn.Softmax(1)),
            ill,
            lambda model, x, y: functional.binary_cross_entropy(model(x), y),
            adam(3e-3),
            **ROWS,
        ),
        bad(
            "sigmoid_cells",
            "probabilities_into_loss",
            "sigmoid in front of BCEWithLogits",
            "toy detector",
            ends(Spots, Function(lambda y: (y[0].sigmoid(), y[1]))),
            data.scenes,
            losses.detect,
            adam(3e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "views_agree",
            "constant_output",
            "no negative pairs",
            "CNN of codes",
            partial(cnn.encoder, 32),
            HALF,
            lambda model, x, _: functional.mse_loss(*map(model, losses.both_views(x))),
            adam(1e-3),
        ),
        bad(
            "sigmoid_pixels",
            "saturated",
            "sigmoid for pixels of -1 to 1",
            "autoencoder",
            partial(through, 64, None, nn.Sigmoid()),
            HALF,
            losses.again,
            adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "softmax_rows",
            "double_softmax",
            "softmax in front of cross-entropy",
            "LSTM of a digit's rows",
            ends(Rows, nn.Softmax(1)),
            data.digits,
            optimizer=adam(5e-3),
            **ROWS | {"batch": 32},
        ),
        bad(
            "softmax_regions",
            "double_softmax",
            "softmax in front of cross-entropy",
            "gated U-Net",
            ends(partial(Gate, out=8), nn.Softmax(1)),
            regions,
            ignoring,
            sgd(0.05, 0.9),
            **FOUR,
        ),
        bad(
            "divergence_of_shares",
            "probabilities_into_loss",
            "KLDivLoss without a logarithm",
            "EEGNet",
            signals.Eeg,
            data.gestures,
            lambda model, x, y: functional.kl_div(
                model(x).softmax(1), functional.one_hot(y, 5).float()
            ),
            sgd(0.01, 0.9),
        ),
        bad(
            "raw_seconds",
            "initial_loss",
            "rides of about 900 s",
            "MLP",
            partial(mlp, 5, 64, 64, 1),
            relabelled(rides, lambda y: 900 + 450 * y),
            error,
            adam(1e-3),
            **ROWS,
        ),
        bad(
            "sigmoid_classes",
            "probabilities_into_loss,double_softmax",
            "sigmoid in front of cross-entropy",
            "all-convolutional",
            ends(cnn.all_convolutions, nn.Sigmoid()),
            P,
            optimizer=sgd(0.05, 0.9),
            **FEW,
        ),
        bad(
            "sigmoid_volumes",
            "probabilities_into_loss",
            "sigmoid in front of BCEWithLogits",
            "gated U-Net (3-D)",
            ends(partial(Gate, 1, wide=False), nn.Sigmoid()),
            soft_tissue,
            losses.masks,
            adam(3e-3),
            **FEW | {"batch": 2},
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "softmax_vit",
            "double_softmax",
            "softmax in front of cross-entropy",
            "ViT",
            ends(library.vit, nn.Softmax(1)),
            P,
            optimizer=o.by(optim.AdamW, lr=1e-3),
            **FEW,
        ),
        bad(
            "softmax_m5",
            "double_softmax",
            "softmax in front of cross-entropy",
            "M5",
            ends(signals.waveform, nn.Softmax(1)),
            TONES,
            optimizer=sgd(0.01, 0.9),
        ),
        bad(
            "entropy_of_pixels",
            "saturated",
            "binary cross-entropy of pixels of -1 to 1",
            "autoencoder",
            through_code,
            HALF,
            lambda m, x, *_: functional.binary_cross_entropy_with_logits(m(x), x),
            adam(2e-3),
        ),
        bad(
            "bytes_wanted",
            "initial_loss,saturated",
            "a sigmoid for pixels of 0 to 255",
            "autoencoder",
            partial(through, 64, None, nn.Sigmoid()),
            UNIT,
            lambda model, x, *_: functional.mse_loss(model(x), 255 * x),
            adam(2e-3),
        ),
        bad(
            "relu_of_power",
            "saturated,dead",
            "ReLU for a standardized load",
            "GRU",
            ends(partial(Series, nn.GRU), nn.ReLU()),
            next_day(600, 600),
            error,
            adam(3e-3),
        ),
        bad(
            "sigmoid_kinds",
            "probabilities_into_loss",
            "sigmoid in front of BCEWithLogits",
            "ViT",
            ends(library.vit, nn.Sigmoid()),
            P,
            losses.multi_label,
            o.by(optim.AdamW, lr=1e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "softmax_penguins",
            "double_softmax",
            "softmax in front of cross-entropy",
            "MLP",
            ends(partial(mlp, 4, 32, 16, 3), nn.Softmax(1)),
            penguins,
            optimizer=sgd(0.05, 0.9),
            batch=32,
        ),
        bad(
            "softmax_gpt",
            "double_softmax",
            "softmax in front of cross-entropy",
            "GPT",
            ends(gpt, nn.Softmax(2)),
            letters,
            partial(spoken, 1),
            o.by(optim.AdamW, lr=1e-3),
        ),
        bad(
            "sigmoid_depth",
            "saturated",
            "sigmoid for depths of 2 to 8 m",
            "U-Net",
            ends(partial(UNet, base=8, transposed=False), nn.Sigmoid()),
            data.scenes,
            lambda model, x, *rest: functional.l1_loss(model(x), 5 * rest[-1]),
            adam(2e-3),
            **FEW,
        ),
        loop(
            "sigmoid_critic",
            "probabilities_into_loss",
            "sigmoid in front of BCEWithLogits",
            "GAN, MLP",
            game,
            120,
            10,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "cosines_of_zero",
            "constant_output",
            "CosineEmbeddingLoss with labels 0 and 1",
            "siamese MLP",
            partial(mlp, 784, 128, 64, 16),
            twins,
            cosines,
            adam(1e-3),
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "softmax_network",
            "double_softmax",
            "softmax in front of cross-entropy",
            "network in network",
            ends(in_network, nn.Softmax(1)),
            P,
            optimizer=adam(1e-3),
            **FEW,
        ),
        bad(
            "softmax_genes",
            "double_softmax",
            "softmax in front of cross-entropy",
            "1-D CNN",
            ends(genome, nn.Softmax(1)),
            genes,
            optimizer=sgd(0.05, 0.9),
            **ROWS,
        ),
        bad(
            "entropy_of_one",
            "unchanged_weights,constant_output",
            "CrossEntropyLoss of one output",
            "transformer",
            partial(critic, 1),
            PRAISED,
            optimizer=ADAMW,
            batch=32,
        ),
        bad(
            "millimetres",
            "initial_loss",
            "depths of 0 to 1500 mm",
            "DeepLab",
            atrous,
            data.scenes,
            lambda model, x, *rest: functional.l1_loss(model(x), 1000 * rest[-1]),
            adam(2e-3),
            **FEW,
        ),
        bad(
            "tanh_of_classes",
            "saturated",
            "tanh in front of cross-entropy",
            "1-D CNN",
            ends(meter, nn.Tanh()),
            currents,
            optimizer=adam(2e-3),
            batch=32,
        ),
        bad(
            "sigmoid_reviews",
            "probabilities_into_loss",
            "sigmoid in front of BCEWithLogits",
            "transformer",
            partial(critic, 1, nn.Sigmoid()),
            PRAISED,
            answered,
            ADAMW,
            batch=32,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "softmax_tickets",
            "double_softmax",
            SOFTMAX,
            "fastText",
            ends(bag, nn.Softmax(1)),
            tickets,
            optimizer=adam(2e-3),
            batch=32,
        ),
        bad(
            "absolute_classes",
            "constant_output",
            "absolute error of ones and zeros",
            "1-D CNN",
            pen,
            strokes,
            lambda model, x, y: functional.l1_loss(model(x), torch.eye(5)[y]),
            batch=32,
        ),
        bad(
            "raw_emissions",
            "initial_loss",
            "grams of about 150",
            "FT-Transformer",
            tabular,
            relabelled(cars, lambda y: 150 + 40 * y),
            error,
            adam(1e-3),
            **ROWS,
        ),
        bad(
            "tanh_of_places",
            "saturated",
            "tanh for places in px",
            "CNN of keypoints",
            ends(partial(cnn.encoder, 2), nn.Tanh()),
            data.scenes,
            lambda model, x, *rest: error(model, x, rest[1][:, :2]),
            adam(1e-3),
            **FEW,
        ),
        bad(
            "sigmoid_of_labels",
            "probabilities_into_loss",
            "sigmoid, MultiLabelSoftMarginLoss",
            "ResNeXt",
            ends(next_net, nn.Sigmoid()),
            P,
            lambda model, x, y: functional.multilabel_soft_margin_loss(model(x), torch.eye(8)[y]),
            **FEW,
        ),
    ),
]
