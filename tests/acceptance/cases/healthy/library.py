"""Healthy: models of torchvision, timm and transformers."""

from __future__ import annotations

from functools import partial

import data
import optimizers as o
import recipes.hundred as r100
import recipes.seventy as r70
import recipes.sixty as r60
import timm.optim
from data import P64, Draw, P
from loops import Loss, Task, eighty, seen
from losses import classes, cut_mix, masks, mixup, named
from nets import library
from torch import nn, optim
from torchvision import models

NORMAL = o.decay_weights_only(2e-3, 0.05)


def timm_defaults(model: nn.Module) -> optim.Optimizer:
    return timm.optim.create_optimizer_v2(model, "adamw", 2e-3, 0.05, filter_bias_and_bn=True)


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
    zoo("ResNet-10-t", "resnet10t", P48).cases(timm_resnet=r100.MOMENTUM.but("", steps=60)),
    zoo("ConvNeXt", "convnext_atto", P48, depths=(1, 1, 2, 1), dims=(24, 48, 72, 96)).cases(
        timm_convnext=r100.WARM
    ),
    zoo("ViT", "vit_tiny_patch16_224", P, img_size=32, patch_size=4, embed_dim=48, depth=3).cases(
        timm_vit=r100.ADAMW.but("", steps=80)
    ),
    zoo("MobileNet v3", "mobilenetv3_small_050", P48).cases(
        timm_mobilenet=r100.ADAM.but("", steps=80)
    ),
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
    zoo("NFNet", "test_nfnet", P48).cases(timm_nfnet=r100.SIXTY),
    zoo("EfficientNet, EvoNorm", "test_efficientnet_evos", P48).cases(
        timm_evonorm=r100.ADAMW.but("EMA", ema=0.98)
    ),
    zoo("CoAtNet", "test_coatnet", P64, cut_mix, img_size=64).cases(
        timm_coatnet=r100.ADAMW.but("CutMix", steps=120)
    ),
    zoo("MambaOut", "test_mambaout").cases(timm_mambaout=r100.WARM),
    zoo("EfficientNet, GroupNorm", "test_efficientnet_gn", P48).cases(timm_group=r100.RMSPROP),
    zoo("EdgeNeXt", "edgenext_xx_small").cases(timm_edgenext=r100.SIXTY),
    zoo("ViT 3", "test_vit3", img_size=64).cases(
        timm_layer_decay=r100.ADAMW.but("layer decay 0.6", optimizer=o.layer_decay)
    ),
    Task("FPN on timm features", library.Features, data.scenes, masks).cases(
        timm_features=r100.SIXTY.but("", batch=8)
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
    Task("torchvision EfficientNet v2", library.efficientnet_v2, P48, classes(0.1)).cases(
        tv_efficientnet_v2=eighty(
            "AdamW, decay not for norms, warm-up, stochastic depth",
            NORMAL,
            schedule=o.warm_up,
            clip=1.0,
        )
    ),
    Task("torchvision MaxViT", library.maxvit, P64, classes(0.1)).cases(
        tv_maxvit=eighty("AdamW, smoothing", o.ADAMW, steps=60, every=6)
    ),
    Task("torchvision RegNet Y", library.regnet, P48, named).cases(
        tv_regnet=eighty("SGD, warm restarts", o.MOMENTUM, schedule=o.restarts)
    ),
    Task("torchvision Faster R-CNN", library.faster_rcnn, data.scenes, library.found).cases(
        tv_faster_rcnn=eighty("SGD, photographs of 0 to 1", o.MOMENTUM, batch=4, steps=60, every=6)
    ),
    Task(
        "torchvision Mask R-CNN", partial(library.faster_rcnn, True), data.scenes, library.found
    ).cases(tv_mask_rcnn=eighty("Adam, clipping", o.ADAM, batch=4, clip=5.0, steps=60, every=6)),
    Task("torchvision DeepLab v3", library.deeplab, data.scenes, library.with_aux).cases(
        tv_deeplab=eighty(
            "SGD, poly, side head", o.MOMENTUM, batch=4, schedule=o.poly, steps=40, every=4
        )
    ),
    zoo("StarNet", "starnet_s050", P64, classes(0.1), drop_path_rate=0.05).cases(
        timm_starnet=eighty("AdamW of timm, drop path", timm_defaults)
    ),
    zoo("XCiT", "xcit_nano_12_p16_224", img_size=64).cases(
        timm_xcit=eighty(
            "AdamW, clipping",
            o.ADAMW,
            clip=1.0,
            schedule=partial(o.warm_up, first=10),
            steps=60,
            every=6,
        )
    ),
    Task("transformers CLIP", library.clip, data.captions, library.alike).cases(
        hf_clip=eighty("AdamW, contrast of pictures and captions", o.ADAMW, batch=24)
    ),
    Task("transformers Swin2SR", library.swin2sr, data.pictures(32, "unit"), library.sharper).cases(
        hf_swin2sr=eighty("Adam", o.QUICK, batch=8, steps=60, every=6)
    ),
    Task(
        "transformers Whisper encoder (1-D)", library.whisper, data.spectrograms, library.heard
    ).cases(hf_whisper=eighty("AdamW", o.ADAMW)),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("torchvision MobileNet v3", library.mobilenet_v3, P64, named).cases(
        tv_mobile=r60.adam(3e-3)
    ),
    Task("torchvision R3D", library.video_resnet, data.panned, named).cases(
        tv_video=r60.small(r60.WARM, 12, steps=40, every=8)
    ),
    Task("torchvision MC3", partial(library.video_resnet, True), data.panned, named).cases(
        tv_mixed=r60.small(r60.MOMENTUM, 12, steps=40, every=8)
    ),
    Task("torchvision Video Swin", library.swin_3d, data.panned, named).cases(
        tv_swin_3d=r60.small(r60.WARM)
    ),
    Task("torchvision FCN", library.fcn, data.scenes, library.masked_out).cases(
        tv_fcn=r60.small(r60.FADING)
    ),
    Task("torchvision RAFT", library.optical_flow, data.moved_right, library.updates).cases(
        tv_raft=r60.small(r60.WARM, 2, steps=36)
    ),
    Task("transformers CvT", library.cvt, P, named).cases(hf_cvt=r60.WARM),
    Task("transformers DINOv2", library.dino_v2, P, named).cases(hf_dino=r60.LATE),
    Task("transformers PoolFormer", library.pool_former, P, named).cases(hf_pool=r60.PEAK),
    Task("transformers HGNet v2", library.hg_net, P64, named).cases(hf_hg=r60.small(r60.CYCLIC)),
    zoo("GhostNet", "ghostnet_050").cases(ghost=r60.small(r60.FADING)),
    zoo("DLA", "dla46_c").cases(dla=r60.WARM),
    zoo("VoVNet", "ese_vovnet19b_slim_dw").cases(vovnet=r60.small(r60.PEAK)),
    zoo("LeViT", "levit_conv_128s", img_size=64).cases(levit=r60.WARM),
    zoo("MobileNet v4", "mobilenetv4_conv_small_035").cases(mobilenet_4=r60.BIG),
    zoo("EfficientViT", "efficientvit_b0", P64, classes(0.05)).cases(
        efficient_vit=r60.small(r60.WARM)
    ),
    zoo("InceptionNeXt", "inception_next_atto").cases(inception_next=r60.small(r60.LATE)),
    zoo("ConViT", "convit_tiny", img_size=64).cases(convit=r60.FEW),
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
    Task("torchvision VGG, BatchNorm", SMALL_VGG, P, named).cases(
        tv_vgg=(r70.adam(1e-3), r70.NESTEROV)
    ),
    zoo("MNASNet", "mnasnet_small").cases(mnasnet=r70.SUPER),
    zoo("MobileNet v2", "mobilenetv2_035").cases(mobilenet_2=r70.LONGER),
    zoo("RegNet X", "regnetx_002").cases(regnet_x=r70.BETAS),
    zoo("RegNet Y", "regnety_002", P64, classes(0.1)).cases(regnet_y=r70.NESTEROV),
    zoo("RepGhostNet", "repghostnet_050").cases(rep_ghost=r70.NADAM),
    zoo("MobileViT", "mobilevit_xxs").cases(mobile_vit=r70.WARM),
    zoo("MobileViT v2", "mobilevitv2_050").cases(mobile_vit_2=r70.SUPER),
    zoo("CS3DarkNet", "cs3darknet_focus_s").cases(darknet=r70.ADAMW),
    zoo("PiT", "pit_ti_224", img_size=64).cases(pit=r70.BETAS),
    zoo("ViT, registers", "test_vit3", img_size=64).cases(vit_3=r70.SUPER),
    zoo("EfficientNet, LayerNorm", "test_efficientnet_ln").cases(layer_net=r70.RESTARTS),
    Task("transformers MobileNet v1", library.mobilenet_v1, P64, named).cases(
        hf_mobile_1=r70.adam(2e-3)
    ),
    Task("transformers RegNet", library.hf_regnet, P64, named).cases(hf_regnet=r70.momentum(0.05)),
    Task("transformers ResNet", library.hf_resnet, P64, named).cases(hf_resnet=r70.NESTEROV),
    Task("transformers Swin v2", library.swin_v2, P, named).cases(hf_swin_2=r70.WARM),
    Task("transformers FocalNet", library.focal_net, P, named).cases(hf_focal=r70.BETAS),
    Task("transformers PVT v2", library.pvt_v2, P64, named).cases(hf_pvt=r70.ADAMW),
    Task("transformers BEiT", library.beit, P, named).cases(hf_beit=r70.SUPER),
    held_out=True,
)
