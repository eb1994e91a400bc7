"""Faults: a rate that is too high or too low."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from data import HALF, P
from draws.graphs import cora
from draws.series import TONES, currents, engines, genes, quakes
from draws.tables import cars, clicked, drivers
from draws.texts import letters, names, reviews
from loops import seen
from losses import answered, centres, error, matching, mu_law, of_nodes, spoken
from nets import classifiers as cnn
from nets import generative, library, signals
from nets.dense import LinkNet
from nets.graphs import graph
from nets.images import agent, in_network, inception, shuffled, squeezed
from nets.maps import Conditioned, Gate, center_net, fcn, painter
from nets.parts import mlp
from nets.restoration import super_resolution
from nets.series import WaveNet, genome, keyword, meter, station, watcher
from nets.tables import AGES, Rows, deep_and_wide, tabular
from nets.texts import critic, gpt, language
from recipes import FEW, MANY, PLAY, ROWS, adam, bad, sgd
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

THREE = FEW | {"batch": 3}


def coloured(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    return functional.mse_loss(model(images.mean(1, keepdim=True)), images)


SHORT_TONES = data.tones(256)


def concrete(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Cement, water, gravel in kg/m³ and days; the strength. All are standardized."""
    z = torch.randn(count, 4, generator=generator)
    y = 0.7 * z[:, 0] - 0.5 * z[:, 1] + 0.4 * z[:, 0] * z[:, 3] + 0.4 * (2 * z[:, 2]).sin()
    return z, y[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "gated_rate",
            "update_ratio",
            "Adam with 0.5",
            "attention U-Net",
            Gate,
            data.scenes,
            losses.masks,
            adam(0.5),
            **FEW,
        ),
        bad(
            "flow_rate",
            "update_ratio",
            "Adam with 0.05",
            "flow matching, FiLM",
            Conditioned,
            data.digits,
            matching,
            adam(0.05),
            **FEW,
        ),
        bad(
            "link_net_slow",
            "update_ratio",
            "Adam with 1e-7",
            "LinkNet",
            LinkNet,
            data.edges,
            losses.masks,
            adam(1e-7),
            **FEW,
        ),
        bad(
            "graph_slow",
            "update_ratio",
            "AdamW with 1e-6",
            "GCN",
            graph,
            cora,
            of_nodes,
            o.by(optim.AdamW, lr=1e-6),
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "inception_rate",
            "update_ratio",
            "Adam with 0.1",
            "GoogLeNet",
            inception,
            P,
            optimizer=adam(0.1),
            **FEW,
        ),
        bad(
            "strength_rate",
            "update_ratio",
            "Adam with 0.5",
            "MLP",
            partial(mlp, 4, 64, 64, 1),
            concrete,
            error,
            adam(0.5),
            **ROWS,
        ),
        bad(
            "centres_slow",
            "update_ratio",
            "SGD with 1e-6 and momentum",
            "CenterNet",
            center_net,
            data.scenes,
            centres,
            sgd(1e-6, 0.9),
            **FEW,
        ),
        bad(
            "m5_slow",
            "update_ratio",
            "Adam with 1e-6",
            "M5",
            signals.waveform,
            TONES,
            optimizer=adam(1e-6),
        ),
        bad(
            "strength_killed",
            "dead,update_ratio",
            "SGD with 0.5 and momentum",
            "MLP",
            partial(mlp, 4, 64, 64, 1),
            concrete,
            error,
            sgd(0.5, 0.9),
            **ROWS,
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "rows_rate",
            "update_ratio",
            "Adam with 0.3",
            "LSTM of a digit's rows",
            Rows,
            data.digits,
            optimizer=adam(0.3),
        ),
        bad(
            "boxes_slow",
            "update_ratio",
            "SGD with 1e-6 and momentum",
            "RetinaNet",
            library.retinanet,
            data.scenes,
            library.found,
            sgd(1e-6, 0.9),
            **THREE,
        ),
        bad(
            "policy_killed",
            "dead,update_ratio",
            "SGD with 1 and momentum",
            "DQN's network",
            partial(agent, 3),
            data.catch,
            optimizer=sgd(1.0, 0.9),
            **PLAY,
        ),
        bad(
            "fcn_killed",
            "dead,update_ratio",
            "Adam with 0.03",
            "FCN",
            fcn,
            data.scenes,
            losses.masks,
            adam(0.03),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "fsrcnn_rate",
            "update_ratio",
            "Adam with 0.1",
            "FSRCNN",
            partial(super_resolution, "fsrcnn"),
            HALF,
            losses.larger,
            adam(0.1),
        ),
        bad(
            "codes_of_vae_slow",
            "update_ratio",
            "Adam with 1e-6",
            "VAE",
            generative.VAE,
            HALF,
            losses.own,
            adam(1e-6),
        ),
        bad(
            "quakes_slow",
            "update_ratio",
            "SGD with 1e-4",
            "1-D CNN",
            station,
            quakes,
            optimizer=sgd(1e-4),
        ),
        bad(
            "vgg_killed",
            "dead,update_ratio",
            "Adam with 0.05",
            "VGG, no norm",
            partial(library.vgg, batch_norm=False),
            P,
            optimizer=adam(0.05),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "squeezed_rate",
            "update_ratio",
            "RMSprop with 0.1",
            "inverted bottlenecks",
            squeezed,
            P,
            optimizer=o.by(optim.RMSprop, lr=0.1),
            **FEW,
        ),
        bad(
            "watcher_rate",
            "update_ratio",
            "Adam with 0.1",
            "transformer of a series",
            watcher,
            engines,
            error,
            adam(0.1),
            **MANY,
        ),
        bad(
            "gpt_rate",
            "update_ratio",
            "AdamW with 0.1",
            "GPT",
            gpt,
            letters,
            partial(spoken, 1),
            o.by(optim.AdamW, lr=0.1),
        ),
        bad(
            "convnext_slow",
            "update_ratio",
            "AdamW with 1e-7",
            "ConvNeXt",
            library.convnext,
            P,
            optimizer=o.by(optim.AdamW, lr=1e-7),
            **FEW,
        ),
        bad(
            "levels_slow",
            "update_ratio",
            "Adam with 1e-6",
            "WaveNet",
            partial(WaveNet, 64),
            SHORT_TONES,
            mu_law,
            adam(1e-6),
            **FEW,
        ),
        bad(
            "lenet_killed",
            "dead,update_ratio",
            "SGD with 0.5 and momentum",
            "LeNet",
            partial(cnn.lenet, nn.ReLU),
            data.digits,
            optimizer=sgd(0.5, 0.9),
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "clicks_rate",
            "update_ratio",
            "Adam with 0.3",
            "embeddings and MLP",
            deep_and_wide,
            clicked,
            answered,
            adam(0.3),
            **ROWS,
        ),
        bad(
            "language_slow",
            "update_ratio",
            "Adam with 1e-6",
            "LSTM of names",
            language,
            names,
            optimizer=adam(1e-6),
            **MANY,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "shuffle_rate",
            "update_ratio",
            "Adam with 0.3",
            "ShuffleNet",
            shuffled,
            P,
            optimizer=adam(0.3),
            **FEW,
        ),
        bad(
            "reviews_rate",
            "update_ratio",
            "AdamW with 0.1",
            "transformer",
            critic,
            reviews,
            optimizer=o.by(optim.AdamW, lr=0.1),
            batch=32,
        ),
        bad(
            "meter_rate",
            "update_ratio",
            "NAdam with 0.05",
            "1-D CNN",
            meter,
            currents,
            optimizer=o.by(optim.NAdam, lr=0.05),
            batch=32,
        ),
        bad(
            "in_network_slow",
            "update_ratio",
            "Adam with 1e-6",
            "network in network",
            in_network,
            P,
            optimizer=adam(1e-6),
            **FEW,
        ),
        bad(
            "drivers_slow",
            "update_ratio",
            "Adam with 1e-6",
            "MLP",
            AGES,
            drivers,
            error,
            adam(1e-6),
            **ROWS,
        ),
        bad(
            "network_killed",
            "dead,update_ratio",
            "SGD with 0.5 and momentum",
            "network in network",
            in_network,
            P,
            optimizer=sgd(0.5, 0.9),
            **FEW,
        ),
        bad(
            "genes_killed",
            "dead,update_ratio",
            "Adam with 0.1",
            "1-D CNN",
            genome,
            genes,
            optimizer=adam(0.1),
            batch=32,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "painter_rate",
            "update_ratio",
            "RMSprop with 0.05",
            "CNN of colours",
            painter,
            HALF,
            coloured,
            o.by(optim.RMSprop, lr=0.05),
            **FEW,
        ),
        bad(
            "keyword_slow",
            "update_ratio",
            "Adam with 1e-6",
            "DS-CNN",
            keyword,
            data.spectrograms,
            optimizer=adam(1e-6),
            **FEW,
        ),
        bad(
            "tabular_slow",
            "update_ratio",
            "AdamW with 1e-6",
            "FT-Transformer",
            tabular,
            cars,
            error,
            o.by(optim.AdamW, lr=1e-6),
            **ROWS,
        ),
        bad(
            "painter_killed",
            "dead,update_ratio",
            "SGD with 0.5 and momentum",
            "CNN of colours",
            painter,
            HALF,
            coloured,
            sgd(0.5, 0.9),
            **FEW,
        ),
    ),
]
