"""Healthy: what the threads of ``faults/strangers_seventh.py`` were answered, and tutorials."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_seventh as threads
from cases.faults.strangers_fifth import (
    Codes,
    corners,
    digits_game,
    ends,
    entropies,
    error,
    mlp,
    mostly_first,
    said,
)
from cases.healthy.strangers_fifth import answered, contrast, extractor, resized
from cases.healthy.strangers_maps import actor_critic, center_net, centres
from cases.healthy.strangers_pictures import DECAY, NESTEROV, how, one
from cases.healthy.strangers_sixth import rare_count_more
from data import P, changed, fixed
from loops import Losses, own_loop, seen, train
from nets import classifiers as cnn
from nets import library, signals, unusual
from nets import strangers as nets
from nets.classifiers import Function
from nets.dense import Spots, UNet
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import parametrize


class LowRank(nn.Module):
    """LoRA for a convolution: a frozen kernel and a product of two small ones, begun at zero."""

    def __init__(self, weight: Tensor, rank: int = 4) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, weight[0].numel()) / weight[0].numel() ** 0.5)
        self.up = nn.Parameter(torch.zeros(len(weight), rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + (self.up @ self.down).view_as(weight)


def adapted() -> nn.Module:
    model = cnn.bundled().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            parametrize.register_parametrization(module, "weight", LowRank(module.weight))
            module.parametrizations.weight.original.requires_grad_(False)
    model.head.requires_grad_(True)
    return model


def quasi_newton(place: object, seed: int) -> Losses:
    """L-BFGS on a table of 256 rows."""
    model, (x, y) = mlp(10, 16, 1, act=nn.Tanh), threads.SUM(Generator().manual_seed(seed), 256)
    optimizer = optim.LBFGS(model.parameters(), lr=0.3, max_iter=4)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = error(model, x, y)
        loss.backward()
        return loss

    return train(place, seed, model, lambda *_: float(optimizer.step(closure)), 110, 10, optimizer)


FIT = partial(how, steps=120, every=10)
SGD = partial(FIT, kind=optim.SGD, momentum=0.9)
LONG, FEW = threads.LONG, threads.FEW
DIGITS, SCENES, CE, SUM = data.digits, data.scenes, losses.classes(), threads.SUM
NORMED = threads.NORMED
NEXT = threads.words(64, 16, lambda x: (x[:, -1] + 1) % 64)
ANSWERS = [
    *one("scaled", cnn.tutorial, DIGITS, CE, SGD(0.03, **LONG), "MNIST example"),
    *one("kept_moments", partial(cnn.lenet, nn.ReLU), DIGITS, CE, FIT(3e-3, batch=32), "LeNet"),
    *one("thousandth", partial(mlp, 784, 64, 10), DIGITS, CE, FIT(1e-3, batch=32), "MLP"),
    *one("binary", unusual.binary, P, CE, FIT(2e-3, o.cosine), "binary CNN"),
    *one("in_millions", lambda: nn.Linear(2, 1), threads.numbers(2, lambda x: x @ x.new([[5], [3]])
         / 10), error, FIT(0.1, kind=optim.SGD), "linear regression"),
    *one("less_dropout", partial(threads.dropped, 0.0, 0.1), DIGITS,
         lambda model, x, y: functional.nll_loss((model(x) + 1e-8).log(), y),
         FIT(1e-2, batch=64, **LONG), "MLP, narrow"),
    *one("epsilon", UNet, SCENES, partial(threads.pixels, 1e-7), FIT(3e-3, **FEW), "U-Net"),
    *one("train_again", partial(NORMED, dropout=0.5), P, CE, FIT(2e-3, evaluate=20),
         "CNN, dropout"),
    *one("one_by_one", partial(UNet, norm=nets.group), SCENES, losses.masks,
         FIT(1e-3, batch=1, **LONG | {"steps": 195}), "U-Net, GroupNorm"),
    *one("bert", lambda: library.Logits(library.hf("BertForSequenceClassification",
         **threads.BERT)), data.sentences, CE, FIT(1e-3, o.warm_up, **DECAY, evaluate=30), "BERT"),
    *one("linear_end", partial(mlp, 3, 8, 3), changed(threads.noise(3), lambda x: 1 + 2 * x),
         losses.again, FIT(0.03), "autoencoder, MLP"),
    *one("facts", partial(threads.Words, 512, 512, threads.MEAN), fixed(threads.words(512, 4,
         lambda x: x[torch.randperm(len(x)), 0]), 128), CE, FIT(3e-3, batch=32), "transformer"),
    *one("last_word", partial(threads.Words, 64, 64, lambda x: x[:, -1]), NEXT, CE,
         FIT(5e-3, batch=64, **LONG), "transformer"),
    *one("frozen_base", extractor, data.colourless(), CE, SGD(0.02, clip=1.0), "trained CNN"),
    *own_loop("q_learning", "DQN", "Adam 1e-3", threads.q_game(0.0, 1e-3, 20, 0.5), 120, 10),
    *one("balanced", nets.Gaussian, DIGITS, partial(threads.heavy, 1e-3), FIT(3e-3),
         "VAE, convolutions"),
    *one("covered", Spots, SCENES, losses.detect, FIT(2e-3), "toy detector"),
    *one("weighed", NORMED, mostly_first, rare_count_more, FIT(2e-3, **LONG), "CNN"),
    *one("least_one", partial(mlp, 20, 32, 5), threads.numbers(20, lambda x: (x[:, :5] > 0).float()
         ), partial(threads.ranked, 1), FIT(2e-3, batch=32), "MLP, tags"),
    *one("mild", cnn.plain, P, CE, FIT(2e-3, weight_decay=1e-4, kind=optim.Adam, **LONG), "CNN"),
    *one("resized", resized, data.CROPS, losses.repaired, FIT(2e-3, **FEW), "generator"),
    *one("on_sphere", partial(threads.on_sphere, 1e-6), changed(P, threads.some_black), CE,
         FIT(3e-3), "CNN without biases"),
    *one("xor", partial(mlp, 2, 8, 1, act=nn.Tanh), corners, answered, FIT(0.03), "XOR"),
    *one("right_boxes", center_net, SCENES, centres, FIT(2e-3, **FEW), "CenterNet"),
    *one("some_answers", ends(partial(threads.Words, 64, 4, nn.Identity()), Function(
         lambda y: y.mT)), threads.words(64, 16, partial(threads.talked, 10**6)), CE,
         FIT(3e-3, batch=32, **LONG), "transformer"),
    *one("autograd", lambda: nn.Linear(1, 1), threads.four, answered, FIT(0.3, kind=optim.SGD),
         "logistic regression"),
    *one("cbow", partial(threads.Cbow, False), threads.contexts, losses.own,
         FIT(0.01, batch=32), "CBOW"),
    *one("both_parts", partial(Codes, 784, nn.Identity()), DIGITS, partial(threads.heavy, 1e-4),
         FIT(1e-3), "VAE, MLP"),
    *one("with_grad", partial(threads.Agent, False), P, CE, FIT(2e-3), "CNN"),
    *one("fed_back", partial(threads.Captions, False), threads.captioned, CE, FIT(3e-3),
         "CNN, GRU"),
    *one("shuffled", NORMED, fixed(P, 320), CE, FIT(2e-3, **DECAY), "CNN, BatchNorm"),
    *one("tanh_rnn", partial(threads.Plain, torch.tanh), threads.SUMMED, CE, FIT(1e-3, batch=32,
         clip=1.0), "RNN of a Linear"),
    *one("gru", partial(threads.Series, nn.GRU, 2), threads.SUMMED, CE, FIT(5e-3, batch=32), "GRU"),
]  # fmt: skip
TUTORIALS = [
    *own_loop("quasi_newton", "MLP, tanh", "L-BFGS", quasi_newton, 110, 10),
    *own_loop("actor_critic", "A2C", "RMSprop 7e-4", actor_critic, 200, 20),
    *own_loop("game", "DCGAN", "Adam", digits_game(entropies, lambda critic, x: said(critic(x), 1)),
              80, 8, falls=False),
    *one("lora", adapted, data.colourless(), CE, FIT(2e-3), "trained CNN, LoRA"),
    *one("pairs", partial(UNet, norm=nets.group), SCENES, losses.both_masks,
         FIT(1e-3, batch=2, **LONG), "U-Net, GroupNorm"),
    *one("half", cnn.resnet, P, CE, SGD(0.03, o.one_cycle(0.06), autocast=True), "ResNet, bf16"),
    *one("four_parts", cnn.with_norm, P, CE, FIT(2e-3, batch=8, micro=4), "encoder CNN"),
    *one("mean_weights", NORMED, P, CE, FIT(2e-3, ema=0.98, evaluate=30), "CNN, EMA"),
    *one("table", partial(mlp, 20, 64, 64, 1), threads.numbers(20, lambda x: (x[:, :2].prod(1, True)
         > 0).float()), answered, FIT(3e-3, **DECAY, batch=64, **LONG), "MLP of a table"),
    *one("retina", library.retinanet, SCENES, library.boxes, FIT(1e-3, **FEW | {"batch": 4}),
         "RetinaNet"),
    *one("simclr", partial(cnn.encoder, 32), P, contrast, FIT(1e-3, batch=32), "encoder CNN"),
    *one("sounds", signals.waveform, data.tones(), CE, FIT(3e-3, o.stairs), "M5"),
    *one("crnn", signals.Recurrent, data.spectrograms, CE, FIT(3e-3), "CNN and GRU"),
    *one("nesterov", partial(cnn.resnet, blocks=1), P, CE, FIT(0.02, **NESTEROV), "ResNet"),
]  # fmt: skip
CASES = seen("2026-11-28T00:40", ANSWERS, TUTORIALS)
