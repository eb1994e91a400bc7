"""Healthy: pictures that are repaired, coloured or enlarged."""

from __future__ import annotations

from functools import partial

import recipes.hundred as r100
import recipes.sixty as r60
from data import CROPS, CROPS_UNIT, pictures
from loops import Task, eighty, seen
from losses import filled, larger, noise_to_noise, repaired
from nets import restoration as repair
from nets.dense import UNet
from nets.generative import decoder
from optimizers import ADAM

CASES = seen(
    "2026-11-23T03:56",
    Task("inpainting U-Net", partial(UNet, 4, 3), CROPS, filled).cases(unet_fill=r100.EIGHTY_8),
    Task("ESPCN", partial(repair.super_resolution, "espcn"), CROPS_UNIT, larger).cases(
        espcn=r100.ADAM
    ),
    Task("FSRCNN", partial(repair.super_resolution, "fsrcnn"), CROPS_UNIT, larger).cases(
        fsrcnn=r100.ADAM
    ),
    Task("DnCNN", repair.Denoiser, CROPS_UNIT, repaired).cases(dncnn=r100.ADAM.but("", batch=4)),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("PixelShuffle autoencoder", decoder, pictures(32, "unit"), noise_to_noise).cases(
        noise_to_noise=r100.ADAM.but("Noise2Noise")
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("DnCNN", repair.Denoiser, pictures(), repair.blind_spot).cases(
        blind_spot=eighty("Noise2Void", ADAM)
    ),
    Task("fastai's U-Net, PixelShuffle with ICNR", repair.dynamic_unet, pictures(), repaired).cases(
        icnr=eighty("Adam, denoising", ADAM)
    ),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("RED-Net", repair.RedNet, pictures(), repaired).cases(red=r60.small(r60.adam(1e-3))),
    held_out=True,
)
