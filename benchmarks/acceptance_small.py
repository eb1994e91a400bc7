"""The acceptance trainings of small, modern, 1-D and 3-D classifiers."""

from __future__ import annotations

import acceptance_classic as classic
import acceptance_mobile as mobile
import acceptance_modern as modern
import acceptance_recipes as recipes
import timm
import torchvision
from acceptance_data import clips, digits, photos, spectrograms, tones
from acceptance_recipes import by, classes, mixup
from acceptance_tasks import pairs, triplets, two_views
from torch import nn, optim
from torchvision.models import resnet


def resnet10() -> nn.Module:
    """torchvision's ResNet with one block per level and CIFAR's stem."""
    model = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=8)
    model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.MaxPool2d(2)
    return model


def timm_model(name: str, **options: object) -> nn.Module:
    return timm.create_model(name, pretrained=False, num_classes=8, **options)


r, c, P = recipes, classes(), photos()
p = classic.plain

MODERN = {
    "mobilenet_v1": ("MobileNet v1", mobile.mobilenet_v1, P, c, r.RMSPROP),
    "mobilenet_v2": ("MobileNet v2", mobile.mobilenet_v2, P, c, r.MOMENTUM),
    "mobilenet_v3": ("MobileNet v3", mobile.mobilenet_v3, P, c, r.ADAMW),
    "efficientnet": ("EfficientNet", mobile.efficientnet, P, c, r.EMA),
    "efficientnet_warm": ("EfficientNet", mobile.efficientnet, P, mixup(), r.WARM.but("mixup")),
    "shufflenet": ("ShuffleNet v2", mobile.shufflenet, P, c, r.EPOCHS),
    "ghostnet": ("GhostNet", mobile.ghostnet, P, c, r.MOMENTUM),
    "regnet": ("RegNet", mobile.regnet, P, c, r.NESTEROV.but("", steps=80, every=10)),
    "xception": ("Xception", mobile.xception, P, c, r.ADAM),
    "convnext": ("ConvNeXt", mobile.convnext, P, c, r.WARM),
    "convnext_drop": (
        "ConvNeXt",
        lambda: mobile.convnext(0.9),
        P,
        classes(0.1),
        r.EMA.but("stochastic depth, smoothing"),
    ),
    "convmixer": ("ConvMixer", mobile.convmixer, P, c, r.ADAMW),
    "repvgg": ("RepVGG", mobile.repvgg, P, c, r.MOMENTUM.but("", steps=80)),
    "vit": ("ViT", modern.vit, P, c, r.WARM.but("", steps=200, every=20)),
    "vit_everything": (
        "ViT",
        modern.vit,
        P,
        c,
        r.ADAMW.but("all layers", steps=120, watch={"layers": "*"}),
    ),
    "hybrid": ("convolutions and attention", modern.hybrid, P, c, r.ADAMW),
    "mixer": ("MLP-Mixer", modern.mixer, P, c, r.WARM),
    "maxout": ("maxout network", modern.maxout, P, c, r.MOMENTUM.but("", steps=200)),
    "gated": ("gated CNN", modern.gated, P, c, r.ADAM),
    "selu": ("SELU network", modern.selu, P, c, r.ADAM.but("alpha dropout")),
    "selu_sgd": (
        "SELU network",
        modern.selu,
        photos(32, "each"),
        c,
        r.SGD.but("at 0.01", optimizer=by(optim.SGD, lr=0.01), steps=150),
    ),
    "weight_norm": ("weight-norm CNN", lambda: modern.reparametrized("weight_norm"), P, c, r.ADAM),
    "spectral_norm": (
        "spectral-norm CNN",
        lambda: modern.reparametrized("spectral_norm"),
        P,
        c,
        r.ADAM.but("", steps=150),
    ),
    "capsules": ("capsule network", modern.Capsules, digits, c, r.ADAM.but("", steps=120)),
    "transformer_spatial": (
        "spatial transformer",
        modern.Steered,
        digits,
        c,
        r.ADAM.but("", batch=32, steps=200),
    ),
    "m5": ("M5 (1-D)", modern.waveform, tones(), c, r.ADAM),
    "m5_cycle": ("M5 (1-D)", modern.waveform, tones(), c, r.ONE_CYCLE),
    "tcn": ("TCN (1-D)", modern.tcn, tones(256), c, r.ADAM.but("clipping 1", clip=1.0)),
    "wavenet": (
        "WaveNet (1-D)",
        modern.Wave,
        tones(256),
        c,
        r.ADAM.but("at 2e-3", optimizer=by(optim.Adam, lr=2e-3)),
    ),
    "resnet_1d": ("1-D ResNet", modern.one_dimensional_resnet, tones(), c, r.ADAMW),
    "crnn": ("CRNN", modern.Recurrent, spectrograms, c, r.ADAM.but("clipping 5", clip=5.0)),
    "spectrogram_resnet": (
        "ResNet",
        lambda: classic.resnet(channels=1, classes=6),
        spectrograms,
        c,
        r.MOMENTUM.but("spectrograms"),
    ),
    "c3d": ("C3D (3-D)", modern.clip_net, clips, c, r.ADAM.but("", batch=8, steps=80)),
    "r2plus1d": (
        "R(2+1)D (3-D)",
        lambda: modern.clip_net(True),
        clips,
        c,
        r.ADAMW.but("", batch=8, steps=80),
    ),
    "siamese": (
        "siamese CNN",
        lambda: p(classes=16, norm=nn.BatchNorm2d),
        P,
        pairs,
        r.ADAM.but("contrastive", batch=32),
    ),
    "triplet": (
        "siamese CNN",
        lambda: p(classes=16),
        P,
        triplets,
        r.ADAM.but("triplets", batch=32),
    ),
    "simclr": (
        "SimCLR ResNet",
        lambda: classic.resnet(classes=32),
        P,
        two_views,
        r.ADAM.but("SimCLR", steps=80),
    ),
    "tv_resnet10": (
        "torchvision ResNet-10",
        resnet10,
        photos(24),
        c,
        r.MOMENTUM.but("at 0.005", optimizer=by(optim.SGD, lr=0.005, momentum=0.9)),
    ),
    "tv_resnet18_plain": (
        "torchvision ResNet-18",
        lambda: torchvision.models.resnet18(num_classes=8),
        photos(48),
        c,
        r.ADAM.but("", steps=60),
    ),
    "tv_mobilenet_v2": (
        "torchvision MobileNet v2",
        lambda: torchvision.models.mobilenet_v2(num_classes=8, width_mult=0.5),
        photos(48),
        c,
        r.ADAMW.but("", steps=60),
    ),
    "tv_squeezenet": (
        "torchvision SqueezeNet",
        lambda: torchvision.models.squeezenet1_1(num_classes=8),
        photos(48),
        c,
        r.ADAM.but("at 3e-4", optimizer=by(optim.Adam, lr=3e-4), steps=150),
    ),
    "tv_shufflenet": (
        "torchvision ShuffleNet v2",
        lambda: torchvision.models.shufflenet_v2_x0_5(num_classes=8),
        photos(48),
        c,
        r.ADAM.but("", steps=80),
    ),
    "timm_resnet": (
        "timm ResNet-10-t",
        lambda: timm_model("resnet10t"),
        photos(48),
        c,
        r.MOMENTUM.but("", steps=60),
    ),
    "timm_convnext": (
        "timm ConvNeXt",
        lambda: timm_model("convnext_atto", depths=(1, 1, 2, 1), dims=(24, 48, 72, 96)),
        photos(48),
        c,
        r.WARM,
    ),
    "timm_vit": (
        "timm ViT",
        lambda: timm_model(
            "vit_tiny_patch16_224", img_size=32, patch_size=4, embed_dim=48, depth=3
        ),
        P,
        c,
        r.ADAMW.but("", steps=80),
    ),
    "timm_mobilenet": (
        "timm MobileNet v3",
        lambda: timm_model("mobilenetv3_small_050"),
        photos(48),
        c,
        r.ADAM.but("", steps=80),
    ),
}
