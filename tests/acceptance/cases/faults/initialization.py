"""Faults: initial weights that are zero, too large or too small."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from data import HALF, P48, P
from draws.graphs import cora
from draws.series import currents, genes, strokes
from draws.tables import clicked
from draws.texts import letters
from loops import seen
from losses import answered, of_nodes, spoken
from nets import classifiers as cnn
from nets.dense import UNet
from nets.graphs import graph
from nets.images import agent, in_network, squeeze_net
from nets.maps import fcn, through_code
from nets.parts import Net, changed_weights, mlp
from nets.restoration import RedNet
from nets.series import genome, meter, pen
from nets.tables import deep_and_wide
from nets.texts import TextNet, gpt
from recipes import FEW, PLAY, ROWS, adam, bad, sgd
from torch import nn, optim


def both_ways() -> nn.Module:
    """A GRU in both directions over a stroke, and the mean of its states."""
    parts = {"body": nn.GRU(2, 32, batch_first=True, bidirectional=True), "last": nn.Linear(64, 5)}
    return Net(lambda m, x: m["last"](m["body"](x.mT)[0].mean(1)), **parts)


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "graph_of_zeros",
            "copied_channels,unchanged_weights,constant_output",
            "all weights begin at 0",
            "GCN",
            lambda: changed_weights(graph(), torch.zero_),
            cora,
            of_nodes,
            adam(0.01),
        ),
        bad(
            "initializer_of_one",
            "exploding,initial_loss",
            "weights of deviation 1",
            "GPT",
            lambda: changed_weights(gpt(), lambda w: w.normal_() if w.ndim > 1 else w),
            letters,
            partial(spoken, 1),
            o.by(optim.AdamW, lr=1e-3),
        ),
        bad(
            "thousandth_slices",
            "vanishing",
            "weights of deviation 0.001",
            "U-Net, no norm",
            lambda: changed_weights(UNet(1, norm=None), lambda w: w.normal_(0, 1e-3)),
            data.slices,
            losses.masks,
            adam(1e-3),
            **FEW,
        ),
        bad(
            "rand_less_one",
            "dead",
            "uniform weights, none above 0",
            "MLP",
            lambda: changed_weights(
                mlp(784, 128, 64, 10),
                lambda w: w.copy_((torch.rand_like(w) - 1) * w.shape[-1] ** -0.5),
            ),
            data.digits,
            optimizer=adam(1e-3),
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "policy_of_zeros",
            "copied_channels,unchanged_weights,constant_output",
            "all weights begin at 0",
            "DQN's network",
            lambda: changed_weights(agent(3), torch.zero_),
            data.catch,
            optimizer=adam(2e-3),
            **PLAY,
        ),
        bad(
            "normal_denoiser",
            "exploding,initial_loss",
            "weights of deviation 1",
            "RED-Net",
            lambda: changed_weights(RedNet(), lambda w: w.normal_()),
            HALF,
            losses.repaired,
            adam(1e-3),
            **FEW,
        ),
        bad(
            "hundredth_alexnet",
            "vanishing",
            "weights of deviation 0.01, as once published",
            "AlexNet",
            lambda: changed_weights(
                cnn.alexnet(), lambda w: w.normal_(0, 0.01) if w.ndim > 1 else w.zero_()
            ),
            P48,
            optimizer=sgd(0.01, 0.9),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "words_of_zeros",
            "copied_channels,unchanged_weights,constant_output",
            "all weights begin at 0",
            "text CNN",
            lambda: changed_weights(TextNet(), torch.zero_),
            data.sentences,
            optimizer=adam(5e-3),
        ),
        bad(
            "thousandth_code",
            "vanishing",
            "weights of deviation 0.001",
            "autoencoder",
            lambda: changed_weights(through_code(), lambda w: w.normal_(0, 1e-3)),
            HALF,
            losses.again,
            adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "normal_fcn",
            "exploding,initial_loss",
            "weights of deviation 1",
            "FCN",
            lambda: changed_weights(fcn(), lambda w: w.normal_()),
            data.scenes,
            losses.masks,
            adam(1e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "clicks_of_zeros",
            "copied_channels,unchanged_weights,constant_output",
            "all weights begin at 0",
            "embeddings and MLP",
            lambda: changed_weights(deep_and_wide(), torch.zero_),
            clicked,
            answered,
            adam(0.02),
            **ROWS,
        ),
        bad(
            "normal_squeeze",
            "exploding,initial_loss",
            "weights of torch.randn()",
            "SqueezeNet",
            lambda: changed_weights(squeeze_net(), lambda w: w.normal_()),
            P,
            optimizer=adam(1e-3),
            **FEW,
        ),
        bad(
            "hundredth_squeeze",
            "vanishing",
            "weights of deviation 0.01",
            "SqueezeNet",
            lambda: changed_weights(squeeze_net(), lambda w: w.normal_(0, 0.01)),
            P,
            optimizer=adam(1e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "genes_of_zeros",
            "copied_channels,unchanged_weights,constant_output",
            "all weights begin at 0",
            "1-D CNN",
            lambda: changed_weights(genome(), torch.zero_),
            genes,
            optimizer=adam(2e-3),
            batch=32,
        ),
        bad(
            "normal_network",
            "exploding,initial_loss",
            "weights of torch.randn()",
            "network in network",
            lambda: changed_weights(in_network(), lambda w: w.normal_()),
            P,
            optimizer=adam(1e-3),
            **FEW,
        ),
        bad(
            "hundredth_meter",
            "vanishing",
            "weights of deviation 0.01",
            "1-D CNN",
            lambda: changed_weights(meter(), lambda w: w.normal_(0, 0.01)),
            currents,
            optimizer=adam(1e-3),
            batch=32,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "both_ways_of_zeros",
            "copied_channels,unchanged_weights,constant_output",
            "all weights begin at 0",
            "GRU in both directions",
            lambda: changed_weights(both_ways(), torch.zero_),
            strokes,
            optimizer=adam(2e-3),
            batch=32,
        ),
        bad(
            "normal_pen",
            "exploding,initial_loss",
            "weights of torch.randn()",
            "1-D CNN",
            lambda: changed_weights(pen(), lambda w: w.normal_()),
            strokes,
            optimizer=adam(1e-3),
            batch=32,
        ),
    ),
]
