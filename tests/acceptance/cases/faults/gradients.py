"""Faults: gradients that are not cleared, cut, grow, or are computed by hand."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import numpy as np
import torch
from data import HALF, P
from draws.images import relabelled
from draws.series import currents, spectra
from draws.tables import cars, drivers
from draws.texts import words
from loops import Losses, descend, seen, train
from losses import error, said
from nets import classifiers as cnn
from nets import signals
from nets.classifiers import Function
from nets.dense import UNet
from nets.images import squeeze_net
from nets.maps import Gate, Gaussian, fcn, pointer, through
from nets.parts import Net, ends, mlp
from nets.series import keyword, meter, series
from nets.tables import AGES
from nets.texts import TextNet, reader
from recipes import FEW, MANY, ROWS, adam, bad, loop, sgd
from torch import Generator, Tensor, nn, optim
from torch.nn import functional


def identities() -> nn.Module:
    """An RNN with ReLU over pairs of readings; its recurrent weights begin as the identity."""
    body = nn.RNN(2, 48, nonlinearity="relu", batch_first=True)
    nn.init.eye_(body.weight_hh_l0)
    return Net(
        lambda m, x: m["last"](m["body"](x.view(-1, 80, 2))[0][:, -1]),
        body=body,
        last=nn.Linear(48, 5),
    )


def turned(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy; its slope by hand is y - p, not p - y."""
    logits = model(x)
    slope = (functional.one_hot(labels, 5) - logits.softmax(1)).detach() / len(labels)
    known = logits.detach()
    return functional.cross_entropy(known, labels) + (slope * (logits - known)).sum()


