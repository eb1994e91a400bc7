"""Healthy: pictures that are repaired, coloured or enlarged."""

from __future__ import annotations

from functools import partial

import recipes.hundred as r100
import recipes.sixty as r60
from data import CROPS, CROPS_UNIT, UNIT, pictures, sensor
from loops import Task, eighty, seen
from losses import colours, filled, larger, noise_to_noise, own, repaired
from nets import restoration as repair
from nets.dense import UNet, autoencoder, unblurred
from nets.generative import decoder
from optimizers import ADAM

CASES = seen(
    "2026-11-23T03:56",
    Task("inpainting U-Net", partial(UNet, 4, 3), CROPS, filled).cases(unet_fill=r100.EIGHTY_8),
    Task("colouring U-Net", partial(UNet, 1, 3), CROPS, colours).cases(
        unet_colour=r100.ADAMW.but("", batch=8)
    ),
    Task("denoising autoencoder", autoencoder, CROPS, repaired).cases(autoencoder_noise=r100.EMA),
    Task("ESPCN", partial(repair.super_resolution, "espcn"), CROPS_UNIT, larger).cases(
        espcn=r100.ADAM
    ),
    Task("EDSR", partial(repair.super_resolution, "edsr"), CROPS_UNIT, larger).cases(
        edsr=r100.ADAM.but("", batch=8)
    ),
    Task("FSRCNN", partial(repair.super_resolution, "fsrcnn"), CROPS_UNIT, larger).cases(
        fsrcnn=r100.ADAM
    ),
    Task("DnCNN", repair.Denoiser, CROPS_UNIT, repaired).cases(
        dncnn=r100.ADAM.but("", batch=4), dncnn_sgd=r100.NESTEROV.but("", batch=8)
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task(
        "SRResNet",
        lambda: repair.WithPerceptualLoss(repair.SuperResolution()),
        pictures(32, "unit"),
        own,
    ).cases(srresnet=r100.ADAM.but("perceptual loss", batch=8, steps=80)),
    Task("attention U-Net, one map", decoder, pictures(32, "unit"), noise_to_noise).cases(
        noise_to_noise=r100.ADAM.but("Noise2Noise")
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("ESRGAN", repair.Rrdb, pictures(32, "unit"), larger).cases(
        rrdb=eighty("Adam, L1", ADAM, batch=8)
    ),
    Task("LapSRN", repair.Laplacian, pictures(32, "unit"), repair.pyramid).cases(
        lap_srn=eighty("Adam, losses at two sizes", ADAM, batch=8)
    ),
    Task("FFDNet", repair.NoiseLevel, pictures(32, "unit"), repair.any_noise).cases(
        ffd_net=eighty("Adam, a plane of the noise's level", ADAM)
    ),
    Task("residual denoiser", partial(repair.Denoiser, 5), pictures(), repair.blind_spot).cases(
        blind_spot=eighty("Noise2Void", ADAM)
    ),
    Task("Zero-DCE", repair.Curves, pictures(32, "unit"), repair.brighter).cases(
        zero_dce=eighty("Adam, dark pictures of 0 to 0.3", ADAM, clip=0.1)
    ),
    Task("demosaicing CNN", repair.Developed, sensor, repair.close).cases(
        raw_sensor=eighty("Adam, raw values of 12 bits", ADAM)
    ),
    Task("fastai's U-Net, PixelShuffle with ICNR", repair.dynamic_unet, pictures(), repaired).cases(
        icnr=eighty("Adam, denoising", ADAM)
    ),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("RED-Net", repair.RedNet, pictures(), repaired).cases(
        red=(r60.small(r60.adam(1e-3)), r60.small(r60.PEAK))
    ),
    Task("NAFNet", repair.SimpleGate, UNIT, unblurred).cases(nafnet=r60.small(r60.WARM)),
    Task("NAFNet", repair.SimpleGate, pictures(), repaired).cases(naf_noise=r60.small(r60.LATE)),
    Task("RCAN", repair.ChannelAttention, pictures(32, "unit"), larger).cases(
        rcan=(r60.adam(1e-3), r60.FEW)
    ),
    Task("SRCNN", repair.srcnn, pictures(32, "unit"), repair.sharpened).cases(
        srcnn=r60.small(r60.adam(1e-3))
    ),
    Task("AOD-Net", repair.Hazy, pictures(32, "unit"), repair.hazed).cases(
        aod=(r60.adam(2e-3), r60.RADAM)
    ),
    held_out=True,
)
