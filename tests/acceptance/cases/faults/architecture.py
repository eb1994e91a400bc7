"""Faults: networks that are too deep, too small, or have the wrong layers in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import data
import losses
import torch
from data import P, changed
from draws.graphs import cora
from draws.series import TONES, currents, genes, quakes, spectra
from draws.tables import bikes, cars, ill, numbers, penguins, tumours
from loops import seen
from losses import answered, error, of_nodes
from nets import classifiers as cnn
from nets import signals
from nets.classifiers import Function
from nets.graphs import graph
from nets.images import in_network
from nets.parts import Net, Residual, mlp
from nets.series import genome, meter, series, station
from recipes import FEW, MANY, ROWS, adam, bad, sgd
from torch import Generator, Tensor, nn


def deep_sounds(depth: int) -> nn.Module:
    """A stride over a spectrogram, then ``depth`` convolutions without norm."""
    layers = [cnn.unit(1, 24, 3, 2, None), *(cnn.unit(24, 24, norm=None) for _ in range(depth))]
    return nn.Sequential(*layers, *cnn.head(24, 6))


def of_clouds(blocks: int) -> nn.Module:
    """Residual blocks over points, without norm, with He's weights."""

    body = [(nn.Conv1d(48, 48, 1), nn.ReLU(), nn.Conv1d(48, 48, 1)) for _ in range(blocks)]
    layers = [nn.Conv1d(3, 48, 1), *(Residual(*parts) for parts in body)]
    return cnn.he(nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(48, 4)))


def stacked(layers: int) -> nn.Module:
    """An LSTM of so many layers over words; their mean counts."""
    parts = {"words": nn.Embedding(102, 32), "last": nn.Linear(48, 4)}
    return Net(
        lambda m, x: m["last"](m["body"](m["words"](x))[0].mean(1)),
        body=nn.LSTM(32, 48, layers, batch_first=True),
        **parts,
    )


def solid(act: type[nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Convolutions in space, ``more`` without stride, and two Linear layers."""
    layers: list[nn.Module] = [nn.Conv3d(1, 16, 5, 2), act()]
    layers += [m for _ in range(more) for m in (nn.Conv3d(16, 16, 3, padding=1), act())]
    return nn.Sequential(
        *layers, nn.MaxPool3d(2), nn.Flatten(), nn.Linear(432, 48), act(), nn.Linear(48, 4)
    )


def cited(layers: int, divided: bool = True) -> nn.Module:
    """A network of a graph: means, or sums, over neighbours."""

    def run(m: nn.ModuleDict, links: Tensor, x: Tensor) -> Tensor:
        links = links if divided else (links > 0).float()
        for layer in m["layers"]:
            x = (links @ layer(x)).relu()
        return m["last"](links @ x)

    parts = nn.ModuleList(nn.Linear(32 if n else 60, 32) for n in range(layers))
    return Net(run, layers=parts, last=nn.Linear(32, 3))


def muscles(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Four electrodes on a forearm, [N, 4, 128], standardized, and which of four grips it is."""
    kind = torch.randint(4, (count,), generator=generator)
    where, gain = torch.rand(2, count, 1, 1, generator=generator)
    near = (-((torch.arange(128) / 128 - 0.3 - 0.4 * where) / 0.2).square()).exp()
    strong = torch.tensor([[2, 0.4, 0.4, 1], [0.4, 2, 1, 0.4], [1, 0.4, 2, 0.4], [0.4, 1, 0.4, 2]])
    noise = torch.randn(count, 4, 130, generator=generator)
    wave = 0.8 * noise[..., 2:] + 0.6 * noise[..., 1:-1] - 0.6 * noise[..., :-2]
    return wave * (0.2 + (0.6 + gain) * near * strong[kind, :, None]), kind


def grip(act: Callable[[], nn.Module] = nn.ReLU, more: int = 0) -> nn.Module:
    """Three strided convolutions over what electrodes record, and two Linear layers."""
    sizes = [(4, 24, 7, 2, 3), (24, 32, 7, 2, 3), (32, 32, 7, 2, 3), *[(32, 32, 3, 1, 1)] * more]
    layers = [layer for size in sizes for layer in (nn.Conv1d(*size), act())]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 48), act(), nn.Linear(48, 4))


