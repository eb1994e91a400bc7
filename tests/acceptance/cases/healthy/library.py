"""Healthy: models of torchvision, timm and transformers."""

from __future__ import annotations

from functools import partial

import data
import optimizers as o
import recipes.hundred as r100
import recipes.seventy as r70
import recipes.sixty as r60
from data import P64, Draw, P
from loops import Loss, Task, eighty, seen
from losses import classes, cut_mix, masks, mixup, named
from nets import library
from torch import optim
from torchvision import models


def zoo(title: str, name: str, draw: Draw = P64, loss: Loss = named, **options: object) -> Task:
    """A network by its name in timm."""
    return Task(f"timm {title}", partial(library.timm_model, name, **options), draw, loss)


P48 = data.photos(48)
SMALL_VGG = partial(library.vgg, (24, "M", 48, "M", 64, 64, "M"))
CASES = seen(
    "2026-11-23T03:56",
    Task("torchvision ResNet-18", partial(models.resnet18, num_classes=8), P48, named).cases(
        tv_resnet18_plain=r100.ADAM.but("", steps=60)
    ),
    Task(
        "torchvision MobileNet v2",
        partial(models.mobilenet_v2, num_classes=8, width_mult=0.5),
        P48,
        named,
    ).cases(tv_mobilenet_v2=r100.ADAMW.but("", steps=60)),
    Task("torchvision SqueezeNet", partial(models.squeezenet1_1, num_classes=8), P48, named).cases(
        tv_squeezenet=r100.ADAM.but("at 3e-4", optimizer=o.by(optim.Adam, lr=3e-4), steps=150)
    ),
    Task(
        "torchvision ShuffleNet v2", partial(models.shufflenet_v2_x0_5, num_classes=8), P48, named
    ).cases(tv_shufflenet=r100.ADAM.but("", steps=80)),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("torchvision GoogLeNet", library.googlenet, P48, named).cases(tv_googlenet=r100.SIXTY),
    Task("torchvision MNASNet (BatchNorm momentum 3e-4)", library.mnasnet, P64, named).cases(
        tv_mnasnet=r100.ADAM.but("", steps=80, every=5)
    ),
    Task("torchvision Swin", library.swin, P, mixup()).cases(
        tv_swin=r100.WARM.but("mixup", every=5)
    ),
    Task("torchvision LR-ASPP", library.Lraspp, data.scenes, masks).cases(
        tv_lraspp=r100.SIXTY.but("", batch=8)
    ),
    Task(
        "torchvision RetinaNet, GroupNorm",
        library.retinanet,
        data.scenes,
        library.boxes,
    ).cases(tv_retinanet=r100.ADAMW.but("", batch=4)),
    Task("torchvision ResNet, truncated", library.UnusedHead, P, named).cases(tv_unused=r100.SIXTY),
    zoo("EfficientNet, EvoNorm", "test_efficientnet_evos", P48).cases(
        timm_evonorm=r100.ADAMW.but("EMA", ema=0.98)
    ),
    zoo("CoAtNet", "test_coatnet", P64, cut_mix, img_size=64).cases(
        timm_coatnet=r100.ADAMW.but("CutMix", steps=120)
    ),
    zoo("MambaOut", "test_mambaout").cases(timm_mambaout=r100.WARM),
    zoo("ViT 3", "test_vit3", img_size=64).cases(
        timm_layer_decay=r100.ADAMW.but("layer decay 0.6", optimizer=o.layer_decay)
    ),
    Task("transformers ConvNeXt v2", library.hf_convnext, P, named).cases(
        hf_convnext=r100.ADAMW.but("Adafactor", optimizer=o.adafactor)
    ),
    Task("transformers ViT, unused pooler", library.Pooled, P, named).cases(hf_pooler=r100.ADAMW),
    Task("transformers SegFormer", library.Segformer, data.scenes, masks).cases(
        hf_segformer=r100.ADAMW
    ),
    Task(
        "transformers ViT-MAE", library.masked_autoencoder, data.pictures(), library.whole_loss
    ).cases(hf_mae=r100.ADAMW.but("masked reconstruction")),
    Task("transformers Wav2Vec2 (1-D)", library.wav2vec, data.tones(1024), library.heard).cases(
        hf_wav2vec=r100.ADAM.but("", batch=8, steps=150)
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("torchvision MaxViT", library.maxvit, P64, classes(0.1)).cases(
        tv_maxvit=eighty("AdamW, smoothing", o.ADAMW, steps=60, every=6)
    ),
    Task("torchvision Mask R-CNN", library.mask_rcnn, data.scenes, library.found).cases(
        tv_mask_rcnn=eighty("Adam, clipping", o.ADAM, batch=4, clip=5.0, steps=60, every=6)
    ),
    Task("torchvision DeepLab v3", library.deeplab, data.scenes, library.with_aux).cases(
        tv_deeplab=eighty(
            "SGD, poly, side head", o.MOMENTUM, batch=4, schedule=o.poly, steps=40, every=4
        )
    ),
    Task("transformers CLIP", library.clip, data.captions, library.alike).cases(
        hf_clip=eighty("AdamW, contrast of pictures and captions", o.ADAMW, batch=24)
    ),
    Task("transformers Swin2SR", library.swin2sr, data.pictures(32, "unit"), library.sharper).cases(
        hf_swin2sr=eighty("Adam", o.QUICK, batch=8, steps=60, every=6)
    ),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("torchvision MobileNet v3", library.mobilenet_v3, P64, named).cases(
        tv_mobile=r60.adam(3e-3)
    ),
    Task("torchvision R3D", library.video_resnet, data.panned, named).cases(
        tv_video=r60.small(r60.WARM, 12, steps=40, every=8)
    ),
    Task("torchvision RAFT", library.optical_flow, data.moved_right, library.updates).cases(
        tv_raft=r60.small(r60.WARM, 2, steps=36)
    ),
    zoo("GhostNet", "ghostnet_050").cases(ghost=r60.small(r60.FADING)),
    zoo("LeViT", "levit_conv_128s", img_size=64).cases(levit=r60.WARM),
    held_out=True,
)
CASES += seen(
    "2026-11-23T12:01",
    Task("torchvision ResNeXt", library.resnext, P64, named).cases(tv_resnext=r70.ADAMW),
    Task("torchvision ResNet, GroupNorm", library.wide_resnet, P64, named).cases(
        tv_group=r70.momentum(0.01)
    ),
    Task("torchvision ConvNeXt", library.convnext, P64, named).cases(tv_convnext=r70.WARM),
    Task("torchvision EfficientNet", library.efficientnet, P64, named).cases(
        tv_efficient=r70.SUPER
    ),
    Task("torchvision VGG, BatchNorm", SMALL_VGG, P, named).cases(tv_vgg=r70.adam(1e-3)),
    zoo("RegNet Y", "regnety_002", P64, classes(0.1)).cases(regnet_y=r70.NESTEROV),
    zoo("MobileViT", "mobilevit_xxs").cases(mobile_vit=r70.WARM),
    zoo("CS3DarkNet", "cs3darknet_focus_s").cases(darknet=r70.ADAMW),
    zoo("ViT, registers", "test_vit3", img_size=64).cases(vit_3=r70.SUPER),
    Task("transformers Swin v2", library.swin_v2, P, named).cases(hf_swin_2=r70.WARM),
    held_out=True,
)
