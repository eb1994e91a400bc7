"""Trainings of the third set with one planted fault each, and the kinds of finding that name it.

A kind after a comma is one that names the fault equally well; any of them counts. Not as planned:
"large_epsilon" still changes weights by up to 4e-6 of their norm per step.
"""

from __future__ import annotations

import acceptance_third_data as data
import acceptance_third_faults_data as wrong
import acceptance_third_faults_loops as loops
import acceptance_third_faults_nets as nets
from acceptance_case import HealthyCase
from acceptance_data import photos, tones
from acceptance_data import pictures as crops
from acceptance_later_data import raw
from acceptance_later_faults_nets import changed
from acceptance_later_loops import encoder
from acceptance_recipes import by
from acceptance_tasks import again
from acceptance_third_loop import Plan
from acceptance_third_selfsup import classifier, trunk
from acceptance_third_signals import overlap
from acceptance_third_tuning import named
from torch import nn, optim

P, UNIT, RAW = photos(32), photos(32, "unit"), raw()
ADAM, SLOW = by(optim.Adam, lr=1e-3), by(optim.Adam, lr=1e-4)
SGD = by(optim.SGD, lr=0.02, momentum=0.9)
CNN, PLAIN = "encoder CNN", "encoder CNN, no norm"
SOUND = tones(256)


def with_norm() -> nn.Module:
    return encoder(8)


def without_norm() -> nn.Module:
    return encoder(8, norm=False)


def sounds(generator: object, count: int) -> tuple[object, ...]:
    return SOUND(generator, count)[:1]


def four_channels() -> nn.Module:
    model = encoder(8, norm=False)
    model[0][0] = nn.Conv2d(4, 24, 3, 2, 1)
    return model


def bound(make: object, draw: object, loss: object, optimizer: object, **options: object) -> Plan:
    return Plan(make, draw, loss, optimizer, **({"steps": 60, "every": 5} | options))


