"""Healthy: images are classified by networks of timm, torchvision and transformers."""

from __future__ import annotations

from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import timm
from data import HALF, P64, P
from loops import seen
from losses import CE, answered, told
from nets import classifiers as cnn
from nets import library
from nets.parts import slim
from recipes import ADAMW, DECAY, FIT, FLAT, MAE, NESTEROV, SGD, SHORT, how, one
from timm.optim import create_optimizer_v2
from torch import Tensor, nn, optim
from torchvision import models
from torchvision.transforms import v2

TIMM_CLASSES: dict[str, Any] = {
    "dpn": (
        losses.augmented,
        SGD(0.02, o.cosine, weight_decay=1e-4),
        lambda: timm.models.DPN((1, 1, 1), (8, 8, 8), 24, 4, 8, small=True, num_init_features=16),
    ),
    "xception": (
        losses.classes(0.1),
        SGD(0.045, o.fading, weight_decay=4e-5),
        lambda: timm.models.XceptionAligned(
            [
                {"in_chs": a, "out_chs": b, "stride": s}
                for a, b, s in ((64, 48, 2), (48, 64, 2), (64, 64, 1))
            ],
            8,
        ),
    ),
    "rep_ghost": (
        losses.flip,
        SGD(0.05, o.warm_up, batch=8, weight_decay=1e-5),
        slim("repghostnet_050"),
    ),
    "mobile_v4": (losses.flip, FIT(4e-3, o.warm_up, **DECAY), slim("mobilenetv4_conv_small_035")),
    "rex_net": (
        losses.flip,
        SGD(0.05, o.cosine, nesterov=True, weight_decay=4e-5, batch=8),
        slim("rexnet_100", width_mult=0.4, depth_mult=0.5),
    ),
    "rd_net": (
        losses.cut_mix,
        FIT(1e-3, o.warm_up, **DECAY),
        lambda: timm.models.rdnet.RDNet(
            3,
            8,
            growth_rates=(16, 24, 32),
            num_blocks_list=(2, 2, 2),
            block_type=("Block", "Block", "BlockESE"),
            is_downsample_block=(None, True, True),
            num_init_features=32,
        ),
    ),
    "bot_net": (
        losses.classes(0.1),
        SGD(0.05, o.two_phases, nesterov=True, weight_decay=5e-5),
        lambda: timm.models.ByobNet(
            timm.models.ByoModelCfg(
                (
                    timm.models.ByoBlockCfg("bottle", 1, 32, 1, 0, 0.25),
                    timm.models.ByoBlockCfg("bottle", 1, 64, 2, 0, 0.25),
                    timm.models.ByoBlockCfg("self_attn", 1, 96, 2, 0, 0.5),
                ),
                stem_type="tiered",
                stem_chs=24,
                self_attn_layer="bottleneck",
                fixed_input_size=True,
            ),
            8,
            img_size=64,
        ),
    ),
}

BY_OPTIMIZER: dict[str, Any] = {
    "xcit_nano_12_p8_224": ("adan", 2e-3, {"img_size": 32, "depth": 2, "embed_dim": 48}),
    "edgenext_xx_small": ("adopt", 2e-3, {"dims": (16, 24, 32, 48), "depths": (1, 1, 2, 1)}),
    "starnet_s1": ("laprop", 1e-3, {"base_dim": 12, "depths": (1, 1, 2, 1)}),
    "repvit_m0_9": ("adabelief", 1e-3, {"embed_dim": (16, 24, 32, 48), "depth": (1, 1, 1, 1)}),
    "test_byobnet": ("madgradw", 1e-3, {}),
    "visformer_tiny": ("nadamw", 1e-3, {"img_size": 32, "embed_dim": 48, "depth": (1, 1, 1)}),
    "convit_tiny": ("cadamw", 2e-3, {"img_size": 32, "patch_size": 8, "depth": 3, "embed_dim": 12}),
    "davit_tiny": ("mars", 2e-3, {"depths": (1, 1), "embed_dims": (24, 48), "num_heads": (1, 2)}),
    "dla34": ("sgdp", 0.05, {"channels": (8, 16, 24, 32, 48, 64), "levels": (1,) * 6}),
}

