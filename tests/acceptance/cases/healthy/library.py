"""Healthy: models of torchvision, timm and transformers."""

from __future__ import annotations

from functools import partial

import data
import recipes.hundred as r100
import recipes.seventy as r70
import recipes.sixty as r60
import timm.optim
import torchvision
from data import P64, P
from loops import Task, eighty, seen
from losses import centre, classes, cut_mix, masks, mixup, named
from nets import library
from nets.dense import all_masks
from optimizers import (
    ADAM,
    ADAMW,
    MOMENTUM,
    QUICK,
    adafactor,
    by,
    decay_weights_only,
    layer_decay,
    poly,
    restarts,
    warm_up,
)
from torch import nn, optim

NORMAL = decay_weights_only(2e-3, 0.05)


def timm_defaults(model: nn.Module) -> optim.Optimizer:
    return timm.optim.create_optimizer_v2(model, "adamw", 2e-3, 0.05, filter_bias_and_bn=True)


CASES = seen(
    "2026-11-23T03:56",
    Task("torchvision ResNet-10", library.resnet10, data.photos(24), named).cases(
        tv_resnet10=r100.MOMENTUM.but("at 0.005", optimizer=by(optim.SGD, lr=0.005, momentum=0.9))
    ),
    Task(
        "torchvision ResNet-18",
        lambda: torchvision.models.resnet18(num_classes=8),
        data.photos(48),
        named,
    ).cases(tv_resnet18_plain=r100.ADAM.but("", steps=60)),
    Task(
        "torchvision MobileNet v2",
        lambda: torchvision.models.mobilenet_v2(num_classes=8, width_mult=0.5),
        data.photos(48),
        named,
    ).cases(tv_mobilenet_v2=r100.ADAMW.but("", steps=60)),
    Task(
        "torchvision SqueezeNet",
        lambda: torchvision.models.squeezenet1_1(num_classes=8),
        data.photos(48),
        named,
    ).cases(tv_squeezenet=r100.ADAM.but("at 3e-4", optimizer=by(optim.Adam, lr=3e-4), steps=150)),
    Task(
        "torchvision ShuffleNet v2",
        lambda: torchvision.models.shufflenet_v2_x0_5(num_classes=8),
        data.photos(48),
        named,
    ).cases(tv_shufflenet=r100.ADAM.but("", steps=80)),
    Task("timm ResNet-10-t", lambda: library.timm_model("resnet10t"), data.photos(48), named).cases(
        timm_resnet=r100.MOMENTUM.but("", steps=60)
    ),
    Task(
        "timm ConvNeXt",
        lambda: library.timm_model("convnext_atto", depths=(1, 1, 2, 1), dims=(24, 48, 72, 96)),
        data.photos(48),
        named,
    ).cases(timm_convnext=r100.WARM),
    Task(
        "timm ViT",
        lambda: library.timm_model(
            "vit_tiny_patch16_224", img_size=32, patch_size=4, embed_dim=48, depth=3
        ),
        P,
        named,
    ).cases(timm_vit=r100.ADAMW.but("", steps=80)),
    Task(
        "timm MobileNet v3",
        lambda: library.timm_model("mobilenetv3_small_050"),
        data.photos(48),
        named,
    ).cases(timm_mobilenet=r100.ADAM.but("", steps=80)),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("torchvision DenseNet", library.densenet, P, named).cases(
        tv_densenet=r100.NESTEROV.but("")
    ),
    Task("torchvision GoogLeNet", library.googlenet, data.photos(48), named).cases(
        tv_googlenet=r100.SIXTY
    ),
    Task(
        "torchvision MNASNet (BatchNorm momentum 3e-4)", library.mnasnet, data.photos(64), named
    ).cases(tv_mnasnet=r100.ADAM.but("", steps=80, every=5)),
    Task("torchvision Swin", library.swin, P, mixup()).cases(
        tv_swin=r100.WARM.but("mixup", every=5)
    ),
    Task("torchvision ViT, convolutional stem", library.vit_conv_stem, P, named).cases(
        tv_vit_stem=r100.ADAMW
    ),
    Task("torchvision VGG-11 features", library.vgg_own_head, P, named).cases(
        tv_vgg_head=r100.MOMENTUM.but(
            "", optimizer=by(optim.SGD, lr=5e-3, momentum=0.9), steps=60, every=5
        )
    ),
    Task("torchvision LR-ASPP", library.Lraspp, data.scenes, masks).cases(
        tv_lraspp=r100.SIXTY.but("", batch=8)
    ),
    Task(
        "torchvision RetinaNet, GroupNorm",
        partial(library.detector, "retinanet"),
        data.scenes,
        library.boxes,
    ).cases(tv_retinanet=r100.ADAMW.but("", batch=4)),
    Task("torchvision FCOS", partial(library.detector, "fcos"), data.scenes, library.boxes).cases(
        tv_fcos=r100.ADAM.but("clipping 1", batch=4, clip=1.0)
    ),
    Task("torchvision ResNet, truncated", library.UnusedHead, P, named).cases(tv_unused=r100.SIXTY),
    Task("timm NFNet", partial(library.timm_model, "test_nfnet"), data.photos(48), named).cases(
        timm_nfnet=r100.SIXTY
    ),
    Task(
        "timm EfficientNet, EvoNorm",
        partial(library.timm_model, "test_efficientnet_evos"),
        data.photos(48),
        named,
    ).cases(timm_evonorm=r100.ADAMW.but("EMA", ema=0.98)),
    Task(
        "timm CoAtNet",
        partial(library.timm_model, "test_coatnet", img_size=64),
        data.photos(64),
        cut_mix,
    ).cases(timm_coatnet=r100.ADAMW.but("CutMix", steps=120)),
    Task(
        "timm MambaOut", partial(library.timm_model, "test_mambaout"), data.photos(64), named
    ).cases(timm_mambaout=r100.WARM),
    Task(
        "timm EfficientNet, GroupNorm",
        partial(library.timm_model, "test_efficientnet_gn"),
        data.photos(48),
        named,
    ).cases(timm_group=r100.RMSPROP),
    Task(
        "timm EdgeNeXt", partial(library.timm_model, "edgenext_xx_small"), data.photos(64), named
    ).cases(timm_edgenext=r100.SIXTY),
    Task(
        "timm ViT 3", partial(library.timm_model, "test_vit3", img_size=64), data.photos(64), named
    ).cases(timm_layer_decay=r100.ADAMW.but("layer decay 0.6", optimizer=layer_decay)),
    Task("FPN on timm features", library.Features, data.scenes, masks).cases(
        timm_features=r100.SIXTY.but("", batch=8)
    ),
    Task("transformers ConvNeXt v2", library.hf_convnext, P, named).cases(
        hf_convnext=r100.ADAMW.but("Adafactor", optimizer=adafactor)
    ),
    Task("transformers ViT, unused pooler", library.Pooled, P, named).cases(hf_pooler=r100.ADAMW),
    Task("transformers SegFormer", library.Segformer, data.scenes, masks).cases(
        hf_segformer=r100.ADAMW
    ),
    Task(
        "transformers ViT-MAE", library.masked_autoencoder, data.pictures(), library.whole_loss
    ).cases(hf_mae=r100.ADAMW.but("masked reconstruction")),
    Task(
        "transformers Wav2Vec2 (1-D)", library.wav2vec, data.tones(1024), library.wave_classes
    ).cases(hf_wav2vec=r100.ADAM.but("", batch=8, steps=150)),
)
CASES += seen(
    "2026-11-23T08:43",
    Task(
        "torchvision EfficientNet v2", library.efficientnet_v2, data.photos(48), classes(0.1)
    ).cases(
        tv_efficientnet_v2=eighty(
            "AdamW, decay not for norms, warm-up, stochastic depth",
            NORMAL,
            schedule=warm_up,
            clip=1.0,
        )
    ),
    Task("torchvision MaxViT", library.maxvit, data.photos(64), classes(0.1)).cases(
        tv_maxvit=eighty("AdamW, smoothing", ADAMW, steps=60, every=6)
    ),
    Task("torchvision RegNet Y", library.regnet, data.photos(48), named).cases(
        tv_regnet=eighty("SGD, warm restarts", MOMENTUM, schedule=restarts)
    ),
    Task("torchvision Faster R-CNN", library.faster_rcnn, data.scenes, library.found).cases(
        tv_faster_rcnn=eighty("SGD, photographs of 0 to 1", MOMENTUM, batch=4, steps=60, every=6)
    ),
    Task(
        "torchvision Mask R-CNN", partial(library.faster_rcnn, True), data.scenes, library.found
    ).cases(tv_mask_rcnn=eighty("Adam, clipping", ADAM, batch=4, clip=5.0, steps=60, every=6)),
    Task("torchvision SSD", library.ssd, data.scenes, library.found).cases(
        tv_ssd=eighty("Adam", ADAM, batch=4, steps=60, every=6)
    ),
    Task("torchvision DeepLab v3", library.deeplab, data.scenes, library.with_aux).cases(
        tv_deeplab=eighty(
            "SGD, poly, side head", MOMENTUM, batch=4, schedule=poly, steps=40, every=4
        )
    ),
    Task(
        "timm StarNet",
        partial(library.timm_model, "starnet_s050", drop_path_rate=0.05),
        data.photos(64),
        classes(0.1),
    ).cases(timm_starnet=eighty("AdamW of timm, drop path", timm_defaults)),
    Task(
        "timm XCiT",
        partial(library.timm_model, "xcit_nano_12_p16_224", img_size=64),
        data.photos(64),
        named,
    ).cases(
        timm_xcit=eighty(
            "AdamW, clipping",
            ADAMW,
            clip=1.0,
            schedule=partial(warm_up, first=10),
            steps=60,
            every=6,
        )
    ),
    Task("transformers CLIP", library.clip, data.captions(), library.alike).cases(
        hf_clip=eighty("AdamW, contrast of pictures and captions", ADAMW, batch=24)
    ),
    Task("transformers UPerNet", library.upernet, data.scenes, library.labelled_masks).cases(
        hf_upernet=eighty("AdamW, side head", ADAM, batch=8, steps=60, every=6)
    ),
    Task("transformers Swin2SR", library.swin2sr, data.pictures(32, "unit"), library.sharper).cases(
        hf_swin2sr=eighty("Adam", QUICK, batch=8, steps=60, every=6)
    ),
    Task(
        "transformers Whisper encoder (1-D)",
        library.whisper,
        data.spectrograms,
        library.heard_labelled,
    ).cases(hf_whisper=eighty("AdamW", ADAMW)),
    Task(
        "transformers VideoMAE (3-D)", library.video_mae, data.colour_films, library.hidden_patches
    ).cases(hf_video_mae=eighty("AdamW", ADAMW, batch=8)),
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
    Task("semantic FPN", library.Panoptic, data.scenes, all_masks).cases(
        tv_fpn=r60.small(r60.MOMENTUM)
    ),
    Task("transformers CvT", library.cvt, P, library.labelled).cases(hf_cvt=r60.WARM),
    Task("transformers DINOv2", library.dino_v2, P, library.labelled).cases(hf_dino=r60.LATE),
    Task("transformers PoolFormer", library.pool_former, P, library.labelled).cases(
        hf_pool=r60.PEAK
    ),
    Task("transformers HGNet v2", library.hg_net, P64, library.labelled).cases(
        hf_hg=r60.small(r60.CYCLIC)
    ),
    Task(
        "transformers AST", library.spectrogram_transformer, data.spectrograms, library.heard
    ).cases(hf_ast=r60.adam(1e-3)),
    Task("transformers ResNet backbone", library.Pairs, data.scenes, all_masks).cases(
        hf_backbone=r60.adam(1e-3)
    ),
    Task("timm GhostNet", partial(library.timm_model, "ghostnet_050"), P64, named).cases(
        ghost=r60.small(r60.FADING)
    ),
    Task("timm DLA", partial(library.timm_model, "dla46_c"), P64, named).cases(dla=r60.WARM),
    Task("timm VoVNet", partial(library.timm_model, "ese_vovnet19b_slim_dw"), P64, named).cases(
        vovnet=r60.small(r60.PEAK)
    ),
    Task(
        "timm LeViT", partial(library.timm_model, "levit_conv_128s", img_size=64), P64, named
    ).cases(levit=r60.WARM),
    Task(
        "timm MobileNet v4", partial(library.timm_model, "mobilenetv4_conv_small_035"), P64, named
    ).cases(mobilenet_4=r60.BIG),
    Task(
        "timm EfficientViT", partial(library.timm_model, "efficientvit_b0"), P64, classes(0.05)
    ).cases(efficient_vit=r60.small(r60.WARM)),
    Task(
        "timm InceptionNeXt", partial(library.timm_model, "inception_next_atto"), P64, named
    ).cases(inception_next=r60.small(r60.LATE)),
    Task("timm ConViT", partial(library.timm_model, "convit_tiny", img_size=64), P64, named).cases(
        convit=r60.FEW
    ),
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
    Task("torchvision VGG, BatchNorm", library.vgg, P, named).cases(
        tv_vgg=(r70.adam(1e-3), r70.NESTEROV)
    ),
    Task(
        "torchvision DeepLab on MobileNet", library.small_deeplab, data.scenes, library.masked
    ).cases(tv_deeplab_3=r70.adam(0.002)),
    Task("torchvision SqueezeNet 1.1 body", library.Two, data.scenes, centre).cases(
        tv_squeeze=r70.adam(1e-3)
    ),
    Task("timm MNASNet", partial(library.timm_model, "mnasnet_small"), P64, named).cases(
        mnasnet=r70.SUPER
    ),
    Task("timm MobileNet v2", partial(library.timm_model, "mobilenetv2_035"), P64, named).cases(
        mobilenet_2=r70.LONGER
    ),
    Task("timm RegNet X", partial(library.timm_model, "regnetx_002"), P64, named).cases(
        regnet_x=r70.BETAS
    ),
    Task("timm RegNet Y", partial(library.timm_model, "regnety_002"), P64, classes(0.1)).cases(
        regnet_y=r70.NESTEROV
    ),
    Task("timm RepGhostNet", partial(library.timm_model, "repghostnet_050"), P64, named).cases(
        rep_ghost=r70.NADAM
    ),
    Task("timm MobileViT", partial(library.timm_model, "mobilevit_xxs"), P64, named).cases(
        mobile_vit=r70.WARM
    ),
    Task("timm MobileViT v2", partial(library.timm_model, "mobilevitv2_050"), P64, named).cases(
        mobile_vit_2=r70.SUPER
    ),
    Task("timm CS3DarkNet", partial(library.timm_model, "cs3darknet_focus_s"), P64, named).cases(
        darknet=r70.ADAMW
    ),
    Task("timm PiT", partial(library.timm_model, "pit_ti_224", img_size=64), P64, named).cases(
        pit=r70.BETAS
    ),
    Task(
        "timm ViT, registers", partial(library.timm_model, "test_vit3", img_size=64), P64, named
    ).cases(vit_3=r70.SUPER),
    Task(
        "timm EfficientNet, LayerNorm",
        partial(library.timm_model, "test_efficientnet_ln"),
        P64,
        named,
    ).cases(layer_net=r70.RESTARTS),
    Task("transformers MobileNet v1", library.mobilenet_v1, P64, library.labelled).cases(
        hf_mobile_1=r70.adam(2e-3)
    ),
    Task("transformers RegNet", library.hf_regnet, P64, library.labelled).cases(
        hf_regnet=r70.momentum(0.05)
    ),
    Task("transformers ResNet", library.hf_resnet, P64, library.labelled).cases(
        hf_resnet=r70.NESTEROV
    ),
    Task("transformers Swin v2", library.swin_v2, P, library.labelled).cases(hf_swin_2=r70.WARM),
    Task("transformers FocalNet", library.focal_net, P, library.labelled).cases(hf_focal=r70.BETAS),
    Task("transformers PVT v2", library.pvt_v2, P64, library.labelled).cases(hf_pvt=r70.ADAMW),
    Task("transformers BEiT", library.beit, P, library.labelled).cases(hf_beit=r70.SUPER),
    held_out=True,
)
