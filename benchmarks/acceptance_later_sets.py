"""The later acceptance trainings of library models, and those that differ in their recipe."""

from __future__ import annotations

from functools import partial

import acceptance_later_data as data
import acceptance_later_library as library
import acceptance_later_loops as loops
import acceptance_later_losses as losses
import acceptance_later_nets as nets
import acceptance_later_optimizers as own
import acceptance_recipes as r
import torch
from acceptance_data import digits, fixed, photos, scenes, tones
from acceptance_data import pictures as crops
from acceptance_recipes import by, classes, mixup
from acceptance_tasks import depth, masks, triplets
from torch import nn, optim

c, P = classes(), photos()
encoder, model = loops.encoder, library.timm_model
ADAM, ADAMW, WARM, MOMENTUM = r.ADAM, r.ADAMW, r.WARM, r.MOMENTUM
SHORT = ADAM.but("", steps=60, every=5)
QUICK = by(optim.Adam, lr=3e-3)


LIBRARY = {
    "tv_densenet": ("torchvision DenseNet", library.densenet, P, c, r.NESTEROV.but("")),
    "tv_googlenet": ("torchvision GoogLeNet", library.googlenet, photos(48), c, SHORT),
    "tv_mnasnet": (
        "torchvision MNASNet (BatchNorm momentum 3e-4)",
        library.mnasnet,
        photos(64),
        c,
        ADAM.but("", steps=80, every=5),
    ),
    "tv_swin": ("torchvision Swin", library.swin, P, mixup(), WARM.but("mixup", every=5)),
    "tv_vit_stem": ("torchvision ViT, convolutional stem", library.vit_conv_stem, P, c, ADAMW),
    "tv_vgg_head": (
        "torchvision VGG-11 features",
        library.vgg_own_head,
        P,
        c,
        MOMENTUM.but("", optimizer=by(optim.SGD, lr=5e-3, momentum=0.9), steps=60, every=5),
    ),
    "tv_lraspp": ("torchvision LR-ASPP", library.Lraspp, scenes, masks, SHORT.but("", batch=8)),
    "tv_retinanet": (
        "torchvision RetinaNet, GroupNorm",
        partial(library.detector, "retinanet"),
        scenes,
        library.boxes,
        ADAMW.but("", batch=4),
    ),
    "tv_fcos": (
        "torchvision FCOS",
        partial(library.detector, "fcos"),
        scenes,
        library.boxes,
        ADAM.but("clipping 1", batch=4, clip=1.0),
    ),
    "tv_unused": ("torchvision ResNet, truncated", library.UnusedHead, P, c, SHORT),
    "timm_nfnet": ("timm NFNet", partial(model, "test_nfnet"), photos(48), c, SHORT),
    "timm_evonorm": (
        "timm EfficientNet, EvoNorm",
        partial(model, "test_efficientnet_evos"),
        photos(48),
        c,
        ADAMW.but("EMA", ema=0.98),
    ),
    "timm_coatnet": (
        "timm CoAtNet",
        partial(model, "test_coatnet", img_size=64),
        photos(64),
        losses.cut_mix,
        ADAMW.but("CutMix", steps=120),
    ),
    "timm_mambaout": ("timm MambaOut", partial(model, "test_mambaout"), photos(64), c, WARM),
    "timm_group": (
        "timm EfficientNet, GroupNorm",
        partial(model, "test_efficientnet_gn"),
        photos(48),
        c,
        r.RMSPROP,
    ),
    "timm_edgenext": ("timm EdgeNeXt", partial(model, "edgenext_xx_small"), photos(64), c, SHORT),
    "timm_layer_decay": (
        "timm ViT 3",
        partial(model, "test_vit3", img_size=64),
        photos(64),
        c,
        ADAMW.but("layer decay 0.6", optimizer=own.layer_decay),
    ),
    "timm_features": (
        "FPN on timm features",
        library.Features,
        scenes,
        masks,
        SHORT.but("", batch=8),
    ),
    "hf_convnext": (
        "transformers ConvNeXt v2",
        library.hf_convnext,
        P,
        c,
        ADAMW.but("Adafactor", optimizer=own.adafactor),
    ),
    "hf_pooler": ("transformers ViT, unused pooler", library.hf_vit_pooler, P, c, ADAMW),
    "hf_segformer": ("transformers SegFormer", library.segformer, scenes, masks, ADAMW),
    "hf_mae": (
        "transformers ViT-MAE",
        library.masked_autoencoder,
        crops(),
        library.whole_loss,
        ADAMW.but("masked reconstruction"),
    ),
    "hf_wav2vec": (
        "transformers Wav2Vec2 (1-D)",
        library.wav2vec,
        tones(1024),
        library.wave_classes,
        ADAM.but("", batch=8, steps=150),
    ),
}

