"""Trainings of the fourth set with one planted fault each, and the kinds that name it.

A kind after a comma is one that names the fault equally well; any of them counts. Not as planned:
"spike" ends in NaN before a channel can be dead. The loss in eval mode of "modalities", "outliers"
and "slow_statistics" is 2 to 13 times that in training mode; that of "by_class" is only 1.1 times.
"""

from __future__ import annotations

from functools import partial

import acceptance_fourth_faults_data as wrong
import acceptance_fourth_faults_loops as loops
import acceptance_fourth_faults_nets as nets
import acceptance_third_data as data
from acceptance_case import HealthyCase
from acceptance_data import photos, spectrograms, tones
from acceptance_data import pictures as crops
from acceptance_fourth_library import timm_net
from acceptance_fourth_plain import convs
from acceptance_later_faults_nets import changed, later
from acceptance_recipes import by
from acceptance_tasks import again, larger
from acceptance_third_faults import ADAM, SGD, SLOW, bound, with_norm, without_norm
from acceptance_third_tuning import named
from torch import nn, optim

P, UNIT, SOUND = photos(32), photos(32, "unit"), tones(512)
CNN, PLAIN, SOUNDS = "encoder CNN", "encoder CNN, no norm", "1-D CNN"
mobile = partial(timm_net, "lcnet_035")
LONG = {"steps": 96, "every": 8}

