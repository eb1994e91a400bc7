"""Healthy: models of pictures."""

from __future__ import annotations

import data
import losses
import recipes.hundred as r100
from data import CROPS
from loops import Task, eighty, seen
from nets import generative as models
from nets.classifiers import unit
from nets.dense import autoencoder, style_net
from nets.generative import VAE
from nets.signals import Rays, rendered
from optimizers import QUICK, by
from torch import nn, optim


def prior() -> nn.Module:
    """Deep image prior: BatchNorm on a batch of one image, bilinear enlargement."""
    layers = [unit(8, 32, stride=2), unit(32, 32, stride=2), unit(32, 32)]
    for _ in range(2):
        layers += [nn.Upsample(scale_factor=2, mode="bilinear"), unit(32, 32)]
    return nn.Sequential(*layers, nn.Conv2d(32, 3, 1), nn.Sigmoid())


CASES = seen(
    "2026-11-23T03:56",
    Task("autoencoder", autoencoder, CROPS, losses.again).cases(autoencoder=r100.ADAM),
    Task("VAE", VAE, CROPS, losses.own).cases(vae=r100.ADAM),
    Task("VQ-VAE", models.VectorQuantized, CROPS, losses.own).cases(vq_vae=r100.ADAM),
    Task("diffusion U-Net", models.Timed, CROPS, losses.diffusion).cases(
        ddpm=r100.EMA.but("clipping 1", clip=1.0, evaluate=0)
    ),
    Task("PixelCNN", models.pixel_cnn, data.digits, losses.levels).cases(pixel_cnn=r100.EIGHTY_8),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("RealNVP", models.Flow, data.pictures(), losses.own).cases(
        flow=r100.ADAM.but("clipping 1", clip=1.0)
    ),
    Task(
        "deep image prior",
        lambda: losses.Painting(prior(), losses.one_picture(data.photos(48, "unit")), 0.1),
        data.fixed_noise(8, 48),
        losses.own,
    ).cases(image_prior=r100.ADAM.but("one picture", optimizer=QUICK, batch=1, steps=120)),
    Task(
        "style transfer",
        lambda: losses.Styled(style_net(), 255.0),
        lambda g, n: (data.RAW(g, n)[0],),
        losses.style,
    ).cases(style_255=r100.ADAM.but("0 to 255, as pytorch/examples", batch=4, steps=150)),
    Task("PixelShuffle autoencoder", models.decoder, data.sorted_by_class, losses.again).cases(
        sorted=r100.ADAM.but("sorted by class", batch=8, steps=150)
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("NeRF of a plane", Rays, data.rays, rendered).cases(
        rays=eighty("Adam, batches of rays", by(optim.Adam, lr=2e-3), batch=512, steps=120)
    ),
)
