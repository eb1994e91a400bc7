"""The classifiers of the fifth set and their recipes: architecture, data, loss."""

from __future__ import annotations

from functools import partial
from typing import Any

import acceptance_fifth_losses as tasks
import acceptance_fifth_nets as n
import acceptance_fifth_recipes as r
from acceptance_data import digits, photos, scenes, spectrograms
from acceptance_fifth_dense import Cosines
from acceptance_fourth_sets import Row
from acceptance_recipes import mixup
from acceptance_tasks import centre, focal, multi_label, pairs
from acceptance_third_tuning import named
from torch import nn

P, UNIT, HALF, EACH = (photos(32, s) for s in ("imagenet", "unit", "half", "each"))
P40, P48, GREY = photos(40), photos(48, "half"), photos(32, "imagenet", 1)
adam, momentum = r.adam, r.momentum
LEAKY = partial(nn.LeakyReLU, 0.1)


def of(
    body: n.Body, widths: tuple[int, ...] = (24, 48), depth: int = 1, **options: Any
) -> partial[nn.Module]:
    return partial(n.net, body, widths, depth, **options)


SINGLE = of(n.single, (16, 32, 64), last="flat", down="max", first="full")
WIDE5 = of(partial(n.single, size=5), (24, 32, 48), norm=None, down="mean", init=True)
DEEP = of(n.single, (24, 32, 48), 3, act=LEAKY, first="deep")
THICK = of(n.double, (32, 64), skip="add", first="wide", last="both")
NARROW = of(n.double, (16, 24, 32), 2, skip="add", norm=n.GROUP, act=nn.SiLU)
BLURRED = of(n.double, (24, 48), skip="add", down="blur", act=nn.ELU, last="mlp")
BOTTLE = of(n.bottleneck, (48, 96), 2, skip="add", first="space")
BOTTLE_GELU = of(n.bottleneck, (48, 64), 2, skip="add", norm=n.LAYER, act=nn.GELU, first="patch")
INVERTED = of(n.inverted, (16, 24, 40), 1, skip="add", act=nn.SiLU, down="patch")
INVERTED_3 = of(
    *(partial(n.inverted, size=3), (24, 32), 2), act=nn.Hardswish, first="deep", last="mlp"
)
SEPARABLE = of(n.separable, (24, 48), 2, act=nn.GELU, first="patch", skip="scaled", last="looked")
SEPARABLE_5 = of(partial(n.separable, size=5), (32, 64), 2, down="max", last="conv", act=nn.ReLU6)
ASYMMETRIC = of(n.asymmetric, (24, 48), 2, act=nn.ELU, down="mean", last="power")
DILATED = of(partial(n.Branches, dilated=True), (24, 48), down="stride", skip="add")
BRANCHES = of(partial(n.Branches, pool=True), (24, 48), down="max", last="mlp")
BRANCHES_PLAIN = of(n.Branches, (24, 32), norm=None, act=LEAKY, down="space", init=True)
GROUPED = of(n.grouped, (32, 64), 2, skip="add", down="mean", act=nn.ReLU)
GATED = of(n.gated, (24, 48), 1, norm=n.GROUP, act=nn.Identity, down="space", last="both")
GATED_SKIP = of(n.gated, (24, 40), 2, act=nn.Tanh, skip="add", down="blur")
EXCITED = of(n.excited, (24, 48), 2, skip="add", act=nn.Mish, last="max")
ATTENDS = of(n.Attends, (24, 48), 1, act=nn.GELU, down="patch", last="looked")
ATTENDS_LATE = of(n.Attends, (32, 48), norm=n.LAYER, act=nn.SiLU, first="patch", down="stride")
JOINED = of(n.single, (24, 24), 3, skip="join", down="mean", first="deep")
JOINED_7 = of(n.separable, (24, 16), 2, skip="join", norm=n.GROUP, act=nn.GELU, down="max")
TANH = of(n.single, (16, 32), 1, norm=None, act=nn.Tanh, first="wide", down="mean", last="flat")
INSTANCE = of(n.double, (24, 48), 1, norm=n.INSTANCE, act=LEAKY, down="max", last="both")
PRELU = of(n.double, (24, 40), 1, act=nn.PReLU, skip="add", first="full", down="mean")
SCALED = of(n.double, (24, 48), 2, norm=None, act=nn.ReLU, skip="scaled", down="space", init=True)
SELU_7 = of(partial(n.single, size=7), (16, 24), 1, norm=None, act=nn.SELU, last="mlp")
VGG_HE = of(n.single, (24, 48, 64), 2, norm=None, down="max", first="full", last="flat", init=True)
SMOOTH = of(n.double, (32, 48), norm=None, act=nn.GELU, down="mean", first="patch", last="mlp")
CLIPPED = of(n.single, (32, 48, 64), act=nn.Hardtanh, down="stride", first="full")
SOFT = of(n.asymmetric, (24, 40), norm=n.GROUP, act=nn.Softsign, down="max", last="both")
LONG = of(n.bottleneck, (32, 48), 4, norm=n.BATCH, act=nn.ReLU, skip="add", down="blur")
SHALLOW = of(partial(n.single, size=5), (32,), 1, first="wide", last="flat")