DOWN = "vanishing"
SHARED = {
    "made_in_forward": (
        "not_in_optimizer",
        "residual CNN",
        "a layer made in the first forward pass",
        bound(nets.Grown, P, named, ADAM),
    ),
    "decoder_only": (
        "not_in_optimizer",
        "autoencoder",
        "only the decoder's parameters",
        bound(nets.Coder, crops(), again, lambda m: optim.Adam(m.decoder.parameters(), lr=1e-3)),
    ),
    "crop_outside": (
        "constant_images",
        CNN,
        "crops beyond the picture",
        bound(with_norm, changed(P, wrong.outside), named, ADAM),
    ),
    "one_pixel": (
        "constant_images",
        PLAIN,
        "resized to one pixel first",
        bound(without_norm, changed(P, wrong.one_pixel), named, ADAM),
    ),
    "buffer": (
        "identical_images",
        "1-D CNN",
        "one buffer for all examples",
        bound(nets.inertial, changed(data.gestures, wrong.buffer), named, ADAM),
    ),
    "same_views": (
        "identical_images",
        "residual CNN",
        "SimCLR, both views the same",
        bound(trunk, P, wrong.same_views, ADAM),
    ),
    "batch_of_one": (
        "nonfinite",
        "CNN, standardized by hand",
        "std of one example",
        bound(nets.ByHand, wrong.last_batch(P), named, ADAM),
    ),
    "all_padding": (
        "nonfinite",
        "CNN with attention",
        "softmax of -inf only",
        bound(nets.Attending, wrong.some_empty(P), named, ADAM),
    ),
    "rounded": (
        "unchanged_weights",
        "rounding autoencoder",
        "no straight-through",
        bound(nets.Rounded, crops(), again, ADAM),
    ),
    "weight_zero": (
        "unchanged_weights,vanishing",
        "two-task CNN",
        "a loss's weight is 0",
        bound(nets.SideHead, P, nets.weight_zero, ADAM),
    ),
    "zero_scales": (
        "dead,vanishing,unchanged_weights",
        CNN,
        "scale 0 in every BatchNorm",
        bound(nets.zero_scales, P, named, ADAM),
    ),
    "relu_last": (
        "dead",
        "denoiser",
        "ReLU at the end, targets below 0",
        bound(nets.relu_last, P, nets.below, ADAM),
    ),
    "memory": (
        DOWN,
        "recurrent convolution",
        "30 times tanh, gain 0.4",
        bound(nets.Memory, P, named, SGD),
    ),
    "saturated": (
        DOWN,
        "14 tanh layers (1-D)",
        "deviation 0.05",
        bound(nets.saturated, data.gestures, named, SGD),
    ),
    "doubling": (
        "exploding",
        "ResNet without norm",
        "18 blocks",
        bound(nets.Doubling, P, named, by(optim.Adam, lr=1e-5)),
    ),
    "without_channels": (
        "exploding",
        "9 plain layers",
        "deviation without channels",
        bound(nets.without_channels, P, named, SLOW),
    ),
    "upside_down": (
        "update_ratio",
        "residual CNN",
        "rates grow to the input",
        bound(with_norm, P, named, nets.rates_upside_down),
    ),
    "large_epsilon": (
        "update_ratio",
        PLAIN,
        "Adam 1e-4, eps 1",
        bound(without_norm, P, named, by(optim.Adam, lr=1e-4, eps=1.0)),
    ),
    "two_cameras": (
        "batchnorm_gap",
        "residual CNN",
        "batches of two kinds",
        bound(classifier, wrong.alternating(P), named, SGD, steps=90, every=9),
    ),
    "old_statistics": (
        "batchnorm_gap",
        CNN,
        "statistics of other units, momentum 1e-3",
        bound(nets.old_statistics, UNIT, named, ADAM),
    ),
    "reseeded": (
        "copied_channels",
        "3-D CNN",
        "a seed per filter",
        bound(nets.reseeded, data.voxels, named, ADAM),
    ),
    "all_ones": (
        "copied_channels",
        "1-D CNN",
        "constant weights in one layer",
        bound(nets.all_ones, data.gestures, named, ADAM),
    ),
    "millimetres": (
        "input_scale",
        PLAIN,
        "depth in mm",
        bound(four_channels, wrong.millimetres, named, SLOW),
    ),
    "wrong_order": (
        "input_scale",
        PLAIN,
        "0 to 255, standardized as 0 to 1",
        bound(without_norm, changed(RAW, wrong.wrong_order), named, SLOW),
    ),
    "kilowatts": (
        "input_scale",
        "1-D CNN",
        "kW as they are",
        bound(wrong.kilowatts, data.demand, wrong.slope, ADAM),
    ),
    "cycle_generator": (
        "uneven_upsampling",
        "CycleGAN's generator",
        "3 px, stride 2",
        bound(nets.cycle_generator, crops(), again, ADAM, batch=8),
    ),
    "vocoder": (
        "uneven_upsampling",
        "1-D decoder",
        "10 samples, stride 4",
        bound(nets.vocoder, sounds, again, ADAM),
    ),
    "volumes": (
        "uneven_upsampling",
        "3-D U-Net",
        "3, stride 2",
        bound(nets.Volumes, data.hounsfield, overlap, ADAM, batch=2),
    ),
}

OWN = {
    "unfrozen_late": (
        "not_in_optimizer",
        CNN,
        "unfrozen after the optimizer was built",
        loops.unfrozen_late,
    ),
    "centres": (
        "not_in_optimizer",
        "ArcFace CNN",
        "class centres forgotten",
        loops.centres_forgotten,
    ),
    "accumulated": (
        "gradients_not_cleared",
        CNN,
        "a step per micro-batch",
        loops.accumulated_wrongly,
    ),
    "manual_kept": (
        "gradients_not_cleared",
        CNN,
        "Lightning, manual, no zero_grad",
        loops.manual_kept,
    ),
    "lightning_eval": ("eval_mode", CNN, "Lightning, loaded in eval mode", loops.lightning_eval),
    "train_overridden": ("eval_mode", CNN, "train() without super", loops.train_overridden),
    "restored": ("unchanged_weights", CNN, "old weights put back after each step", loops.restored),
    "small_half": (
        "unchanged_weights,update_ratio",
        PLAIN,
        "bfloat16, rate 1e-6",
        loops.small_half,
    ),
}

FAULTS: dict[str, HealthyCase] = {
    **{n: plan.case(net, how, kinds) for n, (kinds, net, how, plan) in SHARED.items()},
    **{n: HealthyCase(net, how, 60, 5, run, expected=k) for n, (k, net, how, run) in OWN.items()},
}
