"""The acceptance trainings that make pictures, and those with loops of their own."""

from __future__ import annotations

from functools import partial

import acceptance_classic as classic
import acceptance_loops as loops
import acceptance_mobile as mobile
import acceptance_modern as modern
import acceptance_pictures as nets
import acceptance_recipes as recipes
import acceptance_tasks as tasks
from acceptance_case import HealthyCase, Recipe, case
from acceptance_data import digits, pictures, scenes, tones
from acceptance_fine_tuning import (
    freeze,
    freeze_weights,
    groups,
    growing,
    lbfgs,
    pretrained,
    resumed,
    sharpness_aware,
    still_norms,
    still_statistics,
    tune,
    two_optimizers,
)
from acceptance_recipes import by
from torch import nn, optim

r = recipes
IMAGES, UNIT = pictures(), pictures(32, "unit")
SHORT = r.ADAM.but("", steps=80, batch=8)


def group(width: int) -> nn.Module:
    return nn.GroupNorm(4, width)


def instance(width: int) -> nn.Module:
    return nn.InstanceNorm2d(width, affine=True)


PICTURE_CASES = {
    "unet": ("U-Net", nets.UNet, scenes, tasks.masks, SHORT),
    "unet_dice": (
        "U-Net",
        nets.UNet,
        scenes,
        tasks.dice,
        r.WARM.but("Dice loss", batch=8, steps=80),
    ),
    "unet_bilinear": (
        "U-Net",
        partial(nets.UNet, transposed=False),
        scenes,
        tasks.masks,
        r.MOMENTUM.but("", batch=8, steps=80),
    ),
    "unet_group_norm": (
        "U-Net, GroupNorm",
        partial(nets.UNet, norm=group),
        scenes,
        tasks.masks,
        r.ADAM.but("", batch=2, steps=200, every=20),
    ),
    "unet_depth": ("depth U-Net", nets.UNet, scenes, tasks.depth, SHORT),
    "unet_fill": ("inpainting U-Net", partial(nets.UNet, 4, 3), IMAGES, tasks.filled, SHORT),
    "unet_colour": (
        "colouring U-Net",
        partial(nets.UNet, 1, 3),
        IMAGES,
        tasks.colours,
        r.ADAMW.but("", batch=8),
    ),
    "unet_heat": (
        "keypoint U-Net",
        nets.UNet,
        scenes,
        tasks.heat,
        r.ADAM.but("", batch=8, steps=150),
    ),
    "fcn": ("FCN", nets.fcn, scenes, tasks.masks, r.MOMENTUM),
    "deeplab": ("dilated pyramid", nets.Pyramid, scenes, tasks.masks, r.ADAMW.but("", steps=80)),
    "segnet": ("SegNet", nets.SegNet, scenes, tasks.masks, SHORT),
    "autoencoder": ("autoencoder", nets.autoencoder, IMAGES, tasks.again, r.ADAM),
    "autoencoder_plain": (
        "autoencoder",
        partial(nets.autoencoder, False),
        IMAGES,
        tasks.again,
        r.ADAM.but("no norm", steps=150),
    ),
    "autoencoder_noise": ("denoising autoencoder", nets.autoencoder, IMAGES, tasks.repaired, r.EMA),
    "vae": ("VAE", nets.VAE, IMAGES, tasks.own, r.ADAM),
    "vq_vae": ("VQ-VAE", nets.VectorQuantized, IMAGES, tasks.own, r.ADAM),
    "espcn": ("ESPCN", partial(nets.super_resolution, "espcn"), UNIT, tasks.larger, r.ADAM),
    "edsr": (
        "EDSR",
        partial(nets.super_resolution, "edsr"),
        UNIT,
        tasks.larger,
        r.ADAM.but("", batch=8),
    ),
    "fsrcnn": ("FSRCNN", partial(nets.super_resolution, "fsrcnn"), UNIT, tasks.larger, r.ADAM),
    "dncnn": ("DnCNN", nets.Denoiser, UNIT, tasks.repaired, r.ADAM.but("", batch=4)),
    "dncnn_sgd": ("DnCNN", nets.Denoiser, UNIT, tasks.repaired, r.NESTEROV.but("", batch=8)),
    "ddpm": (
        "diffusion U-Net",
        nets.Timed,
        IMAGES,
        tasks.diffusion,
        r.EMA.but("clipping 1", clip=1.0, evaluate=0),
    ),
    "pixel_cnn": ("PixelCNN", nets.pixel_cnn, digits, tasks.levels, SHORT),
    "detector": ("toy detector", nets.Spots, scenes, tasks.detect, r.ADAMW),
    "detector_sgd": (
        "toy detector",
        nets.Spots,
        scenes,
        tasks.detect,
        r.MOMENTUM.but("clipping 10", clip=10.0),
    ),
    "box_regression": (
        "plain CNN, BatchNorm",
        partial(classic.plain, classes=3, norm=nn.BatchNorm2d),
        scenes,
        tasks.centre,
        r.ADAM.but("box regression", steps=200),
    ),
    "forecast": (
        "1-D forecaster",
        lambda: nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4), nn.Tanh(), nn.Conv1d(16, 1, 9, padding=4)
        ),
        tones(256),
        tasks.next_sample,
        r.ADAM.but("at 3e-3", optimizer=by(optim.Adam, lr=3e-3)),
    ),
}
PICTURES: dict[str, HealthyCase] = {name: case(*parts) for name, parts in PICTURE_CASES.items()}