RECIPES = {
    "arcface": (
        "ArcFace CNN",
        lambda: losses.ArcFace(encoder(32)),
        P,
        losses.angular,
        ADAM.but("", optimizer=QUICK),
    ),
    "metric_batches": (
        "encoder CNN",
        encoder,
        data.few_classes(),
        triplets,
        ADAM.but("triplets, P × K", steps=80),
    ),
    "barlow": ("encoder CNN", encoder, P, losses.decorrelated, ADAM.but("Barlow twins", batch=32)),
    "lion": ("encoder CNN", partial(encoder, 8), P, c, ADAM.but("Lion", optimizer=own.lion)),
    "fused": ("encoder CNN", partial(encoder, 8), P, c, ADAM.but("fused", optimizer=own.fused)),
    "by_value": (
        "encoder CNN, no norm",
        partial(encoder, 8, False),
        P,
        c,
        ADAM.but("RMSprop, clipped by value", optimizer=own.clipped_by_value),
    ),
    "slow_warm_up": (
        "encoder CNN",
        partial(encoder, 8),
        P,
        c,
        MOMENTUM.but("slow warm-up", schedule=own.slow_warm_up, evaluate=0),
    ),
    "to_zero": (
        "encoder CNN",
        partial(encoder, 8),
        P,
        c,
        MOMENTUM.but("rate 0 at the end", schedule=own.down_to_zero),
    ),
    "one_image": (
        "BiT",
        nets.big_transfer,
        P,
        c,
        ADAM.but("batch 1", optimizer=by(optim.Adam, lr=3e-4), batch=1, steps=500, every=25),
    ),
    "two_images": (
        "anti-aliased CNN",
        nets.blurred,
        P,
        c,
        ADAM.but("batch 2", optimizer=by(optim.Adam, lr=3e-4), batch=2, steps=400, every=25),
    ),
    "sampler": (
        "encoder CNN",
        partial(encoder, 8),
        data.with_replacement(P, 40),
        c,
        ADAM.but("sampled with replacement"),
    ),
    "one_batch": (
        "encoder CNN",
        partial(encoder, 8, False),
        data.one_batch(P),
        c,
        ADAM.but("one batch"),
    ),
    "small_epochs": (
        "dynamic convolution",
        nets.Dynamic,
        fixed(P, 48),
        c,
        ADAM.but("48 examples", batch=16, steps=120),
    ),
    "sizes": ("encoder CNN", partial(encoder, 8), photos(48), losses.sizes, ADAM.but("sizes")),
    "double": (
        "encoder CNN",
        lambda: encoder(8).double(),
        P,
        losses.as_double,
        ADAM.but("float64"),
    ),
    "channels_last": (
        "16-band MobileNet",
        lambda: nets.band_net().to(memory_format=torch.channels_last),
        data.bands,
        losses.channels_last,
        MOMENTUM.but("channels_last"),
    ),
    "half": ("BiT", nets.big_transfer, P, c, r.HALF.but("", steps=80)),
    "compiled": (
        "anti-aliased CNN",
        nets.blurred,
        P,
        c,
        ADAM.but("torch.compile", compile=True, steps=60, every=5),
    ),
    "adaptive_clip": (
        "timm NFNet",
        partial(model, "test_nfnet"),
        photos(48),
        c,
        MOMENTUM.but(
            "adaptive clipping",
            optimizer=lambda net: own.adaptive(net),
            evaluate=0,
            steps=60,
        ),
    ),
    "unet_depth": (
        "LR-ASPP",
        library.Lraspp,
        scenes,
        depth,
        SHORT.but("depth", batch=8, optimizer=by(optim.AdamW, lr=2e-3)),
    ),
    "digits_group": (
        "encoder CNN, 1 channel",
        lambda: nn.Sequential(nn.Conv2d(1, 3, 1), encoder(10)),
        digits,
        c,
        ADAM.but("", batch=32),
    ),
}
