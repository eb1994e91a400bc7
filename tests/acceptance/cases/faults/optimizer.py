"""Faults: the wrong optimizer, its decay, or parameters that it does not have."""

from __future__ import annotations

import copy
from functools import partial

import data
import losses
import optimizers as o
from data import HALF, P, changed
from draws.series import TONES, beats, currents, genes, strokes
from draws.tables import clicked, ratings
from draws.texts import names, tickets
from loops import seen
from losses import answered, centres
from nets import classifiers as cnn
from nets import generative, library, signals
from nets.classifiers import Function
from nets.dense import autoencoder
from nets.images import Hybrid, headed, next_net
from nets.maps import center_net
from nets.parts import Net, changed_weights
from nets.series import genome, meter, pen, pulse
from nets.tables import deep_and_wide
from nets.texts import bag, language
from recipes import FEW, MANY, ROWS, adam, at, bad, sgd
from torch import Tensor, nn, optim
from torch.nn import functional

GREY = changed(data.digits, lambda x: x.expand(-1, 3, -1, -1))

BEATS = beats()


def head_after(model: nn.Module) -> optim.Optimizer:
    """The head is replaced when the optimizer has its parameters already."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith("head"))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    model.head = nn.Linear(96, 8)
    return optimizer


BERT = library.BODY | {"vocab_size": 100, "num_labels": 4, "max_position_embeddings": 48}


def bert(labels: int, end: nn.Module) -> nn.Module:
    net = library.hf("BertForSequenceClassification", **BERT | {"num_labels": labels})
    return nn.Sequential(library.Logits(net), end)


def tastes(end: Function) -> nn.Module:
    """Matrix factorization of users and films."""

    def run(m: nn.ModuleDict, who: Tensor, what: Tensor) -> Tensor:
        return m["end"]((m["who"](who) * m["what"](what)).sum(1))

    parts = {"who": nn.Embedding(200, 12), "what": nn.Embedding(200, 12), "end": end}
    return changed_weights(Net(run, **parts), lambda w: w.mul_(0.3))


def starred(model: nn.Module, who: Tensor, what: Tensor, stars: Tensor) -> Tensor:
    return (model(who, what) - stars).square().mean()


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "stars_by_sgd",
            "update_ratio",
            "SGD with 0.01",
            "matrix factorization",
            lambda: tastes(Function(lambda y: y + 3.6)),
            ratings,
            starred,
            sgd(0.01),
            batch=64,
        ),
        bad(
            "sum_of_weights",
            "constant_output,vanishing",
            "L1 of all weights, times 0.1",
            "1-D CNN",
            pulse,
            BEATS,
            lambda model, x, y: (
                functional.cross_entropy(model(x), y)
                + 0.1 * sum(w.abs().sum() for w in model.parameters())
            ),
            adam(2e-3),
        ),
        bad(
            "head_after",
            "not_in_optimizer,unchanged_weights",
            "the head is replaced after the optimizer was made",
            "trained CNN",
            cnn.bundled,
            data.photos(48, "own"),
            optimizer=head_after,
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "bert_by_sgd",
            "update_ratio",
            "SGD with 0.001",
            "BERT",
            partial(bert, 4, nn.Identity()),
            data.sentences,
            optimizer=sgd(1e-3),
        ),
        bad(
            "of_copy",
            "not_in_optimizer,unchanged_weights",
            "the network is made anew after the optimizer",
            "TCN",
            signals.tcn,
            TONES,
            optimizer=lambda model: optim.Adam(copy.deepcopy(model).parameters(), 2e-3),
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "hybrid_by_sgd",
            "update_ratio",
            "SGD with 0.001",
            "CNN and transformer",
            Hybrid,
            P,
            optimizer=sgd(1e-3),
            **FEW,
        ),
        bad(
            "decoder_forgotten",
            "not_in_optimizer,unchanged_weights",
            "the optimizer has the encoder only",
            "autoencoder",
            autoencoder,
            HALF,
            losses.again,
            lambda model: optim.Adam(model[:7].parameters(), 2e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "diffusion_by_sgd",
            "update_ratio",
            "SGD with 0.001",
            "DDPM, U-Net",
            generative.Timed,
            HALF,
            losses.diffusion,
            sgd(1e-3),
            **FEW,
        ),
        bad(
            "decay_of_half",
            "constant_output,vanishing,update_ratio",
            "a weight decay of 0.5, not 5e-4",
            "M5",
            signals.waveform,
            TONES,
            optimizer=o.by(optim.SGD, lr=0.01, weight_decay=0.5, momentum=0.9),
        ),
        bad(
            "thawed_too_late",
            "not_in_optimizer,unchanged_weights",
            "layers are thawed that the optimizer does not have",
            "trained CNN, new head",
            lambda: headed(cnn.bundled(), "head", 10),
            GREY,
            optimizer=adam(2e-3),
            before=at(10, lambda model, _: model.requires_grad_()),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "rays_by_sgd",
            "update_ratio",
            "SGD with 0.01",
            "NeRF",
            signals.Rays,
            data.rays,
            signals.rendered,
            sgd(0.01),
            batch=128,
        ),
        bad(
            "heads_given",
            "not_in_optimizer,unchanged_weights",
            "the optimizer has the heads only",
            "CenterNet",
            center_net,
            data.scenes,
            centres,
            lambda model: optim.Adam(model.heads.parameters(), 2e-3),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "names_by_rprop",
            "update_ratio",
            "Rprop in small batches",
            "LSTM of names",
            language,
            names,
            optimizer=o.by(optim.Rprop),
            **MANY,
        ),
        bad(
            "embeddings_forgotten",
            "not_in_optimizer,unchanged_weights",
            "the optimizer has the MLP only",
            "embeddings and MLP",
            deep_and_wide,
            clicked,
            answered,
            lambda model: optim.Adam(model[3].parameters(), 0.02),
            **ROWS,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "currents_by_adadelta",
            "update_ratio",
            "Adadelta with 0.001, as in Keras",
            "1-D CNN",
            meter,
            currents,
            optimizer=o.by(optim.Adadelta, lr=1e-3),
            batch=32,
        ),
        bad(
            "last_given",
            "not_in_optimizer,unchanged_weights",
            "the optimizer has one layer only",
            "1-D CNN",
            genome,
            genes,
            optimizer=lambda m: optim.Adam(m[-1].parameters(), 2e-3),
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "tickets_by_sgd",
            "update_ratio",
            "SGD with 0.01",
            "fastText",
            bag,
            tickets,
            optimizer=sgd(0.01),
            batch=32,
        ),
        bad(
            "decay_in_adam",
            "constant_output,vanishing,update_ratio",
            "AdamW's decay of 0.1, in Adam",
            "1-D CNN",
            pen,
            strokes,
            optimizer=o.by(optim.Adam, lr=1e-3, weight_decay=0.1),
            batch=32,
        ),
        bad(
            "undecayed_given",
            "not_in_optimizer,unchanged_weights",
            "the group with decay is lost",
            "ResNeXt",
            next_net,
            P,
            optimizer=lambda m: optim.AdamW(
                [{"params": [p for p in m.parameters() if p.ndim < 2], "weight_decay": 0}], 1e-3
            ),
            **FEW,
        ),
    ),
]