SHARED = {
    "weight_norm_late": (
        "not_in_optimizer",
        *("SiLU CNN", "weight norm after the optimizer was built"),
        bound(partial(convs, None, nn.SiLU), P, named, nets.parametrized_late),
    ),
    "groups_by_type": (
        "not_in_optimizer",
        *("timm LCNet", "norms in no parameter group"),
        bound(mobile, photos(64), named, nets.groups_by_type),
    ),
    "transparent": (
        "constant_images",
        *(CNN, "alpha of 0"),
        bound(with_norm, changed(P, wrong.transparent), named, ADAM),
    ),
    "undecoded": (
        "constant_images",
        *("3-D CNN", "empty buffers"),
        bound(nets.film_net, wrong.undecoded, named, ADAM, batch=8),
    ),
    "two_only": (
        "identical_images",
        *("CELU CNN", "index modulo 2"),
        bound(partial(convs, None, nn.CELU), changed(P, wrong.two_only), named, ADAM),
    ),
    "repeated": (
        "identical_images",
        *(SOUNDS, "repeat for stack"),
        bound(partial(nets.sound_net, True), changed(SOUND, wrong.repeated), named, SGD),
    ),
    "ignored": (
        "nonfinite",
        *(CNN, "a batch with no sure class"),
        bound(with_norm, P, wrong.ignored, ADAM, batch=2),
    ),
    "gamma": (
        "nonfinite",
        *(PLAIN, "root of standardized pixels, from step 25 on"),
        bound(without_norm, later(P, wrong.gamma, 25), named, ADAM),
    ),
    "arccos": ("nonfinite", "cosine CNN", "arccos of 1", bound(nets.Cosine, P, nets.angles, ADAM)),
    "half_rates": (
        "unchanged_weights",
        *("encoder CNN", "rates of layers by //"),
        bound(with_norm, P, named, nets.first_half_slow),
    ),
    "data_between": (
        "unchanged_weights",
        *("autoencoder", ".data between the halves"),
        bound(nets.Cut, crops(), again, ADAM),
    ),
    "low_shifts": (
        "dead",
        *(CNN, "shifts of -4 in one BatchNorm"),
        bound(nets.low_shifts, P, named, SGD),
    ),
    "scaled_branches": (
        "vanishing",
        *("6 layers, each times 0.1", "GELU"),
        bound(nets.Scaled, P, named, SGD),
    ),
    "depthwise_fan_out": (
        "vanishing",
        *("8 separable layers, no norm", "fan_out of depthwise kernels"),
        bound(nets.depthwise_fan_out, P, named, SGD),
    ),
    "summed_maps": (
        "exploding",
        *("14 layers, all maps summed", "He"),
        bound(nets.Summed, P, named, by(optim.Adam, lr=1e-5)),
    ),
    "sum_pools": (
        "exploding",
        *("VGG-like CNN, no norm", "sums for means in pools"),
        bound(nets.sum_pools, P, named, by(optim.Adam, lr=1e-5)),
    ),
    "summed_error": (
        "update_ratio",
        *(CNN, "cross-entropy summed over 64 examples, SGD 0.05"),
        bound(with_norm, P, wrong.summed, by(optim.SGD, lr=0.05, momentum=0.9), batch=64),
    ),
    "tenth_per_step": (
        "update_ratio,unchanged_weights",
        *(PLAIN, "StepLR stepped per batch"),
        bound(without_norm, P, named, ADAM, schedule=nets.each_step_a_tenth),
    ),
    "by_class": (
        "batchnorm_gap",
        *(CNN, "batches of one class each"),
        bound(with_norm, wrong.by_class(P), named, SGD, **LONG),
    ),
    "modalities": (
        "batchnorm_gap",
        *("encoder for two modalities", "one BatchNorm for pictures and metres"),
        bound(nets.Modalities, UNIT, named, ADAM, **LONG),
    ),
    "outliers": (
        "batchnorm_gap",
        *(CNN, "a broken file in each fifth batch"),
        bound(with_norm, wrong.outliers(P), named, ADAM, **LONG),
    ),
    "slow_statistics": (
        "batchnorm_gap",
        *("encoder CNN", "momentum 0.001, dark pictures of 0 to 0.3"),
        bound(nets.slow_statistics, changed(UNIT, lambda x: x * 0.3), named, SGD, **LONG),
    ),
    "broadcast": (
        "copied_channels",
        *("autoencoder", "one kernel for all outputs, transposed"),
        bound(nets.broadcast_kernels, crops(), again, ADAM),
    ),
    "repeated_series": (
        "copied_channels",
        *("1-D CNN, BatchNorm", "widened by repeat"),
        bound(nets.repeated_series, data.gestures, named, SGD),
    ),
    "microphone": (
        "input_scale",
        *(SOUNDS, "samples of 16 bits"),
        bound(nets.sound_net, wrong.microphone, named, SLOW),
    ),
    "mean_only": (
        "input_scale",
        *(PLAIN, "0 to 255, only the mean subtracted"),
        bound(without_norm, wrong.mean_only, named, SLOW),
    ),
    "reflectance": (
        "input_scale",
        *(PLAIN, "reflectance divided by 10000 twice"),
        bound(without_norm, wrong.reflectance, named, ADAM),
    ),
    "fsrcnn": (
        "uneven_upsampling",
        *("FSRCNN", "9 px, stride 2, as published"),
        bound(nets.fsrcnn, crops(32, "unit"), larger, ADAM),
    ),
    "uneven_width": (
        "uneven_upsampling",
        *("spectrogram autoencoder", "4 × 3 px, stride 2"),
        bound(nets.uneven_width, changed(spectrograms, lambda x: x[:, :, :32]), again, ADAM),
    ),
}
OWN = {
    "once_per_epoch": ("gradients_not_cleared", CNN, "zero_grad per epoch", loops.once_per_epoch),
    "one_of_two": ("gradients_not_cleared", CNN, "one of two optimizers cleared", loops.one_of_two),
    "closure_kept": ("gradients_not_cleared", CNN, "closure, no zero_grad", loops.closure_kept),
    "accuracy_left": (
        "eval_mode",
        *("CNN, GroupNorm and dropout", "accuracy in eval mode, left so"),
        loops.accuracy_left,
    ),
    "encoder_left": ("eval_mode", "LinkNet", "encoder left in eval mode", loops.encoder_left),
    "cleared_too_late": (
        "unchanged_weights",
        *(CNN, "zero_grad between backward and step"),
        loops.cleared_too_late,
    ),
    "spike": ("dead", PLAIN, "rate 3 for four steps", loops.spike),
    "clipped_away": ("update_ratio", CNN, "clipped to 1e-5", loops.clipped_away),
    "five_pixels": ("uneven_upsampling", "DCGAN", "5 px, stride 2", loops.five_pixels),
}

FAULTS: dict[str, HealthyCase] = {
    **{n: plan.case(net, how, kinds) for n, (kinds, net, how, plan) in SHARED.items()},
    **{n: HealthyCase(net, how, 60, 5, run, expected=k) for n, (k, net, how, run) in OWN.items()},
}
