"""The acceptance set of ``fmapboard check``: healthy trainings about which it should be silent.

Their author knew neither the checks nor their thresholds. ``ACCEPTANCE`` maps a name to a
`HealthyCase`; ``acceptance.py`` trains them and tabulates what ``fmapboard check`` says.
"""

from __future__ import annotations

import acceptance_classic as classic
import acceptance_mobile as mobile
import acceptance_recipes as recipes
from acceptance_case import HealthyCase, case
from acceptance_data import digits, photos
from acceptance_recipes import by, classes, cut_out, flip, mixup, two_losses
from acceptance_sets import PICTURES, SPECIAL
from acceptance_small import MODERN
from acceptance_tasks import focal, multi_label, regression
from torch import nn, optim

WATCH = {"probe": None, "samples": 3}


def group(width: int) -> nn.Module:
    return nn.GroupNorm(4, width)


def instance(width: int) -> nn.Module:
    return nn.InstanceNorm2d(width, affine=True)


def channel_wise(width: int) -> nn.Module:
    return nn.GroupNorm(1, width)


r, c, P = recipes, classes(), photos()
RESNETS = {
    "resnet_sgd": ({}, r.SGD, P, c),
    "resnet_nesterov": ({"blocks": 2}, r.NESTEROV, P, c),
    "resnet_high_cycle": ({}, r.HIGH_CYCLE, P, c),
    "resnet_large_batch": ({}, r.LARGE_BATCH, P, c),
    "resnet_smoothing": ({}, r.MOMENTUM.but("label smoothing 0.1"), P, classes(0.1)),
    "resnet_mixup": ({}, r.ADAMW.but("mixup", steps=200, every=20), P, mixup()),
    "resnet_cut_out": ({}, r.ADAM.but("cut-out", steps=150), P, cut_out),
    "resnet_epochs": ({}, r.EPOCHS, P, c),
    "resnet_small_set": ({}, r.SMALL_SET, P, c),
    "resnet_unit_range": ({}, r.ADAM.but("images in [0, 1]"), photos(32, "unit"), c),
    "resnet_each_image": ({}, r.MOMENTUM.but("each image on its own"), photos(32, "each"), c),
    "resnet_half_precision": ({}, r.HALF, P, c),
    "resnet_four_channels": ({"channels": 4}, r.ADAMW.but("4 channels"), photos(32, channels=4), c),
    "resnet_six_channels": (
        {"channels": 6},
        r.MOMENTUM.but("6 channels"),
        photos(32, channels=6),
        c,
    ),
    "resnet_rmsprop": ({}, r.RMSPROP, P, c),
    "resnet_ema": ({}, r.EMA, P, c),
    "resnet_zero_init": ({"zero": True}, r.ONE_CYCLE.but("zero-initialized residuals"), P, c),
    "resnet_compiled": ({}, r.MOMENTUM.but("torch.compile", compile=True, evaluate=0), P, c),
    "resnext": ({"bottleneck": True, "groups": 4, "widths": (32, 64, 96)}, r.MOMENTUM, P, c),
    "bottleneck": ({"bottleneck": True, "widths": (32, 64, 96)}, r.WARM, P, c),
    "se_resnet": ({"squeeze": True}, r.ADAMW, P, c),
    "wide_resnet": ({"widths": (24, 48, 96), "dropout": 0.3}, r.NESTEROV, P, c),
    "stochastic_depth": ({"blocks": 2, "survive": 0.8}, r.ADAM.but("stochastic depth"), P, c),
    "group_norm_resnet": ({"norm": group}, r.TINY_BATCH, P, c),
    "instance_norm_resnet": ({"norm": instance}, r.ADAM.but("instance norm"), P, c),
    "elu_resnet": ({"act": nn.ELU}, r.MOMENTUM.but("ELU"), P, c),
    "resnet_focal": ({}, r.ADAM.but("focal loss"), P, focal),
    "resnet_multi_label": ({}, r.ADAM.but("one sigmoid per class"), P, multi_label),
}
RESNET_KINDS = {
    "resnext": "ResNeXt",
    "bottleneck": "bottleneck ResNet",
    "se_resnet": "SE-ResNet",
    "wide_resnet": "Wide ResNet",
    "stochastic_depth": "stochastic-depth ResNet",
    "group_norm_resnet": "GroupNorm ResNet",
    "instance_norm_resnet": "InstanceNorm ResNet",
}

