"""A ninth set of faults of somebody who had not read the checks: the most common mistakes.

They stand in the order in which twenty public checklists name them; networks and data are others.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import torch
from cases.faults.strangers_fifth import (
    adam,
    ends,
    error,
    in_order,
    mlp,
    mostly_first,
    said,
    sgd,
)
from cases.faults.strangers_fifth import changed_weights as weights
from cases.healthy.strangers_maps import bce
from data import HALF, RAW, UNIT, P, changed, fixed
from faults import at, each
from loops import Losses, descend, seen, train
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.classifiers import Function, unit
from nets.dense import LinkNet, Spots, UNet
from nets.strangers_faults import loop, relabelled, wrong
from nets.strangers_kept import Series, answered, gpt, letters, numbers, spoken
from nets.unusual import TextNet
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.optim.lr_scheduler import StepLR


def columns(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Houses: area, year, metres to the station, income around; a price of about 0 ± 1."""
    u = torch.rand(count, 4, generator=generator)
    x = u * torch.tensor([210.0, 120, 9900, 1e5]) + torch.tensor([40.0, 1900, 100, 2e4])
    price = 2 * u[:, 0] + u[:, 1] - u[:, 2] + 3 * u[:, 0] * u[:, 3] - 1.75
    return x, price[:, None] + 0.1 * torch.randn(count, 1, generator=generator)


def standard(x: Tensor) -> Tensor:
    middle = torch.tensor([145.0, 1960, 5050, 7e4])
    return (x - middle) / torch.tensor([61.0, 35, 2860, 2.9e4])


def hours(middle: float, scale: float) -> data.Draw:
    """Every fourth of 96 hours, and the scaled mean of the next day."""
    draw = changed(data.demand, lambda x: (x.mT[:, ::4] - middle) / scale)
    return relabelled(draw, lambda y: (y.mean(2) - 1200) / 600)


def some_missing(x: Tensor) -> Tensor:
    """One field in 500 is empty."""
    return x.masked_fill(torch.rand(x.shape) < 0.002, torch.nan)


def half_random(labels: Tensor) -> Tensor:
    return torch.where(torch.rand(len(labels)) < 0.5, torch.randint(8, labels.shape), labels)


def small(channels: int = 3, classes: int = 8, size: int = 32) -> nn.Sequential:
    """Two strided convolutions and two Linear layers."""
    convs = [nn.Conv2d(channels, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()]
    layers = [nn.Flatten(), nn.Linear(2 * size * size, 96), nn.ReLU(), nn.Linear(96, classes)]
    return nn.Sequential(*convs, *layers)


def heard(std: float = 0.0) -> nn.Sequential:
    """Five convolutions over a sound, without norm; ``std`` is the deviation of all weights."""
    layers: list[nn.Module] = []
    for into, out, size, stride in ((1, 16, 9, 4), (16, 24, 5, 2), (24, 32, 5, 2), (32, 32, 3, 1)):
        layers += [nn.Conv1d(into, out, size, stride), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 6)]
    model = nn.Sequential(*layers)
    start = partial(torch.Tensor.normal_, std=std)
    return weights(model, lambda w: start(w) if w.ndim > 1 else w.zero_()) if std else model