TIMM_TRANSFORMERS: dict[str, Any] = {
    "cait_xxs24_224": (
        32,
        losses.classes(0.1),
        FIT(1e-3, o.warm_up, **DECAY),
        {"img_size": 32, "patch_size": 4, "embed_dim": 48, "depth": 3, "num_heads": 4},
    ),
    "pit_ti_224": (
        64,
        losses.mixup(),
        FIT(1e-3, o.two_phases, **DECAY),
        {
            "img_size": 64,
            "stride": 4,
            "patch_size": 8,
            "base_dims": [16] * 3,
            "depth": [1, 2, 1],
            "heads": [1, 2, 4],
        },
    ),
    "hiera_tiny_224": (
        64,
        losses.cut_mix,
        FIT(2e-3, o.cosine, **DECAY, betas=(0.9, 0.95)),
        {"img_size": (64, 64), "embed_dim": 16, "num_heads": 1, "stages": (1, 1, 2, 1)},
    ),
    "sequencer2d_s": (
        32,
        losses.flip,
        FIT(2e-3, o.cosine, **DECAY),
        {
            "layers": FLAT,
            "embed_dims": [24, 48, 48, 48],
            "hidden_sizes": [8, 16, 16, 16],
            "patch_sizes": [4, 1, 1, 1],
        },
    ),
    "eva02_tiny_patch14_224": (
        32,
        CE,
        FIT(1e-3, o.ramp, **DECAY, clip=3.0),
        {"img_size": 32, "patch_size": 4, "embed_dim": 48, "depth": 3, "num_heads": 4},
    ),
    "tnt_s_legacy_patch16_224": (
        32,
        losses.augmented,
        FIT(1e-3, o.linear_down, kind=optim.NAdam),
        {
            "img_size": 32,
            "patch_size": 8,
            "embed_dim": 48,
            "inner_dim": 12,
            "depth": 3,
            "num_heads_outer": 4,
        },
    ),
    "test_vit_relpos": (64, losses.flip, FIT(1e-3, o.cosine, **DECAY, ema=0.99), {"img_size": 64}),
}

HUGGING_PLAIN: dict[str, Any] = {
    "DeiT": (P, FIT(1e-3, o.cosine, **DECAY), library.SMALL),
    "ConvNextV2": (
        P64,
        FIT(2e-3, o.two_phases, **DECAY, ema=0.99),
        {"hidden_sizes": [16, 24, 32, 48], "depths": FLAT},
    ),
    "Pvt": (
        P64,
        FIT(1e-3, o.linear_down, **DECAY, clip=1.0),
        {
            "image_size": 64,
            "hidden_sizes": [16, 24, 32, 48],
            "depths": FLAT,
            "num_attention_heads": [1, 1, 2, 2],
            "mlp_ratios": [2] * 4,
        },
    ),
    "ViTMSN": (HALF, FIT(5e-4, o.ramp, **DECAY, clip=1.0), library.SMALL),
    "Data2VecVision": (
        HALF,
        FIT(1e-3, o.cosine, **DECAY, clip=3.0),
        library.SMALL | {"use_shared_relative_position_bias": True, "layer_scale_init_value": 0.1},
    ),
}

STAGES = {"embed_dims": (16, 24, 32, 48), "img_size": 64}

TIMM_SMALL = {
    "coat_lite_tiny": (
        64,
        losses.classes(0.1),
        FIT(1e-3, o.warm_up, **DECAY, clip=1.0),
        STAGES | {"serial_depths": FLAT},
    ),
    "twins_svt_small": (64, losses.mixup(), FIT(1e-3, o.poly, **DECAY), STAGES | {"depths": FLAT}),
    "ghostnet_050": (48, CE, SGD(0.05, o.cosine, weight_decay=4e-5), {}),
    "hardcorenas_a": (40, losses.flip, FIT(2e-3, o.two_phases, **DECAY), {}),
    "cs3darknet_s": (64, losses.cut_mix, FIT(1e-3, o.one_cycle(2e-3), **DECAY), {}),
    "mobilevitv2_050": (64, CE, FIT(1e-3, o.warm_up, **DECAY, clip=5.0, ema=0.99), {}),
    "mobilenet_edgetpu_v2_xs": (48, CE, FIT(5e-4, o.fading, kind=optim.RMSprop, eps=1e-3), {}),
    "test_resnet": (48, losses.augmented, FIT(2e-3, o.poly, kind=optim.NAdam), {}),
}

