"""Healthy: networks composed of one block each."""

from __future__ import annotations

from functools import partial
from typing import Any

import losses
import recipes.seventy as r70
from data import (
    EACH,
    P40,
    P48,
    P,
    digits,
)
from loops import Task, seen
from losses import named
from nets import composed
from nets.composed import BATCH, GROUP, INSTANCE, LEAKY
from optimizers import poly, stairs
from torch import nn


def of(
    body: composed.Body, widths: tuple[int, ...] = (24, 48), depth: int = 1, **options: Any
) -> partial[nn.Module]:
    return partial(composed.net, body, widths, depth, **options)


SINGLE = of(composed.single, (16, 32, 64), last="flat", down="max", first="full")
WIDE5 = of(partial(composed.single, size=5), (24, 32, 48), norm=None, down="mean", init=True)
THICK = of(composed.double, (32, 64), skip="add", first="wide", last="both")
NARROW = of(composed.double, (16, 24, 32), 2, skip="add", norm=GROUP, act=nn.SiLU)
BLURRED = of(composed.double, (24, 48), skip="add", down="blur", act=nn.ELU, last="mlp")
BOTTLE = of(composed.bottleneck, (48, 96), 2, skip="add", first="space")
INVERTED = of(composed.inverted, (16, 24, 40), 1, skip="add", act=nn.SiLU, down="patch")
SEPARABLE = of(
    composed.separable, (24, 48), 2, act=nn.GELU, first="patch", skip="scaled", last="looked"
)
ASYMMETRIC = of(composed.asymmetric, (24, 48), 2, act=nn.ELU, down="mean", last="power")
DILATED = of(partial(composed.Branches, dilated=True), (24, 48), down="stride", skip="add")
GROUPED = of(composed.grouped, (32, 64), 2, skip="add", down="mean", act=nn.ReLU)
GATED = of(composed.gated, (24, 48), 1, norm=GROUP, act=nn.Identity, down="space", last="both")
EXCITED = of(composed.excited, (24, 48), 2, skip="add", act=nn.Mish, last="max")
ATTENDS = of(composed.Attends, (24, 48), 1, act=nn.GELU, down="patch", last="looked")
JOINED = of(composed.single, (24, 24), 3, skip="join", down="mean", first="deep")
TANH = of(
    composed.single, (16, 32), 1, norm=None, act=nn.Tanh, first="wide", down="mean", last="flat"
)
INSTANCED = of(composed.double, (24, 48), 1, norm=INSTANCE, act=LEAKY, down="max", last="both")
PRELU = of(composed.double, (24, 40), 1, act=nn.PReLU, skip="add", first="full", down="mean")
VGG_HE = of(
    composed.single, (24, 48, 64), 2, norm=None, down="max", first="full", last="flat", init=True
)
CLIPPED = of(composed.single, (32, 48, 64), act=nn.Hardtanh, down="stride", first="full")
LONG = of(composed.bottleneck, (32, 48), 4, norm=BATCH, act=nn.ReLU, skip="add", down="blur")
SHALLOW = of(partial(composed.single, size=5), (32,), 1, first="wide", last="flat")
CASES = seen(
    "2026-11-23T12:01",
    Task("CNN, max pooling, hidden Linear", SINGLE, P, named).cases(
        single=(r70.PLAIN_SGD, r70.RESTARTS)
    ),
    Task("5 × 5 CNN, no norm, He", WIDE5, P, named).cases(wide_5=(r70.adam(1e-3), r70.CLIPPED)),
    Task("ResNet, 7 × 7, mean and maximum", THICK, P48, losses.classes(0.1)).cases(
        thick=r70.ONE_CYCLE
    ),
    Task("narrow GroupNorm SiLU ResNet", NARROW, P, named).cases(
        narrow=(r70.ADAMW, r70.momentum(0.05, poly))
    ),
    Task("narrow GroupNorm SiLU ResNet", NARROW, EACH, losses.multi_label).cases(
        narrow_tags=r70.adam(2e-3)
    ),
    Task("ELU ResNet, low pass", BLURRED, P, named).cases(blurred=(r70.NESTEROV, r70.RMSPROP)),
    Task("bottleneck ResNet, space to depth", BOTTLE, P, named).cases(
        bottle=(r70.HALF, r70.EPOCHS)
    ),
    Task("inverted bottlenecks 5 × 5", INVERTED, P40, named).cases(
        inverted=(r70.SUPER, r70.RMS_MOVING)
    ),
    Task("inverted bottlenecks 5 × 5", INVERTED, P, losses.mixup(0.4)).cases(
        inverted_mix=r70.BETAS
    ),
    Task("7 × 7 separable CNN, scaled", SEPARABLE, P, named).cases(separable=(r70.WARM, r70.NADAM)),
    Task("1 × 5 and 5 × 1 CNN, power mean", ASYMMETRIC, P, named).cases(
        asymmetric=(r70.SUPER, r70.MICRO)
    ),
    Task("dilated branches ResNet", DILATED, P, losses.augmented).cases(
        dilated=(r70.ONE_CYCLE, r70.BETAS)
    ),
    Task("grouped and shuffled ResNet", GROUPED, P, losses.classes(0.1)).cases(
        grouped=(r70.PLAIN_SGD, r70.HALF)
    ),
    Task("GLU CNN, GroupNorm", GATED, P, named).cases(gated=(r70.RESTARTS, r70.ADAGRAD)),
    Task("squeezed Mish ResNet, maximum", EXCITED, P, named).cases(excited=(r70.EPOCHS, r70.ADAMW)),
    Task("attention CNN, patches", ATTENDS, P, named).cases(attends=(r70.SUPER, r70.BETAS)),
    Task("dense CNN, means", JOINED, P, named).cases(joined=(r70.NESTEROV, r70.DECAYED)),
    Task("tanh CNN, wide kernels", partial(TANH, channels=1, out=10), digits, named).cases(
        tanh=r70.adam(3e-3, None, steps=120, every=12)
    ),
    Task("InstanceNorm leaky CNN", INSTANCED, P40, named).cases(
        instance=(r70.adam(2e-3, stairs), r70.RMS_MOVING)
    ),
    Task("PReLU ResNet, full size", PRELU, P, named).cases(prelu=r70.RESTARTS),
    Task("two-layer CNN", SHALLOW, EACH, named).cases(shallow=(r70.PLAIN_SGD, r70.EPOCHS)),
    Task("VGG, hidden Linear, He", VGG_HE, P, named).cases(
        vgg_he=(r70.adam(5e-4), r70.momentum(0.02, clip=1.0))
    ),
    Task("Hardtanh CNN", CLIPPED, P, named).cases(
        clipped=r70.momentum(0.1, batch=64, steps=40, every=4)
    ),
    Task("24-layer bottleneck ResNet", LONG, P, named).cases(long=(r70.WARM, r70.PLAIN_SGD)),
    held_out=True,
)
