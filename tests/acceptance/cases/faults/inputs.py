"""Faults: raw, twice scaled or missing inputs."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from data import HALF, UNIT, changed
from draws.images import keypoints, relabelled
from draws.series import currents, engines, spectra, strokes
from draws.tables import BIRDS, bikes, drivers, penguins, rides, tumours
from loops import seen
from losses import error
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function
from nets.dense import UNet
from nets.images import agent, headed, in_network, next_net, shuffled
from nets.maps import painter, pointer, through
from nets.parts import mlp
from nets.series import GAUGES, meter, pen, series
from nets.tables import AGES
from recipes import FEW, MANY, PLAY, ROWS, adam, bad, sgd
from torch import Tensor, nn, optim
from torch.nn import functional

DRIVER_MEAN, DRIVER_STD = torch.tensor(
    [[39.2, 30.7, 1.1, 14500, 2011], [14.0, 6.1, 1.2, 6200, 5.5]]
)

WINDOW = partial(Function, lambda x: ((x.clamp(-160, 240) + 160) / 400).clamp(0, 1))

RIDE_MEAN, RIDE_STD = torch.tensor(
    [[-73.97, 40.75, -73.97, 40.75, 13.5], [0.04, 0.03, 0.04, 0.03, 6]]
)

LOAD = changed(relabelled(data.demand, lambda y: y[:, 0] / 600 - 2), lambda x: x / 600 - 2)


def lab(images: Tensor) -> Tensor:
    """About L*a*b*: lightness of 0 to 100, and two colours."""
    return 100 * torch.cat([images.mean(1, keepdim=True), -images.diff(dim=1)], 1)


TUMOUR_MEAN, TUMOUR_STD = torch.tensor([[14.1, 19.3, 92, 655, 0.096], [3.5, 4.3, 24, 352, 0.014]])


def separable(normed_head: bool = False) -> nn.Module:
    """MobileNet's first version: depthwise, then pointwise convolutions."""
    layers: list[nn.Module] = [cnn.unit(3, 24, 3, 2)]
    for into, out, stride in ((24, 32, 1), (32, 48, 2), (48, 64, 1), (64, 64, 2)):
        layers += [cnn.unit(into, into, 3, stride, groups=into), cnn.unit(into, out, 1)]
    more = [nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU()] if normed_head else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *more, nn.Linear(64, 8))


CODES = partial(through, 64)

CELLS = partial(mlp, 5, 32, 32, 2)

GAUGE = torch.tensor([642.0, 1590, 1408, 553, 9065, 521])[:, None]

SPREAD = torch.tensor([0.5, 6.1, 9.0, 0.9, 22, 0.7])[:, None]

LIGHT = partial(series, 1, 3)


def new_head() -> nn.Module:
    """A trained network, frozen, with a new head."""
    model = cnn.pretrained(cnn.with_norm).requires_grad_(False)
    model[-1] = nn.Linear(64, 8)
    return model


WEATHER_MEAN, WEATHER_STD = torch.tensor([[288.0, 1013, 65, 180, 12], [9.0, 8, 18, 100, 7]])


def frozen_residual() -> nn.Module:
    """A trained ResNet, frozen, with a new head."""
    model = cnn.pretrained(cnn.resnet).requires_grad_(False)
    model.fc = nn.Linear(64, 8)
    return model