HUGGING_VARIANTS = {
    "Swinv2": (
        P,
        FIT(1e-3, o.warm_up, **DECAY, clip=1.0, batch=8),
        {
            "image_size": 32,
            "embed_dim": 24,
            "depths": [1, 2],
            "num_heads": [2, 4],
            "window_size": 4,
            "drop_path_rate": 0.1,
        },
    ),
    "Beit": (
        P,
        FIT(1e-3, o.linear_down, **DECAY),
        library.SMALL | {"use_relative_position_bias": True},
    ),
    "Dinov2WithRegisters": (P, FIT(5e-4, o.two_phases, **DECAY, clip=3.0), library.SMALL),
    "Siglip": (HALF, FIT(1e-3, o.warm_up, **MAE, clip=1.0), {"vision_config": library.SMALL}),
}

TIMM_RESNETS: dict[str, Any] = {
    "t_res_net": (
        losses.augmented,
        FIT(2e-3, o.one_cycle(2e-3), weight_decay=1e-4, ema=0.99, batch=8),
        lambda: timm.models.tresnet.TResNet([1] * 4, num_classes=8, width_factor=0.4),
    ),
    "lambda_net": (
        losses.mixup(),
        FIT(0.05, o.two_phases, **NESTEROV),
        lambda: timm.models.ByobNet(
            timm.models.ByoModelCfg(
                (
                    timm.models.ByoBlockCfg("bottle", 1, 32, 1, 0, 0.25),
                    timm.models.ByoBlockCfg("self_attn", 1, 64, 2, 0, 0.25),
                    timm.models.ByoBlockCfg("self_attn", 1, 96, 2, 0, 0.5),
                ),
                stem_type="tiered",
                stem_chs=24,
                self_attn_layer="lambda",
                self_attn_kwargs={"r": 5},
            ),
            8,
        ),
    ),
    "gc_res_net": (
        losses.flip,
        SGD(0.05, o.cosine, weight_decay=5e-4),
        partial(cnn.resnet, block_args={"attn_layer": "gca"}),
    ),
    "res_net_d": (
        losses.cut_mix,
        FIT(5e-3, o.warm_up, kind=timm.optim.Lamb, weight_decay=0.02),
        partial(cnn.resnet, stem_type="deep", avg_down=True, aa_layer=timm.layers.BlurPool2d),
    ),
}