CLASSES: dict[str, Row] = {
    "single": ("CNN, max pooling, hidden Linear", SINGLE, P, named, (r.PLAIN_SGD, r.RESTARTS)),
    "single_cut": ("CNN, max pooling, hidden Linear", SINGLE, HALF, tasks.cut_mix, (r.SUPER,)),
    "wide_5": ("5 × 5 CNN, no norm, He", WIDE5, P, named, (adam(1e-3), r.CLIPPED, r.ADAGRAD)),
    "wide_5_unit": ("5 × 5 CNN, no norm, He", WIDE5, UNIT, tasks.augmented, (r.DECAYED,)),
    "deep": ("10-layer leaky CNN", DEEP, P40, named, (momentum(0.05), r.NADAM)),
    "single_turned": (
        *("CNN, max pooling, hidden Linear", partial(SINGLE, channels=1, out=4), digits),
        *(tasks.rotated, (adam(1e-3, batch=32, steps=100, every=10),)),
    ),
    "thick": ("ResNet, 7 × 7, mean and maximum", THICK, P48, tasks.smoothed, (r.ONE_CYCLE,)),
    "thick_focal": ("ResNet, 7 × 7, mean and maximum", THICK, P, focal, (adam(2e-3, r.stairs),)),
    "narrow": ("narrow GroupNorm SiLU ResNet", NARROW, P, named, (r.ADAMW, momentum(0.05, r.poly))),
    "narrow_tags": ("narrow GroupNorm SiLU ResNet", NARROW, EACH, multi_label, (adam(2e-3),)),
    "blurred": ("ELU ResNet, low pass", BLURRED, P, named, (r.NESTEROV, r.RMSPROP)),
    "shallow_order": (
        *("two-layer CNN", partial(SHALLOW, channels=1, out=5), digits, tasks.jigsaw),
        (adam(2e-3, batch=32, steps=100, every=10),),
    ),
    "bottle": ("bottleneck ResNet, space to depth", BOTTLE, P, named, (r.HALF, r.EPOCHS)),
    "joined_7_views": (
        *("dense separable CNN, GroupNorm", partial(JOINED_7, out=32), P40, tasks.views),
        (r.NESTEROV,),
    ),
    "bottle_gelu": ("bottleneck GELU ResNet, LayerNorm", BOTTLE_GELU, P, named, (r.WARM, r.SHORT)),
    "inverted": ("inverted bottlenecks 5 × 5", INVERTED, P40, named, (r.SUPER, r.RMS_MOVING)),
    "inverted_mix": ("inverted bottlenecks 5 × 5", INVERTED, P, mixup(0.4), (r.BETAS,)),
    "inverted_3": ("inverted bottlenecks, no shortcut", INVERTED_3, HALF, named, (adam(2e-3),)),
    "separable": ("7 × 7 separable CNN, scaled", SEPARABLE, P, named, (r.WARM, r.NADAM)),
    "separable_many": (
        *("7 × 7 separable CNN, scaled", partial(SEPARABLE, out=5), HALF, tasks.groups),
        (r.ADAMW,),
    ),
    "separable_5": ("5 × 5 separable CNN, ReLU6", SEPARABLE_5, UNIT, named, (momentum(0.05),)),
    "separable_margin": ("5 × 5 separable CNN, ReLU6", SEPARABLE_5, P, tasks.margins, (r.RMSPROP,)),
    "asymmetric": ("1 × 5 and 5 × 1 CNN, power mean", ASYMMETRIC, P, named, (r.SUPER, r.MICRO)),
    "dilated": ("dilated branches ResNet", DILATED, P, tasks.augmented, (r.ONE_CYCLE, r.BETAS)),
    "branches": (
        "branches with pooling",
        BRANCHES,
        P,
        named,
        (r.RMSPROP, momentum(0.03, r.stairs)),
    ),
    "branches_square": ("branches with pooling", BRANCHES, EACH, tasks.squared, (adam(1e-3),)),
    "branches_plain": (
        "branches, no norm, He",
        BRANCHES_PLAIN,
        HALF,
        named,
        (adam(1e-3), r.CLIPPED),
    ),
    "grouped": ("grouped and shuffled ResNet", GROUPED, P, tasks.smoothed, (r.PLAIN_SGD, r.HALF)),
    "gated": ("GLU CNN, GroupNorm", GATED, P, named, (r.RESTARTS, r.ADAGRAD)),
    "gated_skip": ("GLU tanh ResNet", GATED_SKIP, P, named, (r.NADAM, momentum(0.03))),
    "excited": ("squeezed Mish ResNet, maximum", EXCITED, P, named, (r.EPOCHS, r.ADAMW)),
    "excited_triplet": (
        *("squeezed Mish ResNet, maximum", partial(EXCITED, out=24), P, tasks.triplet),
        (adam(1e-3),),
    ),
    "attends": ("attention CNN, patches", ATTENDS, P, named, (r.SUPER, r.BETAS)),
    "attends_count": (
        "attention CNN, patches",
        partial(ATTENDS, out=4),
        tasks.spots,
        named,
        (r.WARM,),
    ),
    "attends_late": ("attention SiLU CNN, LayerNorm", ATTENDS_LATE, P40, named, (r.RESTARTS,)),
    "joined": ("dense CNN, means", JOINED, P, named, (r.NESTEROV, r.DECAYED)),
    "joined_sound": (
        *("dense CNN, means", partial(JOINED, channels=1, out=6), spectrograms, named),
        (momentum(0.03, r.poly),),
    ),
    "joined_7": ("dense separable CNN, GroupNorm", JOINED_7, P, named, (r.BETAS, r.SHORT)),
    "tanh": (
        *("tanh CNN, wide kernels", partial(TANH, channels=1, out=10), digits, named),
        (adam(3e-3, None, steps=120, every=12),),
    ),
    "tanh_colour": ("tanh CNN, wide kernels", TANH, P, named, (momentum(0.05),)),
    "tanh_grey": ("tanh CNN, wide kernels", partial(TANH, channels=1), GREY, named, (r.ADAGRAD,)),
    "instance": (
        "InstanceNorm leaky CNN",
        INSTANCE,
        P40,
        named,
        (adam(2e-3, r.stairs), r.RMS_MOVING),
    ),
    "instance_digits": (
        *("InstanceNorm leaky CNN", partial(INSTANCE, channels=1, out=10), digits, focal),
        (r.ADAMW,),
    ),
    "prelu": ("PReLU ResNet, full size", PRELU, P, named, (r.RESTARTS,)),
    "prelu_pairs": ("PReLU ResNet, full size", partial(PRELU, out=16), HALF, pairs, (r.DECAYED,)),
    "scaled": ("scaled ResNet, no norm", SCALED, P, named, (r.WARM, momentum(0.02, clip=1.0))),
    "selu_7": ("SELU CNN 7 × 7", SELU_7, P, named, (adam(5e-4), r.CLIPPED)),
    "shallow": ("two-layer CNN", SHALLOW, EACH, named, (r.PLAIN_SGD, r.EPOCHS)),
    "shallow_tint": (
        *("two-layer CNN", partial(SHALLOW, out=3), tasks.tinted(), tasks.tint),
        (adam(1e-3),),
    ),
    "narrow_place": (
        *("narrow GroupNorm SiLU ResNet", partial(NARROW, out=3), scenes, centre),
        (r.SUPER,),
    ),
    "wide_5_colour": (
        *("5 × 5 CNN, no norm, He", partial(WIDE5, out=6), UNIT, tasks.statistics),
        (adam(5e-4),),
    ),
    "cosines": (
        *("cosine head on an ELU ResNet", lambda: Cosines(BLURRED(out=24), 24), P, tasks.proxies),
        (r.ADAMW, momentum(0.05)),
    ),
    "vgg_he": ("VGG, hidden Linear, He", VGG_HE, P, named, (adam(5e-4), momentum(0.02, clip=1.0))),
    "smooth": ("GELU CNN, no norm, patches", SMOOTH, P48, named, (r.ADAMW, r.RMS_MOVING)),
    "clipped": ("Hardtanh CNN", CLIPPED, P, named, (momentum(0.1, batch=64, steps=40, every=4),)),
    "clipped_mix": ("Hardtanh CNN", CLIPPED, UNIT, mixup(0.2), (r.NADAM,)),
    "soft": ("Softsign CNN, GroupNorm", SOFT, P, named, (adam(2e-3), r.MICRO)),
    "long": ("24-layer bottleneck ResNet", LONG, P, named, (r.WARM, r.PLAIN_SGD)),
    "narrow_views": (
        *("narrow GroupNorm SiLU ResNet", partial(NARROW, out=24), P40, tasks.views),
        (r.ADAMW,),
    ),
}