def sums(blocks: int) -> nn.Module:
    """Residual blocks over a sound, without norm, with He's weights."""

    def block() -> nn.Module:
        return Residual(nn.Conv1d(24, 24, 5, 1, 2), nn.ReLU(), nn.Conv1d(24, 24, 5, 1, 2))

    layers = [nn.Conv1d(1, 24, 9, 8, 4), *(block() for _ in range(blocks))]
    return cnn.he(nn.Sequential(*layers, *signals.pooled(24, 6)))


def of_points(depth: int) -> nn.Module:
    """PointNet without norm; each layer sees one point."""
    layers: list[nn.Module] = [nn.Conv1d(3, 32, 1), nn.ReLU()]
    layers += [m for _ in range(depth) for m in (nn.Conv1d(32, 32, 1), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(32, 4))


def coupled() -> nn.Module:
    """RealNVP of points; it returns the loss."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        total = torch.zeros(len(x))
        for net in m.values():
            shift, scale = net(x[:, :1]).split(1, 1)
            x = torch.cat([x[:, 1:] * scale.exp() + shift, x[:, :1]], 1)
            total = total + scale[:, 0]
        return (x.square().sum(1) / 2 - total).mean()

    return Net(run, **{f"net{n}": mlp(1, 64, 64, 2) for n in range(8)})


def felt() -> nn.Module:
    """An LSTM over an inertial unit, whose first axis is taken as time."""
    body, last = nn.LSTM(6, 40), nn.Linear(40, 5)
    return Net(lambda m, x: m["last"](m["body"](x.mT[:, ::2])[0].mean(1)), body=body, last=last)


BENT = changed(numbers(2, torch.sum), lambda x: 0.3 * x + x[:, :1].square() * torch.arange(2))

MOVES = changed(data.gestures, lambda x: x / 5)

CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "coupling_unbounded",
            "exploding,nonfinite",
            "the logarithm of a scale has no bounds",
            "RealNVP",
            coupled,
            BENT,
            losses.own,
            sgd(0.03, 0.9),
            **ROWS,
        ),
        bad(
            "graph_of_one",
            "none",
            "one hidden unit",
            "GCN",
            partial(graph, 1),
            cora,
            of_nodes,
            adam(0.01),
        ),
        bad(
            "hires_by_two",
            "none",
            "two hidden units",
            "MLP",
            partial(mlp, 5, 2, 1),
            bikes,
            error,
            adam(0.01),
            **ROWS,
        ),
        bad(
            "sigmoid_codes",
            "vanishing",
            "ten layers with sigmoid",
            "autoencoder, MLP",
            partial(mlp, 784, 256, 128, 64, 32, 16, 32, 64, 128, 256, 784, act=nn.Sigmoid),
            data.digits,
            lambda model, x, _: error(model, x, x.flatten(1)),
            sgd(0.1, 0.9),
        ),
        bad(
            "deep_clouds",
            "vanishing",
            "24 layers without norm or shortcut",
            "PointNet, no norm",
            partial(of_points, 23),
            data.points,
            optimizer=adam(2e-3),
            **FEW,
        ),
        bad(
            "softmax_between",
            "vanishing",
            "softmax between the convolutions",
            "CNN",
            partial(cnn.plain, act=nn.Softmax2d),
            P,
            optimizer=adam(1e-3),
        ),
        bad(
            "linear_diagnosis",
            "none",
            "no activation between the layers",
            "MLP",
            partial(mlp, 8, 64, 32, 1, act=nn.Identity),
            ill,
            answered,
            adam(3e-3),
            **ROWS,
        ),
        bad(
            "batch_is_time",
            "none",
            "batch_first is missing",
            "LSTM",
            felt,
            MOVES,
            optimizer=adam(5e-3),
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "sound_sums",
            "exploding,update_ratio",
            "sixteen residual blocks without norm",
            "residual 1-D CNN",
            partial(sums, 16),
            TONES,
            optimizer=adam(5e-3),
            **FEW,
        ),
        bad(
            "spikes",
            "unchanged_weights,vanishing",
            "steps of 0 or 1 between the layers",
            "MLP",
            partial(mlp, 784, 128, 64, 10, act=partial(Function, lambda x: (x > 0).float())),
            data.digits,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "links_not_divided",
            "exploding,initial_loss",
            "sums over neighbours, not means",
            "GCN",
            partial(cited, 2, False),
            cora,
            of_nodes,
            sgd(0.1, 0.9),
        ),
        bad(
            "deep_graph",
            "vanishing",
            "twenty layers without norm or shortcut",
            "GCN",
            partial(cited, 20),
            cora,
            of_nodes,
            adam(5e-3),
        ),
        bad(
            "deep_solids",
            "vanishing",
            "24 convolutions without norm or shortcut",
            "3-D CNN",
            partial(solid, more=24),
            data.voxels,
            optimizer=adam(1e-3),
            **FEW,
        ),
        bad(
            "sigmoid_solids",
            "vanishing",
            "sigmoid between the layers",
            "3-D CNN",
            partial(solid, nn.Sigmoid),
            data.voxels,
            optimizer=sgd(0.02, 0.9),
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "clouds_sums",
            "exploding",
            "sixteen residual blocks without norm",
            "residual PointNet",
            partial(of_clouds, 16),
            data.points,
            optimizer=adam(5e-3),
            **FEW,
        ),
        bad(
            "deep_sounds",
            "vanishing",
            "20 convolutions without norm or shortcut",
            "CNN",
            partial(deep_sounds, 20),
            data.spectrograms,
            optimizer=adam(1e-3),
            **FEW,
        ),
        bad(
            "eight_lstms",
            "vanishing",
            "eight layers of LSTM",
            "LSTM",
            partial(stacked, 8),
            data.sentences,
            optimizer=adam(1e-3),
        ),
        bad(
            "four_bits",
            "unchanged_weights,vanishing",
            "rounding between the layers",
            "1-D CNN",
            lambda: station(lambda: Function(lambda x: (15 * x.clamp(0, 1)).round() / 15)),
            quakes,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "sigmoid_penguins",
            "vanishing",
            "nine layers with sigmoid",
            "MLP",
            partial(mlp, 4, *[24] * 8, 3, act=nn.Sigmoid),
            penguins,
            optimizer=sgd(0.05, 0.9),
            batch=32,
        ),
        bad(
            "squares_between",
            "vanishing,constant_output",
            "squares between the layers",
            "1-D CNN",
            partial(series, 1, 3, partial(Function, torch.square)),
            spectra,
            error,
            adam(1e-3),
            **MANY,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "deep_tumours",
            "vanishing",
            "25 layers without norm or shortcut",
            "MLP",
            partial(mlp, 5, *[32] * 24, 2),
            tumours,
            optimizer=adam(1e-3),
            **ROWS,
        ),
        bad(
            "shrunk",
            "vanishing,constant_output",
            "Tanhshrink between the layers",
            "1-D CNN",
            partial(grip, nn.Tanhshrink),
            muscles,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "sigmoid_network",
            "vanishing",
            "ten layers with sigmoid",
            "network in network",
            partial(in_network, nn.Sigmoid),
            P,
            optimizer=adam(1e-3),
            **FEW,
        ),
        bad(
            "deep_genes",
            "vanishing",
            "24 convolutions without norm or shortcut",
            "1-D CNN",
            partial(genome, more=22),
            genes,
            optimizer=adam(1e-3),
        ),
        bad(
            "hard_shrunk",
            "dead,vanishing,constant_output",
            "Hardshrink between the layers",
            "1-D CNN",
            partial(meter, nn.Hardshrink),
            currents,
            optimizer=adam(1e-3),
            batch=32,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "unrolled_sums",
            "exploding,update_ratio,nonfinite",
            "twelve steps of size 1, no norm",
            "CNN, unrolled",
            lambda: nn.Sequential(
                nn.Conv2d(3, 24, 5, 4, 2),
                *[Residual(cnn.unit(24, 48, norm=None), nn.Conv2d(48, 24, 3, 1, 1))] * 12,
                *cnn.head(24, 8),
            ),
            P,
            optimizer=sgd(0.01, 0.9),
            **FEW,
        ),
        bad(
            "softmax_in_table",
            "vanishing",
            "softmax between the layers",
            "MLP",
            partial(mlp, 6, 64, 64, 64, 1, act=partial(nn.Softmax, 1)),
            cars,
            error,
            **ROWS,
        ),
    ),
]
