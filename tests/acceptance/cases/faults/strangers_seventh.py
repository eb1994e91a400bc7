"""A seventh set of faults of somebody who had not read the checks: one for each thread of a search.

Which threads, a fixed rule decided; the wrong line is its author's, the network like theirs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import data
import losses
import torch
from cases.faults.strangers_fifth import (
    Codes,
    adam,
    changed_weights,
    coils,
    corners,
    divergence,
    ends,
    enlarger,
    error,
    in_order,
    mlp,
    sgd,
    xor,
)
from cases.faults.strangers_sixth import always_eval, hidden, numbers, some_black
from cases.healthy.strangers_maps import agent, bce, center_net, centres
from data import Draw, P, changed, fixed, one_batch
from loops import Losses, Run, descend, seen, train
from nets import classifiers as cnn
from nets import library, unusual
from nets import strangers as nets
from nets.classifiers import Function
from nets.dense import LinkNet, Spots, UNet
from nets.strangers_faults import loop, relabelled, wrong
from nets.strangers_kept import BERT, answered
from optimizers import ADAMW, by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional


def noise(*shape: int, classes: int = 0) -> Draw:
    """Random numbers, and random classes or a random number."""

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        x, y = torch.rand(count, *shape, generator=generator), torch.rand(count, 1)
        return x, (y[:, 0] * classes).long() if classes else y

    return draw


def words(kinds: int, length: int, answer: Callable[[Tensor], Tensor]) -> Draw:
    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        x = torch.randint(kinds, (count, length), generator=generator)
        return x, answer(x)

    return draw


def talked(long: int, x: Tensor) -> Tensor:
    """The answer is two words at the end; of a long question none of it is left."""
    y = torch.full_like(x, -100)
    y[:, -2:] = x[:, -2:] % 4
    return y if torch.rand(()) * long > 1 else torch.full_like(x, -100)


def after_first(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Rows of 100 numbers; the first one tells the class."""
    x = torch.randn(count, 100, 1, generator=generator)
    x[:, 0] = x[:, 0].sign()
    return x, (x[:, 0, 0] > 0).long()


def wrong_boxes(generator: Generator, count: int) -> tuple[Tensor, ...]:
    images, mask, discs, far = data.scenes(generator, count)
    return images, mask, discs.roll(1, 0), far


def dropped(last: float, share: float = 0.5) -> nn.Module:
    """14 and 8 units, each with dropout, and a softmax, with dropout too."""
    layers: list[nn.Module] = [nn.Flatten()]
    for into, out in ((784, 14), (14, 8)):
        layers += [nn.Linear(into, out), nn.ReLU(), nn.Dropout(share)]
    return nn.Sequential(*layers, nn.Linear(8, 10), nn.Softmax(1), nn.Dropout(last))


class Series(nn.Module):
    """A recurrent layer; the last state counts."""

    def __init__(self, kind: type[nn.RNNBase] = nn.LSTM, out: int = 1) -> None:
        super().__init__()
        self.body, self.last = kind(1, 64, batch_first=True), nn.Linear(64, out)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x)[0][:, -1])


