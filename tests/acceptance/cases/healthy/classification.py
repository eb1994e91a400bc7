"""Healthy: classifiers written by hand."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import recipes.hundred as r100
import recipes.sixty as r60
import torch
from data import HALF, UNIT, P
from loops import Task, eighty, seen
from losses import named
from nets import classifiers as cnn
from nets import library, unusual
from nets.signals import Bag, positive
from timm.layers import GroupNorm
from torch import nn, optim


def heavy_dropout() -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 64), (64, 64)):
        conv = nn.Conv2d(into, out, 3, padding=1)
        layers += [conv, nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.2)]
    layers += [nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 8)]
    return nn.Sequential(*layers)


SLOW_ADAM = r100.ADAM.but("at 3e-4", optimizer=o.by(optim.Adam, lr=3e-4), steps=150)
CASES = seen(
    "2026-11-23T03:56",
    Task("ResNet", cnn.resnet, P, named).cases(
        resnet_high_cycle=r100.HIGH_CYCLE,
        resnet_large_batch=r100.LARGE_BATCH,
        resnet_small_set=r100.SMALL_SET,
        resnet_half_precision=r100.HALF,
        resnet_ema=r100.EMA,
        resnet_compiled=r100.MOMENTUM.but("torch.compile", compile=True, evaluate=0),
    ),
    Task("ResNet", partial(cnn.resnet, zero_init_last=True), P, named).cases(
        resnet_zero_init=r100.ONE_CYCLE
    ),
    Task(
        "ResNet", partial(cnn.resnet, norm_layer=partial(GroupNorm, num_groups=4)), P, named
    ).cases(group_norm_resnet=r100.TINY_BATCH),
    Task("ResNet", cnn.resnet, UNIT, named).cases(
        resnet_unit_range=r100.ADAM.but("images in [0, 1]")
    ),
    Task("ResNet", partial(cnn.resnet, channels=4), data.photos(32, channels=4), named).cases(
        resnet_four_channels=r100.ADAMW.but("4 channels")
    ),
    Task("plain CNN", cnn.plain, P, named).cases(
        plain_adam=r100.ADAM,
        plain_kept_zeros=r100.ADAM.but("gradients kept as zeros", zero="keep"),
        plain_samples=r100.ADAM.but("three samples", watch={"probe": None, "samples": 3}),
    ),
    Task("plain CNN", partial(cnn.plain, classes=4), P, losses.regression).cases(
        plain_regression=r100.ADAM
    ),
    Task("MNIST tutorial", cnn.tutorial, data.digits, named).cases(
        digits_tutorial=r100.ADAM.but("", batch=64)
    ),
    Task("LeNet", cnn.lenet, data.digits, named).cases(
        lenet_tanh=r100.ADAM.but("", batch=32, steps=150)
    ),
    Task("VGG", partial(library.vgg, batch_norm=False), P, named).cases(vgg_plain=SLOW_ADAM),
    Task("AlexNet", cnn.alexnet, data.photos(48), named).cases(
        alexnet=r100.ADAM.but("at 5e-4", optimizer=o.by(optim.Adam, lr=5e-4), steps=150)
    ),
    Task("All-CNN", cnn.all_convolutions, P, named).cases(all_conv=r100.MOMENTUM),
    Task("ResNet without norm", cnn.skip_init, P, named).cases(
        skip_init=r100.ADAM.but("", steps=80)
    ),
    Task("DenseNet", library.densenet, P, named).cases(densenet=r100.MOMENTUM.but("", steps=80)),
    Task("ConvMixer", cnn.convmixer, P, named).cases(convmixer=r100.ADAMW),
    Task("RepVGG", cnn.repvgg, P, named).cases(repvgg=r100.MOMENTUM.but("", steps=80)),
    Task("ViT", library.vit, P, named).cases(
        vit_everything=r100.ADAMW.but("all layers", steps=120, watch={"layers": "*"})
    ),
    Task("MLP-Mixer", library.mixer, P, named).cases(mixer=r100.WARM),
    Task("maxout network", unusual.maxout, P, named).cases(maxout=r100.MOMENTUM.but("", steps=200)),
    Task("SELU network", unusual.selu, P, named).cases(selu=r100.ADAM.but("alpha dropout")),
    Task("weight-norm CNN", unusual.weight_normed, P, named).cases(weight_norm=r100.ADAM),
    Task("spatial transformer", unusual.Steered, data.digits, named).cases(
        transformer_spatial=r100.ADAM.but("", batch=32, steps=200)
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("encoder CNN", partial(cnn.encoder, 8), P, named).cases(
        slow_warm_up=r100.MOMENTUM.but("slow warm-up", schedule=o.slow_warm_up, evaluate=0),
        to_zero=r100.MOMENTUM.but("rate 0 at the end", schedule=o.down_to_zero),
    ),
    Task("encoder CNN, no norm", partial(cnn.encoder, 8, False), P, named).cases(
        by_value=r100.ADAM.but("RMSprop, clipped by value", optimizer=o.clipped_by_value)
    ),
    Task("BiT", unusual.big_transfer, P, named).cases(
        one_image=r100.ADAM.but(
            "batch 1", optimizer=o.by(optim.Adam, lr=3e-4), batch=1, steps=500, every=25
        ),
        big_transfer=r100.ADAM.but("LARS", optimizer=o.lars),
    ),
    Task("anti-aliased CNN", unusual.blurred, P, named).cases(
        two_images=r100.ADAM.but(
            "batch 2", optimizer=o.by(optim.Adam, lr=3e-4), batch=2, steps=400, every=25
        )
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.with_replacement(P, 40), named).cases(
        sampler=r100.ADAM.but("sampled with replacement")
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.photos(48), losses.sizes).cases(
        sizes=r100.ADAM.but("sizes")
    ),
    Task("encoder CNN", lambda: cnn.encoder(8).double(), P, losses.of_type(torch.double)).cases(
        double=r100.ADAM.but("float64")
    ),
    Task(
        "16-band MobileNet",
        lambda: unusual.band_net().to(memory_format=torch.channels_last),
        data.bands,
        losses.channels_last,
    ).cases(channels_last=r100.MOMENTUM.but("channels_last")),
    Task("CNN that standardizes inside", unusual.standardizing, data.RAW, named).cases(
        inside_norm=r100.ADAM.but("0 to 255")
    ),
    Task("mixture of experts", unusual.mixture, P, named).cases(
        experts=r100.ADAM.but("", steps=150)
    ),
    Task("weight-tied CNN", unusual.Repeated, P, named).cases(
        weight_tied=r100.ADAM.but("Lookahead", optimizer=o.lookahead)
    ),
    Task("deformable CNN", unusual.Deformed, P, named).cases(deformable=r100.ADAM),
    Task("binary-weight CNN", unusual.binary, P, named).cases(binary=r100.ADAM),
    Task("airbench CNN", unusual.fast_cifar, P, losses.classes(0.2)).cases(
        fast_cifar=r100.LARGE_BATCH.but("smoothing", steps=60)
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.exposed(0.1), named).cases(
        dark=r100.ADAM.but("dark [0, 1]")
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.exposed(0.15, 0.6), named).cases(
        foggy=r100.ADAM.but("low contrast")
    ),
    Task(
        "encoder CNN, no norm", partial(cnn.encoder, 8, False), data.exposed(0.3, 0.5), named
    ).cases(foggy_plain=r100.ADAM.but("low contrast", optimizer=o.QUICK, steps=150)),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("attention over bags", Bag, data.bags, positive).cases(
        bags=eighty("Adam", o.ADAM, batch=8)
    ),
    Task("VGG-like CNN, much dropout", heavy_dropout, P, named).cases(
        dropout_heavy=eighty("Adam", o.ADAM, steps=150)
    ),
    Task(
        "residual CNN, bfloat16",
        lambda: cnn.classifier().bfloat16(),
        P,
        losses.of_type(torch.bfloat16),
    ).cases(pure_half=eighty("AdamW", o.by(optim.AdamW, lr=2e-3))),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("equilibrium network", partial(unusual.staged, unusual.Equilibrium), P, named).cases(
        equilibrium=r60.adam(1e-3)
    ),
    Task("FRN CNN", partial(unusual.convs, unusual.Response, nn.Identity), UNIT, named).cases(
        response=(r60.adam(3e-3), r60.ADAMAX)
    ),
    Task("Snake CNN, no norm", partial(unusual.convs, None, unusual.Snake), HALF, named).cases(
        snake=r60.FADING
    ),
    Task("CReLU CNN", partial(unusual.convs, None, unusual.both_signs, grow=2), P, named).cases(
        crelu=(r60.ADAGRAD, r60.LATE)
    ),
    Task(
        "squared-ReLU CNN", partial(unusual.convs, nn.BatchNorm2d, unusual.squared_relu), P, named
    ).cases(squared=(r60.WARM, r60.AVERAGED)),
    Task("CNN, BatchNorm after ReLU", unusual.norm_last, UNIT, named).cases(norm_last=r60.CYCLIC),
    Task("15 tanh layers, orthogonal", unusual.isometric, P, named).cases(
        isometric=r60.adam(5e-4, steps=80, every=8)
    ),
    Task("Mish CNN", partial(unusual.convs, nn.BatchNorm2d, nn.Mish), UNIT, losses.perturbed).cases(
        adversarial=r60.CYCLIC
    ),
    Task("Mish CNN", partial(unusual.convs, nn.BatchNorm2d, nn.Mish), P, losses.smooth_input).cases(
        double_backward=r60.AMSGRAD
    ),
    held_out=True,
)