def slab(width: int = 8) -> nn.Module:
    """Segmentation of a volume, without norm."""
    convs = [nn.Conv3d(1, width, 3, 1, 1), nn.ReLU(), nn.Conv3d(width, width, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*convs, nn.Conv3d(width, 1, 1))


CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "raw_weather",
            "input_scale",
            "kelvin, hectopascal and degrees",
            "MLP",
            partial(mlp, 5, 48, 48, 1),
            changed(bikes, lambda z: WEATHER_MEAN + WEATHER_STD * z),
            error,
            adam(2e-3),
            **ROWS,
        ),
        bad(
            "raw_microscope",
            "input_scale",
            "pixels of 16 bits",
            "U-Net, no norm",
            partial(UNet, 1, norm=None),
            changed(data.slices, lambda x: (65535 * x).round()),
            losses.masks,
            adam(1e-3),
            **FEW,
        ),
        bad(
            "wrong_unit",
            "input_scale",
            "one field in 50 is in thousandths",
            "MLP",
            partial(mlp, 5, 48, 48, 1),
            changed(bikes, lambda z: torch.where(torch.rand(z.shape) < 0.02, 1000 * z, z)),
            error,
            adam(2e-3),
            **ROWS,
        ),
        bad(
            "twelve_bits",
            "input_scale,batchnorm_gap",
            "grey levels of 0 to 4095",
            "trained ResNet, new head",
            frozen_residual,
            changed(data.colourless(32, "unit"), lambda x: 4095 * x),
            optimizer=adam(3e-3),
            prepare=nn.Module.eval,
        ),
        bad(
            "bytes_scaled_twice",
            "input_scale,constant_images,identical_images",
            "x / 127.5 - 1 twice",
            "CNN of keypoints",
            pointer,
            changed(keypoints, lambda x: x / 127.5 - 1),
            error,
            adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "raw_decibels",
            "input_scale",
            "decibels of -80 to 30",
            "MLP",
            partial(mlp, 1056, 128, 64, 6),
            changed(data.power, lambda x: 10 * (x[:, None, :, :32] + 1e-8).log10()),
            optimizer=sgd(0.02, 0.9),
        ),
        bad(
            "bytes_in_pointer",
            "input_scale",
            "bytes of 0 to 255",
            "CNN of keypoints",
            pointer,
            changed(keypoints, lambda x: (127.5 * (x + 1)).round()),
            error,
            adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "bytes_of_digits",
            "input_scale",
            "pixels of 0 to 255",
            "MLP",
            partial(mlp, 784, 128, 64, 10),
            changed(data.digits, lambda x: (255 * x).round()),
            optimizer=sgd(0.05, 0.9),
        ),
        bad(
            "raw_coordinates",
            "input_scale",
            "degrees of longitude and latitude",
            "MLP",
            partial(mlp, 5, 64, 64, 1),
            changed(rides, lambda z: RIDE_MEAN + RIDE_STD * z),
            error,
            adam(2e-3),
            **ROWS,
        ),
        bad(
            "dark_for_trained",
            "input_scale,constant_images,identical_images,batchnorm_gap",
            "pixels divided by 255 twice",
            "trained CNN, new head",
            new_head,
            changed(UNIT, lambda x: x / 255),
            optimizer=adam(5e-3),
            prepare=nn.Module.eval,
        ),
        bad(
            "loads_scaled_twice",
            "input_scale",
            "x / 600 - 2 twice",
            "MLP of a day's load",
            partial(mlp, 96, 128, 24),
            changed(LOAD, lambda x: x / 600 - 2),
            error,
            adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "bytes_in_vit",
            "input_scale",
            "pixels of 0 to 255",
            "ViT",
            library.vit,
            data.RAW,
            optimizer=o.by(optim.AdamW, lr=1e-3),
            **FEW,
        ),
        bad(
            "reflectance_twice",
            "input_scale,constant_images,identical_images",
            "divided by 10,000 twice",
            "CNN of 48 bands",
            lambda: cnn.plain(48),
            changed(data.spectral, lambda x: x / 1e8),
            optimizer=adam(2e-3),
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "raw_penguins",
            "input_scale",
            "millimetres and grams",
            "MLP",
            partial(mlp, 4, 32, 16, 3),
            changed(penguins, lambda z: BIRDS.mean(0) + BIRDS.std(0) * z),
            optimizer=sgd(0.01, 0.9),
            batch=32,
        ),
        bad(
            "raw_gauges",
            "input_scale",
            "degrees, pressure and turns a minute",
            "1-D CNN",
            GAUGES,
            changed(engines, lambda x: GAUGE + SPREAD * x),
            error,
            adam(1e-3),
            **MANY,
        ),
        bad(
            "points_missing",
            "exploding,update_ratio",
            "decimal points are missing in some rows",
            "1-D CNN",
            LIGHT,
            relabelled(spectra, lambda y: torch.where(torch.rand(y.shape) < 0.01, 100 * y, y)),
            error,
            sgd(0.02, 0.9),
            **MANY,
        ),
        bad(
            "sixteen_bits",
            "input_scale,batchnorm_gap",
            "pixels of 16 bits",
            "trained EfficientNet, new head",
            lambda: headed(cnn.pretrained(library.efficientnet), "classifier.1", 8),
            changed(UNIT, lambda x: (65535 * x).round()),
            optimizer=adam(5e-3),
            prepare=nn.Module.eval,
            **FEW,
        ),
        bad(
            "frames_divided",
            "input_scale,constant_images,identical_images",
            "frames of 0 and 1 are divided by 255",
            "DQN's network",
            partial(agent, 3),
            changed(data.catch, lambda x: x / 255),
            optimizer=adam(1e-3),
            **PLAY,
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        bad(
            "raw_tumours",
            "input_scale",
            "micrometres and their squares",
            "MLP",
            CELLS,
            changed(tumours, lambda z: TUMOUR_MEAN + TUMOUR_STD * z),
            optimizer=sgd(0.01, 0.9),
            **ROWS,
        ),
        bad(
            "bytes_in_codes",
            "input_scale",
            "pixels of 0 to 255",
            "autoencoder",
            CODES,
            HALF,
            lambda model, x, _: functional.mse_loss(model(127.5 * (x + 1)), x),
            adam(2e-3),
        ),
        bad(
            "nine_hundreds",
            "input_scale",
            "999 for what was not measured",
            "MLP",
            CELLS,
            changed(tumours, lambda z: z.masked_fill(torch.rand(z.shape) < 0.02, 999.0)),
            optimizer=sgd(0.02, 0.9),
            **ROWS,
        ),
        bad(
            "bytes_standardized",
            "input_scale,batchnorm_gap",
            "bytes are standardized like pixels of 0 to 1",
            "trained MobileNet, new head",
            lambda: headed(cnn.pretrained(separable), "11", 8),
            changed(UNIT, lambda x: data.scaled(255 * x, "imagenet")),
            optimizer=adam(5e-3),
            prepare=nn.Module.eval,
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "raw_drivers",
            "input_scale",
            "years, kilometres and numbers",
            "MLP",
            AGES,
            changed(drivers, lambda z: DRIVER_MEAN + DRIVER_STD * z),
            error,
            adam(1e-3),
            **ROWS,
        ),
        bad(
            "raw_currents",
            "input_scale",
            "milliamperes of about 2000",
            "1-D CNN",
            meter,
            changed(currents, lambda x: (2000 * x).round()),
            optimizer=sgd(0.02, 0.9),
            batch=32,
        ),
        bad(
            "bytes_in_network",
            "input_scale",
            "pixels of 0 to 255",
            "network in network",
            in_network,
            data.RAW,
            optimizer=adam(2e-3),
            **FEW,
        ),
        bad(
            "no_data",
            "input_scale",
            "-9999 where a satellite saw nothing",
            "CNN of 16 bands",
            partial(cnn.plain, 16),
            changed(
                data.bands, lambda x: x.masked_fill(torch.rand(len(x), 1, 32, 32) < 0.003, -9999.0)
            ),
            optimizer=sgd(0.02, 0.9),
        ),
        bad(
            "caffe_for_trained",
            "input_scale,batchnorm_gap",
            "bytes less a mean, as for Caffe",
            "trained ShuffleNet, new head",
            lambda: headed(cnn.pretrained(shuffled), "10", 8),
            changed(UNIT, lambda x: 255 * x - 114),
            optimizer=adam(5e-3),
            prepare=nn.Module.eval,
        ),
        bad(
            "windowed_twice",
            "input_scale,constant_images,identical_images",
            "Hounsfield units are windowed twice",
            "3-D CNN",
            slab,
            changed(data.hounsfield, nn.Sequential(WINDOW(), WINDOW())),
            losses.masks,
            adam(3e-3),
            batch=4,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "raw_strokes",
            "input_scale",
            "places of 0 to 1000 px",
            "1-D CNN",
            pen,
            changed(strokes, lambda x: (500 + 280 * x).round()),
            optimizer=adam(1e-3),
            batch=32,
        ),
        bad(
            "bytes_in_painter",
            "input_scale",
            "grey of 0 to 255",
            "CNN of colours",
            painter,
            HALF,
            lambda model, x, _: error(model, 127.5 + 127.5 * x.mean(1, True), x),
            adam(2e-3),
            **FEW,
        ),
        bad(
            "lab_for_trained",
            "input_scale,batchnorm_gap",
            "L*a*b*, not red, green and blue",
            "trained ResNeXt, new head",
            lambda: headed(cnn.pretrained(next_net), "10", 8),
            changed(UNIT, lab),
            optimizer=adam(5e-3),
            prepare=nn.Module.eval,
        ),
    ),
]
