"""The later acceptance trainings of networks that are written by hand."""

from __future__ import annotations

from functools import partial

import acceptance_later_data as data
import acceptance_later_library as library
import acceptance_later_loops as loops
import acceptance_later_losses as losses
import acceptance_later_nets as nets
import acceptance_later_optimizers as own
import acceptance_later_pictures as pictures
import acceptance_recipes as r
from acceptance_classic import unit
from acceptance_data import photos, scenes
from acceptance_data import pictures as crops
from acceptance_recipes import by, classes
from acceptance_tasks import again, masks
from acceptance_tasks import own as own_loss
from torch import nn, optim

c, P = classes(), photos()
encoder, model = loops.encoder, library.timm_model
ADAM, ADAMW, WARM, MOMENTUM = r.ADAM, r.ADAMW, r.WARM, r.MOMENTUM
SHORT = ADAM.but("", steps=60, every=5)
QUICK = by(optim.Adam, lr=3e-3)


def decoder() -> nn.Module:
    """Strided down, then PixelShuffle up, LayerNorm and GELU between."""
    layers = [nn.Conv2d(3, 32, 4, 4), nn.GroupNorm(1, 32), nn.GELU(), nn.Conv2d(32, 32, 3, 1, 1)]
    return nn.Sequential(*layers, nn.GELU(), nn.Conv2d(32, 48, 1), nn.PixelShuffle(4))


def prior() -> nn.Module:
    """Deep image prior: BatchNorm on a batch of one image, bilinear enlargement."""
    layers = [unit(8, 32, stride=2), unit(32, 32, stride=2), unit(32, 32)]
    for _ in range(2):
        layers += [nn.Upsample(scale_factor=2, mode="bilinear"), unit(32, 32)]
    return nn.Sequential(*layers, nn.Conv2d(32, 3, 1), nn.Sigmoid())


