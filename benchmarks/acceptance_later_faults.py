"""Trainings with one planted fault each, and the kinds of finding that name it.

Their author had read neither the checks nor their thresholds. A kind after a comma is one that
names the fault equally well; any of them counts. "norm_tiny_batch" turned out to be none: its loss
in eval mode is as good as in training mode.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import acceptance_later_faults_loops as loops
import acceptance_later_faults_nets as nets
import acceptance_recipes as r
from acceptance_case import HealthyCase, Recipe, case
from acceptance_data import Draw, digits, photos, tones
from acceptance_data import pictures as crops
from acceptance_later_data import decibels
from acceptance_later_faults_nets import changed, later
from acceptance_later_loops import Run, encoder
from acceptance_recipes import by, classes
from acceptance_tasks import again
from torch import nn, optim

c, P = classes(), photos()
ADAM = r.ADAM.but("", steps=60, every=5)
SGD = replace(ADAM, name="SGD", optimizer=by(optim.SGD, lr=0.02, momentum=0.9))
CNN, PLAIN = "encoder CNN", "encoder CNN, no norm"


def with_norm() -> nn.Module:
    return encoder(8)


def without_norm() -> nn.Module:
    return encoder(8, norm=False)


def slow(name: str, rate: float) -> Recipe:
    return replace(ADAM, name=name, optimizer=by(optim.Adam, lr=rate))


def one_channel() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), encoder(6, norm=False))


def deep(depth: int, act: type[nn.Module] = nn.ReLU, scale: float = 0.0) -> partial[nn.Module]:
    return partial(nets.stack, depth, act=act, scale=scale)


FIVE = partial(nets.transposed, 5)
AUTO, SOUND = crops(), tones(256)


def waves() -> Draw:
    return lambda generator, count: SOUND(generator, count)[:1]


# name: kinds, architecture, network, batches, loss, recipe
SHARED = {
    "biases_only": (
        "not_in_optimizer",
        *(CNN, with_norm, P, c, ADAM.but("only the biases", optimizer=nets.biases_only)),
    ),
    "padding": (
        "constant_images",
        *(CNN, with_norm, changed(photos(72), nets.padded), c, ADAM.but("collate copies nothing")),
    ),
    "integer_division": (
        "constant_images",
        *(PLAIN, without_norm, changed(nets.RAW, nets.as_bytes), c, ADAM.but("images // 255")),
    ),
    "clamped": (
        "constant_images",
        CNN,
        with_norm,
        changed(nets.RAW, lambda x: (x + 1).clamp(0, 1)),
        c,
        ADAM.but("0 to 255 clamped to 1"),
    ),
    "first_only": (
        "identical_images",
        *(CNN, with_norm, changed(P, nets.first_only), c, ADAM.but("the index is ignored")),
    ),
    "cached": (
        "identical_images",
        *(PLAIN, without_norm, changed(P, nets.cached), c, ADAM.but("cache with a wrong key")),
    ),
    "repeated_digits": (
        "identical_images",
        "encoder CNN, 1 channel",
        lambda: nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), encoder(10)),
        changed(digits, nets.first_only),
        c,
        SGD.but("one digit per batch"),
    ),
    "blank_image": (
        "nonfinite,constant_images",
        *(PLAIN, without_norm, later(nets.UNIT, nets.own_range, 30), c, ADAM.but("0/0, step 30")),
    ),
    "log_of_zero": (
        "nonfinite",
        *(CNN, with_norm, P, nets.log_of_zero, ADAM.but("log(0) in the loss")),
    ),
    "root_of_zero": (
        "nonfinite",
        *(CNN, with_norm, P, nets.root_of_zero, ADAM.but("sqrt at 0, backward only")),
    ),
    "half_overflow": (
        "nonfinite",
        *("CNN, float16 layer", nets.HalfPrecision, nets.RAW, c, slow("float16 overflow", 1e-4)),
    ),
    "integer_warm_up": (
        "unchanged_weights",
        *(CNN, with_norm, P, c, ADAM.but("rate 0 by //", schedule=nets.integer_warm_up)),
    ),
    "no_grad_stem": (
        "unchanged_weights",
        *("CNN, stem under no_grad", nets.Detached, P, c, ADAM.but("no_grad left on")),
    ),
    "frozen_copy": (
        "unchanged_weights",
        *("autoencoder, frozen copy", nets.Borrowed, AUTO, again, ADAM.but("tied to a copy")),
    ),
    "dying": (
        "dead",
        *(PLAIN, without_norm, P, c, slow("Adam 0.1", 0.1)),
    ),
    "prior_everywhere": (
        "dead",
        *(PLAIN, nets.prior_everywhere, P, c, ADAM.but("bias -4.6 everywhere")),
    ),
    "vanishing_relu": ("vanishing", "30 plain layers", deep(30), P, c, SGD.but("default init")),
    "vanishing_sigmoid": (
        "vanishing",
        *("8 plain layers, sigmoid", deep(8, nn.Sigmoid), P, c, SGD.but("sigmoid")),
    ),
    "vanishing_init": (
        "vanishing",
        *("8 plain layers", deep(8, nn.ReLU, 0.02), P, c, ADAM.but("normal 0.02")),
    ),
    "exploding_init": (
        "exploding",
        *("6 plain layers", deep(6, nn.ReLU, 1.0), P, c, slow("normal 1", 1e-4)),
    ),
    "exploding_depth": (
        "exploding",
        *("12 plain layers", deep(12, nn.LeakyReLU, 0.2), P, c, slow("normal 0.2", 1e-4)),
    ),
    "exploding_unrolled": (
        "exploding",
        *("unrolled convolution", nets.Unrolled, P, c, slow("gain 2, 24 times", 1e-5)),
    ),
    "rate_100": (
        "update_ratio",
        *(CNN, with_norm, P, c, SGD.but("rate 2", optimizer=by(optim.SGD, lr=2.0, momentum=0.9))),
    ),
    "rate_adam": ("update_ratio", CNN, with_norm, P, c, slow("Adam 0.1, BatchNorm", 0.1)),
    "rate_tiny": ("update_ratio", PLAIN, without_norm, P, c, slow("Adam 1e-7", 1e-7)),
    "decay": (
        "update_ratio,unchanged_weights,dead,vanishing",
        *(PLAIN, without_norm, P, c),
        SGD.but("decay 10", optimizer=by(optim.SGD, lr=0.02, weight_decay=10.0)),
    ),
    "norm_slow": (
        "batchnorm_gap",
        *(CNN, partial(nets.momentum, 1e-4), nets.UNIT, c, ADAM.but("momentum 1e-4")),
    ),
    "norm_still": (
        "batchnorm_gap",
        *(CNN, partial(nets.momentum, 0.0), P, c, ADAM.but("momentum 0")),
    ),
    "norm_tiny_batch": (
        "batchnorm_gap",
        CNN,
        partial(nets.momentum, 0.99),
        P,
        c,
        slow("momentum 0.99, as of TensorFlow, batch 2", 3e-4).but("", batch=2),
    ),
    "widened": ("copied_channels", PLAIN, nets.widened, P, c, ADAM.but("widened by copies")),
    "same_start": ("copied_channels", PLAIN, nets.same_start, P, c, ADAM.but("constant init")),
    "inflated": ("copied_channels", CNN, nets.inflated, P, c, SGD.but("one filter for all")),
    "bytes": ("input_scale", PLAIN, without_norm, nets.RAW, c, slow("0 to 255", 1e-4)),
    "bytes_norm": ("input_scale", CNN, with_norm, nets.RAW, c, SGD.but("0 to 255, BatchNorm")),
    "divided_twice": (
        "input_scale",
        PLAIN,
        without_norm,
        changed(nets.UNIT, lambda x: x / 255),
        c,
        ADAM.but("/ 255 twice"),
    ),
    "twice": (
        "input_scale",
        *(PLAIN, without_norm, changed(P, nets.twice), c, ADAM.but("standardized twice")),
    ),
    "decibels": ("input_scale", PLAIN, one_channel, decibels, c, ADAM.but("dB as they are")),
    "transposed_3": (
        "uneven_upsampling",
        *("autoencoder", partial(nets.transposed, 3), AUTO, again, ADAM.but("kernel 3, stride 2")),
    ),
    "transposed_5": ("uneven_upsampling", "autoencoder", FIVE, AUTO, again, SGD.but("5, stride 2")),
    "transposed_1d": (
        "uneven_upsampling",
        *("1-D autoencoder", partial(nets.transposed, 3, 1), waves(), again, ADAM.but("1-D")),
    ),
}


def own(kinds: str, architecture: str, recipe: str, run: Run) -> HealthyCase:
    return HealthyCase(architecture, recipe, 60, 5, run, expected=kinds)


OWN = {
    "new_head": own("not_in_optimizer", "torchvision ResNet", "new head", loops.new_head),
    "listed": own("not_in_optimizer", "branches in a list", "registered late", loops.listed),
    "copied": own("not_in_optimizer,unchanged_weights", CNN, "copied model", loops.copied),
    "never_cleared": own("gradients_not_cleared", CNN, "no zero_grad", loops.never_cleared),
    "head_cleared": own("gradients_not_cleared", CNN, "only the head cleared", loops.head_cleared),
    "critic_kept": own("gradients_not_cleared", "GAN", "critic not cleared", loops.critic_kept),
    "eval_left": own("eval_mode", CNN, "eval after validation", loops.eval_after_validation),
    "eval_backbone": own("eval_mode", CNN, "backbone in eval", loops.eval_backbone),
    "eval_loaded": own("eval_mode", "torchvision ResNet", "loaded in eval", loops.loaded),
    "never_stepped": own("unchanged_weights", CNN, "no optimizer step", loops.never_stepped),
}


def planted(kinds: str, *parts: object) -> HealthyCase:
    made = case(*parts)
    return HealthyCase(made.architecture, made.recipe, 60, 5, made.run, expected=kinds)


FAULTS: dict[str, HealthyCase] = OWN | {name: planted(*parts) for name, parts in SHARED.items()}
