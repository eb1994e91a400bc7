"""Planted faults that ``input_scale`` names."""

from __future__ import annotations

import torch
from data import RAW, UNIT, P, changed, decibels, demand, tones
from faults import bare, normed
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import encoder
from nets.signals import pooled, sound_net
from optimizers import SGD, SLOW
from torch import Generator, Tensor, nn
from torch.nn import functional

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)


def standardized(images: Tensor) -> Tensor:
    """ImageNet's mean and deviation applied to images that are not 0 to 1."""
    return (images - MEAN) / 0.225


def one_channel() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), encoder(6, norm=False))


def four_channels() -> nn.Module:
    model = encoder(8, norm=False)
    model[0][0] = nn.Conv2d(4, 24, 3, 2, 1)
    return model


def millimetres(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A depth camera's distance in mm as a fourth channel beside a standardized picture."""
    images, labels = P(generator, count)
    return torch.cat([images, 1500 + 900 * images.mean(1, keepdim=True)], 1), labels


def kilowatts() -> nn.Module:
    """A classifier of load curves in kW as they are."""
    layers = [nn.Conv1d(1, 24, 9, 2, 4), nn.ReLU(), nn.Conv1d(24, 32, 9, 2, 4), nn.ReLU()]
    return nn.Sequential(*layers, *pooled(32, 1))


def slope(model: nn.Module, past: Tensor, future: Tensor) -> Tensor:
    """The logarithm of the next day's load in MW."""
    return functional.smooth_l1_loss(model(past)[:, 0], (future.mean((1, 2)) / 1000).log())


def caffe(images: Tensor) -> Tensor:
    """Caffe's order of things: 0 to 255, blue first, only the mean subtracted."""
    return images.flip(1) * 255 - torch.tensor([103.939, 116.779, 123.68]).view(3, 1, 1)


CASES = seen(
    "2026-11-23T07:48",
    normed(RAW, bytes_norm=sixty("0 to 255, BatchNorm", SGD)),
    bare(changed(UNIT, lambda x: x / 255), divided_twice=sixty("/ 255 twice")),
    bare(changed(P, standardized), twice=sixty("standardized twice")),
    Task("encoder CNN, no norm", one_channel, decibels, named).cases(
        decibels=sixty("dB as they are")
    ),
    expected="input_scale",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("encoder CNN, no norm", four_channels, millimetres, named).cases(
        millimetres=sixty("depth in mm", SLOW)
    ),
    Task("1-D CNN", kilowatts, demand, slope).cases(kilowatts=sixty("kW as they are")),
    expected="input_scale",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("1-D CNN", sound_net, changed(tones(512), lambda x: (x * 32767).round()), named).cases(
        microphone=sixty("samples of 16 bits", SLOW)
    ),
    bare(changed(UNIT, caffe), mean_only=sixty("0 to 255, only the mean subtracted", SLOW)),
    expected="input_scale",
)