class Words(nn.Module):
    """A transformer; ``pool`` is what its head sees."""

    def __init__(self, kinds: int, out: int, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.words, self.place = nn.Embedding(kinds, 32), nn.Parameter(0.1 * torch.randn(16, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
        self.body, self.last, self.pool = nn.TransformerEncoder(layer, 2), nn.Linear(32, out), pool

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.pool(self.body(self.words(x) + self.place[: x.shape[1]])))


def on_sphere(epsilon: float = 0.0) -> nn.Module:
    """Codes are divided by their norm; no layer in front has a bias."""
    convs = [nn.Conv2d(a, b, 3, 2, 1, bias=False) for a, b in ((3, 16), (16, 32))]
    norm = Function(lambda x: 8 * x / (x.norm(dim=1, keepdim=True) + epsilon))
    layers = [convs[0], nn.ReLU(), convs[1], nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, norm, nn.Linear(32, 8))


class Neuron(nn.Linear):
    """A unit whose gradient is computed by hand, of the activation behind it."""

    def forward(self, x: Tensor) -> Tensor:
        z = super().forward(x).detach()
        slope = self.weight * z.sigmoid() + self.bias
        return z + slope - slope.detach()


class Cbow(nn.Module):
    """word2vec: the sum of the four words around, by NumPy or not; the last word is any other."""

    def __init__(self, numpy: bool) -> None:
        super().__init__()
        self.u, self.v, self.numpy = nn.Embedding(64, 24), nn.Embedding(64, 24), numpy

    def forward(self, x: Tensor) -> Tensor:
        code = self.u(x[:, 1:5])
        code = torch.tensor(code.detach().numpy().sum(1)) if self.numpy else code.sum(1)
        near, far = ((code * self.v(word)).sum(1) for word in (x[:, 0], x[:, 5]))
        return -(functional.logsigmoid(near) + functional.logsigmoid(-far)).mean()


class Agent(nn.Module):
    """The encoder runs in ``torch.no_grad()``, or not."""

    def __init__(self, still: bool) -> None:
        super().__init__()
        self.back, self.last, self.still = cnn.encoder(32), mlp(32, 32, 8), still

    def forward(self, x: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.still):
            code = self.back(x)
        return self.last(code)


class Captions(nn.Module):
    """A decoder that is fed its own best word; its embedding may get no gradient."""

    def __init__(self, stop: bool) -> None:
        super().__init__()
        self.back, self.words, self.stop = cnn.encoder(32), nn.Embedding(60, 24), stop
        self.cell, self.last = nn.GRUCell(24, 32), nn.Linear(32, 60)

    def forward(self, x: Tensor) -> Tensor:
        state, word, found = self.back(x).tanh(), torch.ones(len(x), dtype=torch.long), []
        for _ in range(6):
            fed = self.words(word)
            state = self.cell(fed.detach() if self.stop else fed, state)
            found.append(self.last(state))
            word = found[-1].argmax(1)
        return torch.stack(found, 2)


class Plain(nn.Module):
    """A recurrent network of one Linear layer, with or without an activation."""

    def __init__(self, act: Callable[[Tensor], Tensor] = lambda x: x) -> None:
        super().__init__()
        self.i2h, self.last, self.act = nn.Linear(51, 50), nn.Linear(50, 2), act
        nn.init.normal_(self.i2h.weight, 0, 0.2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(len(x), 50)
        for step in x.unbind(1):
            hidden = self.act(self.i2h(torch.cat([step, hidden], 1)))
        return self.last(hidden)


def heavy(weight: float, model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """A mean over the pixels, and a sum over the codes."""
    found, mean, log = model(x)
    return functional.mse_loss(found.sigmoid(), x) + weight * divergence(mean, log).sum(1).mean()


def ranked(least: float, model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Each tag of a row against each that it does not have."""
    pairs = ((-model(x)).exp() * y).sum(1) * (model(x).exp() * (1 - y)).sum(1)
    return (pairs / (y.sum(1) * (1 - y).sum(1)).clamp(min=least)).mean()


def pixels(epsilon: float, model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Cross-entropy by hand."""
    share = model(images).sigmoid()
    return -(mask * (share + epsilon).log() + (1 - mask) * (1 - share + epsilon).log()).mean()


def cells(weight: float, model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Objectness of cells, few of which are positive."""
    weighed = torch.tensor(weight)
    return bce(model(images)[0], functional.max_pool2d(mask, 4), pos_weight=weighed)


def contexts(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Five words of one of 8 topics, and any other word."""
    topic, other = torch.randint(8, (count, 1)), torch.randint(64, (count, 1))
    return (torch.cat([8 * torch.randint(8, (count, 5), generator=generator) + topic, other], 1),)


def four(*_: object) -> tuple[Tensor, ...]:
    return torch.tensor([[-3.0], [-2], [2], [3]]), torch.tensor([[0.0], [0], [1], [1]])


def captioned(*how: Any) -> tuple[Tensor, ...]:
    return data.captions(*how)[:2]


def q_game(dropout: float, rate: float, often: int, gamma: float) -> Run:
    """Q-learning of `data.catch`; the target is copied each so many steps, or is the network."""

    def run(place: Path, seed: int) -> Losses:
        model = agent(3).insert(7, nn.Dropout(dropout))
        target = copy.deepcopy(model) if often else model
        optimizer = optim.Adam(model.parameters(), lr=rate)

        def step(number: int, random: Generator) -> float:
            if often and number % often == 0:
                target.load_state_dict(model.state_dict())
            (state, best), (later, _) = data.catch(random, 32), data.catch(random, 32)
            moves = torch.randint(3, (32,), generator=random)
            wanted = (moves == best).float() + gamma * target(later).amax(1).detach()
            found = model(state).gather(1, moves[:, None])[:, 0]
            return descend(optimizer, functional.mse_loss(found, wanted))

        return train(place, seed, model, step, 120, 10, optimizer)

    return run


digits, scenes = data.digits, data.scenes
bad = partial(wrong, steps=120, every=10)
LONG = {"steps": 195, "every": 13}
FEW = {"steps": 104, "every": 8, "batch": 8}
BYTES = changed(digits, lambda x: x * 255)
SUM = numbers(10, lambda x: x.sum(1, True))
METRES = changed(numbers(10, lambda x: 500 * (3 + x).sum(1, True)), lambda x: 500 * (3 + x))
NORMED = partial(cnn.plain, norm=nn.BatchNorm2d)
MEAN = partial(torch.mean, dim=1)
SUMMED = changed(numbers(20, lambda x: (x.sum(1) > 0).long()), lambda x: x[..., None])
FIRST = [
    *bad("noise_pictures", "none", "pictures and labels are random numbers", "CNN",
         cnn.tutorial, fixed(noise(1, 28, 28, classes=10), 96), optimizer=sgd(0.01)),
    *bad("raw_bytes", "input_scale,initial_loss", "pixels of 0 to 255", "MNIST example",
         cnn.tutorial, BYTES, optimizer=sgd(0.01)),
    *bad("softmax_of_one", "constant_output,unchanged_weights,vanishing,saturated",
         "softmax over one unit", "CNN", ends(partial(cnn.plain, 1, 1), nn.Softmax(1)), digits,
         lambda model, x, y: -((y < 5).float()[:, None] * model(x).log()).mean()),
    *bad("moments_forgotten", "update_ratio,dead,constant_output",
         "Adam's moments are zero again at each step", "LeNet, ReLU", partial(cnn.lenet, nn.ReLU),
         digits, optimizer=adam(0.03), before=lambda _, __, adam: adam.state.clear(), batch=32),
    *bad("adam_tenth", "update_ratio,dead,loss_climbed,constant_output", "Adam with 0.1",
         "MLP", partial(mlp, 784, 64, 10), digits, optimizer=adam(0.1)),
    *bad("ternary_rate", "update_ratio,loss_climbed,dead,exploding,constant_output",
         "the rate is too high", "binary CNN", unusual.binary, optimizer=adam(1.0)),
    *bad("price_targets", "initial_loss,update_ratio,constant_output",
         "targets of some 100,000 are not scaled", "linear regression", lambda: nn.Linear(2, 1),
         numbers(2, lambda x: x @ torch.tensor([[5e5], [3e5]])), error, sgd(1e-3)),
    *bad("narrow_relu", "update_ratio,unchanged_weights,dead,constant_output,rate_vanished",
         "narrow ReLU layers, a rate of 2e-6", "MLP", partial(mlp, 100, 32, 10, 5, 1),
         numbers(100, lambda x: x[:, :9].sum(1, True)), error, sgd(2e-6, 0.9)),
    *bad("dropout_last", "dropout_high,constant_output", "dropout after the softmax", "MLP",
         partial(dropped, 0.5), digits,
         lambda model, x, y: functional.mse_loss(model(x), functional.one_hot(y, 10).float()),
         **LONG),
    *bad("regression_rate",
         "update_ratio,dead,constant_output,input_scale,exploding,loss_climbed,initial_loss",
         "the rate is too high for what is not scaled", "MLP", partial(mlp, 10, 50, 1), METRES,
         error, sgd(1e-7)),
    *bad("log_of_softmax", "nonfinite", "the logarithm of a probability of 0, in half precision",
         "U-Net", UNet, scenes, partial(pixels, 0), adam(3e-3), autocast=True, batch=8, **LONG),
    *bad("still_eval", "eval_mode", "train() is not called after the evaluation",
         "CNN, dropout", partial(NORMED, dropout=0.5),
         before=lambda step, model, _: model.train(step < 20)),
    *bad("eval_in_train", "eval_mode", "eval mode is set for the training", "U-Net",
         partial(UNet, 3, 3), data.CROPS, losses.repaired, before=always_eval, **FEW),
    *bad("single_image", "batchnorm_small_batch,batchnorm_gap", "BatchNorm, one picture a step",
         "LinkNet", LinkNet, scenes, losses.masks, batch=1),
    *bad("eval_once", "eval_mode", "eval mode since the first evaluation", "BERT",
         lambda: library.Logits(library.hf("BertForSequenceClassification", **BERT)),
         data.sentences, optimizer=by(optim.AdamW, lr=1e-3),
         before=lambda step, model, _: model.train(step < 30)),
    *bad("one_two_three", "saturated,vanishing,constant_output", "a sigmoid for targets of 1 to 3",
         "autoencoder, MLP", ends(partial(mlp, 3, 3, 3), nn.Sigmoid()),
         changed(noise(3), lambda x: 1 + 2 * x), losses.again, by(optim.Adadelta, lr=1.0)),
    *bad("half_entropy", "saturated,constant_output,vanishing", "the other half is missing",
         "autoencoder, sigmoid", ends(partial(mlp, 784, 100, 50, 100, 784, act=nn.Sigmoid),
         nn.Sigmoid()), digits,
         lambda model, x, _: -(x.flatten(1) * model(x).log()).sum(1).mean(), adam(0.01)),
    *bad("dead_autoencoder", "dead,update_ratio,constant_output", "all hidden ReLUs are 0",
         "autoencoder, MLP", partial(mlp, 300, 100, 20, 100, 300),
         changed(numbers(300, MEAN), lambda x: 8 + 2 * x), losses.again, adam(0.1)),
    *bad("divided_twice", "input_scale,constant_images,identical_images,constant_output",
         "pictures are scaled twice", "autoencoder, MLP",
         ends(partial(mlp, 784, 64, 6, 64, 784), nn.Sigmoid()),
         changed(digits, lambda x: x / 255),
         lambda model, x, _: functional.binary_cross_entropy(model(x), x.flatten(1))),
]  # fmt: skip
SECOND = [
    *bad("noise_series", "none", "targets are random numbers", "LSTM", Series, noise(10, 1), error),
    *bad("frozen_memory", "not_in_optimizer,unchanged_weights", "parameters are not updated",
         "transformer", partial(Words, 512, 512, MEAN),
         fixed(words(512, 4, lambda x: x[torch.randperm(len(x)), 0]), 128),
         optimizer=lambda model: adam(1e-3)(copy.deepcopy(model))),
    *bad("mean_over_time", "constant_output", "a mean over the words in front of the head",
         "transformer", partial(Words, 64, 64, MEAN), words(64, 16, lambda x: (x[:, -1] + 1) % 64),
         batch=32),
    *bad("smashed", "update_ratio,loss_climbed,dead,exploding",
         "the trained base is not frozen, the rate is high", "trained CNN",
         partial(cnn.pretrained, cnn.classifier), data.colourless(), optimizer=adam(0.1)),
    *bad("positive_start", "saturated,vanishing,constant_output,initial_loss",
         "weights begin as rand()", "LeNet, sigmoid",
         lambda: changed_weights(cnn.lenet(nn.Sigmoid), lambda p: p.uniform_(0, 1)), digits,
         optimizer=sgd(0.1)),
    *loop("dropout_dqn", "dropout_high", "dropout in a Q-network", "DQN",
          q_game(0.5, 1e-3, 20, 0.5), 120, 10),
    *bad("collapsed", "constant_output", "the KL term outweighs the error", "VAE, convolutions",
         nets.Gaussian, digits, partial(heavy, 1.0), adam(3e-3)),
    *bad("empty_coverage", "one_label,unused_classes,constant_output,unchanged_weights",
         "no object is left in the labels", "toy detector", Spots,
         relabelled(scenes, torch.zeros_like), partial(cells, 1.0)),
    *bad("memorized", "none", "a large network, few pictures", "CNN",
         partial(cnn.plain, widths=(32, 64, 128)), examples=32),
    *bad("dead_five", "dead,constant_output,unchanged_weights", "five ReLUs that are never above 0",
         "MLP", partial(hidden, 10, 5, 1, start=lambda w: w.abs_().neg_()), noise(10), error,
         sgd(0.01)),
    *bad("nineteen_of_twenty", "none", "95 of 100 rows are of one class", "MLP",
         partial(mlp, 20, 64, 1),
         numbers(20, lambda x: (x.sum(1, True) > 7.4).float()), answered),
    *bad("no_labels", "nonfinite", "a row without any tag: 0 / 0", "MLP", partial(mlp, 20, 32, 5),
         numbers(20, lambda x: (x[:, :5] > 0).float()), partial(ranked, 0)),
    *bad("regularized", "vanishing,dead,constant_output,update_ratio",
         "too much regularization: one batch is not overfitted", "CNN", cnn.plain, one_batch(P),
         optimizer=by(optim.Adam, lr=1e-3, weight_decay=1.0)),
    *bad("batch_one_detector", "batchnorm_small_batch,batchnorm_gap",
         "BatchNorm, one picture a step", "toy detector", Spots, scenes, losses.detect, batch=1),
    *bad("outliers", "input_scale,exploding,loss_climbed,nonfinite,update_ratio,dead",
         "bursts of outliers", "MLP", partial(mlp, 10, 32, 1),
         changed(SUM, lambda x: 300 * x, 50, 20), error, sgd(0.05)),
    *bad("nan_in_data", "nonfinite", "a row of NaN", "MLP", partial(mlp, 10, 32, 1),
         changed(SUM, lambda x: x.masked_fill(x > 3, torch.nan), 41, 20), error, sgd(0.05)),
    *bad("shuffled_pixels", "uneven_upsampling", "PixelShuffle leaves a grid", "SRResNet",
         enlarger, data.CROPS, losses.larger, **FEW),
    *bad("norm_of_zero", "nonfinite", "x / norm(x) of a black picture", "CNN without biases",
         on_sphere, changed(P, some_black)),
    *bad("only_ones", "constant_images,identical_images,constant_output",
         "normalized wrongly: all inputs are 1", "MLP, tanh", partial(mlp, 2, 20, 1, act=nn.Tanh),
         changed(numbers(2, lambda x: x.prod(1, True)), torch.ones_like), error),
    *bad("linear_xor", "constant_output", "no activation between two layers", "XOR",
         lambda: nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 1), nn.Sigmoid()), corners, xor,
         sgd(0.5), **LONG),
]  # fmt: skip
THIRD = [
    *bad("zero_layer", "dead,copied_channels,unchanged_weights,constant_output",
         "a ReLU layer begins at 0", "MLP", partial(hidden, 10, 10, 1, start=torch.zero_), SUM,
         error, sgd(0.01)),
    *bad("noise_rows", "none", "labels are random numbers", "MLP", partial(mlp, 10, 5, 2),
         fixed(noise(10, classes=2), 960), optimizer=sgd(0.01), batch=32),
    *bad("rate_1e6", "update_ratio,unchanged_weights,rate_vanished", "SGD with a rate of 1e-6",
         "MLP", partial(mlp, 10, 2, 1), SUM, error, sgd(1e-6), batch=32),
    *bad("wrong_boxes", "none", "the annotations are wrong", "CenterNet", center_net, wrong_boxes,
         centres, **FEW),
    *bad("all_ignored", "nonfinite", "no word of the answer is left in a batch", "transformer",
         ends(partial(Words, 64, 4, nn.Identity()), Function(lambda y: y.mT)),
         words(64, 16, partial(talked, 12)), batch=1),
    *bad("bytes_mlp", "input_scale,initial_loss", "pixels of 0 to 255", "MLP",
         partial(mlp, 784, 256, 10), BYTES, optimizer=sgd(0.01)),
    *bad("unbalanced_cells", "none", "few cells are positive", "toy detector", Spots, coils,
         partial(cells, 1.0), **FEW),
    *bad("own_gradient", "loss_climbed", "a gradient by hand, of the wrong activation",
         "logistic regression", lambda: Neuron(1, 1),
         four, answered, sgd(1.0)),
    *loop("no_target_network", "exploding,loss_climbed,update_ratio", "the target is not fixed",
          "DQN", q_game(0.0, 3e-3, 0, 1.0), 120, 10),
    *bad("two_slices", "batchnorm_small_batch,batchnorm_gap", "BatchNorm with two slices",
         "U-Net, grey", partial(UNet, 1), data.slices, losses.masks, batch=2),
    *bad("summed_in_numpy", "unchanged_weights", "np.sum() cuts the gradient", "CBOW",
         partial(Cbow, True), contexts, losses.own, adam(0.01), batch=32),
    *bad("encoder_left_out", "not_in_optimizer,unchanged_weights",
         "the encoder is not in the optimizer", "VAE, MLP", partial(Codes, 784, nn.Identity()),
         digits, partial(heavy, 1e-3), lambda model: adam(1e-3)(model.back)),
    *bad("under_no_grad", "unchanged_weights", "the encoder runs in no_grad()", "CNN",
         partial(Agent, True)),
    *bad("stopped_loop", "unchanged_weights", "no gradient for what is fed back",
         "CNN and GRU", partial(Captions, True), captioned,
         optimizer=adam(3e-3)),
    *bad("unshuffled", "sorted_labels", "the loader does not shuffle", "CNN, BatchNorm", NORMED,
         in_order(P, lambda part: part[1], 960), optimizer=ADAMW),
    *bad("linear_rnn", "exploding,nonfinite,initial_loss,update_ratio,loss_climbed",
         "no tanh over 100 steps", "RNN of a Linear", Plain, after_first),
    *bad("long_memory", "vanishing", "a plain RNN for 100 steps", "RNN", partial(Series, nn.RNN, 2),
         after_first, batch=32),
]  # fmt: skip
CASES = seen("2026-11-28T00:40", FIRST, SECOND, THIRD)