p = classic.plain
CLASSIC = {
    "plain_adam": ("plain CNN", p, P, c, r.ADAM),
    "plain_momentum": ("plain CNN", p, P, c, r.MOMENTUM.but("", steps=150)),
    "plain_adagrad": ("plain CNN", p, P, c, r.ADAGRAD),
    "plain_tiny_batch": ("plain CNN", p, P, c, r.TINY_BATCH),
    "plain_nadam": ("plain CNN", p, P, c, r.ADAM.but("NAdam", optimizer=by(optim.NAdam, lr=1e-3))),
    "plain_adamax": (
        "plain CNN",
        p,
        P,
        c,
        r.ADAM.but("Adamax", optimizer=by(optim.Adamax, lr=2e-3)),
    ),
    "plain_radam": (
        "plain CNN",
        p,
        P,
        c,
        r.ADAM.but("RAdam", optimizer=by(optim.RAdam, lr=2e-3), steps=150),
    ),
    "plain_gray": ("plain CNN", lambda: p(1), photos(32, channels=1), c, r.ADAM.but("grey")),
    "plain_symmetric": ("plain CNN", p, photos(32, "half"), flip, r.ADAM.but("[-1, 1], jitter")),
    "plain_regression": (
        "plain CNN",
        lambda: p(classes=4),
        P,
        regression,
        r.ADAM.but("regression"),
    ),
    "plain_kept_zeros": ("plain CNN", p, P, c, r.ADAM.but("gradients kept as zeros", zero="keep")),
    "plain_marked": ("plain CNN", p, P, c, r.MOMENTUM.but("marked steps", marked=True)),
    "plain_samples": ("plain CNN", p, P, c, r.ADAM.but("three samples", watch=WATCH)),
    "plain_bn": ("plain CNN, BatchNorm", lambda: p(norm=nn.BatchNorm2d), P, c, r.SGD),
    "plain_gn": ("plain CNN, GroupNorm", lambda: p(norm=group), P, c, r.MICRO),
    "plain_ln": ("plain CNN, LayerNorm", lambda: p(norm=channel_wise), P, c, r.ADAMW),
    "plain_in": ("plain CNN, InstanceNorm", lambda: p(norm=instance), P, c, r.ADAM),
    "plain_prelu": ("plain CNN, PReLU", lambda: p(act=nn.PReLU), P, c, r.ADAM),
    "plain_swish": ("plain CNN, Swish", lambda: p(act=nn.SiLU, norm=nn.BatchNorm2d), P, c, r.EMA),
    "plain_dropout": (
        "plain CNN, BatchNorm",
        lambda: p(norm=nn.BatchNorm2d, dropout=0.5),
        P,
        c,
        r.ADAM.but("dropout 0.5"),
    ),
    "digits_tutorial": ("MNIST tutorial", classic.tutorial, digits, c, r.ADAM.but("", batch=64)),
    "digits_adadelta": (
        "MNIST tutorial",
        classic.tutorial,
        digits,
        c,
        r.ADAM.but("Adadelta 1.0", optimizer=by(optim.Adadelta, lr=1.0), batch=32),
    ),
    "lenet_tanh": ("LeNet", classic.lenet, digits, c, r.ADAM.but("", batch=32, steps=150)),
    "lenet_relu": (
        "LeNet",
        lambda: classic.lenet(nn.ReLU),
        digits,
        c,
        r.MOMENTUM.but("", steps=250, batch=32),
    ),
    "vgg_bn": ("VGG, BatchNorm", classic.vgg, P, c, r.MOMENTUM),
    "vgg_bn_gray": (
        "VGG, BatchNorm",
        lambda: classic.vgg(channels=1),
        photos(32, channels=1),
        c,
        r.ADAM,
    ),
    "vgg_plain": (
        "VGG",
        lambda: classic.vgg(None),
        P,
        c,
        r.ADAM.but("at 3e-4", optimizer=by(optim.Adam, lr=3e-4), steps=150),
    ),
    "alexnet": (
        "AlexNet",
        classic.alexnet,
        photos(48),
        c,
        r.ADAM.but("at 5e-4", optimizer=by(optim.Adam, lr=5e-4), steps=150),
    ),
    "nin": ("Network in Network", classic.network_in_network, P, c, r.ADAM),
    "all_conv": ("All-CNN", classic.all_convolutions, P, c, r.MOMENTUM),
    "pre_resnet": ("pre-activation ResNet", classic.pre_resnet, P, c, r.ONE_CYCLE),
    "skip_init": ("ResNet without norm", classic.without_norm, P, c, r.ADAM.but("", steps=80)),
    "densenet": ("DenseNet", classic.densenet, P, c, r.MOMENTUM.but("", steps=80)),
    "densenet_adamw": ("DenseNet", classic.densenet, P, c, r.WARM.but("", steps=80)),
    "inception": ("Inception", mobile.Inception, P, two_losses, r.ADAM),
    "squeezenet": ("SqueezeNet", mobile.squeezenet, P, c, r.ADAM.but("", steps=150)),
}


def _all() -> dict[str, HealthyCase]:
    found = {}
    for name, (options, recipe, draw, loss) in RESNETS.items():
        kind = RESNET_KINDS.get(name, "ResNet")
        found[name] = case(kind, lambda o=options: classic.resnet(**o), draw, loss, recipe)
    for name, (kind, make, draw, loss, recipe) in (CLASSIC | MODERN).items():
        found[name] = case(kind, make, draw, loss, recipe)
    return found | PICTURES | SPECIAL


ACCEPTANCE: dict[str, HealthyCase] = _all()