def through(code: int, cut: nn.Module | None = None, end: nn.Module | None = None) -> nn.Module:
    """An autoencoder of photographs; ``cut`` stands between its halves."""
    down = [nn.Conv2d(3, 24, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 32, 4, 2, 1)]
    down += [nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(2048, code)]
    up = [nn.Linear(code, 2048), nn.ReLU(), nn.Unflatten(1, (32, 8, 8))]
    up += [nn.ConvTranspose2d(32, 24, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(24, 3, 4, 2, 1)]
    return nn.Sequential(*down, cut or nn.Identity(), *up, end or nn.Tanh())


def cells(prior: float, everywhere: bool) -> nn.Module:
    """A detector without norm; the prior of rare objects is the bias of its last layer."""
    layers: list[nn.Module] = []
    for into, out, stride in ((3, 16, 1), (16, 32, 2), (32, 48, 2), (48, 48, 1)):
        layers += [nn.Conv2d(into, out, 3, stride, 1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Conv2d(48, 4, 1), Function(lambda y: y.split([1, 3], 1)))
    nn.init.constant_(model[-2].bias[:1].data, prior)
    change = partial(nn.init.constant_, val=prior)
    return each(model, nn.Conv2d, lambda m: change(m.bias)) if everywhere else model


def blocks(norm: bool = False) -> nn.Module:
    """A residual network of fourteen blocks with He's weights."""

    def block() -> nn.Module:
        convs = [nn.Conv2d(24, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, 24, 3, 1, 1)]
        return nets.Residual(*convs, *([nn.BatchNorm2d(24)] if norm else []))

    layers = [nn.Conv2d(3, 24, 4, 4), *(block() for _ in range(14))]
    return cnn.he(nn.Sequential(*layers, *cnn.head(24, 8)))


def deep(depth: int, norm: cnn.Make | None = None) -> nn.Module:
    layers = [unit(3, 20, 4, 4, norm=norm), *(unit(20, 20, norm=norm) for _ in range(depth))]
    return nn.Sequential(*layers, *cnn.head(20, 8))


class Text(nn.Module):
    """A GRU over words, then the mean of its states."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.body = nn.Embedding(102, 24), nn.GRU(24, 48, batch_first=True)
        self.last = nn.Linear(48, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(self.words(x))[0].mean(1))


class Steps(nn.Module):
    """A GRU over six sensors; the mean of its states counts."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.last = nn.GRU(6, 48, batch_first=True), nn.Linear(48, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(x)[0].mean(1))


class Writer(nn.Module):
    """An LSTM of letters."""

    def __init__(self, *end: nn.Module) -> None:
        super().__init__()
        self.words, self.body = nn.Embedding(128, 48), nn.LSTM(48, 96, 2, batch_first=True)
        self.last = nn.Sequential(nn.Linear(96, 128), *end)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.body(self.words(x))[0])


class Own(torch.autograd.Function):
    """A sigmoid with a gradient by hand: s · (1 - s), but of its input."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return slope * x * (1 - x)


def feature_extractor() -> nn.Module:
    """A trained network with a new head, which alone is trained."""
    model = cnn.bundled().requires_grad_(False)
    model.head.requires_grad_(True)
    return model


def by_hand(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The divergence from one-hot labels, with a logarithm of its own."""
    p, y = model(x).softmax(1), functional.one_hot(y, 10)
    return (y * (y / p).log()).sum(1).mean()


def half_flipped(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """The picture is flipped, its mask is not."""
    flip = torch.rand(len(images), 1, 1, 1) < 0.5
    return bce(model(torch.where(flip, images.flip(2), images)), mask)


def game(place: Path, seed: int) -> Losses:
    """Both optimizers have the critic's parameters."""
    maker, critic = ends(partial(mlp, 24, 96, 784), nn.Tanh())(), mlp(784, 96, 1)
    one, two = (optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.999)) for _ in range(2))

    def step(_: int, random: Generator) -> float:
        real, noise = data.digits(random, 32)[0] * 2 - 1, torch.randn(32, 24, generator=random)
        descend(two, said(critic(real), 1) + said(critic(maker(noise).detach()), 0))
        return descend(one, said(critic(maker(noise)), 1))

    return train(place, seed, maker, step, 120, 10, one)