FROZEN = r.ADAM.but("frozen backbone, BatchNorm in eval mode", prepare=freeze)
LATE = r.ADAM.but("only the last block trained", prepare=freeze_weights, steps=80)
STILL = r.MOMENTUM.but(
    "at 0.002, BatchNorm frozen in eval mode",
    prepare=still_norms,
    optimizer=by(optim.SGD, lr=0.002, momentum=0.9),
)
STATISTICS = r.ADAM.but(
    "BatchNorm's statistics frozen",
    prepare=still_statistics,
    optimizer=by(optim.Adam, lr=3e-4),
)
RATES = r.ADAMW.but("smaller rate for the backbone", optimizer=groups)
TINY = r.ADAM.but(
    "fine-tuning at 1e-5", optimizer=by(optim.AdamW, lr=1e-5), steps=200, examples=64, every=20
)
LOW = r.WARM.but("fine-tuning at 1e-4", optimizer=by(optim.AdamW, lr=1e-4))
BUNDLED = "bundled network, fine-tuned"


def tuned(recipe: Recipe, keep_head: bool = False) -> HealthyCase:
    return HealthyCase(BUNDLED, recipe.name, recipe.steps, recipe.every, tune(recipe, keep_head))


def again(kind: str, make: object, recipe: Recipe) -> HealthyCase:
    run = pretrained(make, recipe)
    return HealthyCase(kind, f"{recipe.name}, fine-tuned", recipe.steps, recipe.every, run)


SPECIAL: dict[str, HealthyCase] = {
    "dcgan": HealthyCase(
        "DCGAN", "two Adams, real label 0.9", 120, 20, loops.gan("cross-entropy"), False
    ),
    "lsgan": HealthyCase(
        "LSGAN", "least squares, upsampling", 120, 20, loops.gan("least squares", True), False
    ),
    "sngan": HealthyCase(
        "SNGAN", "hinge, spectral norm", 120, 10, loops.gan("hinge", every=10), False
    ),
    "pix2pix": HealthyCase(
        "pix2pix",
        "L1 and patch discriminator",
        80,
        10,
        loops.translation(partial(nets.UNet, 1, 3, norm=instance)),
    ),
    "distillation": HealthyCase(
        "plain CNN, BatchNorm",
        "distillation, AdamW",
        80,
        10,
        loops.distillation(partial(classic.plain, norm=nn.BatchNorm2d)),
    ),
    "distill_mobilenet": HealthyCase(
        "MobileNet v2", "distillation, AdamW", 80, 10, loops.distillation(mobile.mobilenet_v2)
    ),
    "byol": HealthyCase(
        "BYOL ResNet",
        "EMA target, AdamW",
        100,
        10,
        loops.own_targets(lambda n: classic.resnet(classes=n)),
    ),
    "simclr_head": HealthyCase(
        "SimCLR CNN",
        "head outside the watched model",
        80,
        10,
        loops.stop_gradient(lambda n: classic.plain(classes=n, norm=nn.BatchNorm2d), 80),
    ),
    "fine_frozen": tuned(FROZEN),
    "fine_late": tuned(LATE),
    "fine_still": tuned(STILL),
    "fine_statistics": tuned(STATISTICS),
    "fine_rates": tuned(RATES),
    "fine_low": tuned(LOW),
    "fine_tiny": tuned(TINY, keep_head=True),
    "fine_all": tuned(r.MOMENTUM.but("", batch=32, steps=60)),
    "fine_resnet": again(
        "ResNet",
        classic.resnet,
        r.ADAM.but("at 1e-4", optimizer=by(optim.Adam, lr=1e-4), steps=150),
    ),
    "fine_vgg": again(
        "VGG, BatchNorm",
        classic.vgg,
        r.MOMENTUM.but("at 0.005", optimizer=by(optim.SGD, lr=0.005, momentum=0.9), steps=80),
    ),
    "fine_vit": again("ViT", modern.vit, r.ADAMW.but("", steps=80)),
    "two_optimizers": HealthyCase(
        "ResNet",
        "SGD for kernels, Adam for the rest, marked",
        80,
        10,
        two_optimizers(classic.resnet),
    ),
    "lbfgs": HealthyCase(
        "plain CNN, Swish", "L-BFGS, one batch", 12, 1, lbfgs(partial(classic.plain, act=nn.SiLU))
    ),
    "sam": HealthyCase(
        "plain CNN, BatchNorm",
        "SAM",
        60,
        10,
        sharpness_aware(partial(classic.plain, norm=nn.BatchNorm2d)),
    ),
    "resumed": HealthyCase(
        "ResNet", "AdamW, resumed from a checkpoint", 60, 10, resumed(classic.resnet)
    ),
    "growing": HealthyCase(
        "ResNet", "sizes 24 to 48 px, checkpointing", 90, 10, growing(classic.resnet)
    ),
}
