"""Healthy: networks composed of one block each."""

from __future__ import annotations

from functools import partial
from typing import Any

import losses
import recipes.seventy as r70
import torch
from data import (
    CROPS,
    CROPS_UNIT,
    EACH,
    HALF,
    P40,
    P48,
    UNIT,
    P,
    digits,
    edges,
    photos,
    scenes,
    spectrograms,
)
from loops import Task, seen
from losses import named
from nets import composed
from nets.composed import BATCH, GROUP, INSTANCE, LAYER, LEAKY
from nets.dense import unblurred
from optimizers import poly, stairs
from torch import nn


def of(
    body: composed.Body, widths: tuple[int, ...] = (24, 48), depth: int = 1, **options: Any
) -> partial[nn.Module]:
    return partial(composed.net, body, widths, depth, **options)


SINGLE = of(composed.single, (16, 32, 64), last="flat", down="max", first="full")
WIDE5 = of(partial(composed.single, size=5), (24, 32, 48), norm=None, down="mean", init=True)
DEEP = of(composed.single, (24, 32, 48), 3, act=LEAKY, first="deep")
THICK = of(composed.double, (32, 64), skip="add", first="wide", last="both")
NARROW = of(composed.double, (16, 24, 32), 2, skip="add", norm=GROUP, act=nn.SiLU)
BLURRED = of(composed.double, (24, 48), skip="add", down="blur", act=nn.ELU, last="mlp")
BOTTLE = of(composed.bottleneck, (48, 96), 2, skip="add", first="space")
BOTTLE_GELU = of(
    composed.bottleneck, (48, 64), 2, skip="add", norm=LAYER, act=nn.GELU, first="patch"
)
INVERTED = of(composed.inverted, (16, 24, 40), 1, skip="add", act=nn.SiLU, down="patch")
INVERTED_3 = of(
    *(partial(composed.inverted, size=3), (24, 32), 2), act=nn.Hardswish, first="deep", last="mlp"
)
SEPARABLE = of(
    composed.separable, (24, 48), 2, act=nn.GELU, first="patch", skip="scaled", last="looked"
)
SEPARABLE_5 = of(
    partial(composed.separable, size=5), (32, 64), 2, down="max", last="conv", act=nn.ReLU6
)
ASYMMETRIC = of(composed.asymmetric, (24, 48), 2, act=nn.ELU, down="mean", last="power")
DILATED = of(partial(composed.Branches, dilated=True), (24, 48), down="stride", skip="add")
BRANCHES = of(partial(composed.Branches, pool=True), (24, 48), down="max", last="mlp")
BRANCHES_PLAIN = of(composed.Branches, (24, 32), norm=None, act=LEAKY, down="space", init=True)
GROUPED = of(composed.grouped, (32, 64), 2, skip="add", down="mean", act=nn.ReLU)
GATED = of(composed.gated, (24, 48), 1, norm=GROUP, act=nn.Identity, down="space", last="both")
GATED_SKIP = of(composed.gated, (24, 40), 2, act=nn.Tanh, skip="add", down="blur")
EXCITED = of(composed.excited, (24, 48), 2, skip="add", act=nn.Mish, last="max")
ATTENDS = of(composed.Attends, (24, 48), 1, act=nn.GELU, down="patch", last="looked")
ATTENDS_LATE = of(composed.Attends, (32, 48), norm=LAYER, act=nn.SiLU, first="patch", down="stride")
JOINED = of(composed.single, (24, 24), 3, skip="join", down="mean", first="deep")
JOINED_7 = of(composed.separable, (24, 16), 2, skip="join", norm=GROUP, act=nn.GELU, down="max")
TANH = of(
    composed.single, (16, 32), 1, norm=None, act=nn.Tanh, first="wide", down="mean", last="flat"
)
INSTANCED = of(composed.double, (24, 48), 1, norm=INSTANCE, act=LEAKY, down="max", last="both")
PRELU = of(composed.double, (24, 40), 1, act=nn.PReLU, skip="add", first="full", down="mean")
SCALED = of(
    composed.double, (24, 48), 2, norm=None, act=nn.ReLU, skip="scaled", down="space", init=True
)
SELU_7 = of(partial(composed.single, size=7), (16, 24), 1, norm=None, act=nn.SELU, last="mlp")
VGG_HE = of(
    composed.single, (24, 48, 64), 2, norm=None, down="max", first="full", last="flat", init=True
)
SMOOTH = of(
    composed.double, (32, 48), norm=None, act=nn.GELU, down="mean", first="patch", last="mlp"
)
CLIPPED = of(composed.single, (32, 48, 64), act=nn.Hardtanh, down="stride", first="full")
SOFT = of(composed.asymmetric, (24, 40), norm=GROUP, act=nn.Softsign, down="max", last="both")
LONG = of(composed.bottleneck, (32, 48), 4, norm=BATCH, act=nn.ReLU, skip="add", down="blur")
SHALLOW = of(partial(composed.single, size=5), (32,), 1, first="wide", last="flat")
PLAIN = partial(composed.Hourglass, skip="join", up="transposed")
SILU = partial(
    composed.Hourglass, composed.double, norm=GROUP, act=nn.SiLU, skip="add", up="nearest"
)
POOLED = partial(
    composed.Hourglass, composed.separable, down="max", up="bilinear", skip="join", act=nn.GELU
)
SHUFFLED = partial(
    composed.Hourglass,
    composed.Branches,
    (16, 24, 32),
    norm=None,
    act=LEAKY,
    up="shuffle",
    skip="add",
)
CLOSED = partial(composed.Hourglass, composed.single, down="space", up="shuffle", act=nn.ELU)
MEANS = partial(
    composed.Hourglass, composed.excited, (16, 32), norm=INSTANCE, down="mean", up="nearest"
)
CASES = seen(
    "2026-11-23T12:01",
    Task("CNN, max pooling, hidden Linear", SINGLE, P, named).cases(
        single=(r70.PLAIN_SGD, r70.RESTARTS)
    ),
    Task("5 × 5 CNN, no norm, He", WIDE5, P, named).cases(
        wide_5=(r70.adam(1e-3), r70.CLIPPED, r70.ADAGRAD)
    ),
    Task("5 × 5 CNN, no norm, He", WIDE5, UNIT, losses.augmented).cases(wide_5_unit=r70.DECAYED),
    Task("10-layer leaky CNN", DEEP, P40, named).cases(deep=(r70.momentum(0.05), r70.NADAM)),
    Task("ResNet, 7 × 7, mean and maximum", THICK, P48, losses.classes(0.1)).cases(
        thick=r70.ONE_CYCLE
    ),
    Task("ResNet, 7 × 7, mean and maximum", THICK, P, losses.focal).cases(
        thick_focal=r70.adam(2e-3, stairs)
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
    Task("bottleneck GELU ResNet, LayerNorm", BOTTLE_GELU, P, named).cases(
        bottle_gelu=(r70.WARM, r70.SHORT)
    ),
    Task("inverted bottlenecks 5 × 5", INVERTED, P40, named).cases(
        inverted=(r70.SUPER, r70.RMS_MOVING)
    ),
    Task("inverted bottlenecks 5 × 5", INVERTED, P, losses.mixup(0.4)).cases(
        inverted_mix=r70.BETAS
    ),
    Task("inverted bottlenecks, no shortcut", INVERTED_3, HALF, named).cases(
        inverted_3=r70.adam(2e-3)
    ),
    Task("7 × 7 separable CNN, scaled", SEPARABLE, P, named).cases(separable=(r70.WARM, r70.NADAM)),
    Task("5 × 5 separable CNN, ReLU6", SEPARABLE_5, UNIT, named).cases(
        separable_5=r70.momentum(0.05)
    ),
    Task("1 × 5 and 5 × 1 CNN, power mean", ASYMMETRIC, P, named).cases(
        asymmetric=(r70.SUPER, r70.MICRO)
    ),
    Task("dilated branches ResNet", DILATED, P, losses.augmented).cases(
        dilated=(r70.ONE_CYCLE, r70.BETAS)
    ),
    Task("branches with pooling", BRANCHES, P, named).cases(
        branches=(r70.RMSPROP, r70.momentum(0.03, stairs))
    ),
    Task("branches, no norm, He", BRANCHES_PLAIN, HALF, named).cases(
        branches_plain=(r70.adam(1e-3), r70.CLIPPED)
    ),
    Task("grouped and shuffled ResNet", GROUPED, P, losses.classes(0.1)).cases(
        grouped=(r70.PLAIN_SGD, r70.HALF)
    ),
    Task("GLU CNN, GroupNorm", GATED, P, named).cases(gated=(r70.RESTARTS, r70.ADAGRAD)),
    Task("GLU tanh ResNet", GATED_SKIP, P, named).cases(gated_skip=(r70.NADAM, r70.momentum(0.03))),
    Task("squeezed Mish ResNet, maximum", EXCITED, P, named).cases(excited=(r70.EPOCHS, r70.ADAMW)),
    Task("attention CNN, patches", ATTENDS, P, named).cases(attends=(r70.SUPER, r70.BETAS)),
    Task("attention SiLU CNN, LayerNorm", ATTENDS_LATE, P40, named).cases(
        attends_late=r70.RESTARTS
    ),
    Task("dense CNN, means", JOINED, P, named).cases(joined=(r70.NESTEROV, r70.DECAYED)),
    Task("dense CNN, means", partial(JOINED, channels=1, out=6), spectrograms, named).cases(
        joined_sound=r70.momentum(0.03, poly)
    ),
    Task("dense separable CNN, GroupNorm", JOINED_7, P, named).cases(
        joined_7=(r70.BETAS, r70.SHORT)
    ),
    Task("tanh CNN, wide kernels", partial(TANH, channels=1, out=10), digits, named).cases(
        tanh=r70.adam(3e-3, None, steps=120, every=12)
    ),
    Task("tanh CNN, wide kernels", TANH, P, named).cases(tanh_colour=r70.momentum(0.05)),
    Task(
        "tanh CNN, wide kernels", partial(TANH, channels=1), photos(32, "imagenet", 1), named
    ).cases(tanh_grey=r70.ADAGRAD),
    Task("InstanceNorm leaky CNN", INSTANCED, P40, named).cases(
        instance=(r70.adam(2e-3, stairs), r70.RMS_MOVING)
    ),
    Task(
        "InstanceNorm leaky CNN", partial(INSTANCED, channels=1, out=10), digits, losses.focal
    ).cases(instance_digits=r70.ADAMW),
    Task("PReLU ResNet, full size", PRELU, P, named).cases(prelu=r70.RESTARTS),
    Task("PReLU ResNet, full size", partial(PRELU, out=16), HALF, losses.pairs).cases(
        prelu_pairs=r70.DECAYED
    ),
    Task("scaled ResNet, no norm", SCALED, P, named).cases(
        scaled=(r70.WARM, r70.momentum(0.02, clip=1.0))
    ),
    Task("SELU CNN 7 × 7", SELU_7, P, named).cases(selu_7=(r70.adam(5e-4), r70.CLIPPED)),
    Task("two-layer CNN", SHALLOW, EACH, named).cases(shallow=(r70.PLAIN_SGD, r70.EPOCHS)),
    Task("narrow GroupNorm SiLU ResNet", partial(NARROW, out=3), scenes, losses.centre).cases(
        narrow_place=r70.SUPER
    ),
    Task("VGG, hidden Linear, He", VGG_HE, P, named).cases(
        vgg_he=(r70.adam(5e-4), r70.momentum(0.02, clip=1.0))
    ),
    Task("GELU CNN, no norm, patches", SMOOTH, P48, named).cases(
        smooth=(r70.ADAMW, r70.RMS_MOVING)
    ),
    Task("Hardtanh CNN", CLIPPED, P, named).cases(
        clipped=r70.momentum(0.1, batch=64, steps=40, every=4)
    ),
    Task("Hardtanh CNN", CLIPPED, UNIT, losses.mixup(0.2)).cases(clipped_mix=r70.NADAM),
    Task("Softsign CNN, GroupNorm", SOFT, P, named).cases(soft=(r70.adam(2e-3), r70.MICRO)),
    Task("24-layer bottleneck ResNet", LONG, P, named).cases(long=(r70.WARM, r70.PLAIN_SGD)),
    Task("autoencoder, a vector inside", composed.Bottle, CROPS, losses.again).cases(
        bottle_ae=(r70.adam(2e-3), r70.SUPER)
    ),
    Task(
        "autoencoder, SiLU, GroupNorm",
        partial(composed.Bottle, GROUP, nn.SiLU, "shuffle"),
        CROPS,
        losses.again,
    ).cases(bottle_ae_silu=(r70.NADAM, r70.WARM)),
    Task("ELU autoencoder, space to depth", CLOSED, CROPS, losses.again).cases(
        closed=r70.adam(1e-3, stairs)
    ),
    Task("ELU autoencoder, space to depth", CLOSED, CROPS, losses.denoised).cases(
        closed_noise=r70.RMSPROP
    ),
    Task("U-Net, strides and transposed", partial(PLAIN, out=1), scenes, losses.both_masks).cases(
        plain_masks=(r70.ADAMW, r70.momentum(0.05, poly))
    ),
    Task(
        "U-Net, strides and transposed",
        partial(PLAIN, channels=1, last=torch.tanh),
        CROPS,
        losses.colours,
    ).cases(plain_colour=r70.adam(2e-3)),
    Task("SiLU U-Net, added", partial(SILU, out=1), scenes, losses.depth).cases(
        silu_depth=r70.BETAS
    ),
    Task("SiLU U-Net, added", partial(SILU, channels=4), CROPS, losses.filled).cases(
        silu_fill=r70.adam(1e-3)
    ),
    Task("SiLU U-Net, added", SILU, CROPS_UNIT, losses.rebuilt).cases(silu_noise=r70.RESTARTS),
    Task("separable GELU U-Net", partial(POOLED, out=2), scenes, losses.two_classes).cases(
        pooled_masks=(r70.SUPER, r70.NESTEROV)
    ),
    Task("separable GELU U-Net", partial(POOLED, out=1), edges, losses.boundary).cases(
        pooled_edges=r70.WARM
    ),
    Task("branches U-Net, no norm", partial(SHUFFLED, out=1), scenes, losses.both_masks).cases(
        shuffled_masks=r70.adam(2e-3)
    ),
    Task("squeezed InstanceNorm U-Net", partial(MEANS, skip="join"), UNIT, losses.rebuilt).cases(
        means_fill=r70.ADAMW
    ),
    Task(
        "squeezed InstanceNorm U-Net", partial(MEANS, skip="join", out=1), edges, losses.boundary
    ).cases(means_edges=r70.adam(0.002)),
    Task(
        "flat 5 × 5 CNN, residual",
        partial(composed.Flat, partial(composed.single, size=5)),
        CROPS,
        losses.denoised,
    ).cases(flat_noise=r70.adam(0.0005)),
    Task(
        "flat dense CNN",
        partial(composed.Flat, composed.single, 12, 4, dense=True),
        UNIT,
        unblurred,
    ).cases(flat_blur=r70.SUPER),
    Task(
        "flat inverted CNN",
        partial(composed.Flat, composed.inverted, 16, 2, norm=LAYER, act=nn.GELU),
        UNIT,
        losses.rebuilt,
    ).cases(flat_fill=r70.NADAM),
    Task(
        "flat dilated CNN",
        partial(
            composed.Flat,
            partial(composed.Branches, dilated=True),
            16,
            2,
            norm=BATCH,
            out=1,
            around=False,
        ),
        edges,
        losses.boundary,
    ).cases(flat_edges=r70.momentum(0.05)),
    held_out=True,
)