NETS = {
    "blur_pool": ("anti-aliased CNN", nets.blurred, P, c, MOMENTUM),
    "gabor": ("fixed Gabor layer", nets.gabor, photos(32, channels=1), c, ADAM),
    "inside_norm": (
        "CNN that standardizes inside",
        nets.standardizing,
        data.raw(),
        c,
        ADAM.but("0 to 255"),
    ),
    "panns": ("PANNs", nets.BandNorm, data.decibels, c, ADAM.but("dB")),
    "big_transfer": ("BiT", nets.big_transfer, P, c, ADAM.but("LARS", optimizer=own.lars)),
    "experts": ("mixture of experts", nets.mixture, P, c, ADAM.but("", steps=150)),
    "weight_tied": (
        "weight-tied CNN",
        nets.Repeated,
        P,
        c,
        ADAM.but("Lookahead", optimizer=own.lookahead),
    ),
    "deformable": ("deformable CNN", nets.Deformed, P, c, ADAM),
    "binary": ("binary-weight CNN", nets.binary, P, c, ADAM),
    "equivariant": ("rotation-equivariant CNN", nets.Rotated, P, c, MOMENTUM),
    "board": ("AlphaZero tower", nets.ValueNet, data.boards, c, ADAM.but("", steps=150)),
    "text": ("text CNN (1-D)", nets.TextNet, data.sentences, c, ADAM.but("", optimizer=QUICK)),
    "points": ("PointNet (1-D)", nets.point_net, data.points, c, ADAM),
    "fast_cifar": (
        "airbench CNN",
        nets.fast_cifar,
        P,
        classes(0.2),
        r.LARGE_BATCH.but("smoothing", steps=60),
    ),
    "dynamic": ("dynamic convolution", nets.Dynamic, P, c, ADAM),
    "bands": ("16-band MobileNet", nets.band_net, data.bands, c, ADAM),
    "reflectance": (
        "16-band MobileNet",
        nets.band_net,
        data.reflectance,
        c,
        ADAM.but("[0, 0.4]"),
    ),
    "dark": ("encoder CNN", partial(encoder, 8), data.exposed(0.1), c, ADAM.but("dark [0, 1]")),
    "dark_own": (
        "encoder CNN",
        partial(encoder, 8, False),
        data.exposed(0.1, scale="own"),
        c,
        ADAM.but("dark, own statistics"),
    ),
    "foggy": (
        "encoder CNN",
        partial(encoder, 8),
        data.exposed(0.15, 0.6),
        c,
        ADAM.but("low contrast"),
    ),
    "foggy_plain": (
        "encoder CNN, no norm",
        partial(encoder, 8, False),
        data.exposed(0.3, 0.5),
        c,
        ADAM.but("low contrast", optimizer=QUICK, steps=150),
    ),
    "sketches": (
        "encoder CNN, 1 channel",
        lambda: nn.Sequential(unit(1, 24, stride=2), *list(encoder(10))[1:]),
        data.sketches,
        c,
        ADAM.but("sparse binary", batch=32, steps=120),
    ),
    "attention_unet": (
        "attention U-Net",
        pictures.AttentionUNet,
        scenes,
        pictures.deep_masks,
        ADAM.but("deep supervision", batch=8, steps=80),
    ),
    "empty_slices": (
        "attention U-Net",
        lambda: nn.Sequential(unit(1, 24), unit(24, 24, dilation=2), nn.Conv2d(24, 1, 1)),
        data.slices,
        masks,
        ADAM.but("some slices empty", batch=6, steps=120),
    ),
    "nnunet": (
        "3-D U-Net",
        pictures.VolumeUNet,
        data.volumes,
        pictures.dice_entropy,
        MOMENTUM.but("poly", batch=2, schedule=own.poly, evaluate=0),
    ),
    "hourglass": (
        "stacked hourglass",
        pictures.Hourglass,
        scenes,
        pictures.stacked_heat,
        ADAM.but("", batch=8, steps=100),
    ),
    "srresnet": (
        "SRResNet",
        lambda: pictures.WithPerceptualLoss(pictures.SuperResolution()),
        crops(32, "unit"),
        own_loss,
        ADAM.but("perceptual loss", batch=8, steps=80),
    ),
    "flow": ("RealNVP", pictures.Flow, crops(), own_loss, ADAM.but("clipping 1", clip=1.0)),
    "registration": ("VoxelMorph", pictures.Register, data.moved, own_loss, ADAM),
    "conv_lstm": (
        "convolutional LSTM",
        pictures.Recurrent,
        data.films,
        own_loss,
        ADAM.but("", optimizer=QUICK, batch=8, steps=80),
    ),
    "siren": (
        "SIREN",
        lambda: losses.Painting(pictures.siren(), losses.one_picture(photos(48, "half"))),
        losses.coordinates,
        own_loss,
        ADAM.but("one picture", batch=1, steps=150),
    ),
    "image_prior": (
        "deep image prior",
        lambda: losses.Painting(prior(), losses.one_picture(photos(48, "unit")), 0.1),
        losses.fixed_noise(8, 48),
        own_loss,
        ADAM.but("one picture", optimizer=QUICK, batch=1, steps=120),
    ),
    "style": (
        "style transfer",
        lambda: losses.Styled(pictures.style_net()),
        crops(32, "unit"),
        losses.style,
        ADAM.but("", batch=4),
    ),
    "style_255": (
        "style transfer",
        lambda: losses.Styled(pictures.style_net(), 255.0),
        lambda g, n: (data.raw()(g, n)[0],),
        losses.style,
        ADAM.but("0 to 255, as pytorch/examples", batch=4, steps=150),
    ),
    "label_maps": (
        "semantic synthesis",
        pictures.painted,
        data.label_maps,
        pictures.to_photo,
        ADAM,
    ),
    "noise_to_noise": (
        "attention U-Net, one map",
        decoder,
        crops(32, "unit"),
        losses.noise_to_noise,
        ADAM.but("Noise2Noise"),
    ),
    "sorted": (
        "PixelShuffle autoencoder",
        decoder,
        data.sorted_by_class(),
        again,
        ADAM.but("sorted by class", batch=8, steps=150),
    ),
}