def yolo(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """The squared error of a place and a size in px; the size is an anchor's, times exp()."""
    found = model(images)
    place = (32 * found[:, :2].sigmoid() - discs[:, :2]).square().sum(1)
    return (place + (8 * found[:, 2].exp() - 2 * discs[:, 2]).square()).mean()


def looks_at_one() -> nn.Module:
    """Attention to words; it takes the one of the greatest score."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        y = m["words"](x)
        score = m["score"](y).squeeze(2)
        return m["last"]((functional.one_hot(score.argmax(1), 40)[..., None] * y).sum(1))

    score = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    return Net(run, words=nn.Embedding(102, 32), score=score, last=mlp(32, 32, 4))


class Product(torch.autograd.Function):
    """A Linear layer by hand; it has the slope of its weight, none of its input."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x @ w.T

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> tuple[None, Tensor]:
        (x,) = ctx.saved_tensors
        return None, g.T @ x


class ByHand(nn.Module):
    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Linear(into, out).parameters()

    def forward(self, x: Tensor) -> Tensor:
        return Product.apply(x, self.weight) + self.bias


class Swish(torch.autograd.Function):
    """x · sigmoid(x); its slope by hand is not multiplied by that of what follows."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x.sigmoid()

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, _: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return x.sigmoid() * (1 + x * (1 - x.sigmoid()))


def evidence(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Sums over pixels and codes."""
    found, mean, log = model(x)
    again = functional.binary_cross_entropy_with_logits(found, x, reduction="sum")
    return again - 0.5 * (1 + log - mean.square() - log.exp()).sum()


def thresholded(model: nn.Module, images: Tensor, mask: Tensor, *_: Tensor) -> Tensor:
    """Dice of all that is above 0.5, which is then told to require a gradient."""
    found = (model(images).sigmoid() > 0.5).float()
    share = (2 * (found * mask).sum() + 1) / (found.sum() + mask.sum() + 1)
    return (1 - share).requires_grad_()


def likely(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The likelihood of a normal distribution, of which the logarithm of the width is learned."""
    mean, width = model(x).chunk(2, 1)
    return (width + 0.5 * ((y - mean) * (-width).exp()).square()).mean()


def abalones(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Length, width, height, weight and shell of an animal; its age. All are standardized."""
    z = torch.randn(count, 5, generator=generator)
    y = 0.6 * z[:, 4] + 0.4 * z[:, 0] * z[:, 3] - 0.4 * (2 * z[:, 1]).cos() + 0.3 * z[:, 2].abs()
    return z, y[:, None] - 0.25 + 0.1 * torch.randn(count, 1, generator=generator)


def cropped() -> nn.Module:
    """One network finds where to look, by whole pixels; the other one looks there."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        at = (16 * m["where"](x).sigmoid()).long().tolist()
        parts = [one[:, r : r + 12, c : c + 12] for one, (r, c) in zip(x, at, strict=True)]
        return m["what"](torch.stack(parts))

    where = nn.Sequential(
        cnn.unit(1, 16, 5, 2, None), cnn.unit(16, 16, 3, 2, None), mlp(784, 32, 2)
    )
    what = nn.Sequential(cnn.unit(1, 16, norm=None), nn.MaxPool2d(2), mlp(576, 64, 10))
    return Net(run, where=where, what=what)


EVENTS = relabelled(abalones, lambda y: (150 * (0.6 * y).exp()).round())


def by_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(np.maximum(x.detach().numpy(), 0))


def apart(model: nn.Module, images: Tensor, _: Tensor, discs: Tensor, *__: Tensor) -> Tensor:
    """1 - IoU of boxes, of which the network's begin at (0, 0) and are small."""
    centre, half = discs[:, :2] / 32, discs[:, 2:] / 32
    found = model(images)
    low = torch.maximum(found[:, :2], centre - half)
    high = torch.minimum(found[:, 2:], centre + half)
    shared = (high - low).clamp(min=0).prod(1)
    areas = (found[:, 2:] - found[:, :2]).clamp(min=0).prod(1) + (2 * half[:, 0]).square()
    return (1 - shared / (areas - shared)).mean()


def turns(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Points that turn around 0: where they begin, and their next 40 places."""
    x, turn = torch.randn(count, 2, generator=generator), torch.tensor([[0.98, 0.2], [-0.2, 0.98]])
    return x, torch.stack([x @ turn.matrix_power(n) for n in range(1, 41)], 1)


def codebook() -> nn.Module:
    """A VQ-VAE without the straight-through step and commitment; it returns the loss."""

    def run(m: nn.ModuleDict, x: Tensor) -> Tensor:
        z = m["down"](x).permute(0, 2, 3, 1)
        nearest = torch.cdist(z.flatten(0, 2), m["codes"].weight).argmin(1)
        q = m["codes"](nearest).view_as(z)
        again = functional.mse_loss(m["up"](q.permute(0, 3, 1, 2)), x)
        return again + functional.mse_loss(q, z.detach())

    down = [nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 16, 4, 2, 1)]
    up = [nn.ConvTranspose2d(16, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)]
    codes = nn.Embedding(64, 16)
    return Net(run, down=nn.Sequential(*down), up=nn.Sequential(*up), codes=codes)


def rolled(model: nn.Module, x: Tensor, way: Tensor) -> Tensor:
    """The network's own answer is its next input, 40 times."""
    found = []
    for _ in range(40):
        x = x + model(x)
        found.append(x)
    return functional.mse_loss(torch.stack(found, 1), way)


def summed(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """The mean entropy of a pixel and the sum of the divergence."""
    found, mean, log = model(x)
    apart = -0.5 * (1 + log - mean.square() - log.exp()).sum(1).mean()
    return functional.binary_cross_entropy_with_logits(found, x) + apart


class Slope(torch.autograd.Function):
    """Cross-entropy; its slope by hand is p, not p - y."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return functional.cross_entropy(x, y)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return g * x.softmax(1) / len(x), None


def game(place: Path, seed: int) -> Losses:
    """A GAN of digits; what the maker makes is detached for the critic and for the maker."""
    up = [nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1)]
    maker = nn.Sequential(mlp(24, 1568), nn.ReLU(), nn.Unflatten(1, (32, 7, 7)), *up, nn.Tanh())
    convs = [cnn.unit(a, b, 4, 2, None, nn.LeakyReLU) for a, b in ((1, 16), (16, 32))]
    critic = nn.Sequential(*convs, nn.Flatten(), nn.Linear(1568, 1))
    one, two = (optim.Adam(n.parameters(), lr=1e-3, betas=(0.5, 0.99)) for n in (maker, critic))

    def step(_: int, random: Generator) -> float:
        real, noise = data.digits(random, 16)[0] * 2 - 1, torch.randn(16, 24, generator=random)
        fake = maker(noise).detach()
        descend(two, said(critic(real), 1) + said(critic(fake), 0))
        return descend(one, said(critic(fake), 1))

    return train(place, seed, maker, step, 104, 8, one)


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "tags_summed",
            "exploding,update_ratio",
            "a sum over all words, not clipped",
            "LSTM tagger",
            partial(reader, 0.0, 16, 3, 24),
            words(16, 12, lambda x: x % 3),
            lambda model, x, y: functional.cross_entropy(model(x), y, reduction="sum"),
            sgd(0.1, 0.9),
            batch=32,
        ),
        bad(
            "gated_accumulates",
            "gradients_not_cleared",
            "zero_grad() is missing",
            "attention U-Net",
            Gate,
            data.scenes,
            losses.masks,
            sgd(0.2, 0.9),
            zero="never",
            **FEW,
        ),
        loop(
            "both_detached",
            "unchanged_weights",
            "pictures are detached in the maker's step too",
            "GAN, CNN",
            game,
            104,
            8,
        ),
        bad(
            "slope_without_truth",
            "loss_climbed",
            "a slope by hand of p, not p - y",
            "text CNN",
            TextNet,
            data.sentences,
            lambda model, x, y: Slope.apply(model(x), y),
            adam(3e-3),
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "rollout_unclipped",
            "exploding,update_ratio,nonfinite",
            "forty steps, not clipped",
            "MLP of a movement",
            partial(mlp, 2, 64, 64, 2),
            turns,
            rolled,
            sgd(0.01, 0.9),
            **ROWS,
        ),
        bad(
            "eeg_accumulates",
            "gradients_not_cleared",
            "zero_grad() is missing",
            "EEGNet",
            signals.Eeg,
            data.gestures,
            optimizer=sgd(0.02, 0.9),
            zero="never",
        ),
        bad(
            "codes_cut",
            "unchanged_weights",
            "no straight-through step",
            "VQ-VAE",
            codebook,
            HALF,
            losses.own,
            adam(2e-3),
        ),
        bad(
            "summed_divergence",
            "constant_output,vanishing",
            "a sum of the divergence",
            "VAE",
            Gaussian,
            data.digits,
            summed,
            adam(2e-3),
        ),
        bad(
            "other_half",
            "none",
            "a ReLU's slope by hand, where it is 0",
            "CNN",
            partial(
                cnn.plain,
                act=partial(
                    Function, lambda x: x.clamp(max=0) + (x.relu() - x.clamp(max=0)).detach()
                ),
            ),
            P,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "evidence_unclipped",
            "exploding,update_ratio,nonfinite",
            "sums over pixels and codes, not clipped",
            "VAE",
            Gaussian,
            data.digits,
            evidence,
            sgd(1e-3, 0.9),
        ),
        bad(
            "rays_accumulate",
            "gradients_not_cleared",
            "zero_grad() is missing",
            "NeRF",
            signals.Rays,
            data.rays,
            signals.rendered,
            sgd(0.2, 0.9),
            zero="never",
            batch=128,
        ),
        bad(
            "masks_thresholded",
            "unchanged_weights",
            "Dice of a mask that is thresholded",
            "U-Net",
            partial(UNet, base=8),
            data.scenes,
            thresholded,
            adam(2e-3),
            **FEW,
        ),
        bad(
            "slope_without_chain",
            "none",
            "a slope by hand without what follows",
            "MLP",
            partial(mlp, 1056, 128, 64, 6, act=lambda: Function(Swish.apply)),
            data.spectrograms,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "pixels_summed",
            "exploding,update_ratio",
            "a sum over all pixels, not clipped",
            "FCN",
            fcn,
            data.scenes,
            lambda model, x, mask, *_: functional.binary_cross_entropy_with_logits(
                model(x), mask, reduction="sum"
            ),
            sgd(1e-3, 0.9),
            **FEW,
        ),
        bad(
            "one_word_chosen",
            "unchanged_weights",
            "the word of the greatest score, by argmax",
            "attention",
            looks_at_one,
            data.sentences,
            optimizer=adam(3e-3),
        ),
        bad(
            "layer_by_hand",
            "unchanged_weights",
            "a Linear layer by hand has no slope of its input",
            "MLP",
            lambda: nn.Sequential(
                nn.Flatten(), ByHand(784, 64), nn.ReLU(), ByHand(64, 32), nn.ReLU(), ByHand(32, 10)
            ),
            data.digits,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "places_in_pixels",
            "exploding,update_ratio,nonfinite",
            "an error in px², not clipped",
            "CNN of keypoints",
            pointer,
            data.scenes,
            lambda model, x, *rest: error(model, x, rest[1][:, :2]),
            sgd(1e-3, 0.9),
        ),
        bad(
            "features_by_numpy",
            "unchanged_weights",
            "features are made an array of NumPy",
            "1-D CNN",
            lambda: nn.Sequential(series(1, 16), Function(by_numpy), nn.Linear(16, 3)),
            spectra,
            error,
            adam(2e-3),
            **MANY,
        ),
        bad(
            "boxes_apart",
            "unchanged_weights",
            "1 - IoU of boxes that do not meet",
            "CNN of boxes",
            lambda: nn.Sequential(pointer(), nn.ReLU(), nn.Linear(2, 4)),
            data.scenes,
            apart,
            adam(2e-3),
        ),
        bad(
            "averaged_twice",
            "update_ratio",
            "a slope by hand, divided by the batch twice",
            "MLP",
            ends(partial(mlp, 784, 64, 10), Function(lambda y: y / 64 + (y * 63 / 64).detach())),
            data.digits,
            optimizer=sgd(0.1),
            batch=64,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "counts_unclipped",
            "exploding,update_ratio,nonfinite",
            "the exponential of an answer, not clipped",
            "MLP, Poisson",
            AGES,
            EVENTS,
            lambda model, x, y: functional.poisson_nll_loss(model(x), y),
            sgd(0.01, 0.9),
            **ROWS,
        ),
        bad(
            "codes_summed",
            "exploding,update_ratio",
            "a sum over pixels, not clipped",
            "autoencoder",
            partial(through, 64, None, nn.Identity()),
            HALF,
            lambda model, x, _: functional.mse_loss(model(x), x, reduction="sum"),
            sgd(1e-4, 0.9),
        ),
        bad(
            "squeeze_accumulates",
            "gradients_not_cleared",
            "zero_grad() is missing",
            "SqueezeNet",
            squeeze_net,
            P,
            optimizer=adam(3e-3),
            zero="never",
            **FEW,
        ),
        bad(
            "crops_of_pixels",
            "unchanged_weights",
            "a place in whole pixels, by long()",
            "crop and CNN",
            cropped,
            data.digits,
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "identities_unclipped",
            "exploding,update_ratio,nonfinite",
            "80 steps, not clipped",
            "RNN with ReLU",
            identities,
            currents,
            optimizer=sgd(2e-3, 0.9),
            batch=32,
        ),
        bad(
            "sizes_unclipped",
            "exploding,update_ratio,nonfinite",
            "the exponential of a size in px, not clipped",
            "CNN of boxes",
            lambda: nn.Sequential(pointer(), nn.ReLU(), nn.Linear(2, 3)),
            data.scenes,
            yolo,
            sgd(0.01, 0.9),
        ),
        bad(
            "drivers_accumulate",
            "gradients_not_cleared",
            "zero_grad() is missing",
            "MLP",
            AGES,
            drivers,
            error,
            sgd(0.05, 0.9),
            zero="never",
            **ROWS,
        ),
        bad(
            "codes_drawn",
            "unchanged_weights",
            "codes of 0 or 1 are drawn, by bernoulli()",
            "autoencoder",
            partial(through, 64, Function(lambda x: x.sigmoid().bernoulli())),
            HALF,
            losses.again,
            adam(2e-3),
        ),
        bad(
            "slope_turned",
            "loss_climbed",
            "a slope by hand of y - p, not p - y",
            "1-D CNN",
            meter,
            currents,
            turned,
            adam(1e-3),
            batch=32,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "likelihood_unclipped",
            "exploding,update_ratio,nonfinite",
            "widths of each, unclipped",
            "MLP",
            partial(mlp, 6, 64, 64, 2),
            cars,
            likely,
            sgd(0.05, 0.9),
            **ROWS,
        ),
        bad(
            "features_by_data",
            "unchanged_weights",
            "the head is given features.data",
            "DS-CNN",
            partial(keyword, lambda x: x.data),
            data.spectrograms,
            optimizer=adam(1e-3),
            **FEW,
        ),
    ),
]
