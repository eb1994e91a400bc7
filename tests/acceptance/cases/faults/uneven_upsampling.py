"""Planted faults that ``uneven_upsampling`` names."""

from __future__ import annotations

from data import CROPS, CROPS_UNIT, changed, hounsfield, spectrograms, tones
from loops import Task, seen, sixty
from losses import again, larger
from nets.classifiers import unit
from nets.restoration import super_resolution
from nets.signals import VNet, overlap
from torch import nn


def transposed() -> nn.Module:
    """An autoencoder whose enlargement has a kernel that its stride does not divide."""
    layers: list[nn.Module] = [unit(3, 24, stride=2), unit(24, 32, stride=2)]
    for into, out in ((32, 24), (24, 3)):
        layers += [nn.ConvTranspose2d(into, out, 3, 2, 1, 1)]
        layers += [nn.BatchNorm2d(out), nn.ReLU()] if out > 3 else []
    return nn.Sequential(*layers, nn.Tanh())


def cycle_generator() -> nn.Module:
    """CycleGAN's generator as published: 3 px, stride 2, output padding 1."""
    layers: list[nn.Module] = [nn.ReflectionPad2d(3), nn.Conv2d(3, 16, 7), nn.InstanceNorm2d(16)]
    for into, out in ((16, 32), (32, 48)):
        layers += [nn.ReLU(), nn.Conv2d(into, out, 3, 2, 1), nn.InstanceNorm2d(out)]
    for into, out in ((48, 32), (32, 16)):
        layers += [nn.ReLU(), nn.ConvTranspose2d(into, out, 3, 2, 1, 1), nn.InstanceNorm2d(out)]
    return nn.Sequential(*layers, nn.ReLU(), nn.ReflectionPad2d(3), nn.Conv2d(16, 3, 7), nn.Tanh())


def vocoder() -> nn.Module:
    """A sound decoder: stride 4 with a kernel of 10."""
    layers = [nn.Conv1d(1, 24, 8, 4, 2), nn.LeakyReLU(0.2), nn.Conv1d(24, 24, 3, padding=1)]
    return nn.Sequential(*layers, nn.LeakyReLU(0.2), nn.ConvTranspose1d(24, 1, 10, 4, 3))


def volumes() -> nn.Module:
    """A V-Net that enlarges with 3 px, stride 2."""
    model = VNet()
    model.up = nn.ConvTranspose3d(24, 12, 3, 2, 1, 1)
    return model


def fsrcnn() -> nn.Module:
    """FSRCNN as published: the transposed convolution has 9 px and stride 2."""
    *body, _ = super_resolution("fsrcnn")
    return nn.Sequential(*body, nn.ConvTranspose2d(32, 3, 9, 2, 4, 1))


def uneven_width() -> nn.Module:
    """Spectrograms are halved and enlarged: 4 rows but 3 columns, stride 2."""
    down = [unit(1, 24, stride=2), unit(24, 24)]
    up = nn.ConvTranspose2d(24, 16, (4, 3), 2, 1, (0, 1))
    return nn.Sequential(*down, up, nn.LeakyReLU(0.1), nn.Conv2d(16, 1, 3, padding=1))


CASES = seen(
    "2026-11-23T07:48",
    Task("autoencoder", transposed, CROPS, again).cases(transposed_3=sixty("kernel 3, stride 2")),
    expected="uneven_upsampling",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("CycleGAN's generator", cycle_generator, CROPS, again).cases(
        cycle_generator=sixty("3 px, stride 2", batch=8)
    ),
    Task("1-D decoder", vocoder, tones(256), again).cases(vocoder=sixty("10 samples, stride 4")),
    Task("V-Net (3-D)", volumes, hounsfield, overlap).cases(volumes=sixty("3, stride 2", batch=2)),
    expected="uneven_upsampling",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("FSRCNN", fsrcnn, CROPS_UNIT, larger).cases(fsrcnn=sixty("9 px, stride 2, as published")),
    Task(
        "spectrogram autoencoder",
        uneven_width,
        changed(spectrograms, lambda x: x[:, :, :32]),
        again,
    ).cases(uneven_width=sixty("4 × 3 px, stride 2")),
    expected="uneven_upsampling",
)