def strikes_back(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy of CutMix or mixup, as in "ResNet strikes back"."""
    mixed = v2.RandomChoice([v2.CutMix(num_classes=8), v2.MixUp(alpha=0.1, num_classes=8)])
    return answered(model, *mixed(images, labels))


def lamb(model: nn.Module) -> optim.Optimizer:
    return timm.optim.Lamb(model.parameters(), 5e-3, weight_decay=0.02)


def as_tensorflow(model: nn.Module) -> optim.Optimizer:
    return timm.optim.RMSpropTF(model.parameters(), 5e-3, 0.9, 1e-3, 1e-5, 0.9)


DIMS = (16, 24, 32, 48)

TIMM_BLOCKS: dict[str, Any] = {
    "inception_next": (
        losses.classes(0.1),
        FIT(2e-3, o.warm_up, **DECAY),
        lambda: timm.models.MetaNeXt(num_classes=8, depths=(1, 1, 2, 1), dims=DIMS),
    ),
    "mamba_out": (
        losses.mixup(),
        FIT(1e-3, o.warm_up, **DECAY, clip=1.0),
        lambda: timm.models.mambaout.MambaOut(num_classes=8, depths=(1, 1, 2, 1), dims=DIMS),
    ),
    "res2net": (
        losses.flip,
        SGD(0.05, o.stairs, batch=12),
        lambda: timm.models.ResNet(
            timm.models.res2net.Bottle2neck, FLAT, 8, base_width=26, channels=DIMS, stem_width=16
        ),
    ),
    "res_nest": (
        losses.mixup(),
        FIT(0.02, o.two_phases, **NESTEROV, batch=24),
        lambda: timm.models.ResNet(
            timm.models.resnest.ResNestBottleneck,
            FLAT,
            8,
            stem_type="deep",
            stem_width=12,
            avg_down=True,
            channels=DIMS,
            zero_init_last=False,
            block_args={"radix": 2, "avd": True},
        ),
    ),
    "vov_net": (
        losses.augmented,
        SGD(0.05, o.cosine, weight_decay=1e-4),
        lambda: timm.models.VovNet(
            {
                "stem_chs": [16, 16, 24],
                "stage_conv_chs": [16, 20, 24, 28],
                "stage_out_chs": [32, 48, 64, 80],
                "layer_per_block": 3,
                "block_per_stage": FLAT,
                "residual": True,
                "depthwise": False,
                "attn": "ese",
            },
            num_classes=8,
        ),
    ),
    "efficient_vit": (
        losses.classes(0.1),
        FIT(1e-3, o.warm_up, **DECAY, clip=2.0),
        lambda: timm.models.EfficientVit(
            widths=(8, 16, 24, 32, 48),
            depths=(1, 1, 1, 2, 2),
            head_dim=8,
            head_widths=(128, 128),
            num_classes=8,
        ),
    ),
    "big_transfer": (
        losses.mixup(0.1),
        SGD(0.03, o.ramp),
        lambda: timm.models.ResNetV2(
            FLAT,
            (32, 64, 96, 128),
            8,
            stem_chs=16,
            norm_layer=partial(timm.layers.GroupNormAct, num_groups=8),
        ),
    ),
    "fast_vit": (
        losses.cut_mix,
        FIT(2e-3, o.cosine, **DECAY, ema=0.99, batch=12),
        lambda: timm.models.FastVit(
            layers=FLAT,
            token_mixers=("repmixer",) * 3 + ("attention",),
            embed_dims=(16, 32, 64, 128),
            num_classes=8,
        ),
    ),
}

HUGGING_STAGES: dict[str, Any] = {
    "Cvt": (
        P64,
        FIT(1e-3, o.warm_up, **DECAY),
        {
            "embed_dim": [16, 32, 48],
            "num_heads": [1, 2, 3],
            "depth": [1, 2, 3],
            "mlp_ratio": [2.0] * 3,
        },
    ),
    "PoolFormer": (
        P64,
        FIT(1e-3, o.warm_up, **DECAY),
        {"hidden_sizes": list(DIMS), "depths": FLAT, "mlp_ratio": 4.0, "drop_path_rate": 0.0},
    ),
    "TextNet": (
        P64,
        FIT(1e-3, o.linear_down, kind=optim.AdamW, weight_decay=0.01),
        {
            "stem_out_channels": 16,
            "hidden_sizes": [16, *DIMS],
            "conv_layer_kernel_sizes": [[[3, 3]]] * 4,
            "conv_layer_strides": [[2]] * 4,
        },
    ),
    "Segformer": (
        P64,
        FIT(1e-3, o.warm_up, **DECAY),
        {
            "hidden_sizes": list(DIMS),
            "depths": FLAT,
            "num_attention_heads": [1, 1, 2, 3],
            "mlp_ratios": FLAT,
        },
    ),
}

EMBED = (24, 32, 48)

TIMM_ATTENTION: dict[str, Any] = {
    "gmlp": (
        32,
        losses.mixup(),
        FIT(1e-3, o.warm_up, **DECAY, clip=1.0),
        lambda: timm.models.MlpMixer(
            8,
            32,
            patch_size=4,
            num_blocks=4,
            embed_dim=48,
            mlp_ratio=4,
            block_layer=timm.models.mlp_mixer.SpatialGatingBlock,
            mlp_layer=timm.models.mlp_mixer.GatedMlp,
        ),
    ),
    "cross_vit": (
        64,
        losses.classes(0.1),
        FIT(1e-3, o.cosine, **DECAY),
        slim(
            "crossvit_tiny_240",
            img_size=64,
            img_scale=(1, 1),
            patch_size=(8, 16),
            embed_dim=(32, 48),
            num_heads=(2, 2),
            mlp_ratio=(2, 2, 1),
            depth=((1, 2, 0),) * 2,
        ),
    ),
    "gc_vit": (
        64,
        losses.flip,
        FIT(1e-3, o.two_phases, **DECAY, clip=5.0, batch=12),
        lambda: timm.models.GlobalContextVit(
            num_classes=8,
            img_size=64,
            embed_dim=16,
            depths=(1, 1, 2, 1),
            num_heads=(1, 2, 2, 4),
            window_ratio=(8, 8, 16, 32),
        ),
    ),
    "ca_former": (
        64,
        losses.cut_mix,
        FIT(1e-3, o.warm_up, **DECAY),
        lambda: timm.models.MetaFormer(
            num_classes=8,
            depths=FLAT,
            dims=(16, 24, 32, 64),
            token_mixers=[(k := timm.models.metaformer).SepConv] * 2 + [k.Attention] * 2,
            norm_layers=[k.LayerNorm2dNoBias] * 2 + [k.LayerNormNoBias] * 2,
        ),
    ),
    "volo": (
        64,
        losses.classes(0.1),
        FIT(1.6e-3, o.warm_up, **DECAY, ema=0.99),
        lambda: timm.models.VOLO(
            FLAT,
            64,
            num_classes=8,
            patch_size=8,
            stem_hidden_dim=16,
            embed_dims=(24, 48, 48, 48),
            num_heads=(2, 4, 4, 4),
            use_mix_token=False,
        ),
    ),
    "nest": (
        32,
        losses.augmented,
        FIT(1e-3, o.linear_down, **DECAY),
        lambda: timm.models.Nest(
            32, 3, 2, num_classes=8, embed_dims=EMBED, num_heads=(1, 2, 4), depths=(1, 1, 1)
        ),
    ),
    "tiny_vit": (
        64,
        CE,
        FIT(1e-3, o.cosine, **DECAY, clip=5.0),
        lambda: timm.models.TinyVit(
            num_classes=8,
            embed_dims=(16, *EMBED),
            depths=(1, 1, 2, 1),
            num_heads=(1, 2, 2, 3),
            window_sizes=(4, 4, 4, 2),
        ),
    ),
    "mvit_2": (
        64,
        losses.mixup(),
        FIT(1e-3, o.two_phases, **DECAY, clip=1.0, batch=12),
        lambda: timm.models.MultiScaleVit(
            timm.models.mvitv2.MultiScaleVitCfg(depths=(1, 1, 1, 1), embed_dim=16),
            (64, 64),
            num_classes=8,
        ),
    ),
    "swin_cr": (
        64,
        losses.augmented,
        FIT(1e-3, o.ramp, **DECAY, clip=5.0, batch=12),
        lambda: timm.models.SwinTransformerV2Cr(
            (64, 64), num_classes=8, embed_dim=24, depths=(1, 1, 2), num_heads=(1, 2, 4)
        ),
    ),
    "efficient_former": (
        64,
        losses.flip,
        FIT(2e-3, o.cosine, **DECAY, batch=12),
        lambda: timm.models.EfficientFormerV2(
            FLAT, embed_dims=(16, *EMBED), img_size=64, num_classes=8
        ),
    ),
    "rep_vgg": (
        32,
        losses.flip,
        FIT(0.05, o.cosine, **NESTEROV),
        lambda: timm.models.ByobNet(
            timm.models.ByoModelCfg(
                tuple(timm.models.ByoBlockCfg("rep", 1, n, 2, 0) for n in EMBED),
                stem_type="rep",
                stem_chs=16,
            ),
            8,
        ),
    ),
    "focal_net": (
        64,
        losses.classes(0.1),
        FIT(1e-3, o.warm_up, **DECAY, clip=5.0),
        lambda: timm.models.FocalNet(num_classes=8, depths=(1, 1, 1, 1), embed_dim=16),
    ),
}

HUGGING_SIZES: dict[str, Any] = {
    "ViT": (
        HALF,
        FIT(5e-4, o.linear_down, kind=optim.AdamW, weight_decay=0, clip=1.0),
        "",
        library.SMALL,
    ),
    "IJepa": (P, FIT(1e-3, o.warm_up, **DECAY, clip=1.0), "", library.SMALL),
    "Perceiver": (
        P,
        FIT(1e-3, o.ramp, **DECAY, clip=1.0),
        "ConvProcessing",
        {
            "num_latents": 16,
            "d_latents": 64,
            "num_blocks": 1,
            "num_self_attends_per_block": 2,
            "num_self_attention_heads": 4,
            "num_cross_attention_heads": 1,
        },
    ),
    "CLIP": (P, FIT(5e-4, o.cosine, **DECAY, clip=1.0), "", {"vision_config": library.SMALL}),
}

P48 = data.photos(48)

TIMM_CONVOLUTIONS: dict[str, Any] = {
    "hgnetv2_b0": (losses.classes(0.1), FIT(1e-3, o.cosine, **ADAMW)),
    "seresnet18": (losses.augmented, SGD(0.05, o.cosine, weight_decay=4e-5)),
    "regnety_002": (losses.mixup(), FIT(0.01, o.one_cycle(0.05), **NESTEROV)),
    "resnet14t": (losses.classes(0.1), FIT(2e-3, o.two_phases, **DECAY)),
}

HUGGING_MOBILE: dict[str, Any] = {
    "MobileNetV2": {"depth_multiplier": 0.35, "classifier_dropout_prob": 0.1},
    "SwiftFormer": {"embed_dims": [16, 24, 32, 48], "depths": FLAT},
}

VIT = {"img_size": 32, "patch_size": 4, "depth": 2, "embed_dim": 64, "num_heads": 4}

CASES = [
    *seen(
        "2026-11-27T11:30",
        one("lcnet", slim("lcnet_050"), P64, CE, how(0.05, o.two_phases, **NESTEROV), "timm LCNet"),
        one(
            "convnext",
            slim("test_convnext"),
            P64,
            losses.cut_mix,
            how(2e-3, o.warm_up, **DECAY, steps=120),
            "timm ConvNeXt, small",
        ),
        one(
            "tinynet",
            slim("tinynet_e"),
            data.photos(48),
            losses.classes(0.1),
            how(2e-3, **DECAY, ema=0.98, evaluate=24, steps=72, every=6),
            "timm TinyNet",
        ),
        one(
            "selective",
            slim("skresnet18"),
            P,
            CE,
            how(0.01, o.one_cycle(0.05), **NESTEROV, steps=60, every=5),
            "timm SKNet",
        ),
        one(
            "normalization_free",
            slim("test_nfnet"),
            P64,
            CE,
            how(0, None, "adaptive clipping", o.adaptive, steps=80),
            "timm NFNet, small",
        ),
        one(
            "adafactor",
            slim("test_byobnet"),
            P64,
            CE,
            how(0, None, "Adafactor", o.adafactor),
            "timm ByobNet",
        ),
        one(
            "strikes_back",
            slim("test_resnet"),
            P64,
            strikes_back,
            how(0, o.cosine, "LAMB", lamb, batch=32),
            "timm ResNet",
        ),
        one(
            "rms_tf",
            slim("test_efficientnet"),
            P64,
            losses.flip,
            how(0, o.fading, "RMSprop as in TensorFlow", as_tensorflow),
            "timm EfficientNet, small",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        [
            *(
                case
                for name, (kind, lr, sizes) in BY_OPTIMIZER.items()
                for case in one(
                    name.removeprefix("test_").split("_")[0],
                    slim(name, **sizes),
                    P,
                    CE,
                    FIT(
                        0,
                        None,
                        f"{kind} {lr:g}",
                        partial(timm.optim.create_optimizer_v2, opt=kind, lr=lr, weight_decay=0.02),
                        batch=12,
                        steps=100,
                    ),
                    f"timm {name}",
                )
            )
        ],
    ),
    *seen(
        "2026-11-28T10:00",
        *(
            one(
                name.split("_")[0],
                slim(name),
                P48,
                loss,
                recipe.but("", batch=6, steps=80, every=8),
                f"timm {name}",
            )
            for name, (loss, recipe) in TIMM_CONVOLUTIONS.items()
        ),
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForImageClassification", **sizes, num_labels=8),
                P64,
                told,
                FIT(2e-3, o.linear_down, **ADAMW, clip=1.0, batch=8),
                f"transformers {name}",
            )
            for name, sizes in HUGGING_MOBILE.items()
        ),
        [
            *(
                case
                for name, (draw, sizes, recipe) in {
                    "deit3_small_patch16_224": (
                        P,
                        VIT,
                        FIT(
                            0,
                            o.warm_up,
                            "LAMB 0.005",
                            partial(create_optimizer_v2, opt="lamb", lr=5e-3, weight_decay=0.02),
                            marked=True,
                        ),
                    ),
                }.items()
                for case in one(
                    name.split("_")[0], slim(name, **sizes), draw, CE, recipe, f"timm {name}"
                )
            )
        ],
    ),
    *seen(
        "2026-11-28T11:40",
        *(
            one(
                name.split("_")[0],
                slim(name, **sizes),
                data.photos(side),
                loss,
                recipe.but("", batch=8, **SHORT),
                f"timm {name}",
            )
            for name, (side, loss, recipe, sizes) in TIMM_SMALL.items()
        ),
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForImageClassification", **sizes, num_labels=8),
                draw,
                told,
                recipe,
                f"transformers {name}",
            )
            for name, (draw, recipe, sizes) in HUGGING_VARIANTS.items()
        ),
        one(
            "max_vit",
            lambda: models.MaxVit((32, 32), 16, 4, [24, 32], [1, 1], 8, 0.1, num_classes=8),
            P,
            losses.classes(0.1),
            FIT(1e-3, o.warm_up, **DECAY, batch=8),
            "torchvision MaxViT",
        ),
        one(
            "mobile_v3",
            library.mobilenet_v3,
            P,
            losses.flip,
            FIT(2e-3, o.fading, kind=optim.RMSprop, momentum=0.9, eps=0.0316, weight_decay=1e-5),
            "torchvision MobileNet v3",
        ),
        *(
            one(
                name.removeprefix("test_").split("_")[0],
                slim(name, **sizes),
                P64,
                loss,
                recipe.but("", batch=6, steps=80, every=8),
                f"timm {name}",
            )
            for name, (sizes, loss, recipe) in {
                "test_coatnet": (
                    {"img_size": 64},
                    losses.classes(0.1),
                    FIT(1e-3, o.cosine, **DECAY),
                ),
                "test_maxvit": (
                    {"img_size": 64},
                    losses.flip,
                    FIT(1e-3, o.warm_up, **DECAY, clip=1.0),
                ),
            }.items()
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        *(
            one(
                name.removeprefix("test_").split("_")[0],
                slim(name, **sizes),
                data.photos(side),
                loss,
                recipe.but("", **SHORT),
                f"timm {name}",
            )
            for name, (side, loss, recipe, sizes) in TIMM_TRANSFORMERS.items()
        ),
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForImageClassification", **sizes, num_labels=8),
                draw,
                told,
                recipe,
                f"transformers {name}",
            )
            for name, (draw, recipe, sizes) in HUGGING_PLAIN.items()
        ),
        one(
            "dense",
            library.densenet,
            P,
            losses.augmented,
            FIT(0.1, o.stairs, **NESTEROV),
            "torchvision DenseNet",
        ),
        one(
            "squeeze",
            partial(models.squeezenet1_1, num_classes=8),
            P64,
            CE,
            FIT(3e-4, o.linear_down, weight_decay=2e-4, batch=12),
            "torchvision SqueezeNet",
        ),
        one(
            "efficient",
            library.efficientnet,
            P,
            losses.classes(0.1),
            FIT(
                2e-3,
                o.fading,
                kind=optim.RMSprop,
                alpha=0.9,
                momentum=0.9,
                eps=1e-3,
                weight_decay=1e-5,
                batch=12,
            ),
            "torchvision EfficientNet",
        ),
        one(
            "vgg",
            library.vgg,
            P,
            losses.flip,
            SGD(0.05, o.stairs, weight_decay=5e-4),
            "torchvision VGG, BatchNorm",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        *(
            one(name, make, data.photos(side), loss, recipe.but("", **SHORT), f"timm {name}")
            for name, (side, loss, recipe, make) in TIMM_ATTENTION.items()
        ),
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForImageClassification{more}", **sizes, num_labels=8),
                draw,
                told,
                recipe.but("", **SHORT),
                f"transformers {name}",
            )
            for name, (draw, recipe, more, sizes) in HUGGING_SIZES.items()
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        *(
            one(
                name,
                make,
                data.photos(48 if "res" in name else 64),
                loss,
                recipe.but("", **SHORT),
                f"timm {name}",
            )
            for name, (loss, recipe, make) in TIMM_BLOCKS.items()
        ),
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForImageClassification", **sizes, num_labels=8),
                draw,
                told,
                recipe.but("", **SHORT),
                f"transformers {name}",
            )
            for name, (draw, recipe, sizes) in HUGGING_STAGES.items()
        ),
        one(
            "shuffle_net",
            lambda: models.ShuffleNetV2([1, 2, 1], [16, 24, 48, 96, 128], 8),
            P64,
            losses.classes(0.1),
            SGD(0.05, o.two_phases, weight_decay=2e-5),
            "torchvision ShuffleNet",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        *(
            one(
                name,
                make,
                data.photos(64 if "bot" in name else 48),
                loss,
                recipe.but("", **SHORT),
                f"timm {name}",
            )
            for name, (loss, recipe, make) in TIMM_CLASSES.items()
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        *(
            one(name, make, data.photos(48), loss, recipe.but("", **SHORT), f"timm {name}")
            for name, (loss, recipe, make) in TIMM_RESNETS.items()
        ),
    ),
]