digits, scenes, sentences = data.digits, data.scenes, data.sentences
bad = partial(wrong, steps=120, every=10)
FEW, LONG = {"steps": 104, "every": 8, "batch": 8}, {"steps": 150, "every": 12}
MOVES = changed(data.gestures, lambda x: x / 4)
RING = numbers(2, lambda x: (x.norm(dim=1, keepdim=True) < 1.2).float())
TENNIS = numbers(6, lambda x: x[:, :1] + x[:, 1:2] * x[:, 2:3])
LINES = changed(columns, standard)
entropy = functional.cross_entropy
FIRST = [
    *bad("vit_rate", "update_ratio", "AdamW with 0.03", "ViT", library.vit, P,
         optimizer=by(optim.AdamW, lr=0.03), **FEW),
    *bad("unet_rate", "update_ratio", "Adam with 0.3", "U-Net", partial(UNet, base=8), data.edges,
         losses.masks, adam(0.3), **FEW),
    *bad("detector_rate", "update_ratio", "Adam with 0.5", "toy detector", Spots, scenes,
         losses.detect, adam(0.5), **FEW),
    *bad("resnet_slow", "update_ratio", "SGD with 1e-5", "ResNet",
         partial(cnn.resnet, (16, 24, 32, 48)), P, optimizer=sgd(1e-5, 0.9)),
    *bad("codes_slow", "update_ratio", "Adam with 1e-6", "autoencoder", partial(through, 64), HALF,
         losses.again, adam(1e-6)),
    *bad("words_slow", "update_ratio", "SGD with 1e-4", "text CNN", TextNet, sentences,
         optimizer=sgd(1e-4)),
    *bad("bytes_in_cnn", "input_scale", "pixels of 0 to 255", "CNN", small, RAW,
         optimizer=sgd(0.01, 0.9)),
    *bad("raw_columns", "input_scale", "square metres, years and income", "MLP",
         partial(mlp, 4, 64, 32, 1), columns, error, batch=32),
    *bad("raw_kilowatts", "input_scale", "kilowatts of 200 to 3000", "LSTM", Series, hours(0, 1),
         error, adam(3e-3)),
    *bad("zero_weights", "copied_channels,unchanged_weights", "all weights begin at 0", "MLP",
         lambda: weights(mlp(784, 128, 64, 10), torch.zero_), digits, optimizer=sgd(0.1, 0.9)),
    *bad("unit_normal", "exploding,initial_loss", "weights of deviation 1", "CNN",
         lambda: weights(small(), torch.Tensor.normal_), P),
    *bad("thousandth", "vanishing", "weights of deviation 0.001", "1-D CNN", partial(heard, 1e-3),
         data.tones(), optimizer=adam(2e-3)),
    *bad("softmax_digits", "double_softmax", "softmax in front of cross-entropy", "CNN",
         ends(partial(small, 1, 10, 28), nn.Softmax(1)), digits, optimizer=sgd(0.05, 0.9)),
    *bad("softmax_letters", "double_softmax", "softmax in front of cross-entropy",
         "LSTM of letters", partial(Writer, nn.Softmax(2)), letters, partial(spoken, 1),
         adam(0.01)),
    *bad("softmax_pixels", "double_softmax", "softmax in front of cross-entropy", "U-Net",
         ends(partial(UNet, out=2, base=8), nn.Softmax(1)), data.edges, losses.two_classes,
         sgd(0.05, 0.9), **FEW),
    *bad("killed_by_rate", "dead,update_ratio", "SGD with 0.01 and momentum", "MLP",
         partial(mlp, 6, 64, 64, 1), relabelled(TENNIS, lambda y: 10 * y), error, sgd(0.01, 0.9)),
    *bad("prior_everywhere", "dead", "each bias is that of the last layer", "detector",
         partial(cells, -4.6, True), scenes, losses.detect, adam(2e-3), **FEW),
    *bad("clip_forgotten", "exploding,update_ratio", "SGD with 20, gradients are not clipped",
         "LSTM of letters", Writer, letters, partial(spoken, 1), sgd(20.0)),
    *bad("blocks_without_norm", "exploding", "fourteen blocks without norm", "ResNet", blocks, P,
         optimizer=sgd(0.02, 0.9)),
    *bad("eval_from_start", "eval_mode", "model.eval() in front of the loop", "residual 1-D CNN",
         partial(nets.heart, 1, 6), data.tones(), optimizer=adam(2e-3), prepare=nn.Module.eval),
    *bad("eval_stays", "eval_mode", "no model.train() after the first evaluation", "CNN",
         partial(deep, 6, nn.BatchNorm2d), UNIT, optimizer=sgd(0.1, 0.9),
         before=at(12, lambda model, _: model.eval())),
    *bad("two_units", "none", "two hidden units", "MLP", partial(mlp, 784, 2, 10), digits,
         optimizer=adam(0.01)),
    *bad("code_of_one", "none", "a code of one number", "autoencoder", partial(through, 1), HALF,
         losses.again, adam(2e-3)),
    *bad("deep_sigmoid", "vanishing", "nine layers with sigmoid", "MLP",
         partial(mlp, 784, *[64] * 8, 10, act=nn.Sigmoid), digits, optimizer=sgd(0.1, 0.9)),
    *bad("deep_plain", "vanishing", "twenty convolutions without norm or shortcut", "CNN",
         partial(deep, 20), P),
]  # fmt: skip
SECOND = [
    *bad("labels_shuffled", "none", "pictures are shuffled, labels are not", "CNN", small,
         relabelled(P, lambda y: y[torch.randperm(len(y))])),
    *bad("sorted_classes", "sorted_labels,one_label", "a folder for each class, no shuffle",
         "ResNet", partial(cnn.resnet, (16, 24, 32, 48)), in_order(P, lambda part: part[1], 640),
         optimizer=sgd(0.05, 0.9)),
    *bad("rare_classes", "none", "19 of 20 are of one class", "CNN", small, mostly_first,
         optimizer=sgd(0.01, 0.9)),
    *bad("zero_grad_missing", "gradients_not_cleared", "zero_grad() is missing", "GRU", Text,
         sentences, optimizer=sgd(0.1, 0.9), zero="never"),
    *bad("few_examples", "none", "24 pictures", "CNN", small, fixed(P, 24)),
    *bad("encoder_detached", "unchanged_weights", "the code is detached", "autoencoder",
         partial(through, 64, Function(torch.detach)), HALF, losses.again, adam(2e-3)),
    *bad("transformer_by_sgd", "update_ratio", "SGD with 0.001", "GPT", gpt, letters,
         partial(spoken, 1), sgd(1e-3)),
    *bad("entropy_for_number", "unchanged_weights,constant_output",
         "cross-entropy of one output and a number", "CNN", partial(small, 3, 1), UNIT,
         lambda model, x, _: entropy(model(x), x.mean((1, 2, 3))[:, None])),
    *bad("softmax_inside", "vanishing", "softmax between the layers", "MLP",
         partial(mlp, 576, 128, 128, 5, act=partial(nn.Softmax, 1)), MOVES),
    *bad("dropout_as_keep", "dropout_high", "dropout of 0.9, meant as what is kept", "MLP",
         lambda: nn.Sequential(mlp(784, 96), nn.ReLU(), nn.Dropout(0.9), nn.Linear(96, 64),
         nn.ReLU(), nn.Dropout(0.9), nn.Linear(64, 10)), digits),
    *bad("half_random", "none", "half of the labels are guessed", "CNN, BatchNorm",
         partial(deep, 3, nn.BatchNorm2d), relabelled(P, half_random)),
    *loop("optimizer_of_critic", "not_in_optimizer,unchanged_weights",
          "both optimizers have the critic's parameters", "GAN, MLP", game, 120, 10),
    *bad("log_of_zero", "nonfinite", "log(0) in the loss", "MLP", partial(mlp, 784, 256, 10),
         digits, by_hand, adam(3e-3)),
    *bad("mask_not_flipped", "none", "the picture is flipped, its mask is not", "LinkNet", LinkNet,
         data.edges, half_flipped, adam(3e-3), **FEW),
    *bad("gradient_by_hand", "none", "a wrong gradient of a sigmoid by hand", "MLP",
         partial(mlp, 784, 64, 10, act=lambda: Function(Own.apply)), digits, optimizer=adam(3e-3)),
    *bad("raw_prices", "initial_loss", "prices of about 300,000", "MLP",
         partial(mlp, 4, 64, 32, 1), relabelled(LINES, lambda y: 300_000 + 100_000 * y), error,
         batch=32),
    *bad("sigmoid_for_any", "saturated", "sigmoid for targets of -3 to 3", "MLP",
         ends(partial(mlp, 6, 64, 64, 1), nn.Sigmoid()), TENNIS, error),
    *bad("missing_values", "nonfinite", "empty fields of a table", "MLP, BatchNorm",
         lambda: nn.Sequential(nn.Linear(4, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 1)),
         changed(LINES, some_missing), error, batch=32),
    *bad("batch_of_two", "batchnorm_small_batch", "batches of two", "ResNet",
         partial(cnn.resnet, (16, 24, 32, 48)), P, optimizer=sgd(0.02, 0.9), batch=2),
    *bad("only_linear", "none", "no activation between the layers", "MLP",
         partial(mlp, 2, 32, 32, 1, act=nn.Identity), RING, answered, adam(0.01)),
    *bad("steps_for_epochs", "rate_vanished", "StepLR(10) of epochs, called for each batch",
         "1-D CNN, BatchNorm", partial(nets.heart, 1, 6), data.tones(), optimizer=sgd(0.05, 0.9),
         schedule=lambda o, _: StepLR(o, 10, 0.1), **LONG),
    *bad("other_pixels", "input_scale,batchnorm_gap", "pixels of 0 to 255", "trained CNN, new head",
         feature_extractor, RAW, optimizer=adam(0.01), prepare=nn.Module.eval),
    *bad("divided_twice", "input_scale", "divided by 255 twice", "LeNet",
         partial(cnn.lenet, nn.ReLU), changed(digits, lambda x: x / 255), optimizer=adam(2e-3)),
    *bad("sigmoid_edges", "probabilities_into_loss", "sigmoid in front of BCEWithLogits",
         "LinkNet", ends(LinkNet, nn.Sigmoid()), scenes, losses.masks, adam(3e-3), **FEW),
    *bad("view_for_permute", "none", "view() for permute()", "GRU", lambda: nn.Sequential(
         Function(lambda x: x.reshape(-1, 96, 6)), Steps()), MOVES, optimizer=adam(3e-3)),
]  # fmt: skip
CASES = seen("2026-11-28T06:00", FIRST, SECOND)
