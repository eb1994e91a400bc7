"""Healthy: pictures, maps and volumes of a sixteenth set; the checks were not known."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import projected
from cases.healthy.strangers_pictures import DECAY, NESTEROV, one, slim
from cases.healthy.strangers_thirteenth_rows import fresh
from data import P64, P, photos
from loops import Losses, descend, duel, follow, own_loop, seen
from nets import classifiers as cnn
from nets import library
from nets import strangers_fifth as fifth
from nets.classifiers import unit
from nets.dense import UNet
from nets.strangers import Residual
from nets.strangers_kept import FIT, SGD
from timm import models as timm
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision.models import detection, segmentation, video
from torchvision.models._utils import IntermediateLayerGetter
from torchvision.ops import MultiScaleRoIAlign

SCENES, UNITS, S, cat, CE = data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat, losses.classes()
mse, entropy, hf = functional.mse_loss, functional.cross_entropy, library.hf
conv, line, deconv = nn.Conv2d, nn.Linear, nn.ConvTranspose2d
resize, leaky = functional.interpolate, partial(nn.LeakyReLU, 0.2)
FOUR = library.SMALL | {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]}
up, FLAT, SHORT = nn.Upsample(scale_factor=2), [1] * 4, {"steps": 80, "every": 8}
mlp, SMALL, BODY, EMBED = fifth.mlp, library.SMALL, library.BODY, (24, 32, 48)
TIMM: dict[str, Any] = {
    "gmlp": (32, losses.mixup(), FIT(1e-3, o.warm_up, **DECAY, clip=1.0), lambda:
        timm.MlpMixer(8, 32, patch_size=4, num_blocks=4, embed_dim=48, mlp_ratio=4, block_layer=
        timm.mlp_mixer.SpatialGatingBlock, mlp_layer=timm.mlp_mixer.GatedMlp)),
    "cross_vit": (64, losses.classes(0.1), FIT(1e-3, o.cosine, **DECAY), slim("crossvit_tiny_240",
        img_size=64, img_scale=(1, 1), patch_size=(8, 16), embed_dim=(32, 48), num_heads=(2, 2),
        mlp_ratio=(2, 2, 1), depth=((1, 2, 0),) * 2)),
    "gc_vit": (64, losses.flip, FIT(1e-3, o.two_phases, **DECAY, clip=5.0, batch=12), lambda:
        timm.GlobalContextVit(num_classes=8, img_size=64, embed_dim=16, depths=(1, 1, 2, 1),
        num_heads=(1, 2, 2, 4), window_ratio=(8, 8, 16, 32))),
    "ca_former": (64, losses.cut_mix, FIT(1e-3, o.warm_up, **DECAY), lambda: timm.MetaFormer(
        num_classes=8, depths=FLAT, dims=(16, 24, 32, 64), token_mixers=[(k :=
        timm.metaformer).SepConv] * 2 + [k.Attention] * 2, norm_layers=[k.LayerNorm2dNoBias] * 2 +
        [k.LayerNormNoBias] * 2)),
    "volo": (64, losses.classes(0.1), FIT(1.6e-3, o.warm_up, **DECAY, ema=0.99), lambda: timm.VOLO(
        FLAT, 64, num_classes=8, patch_size=8, stem_hidden_dim=16, embed_dims=(24, 48, 48, 48),
        num_heads=(2, 4, 4, 4), use_mix_token=False)),
    "nest": (32, losses.augmented, FIT(1e-3, o.linear_down, **DECAY), lambda: timm.Nest(32, 3, 2,
        num_classes=8, embed_dims=EMBED, num_heads=(1, 2, 4), depths=(1, 1, 1))),
    "tiny_vit": (64, CE, FIT(1e-3, o.cosine, **DECAY, clip=5.0), lambda: timm.TinyVit(num_classes=8,
        embed_dims=(16, *EMBED), depths=(1, 1, 2, 1), num_heads=(1, 2, 2, 3), window_sizes=(4, 4,
        4, 2))),
    "mvit_2": (64, losses.mixup(), FIT(1e-3, o.two_phases, **DECAY, clip=1.0, batch=12), lambda:
        timm.MultiScaleVit(timm.mvitv2.MultiScaleVitCfg(depths=(1, 1, 1, 1), embed_dim=16), (64,
        64), num_classes=8)),
    "swin_cr": (64, losses.augmented, FIT(1e-3, o.ramp, **DECAY, clip=5.0, batch=12), lambda:
        timm.SwinTransformerV2Cr((64, 64), num_classes=8, embed_dim=24, depths=(1, 1, 2),
        num_heads=(1, 2, 4))),
    "efficient_former": (64, losses.flip, FIT(2e-3, o.cosine, **DECAY, batch=12), lambda:
        timm.EfficientFormerV2(FLAT, embed_dims=(16, *EMBED), img_size=64, num_classes=8)),
    "rep_vgg": (32, losses.flip, FIT(0.05, o.cosine, **NESTEROV), lambda: timm.ByobNet(
        timm.ByoModelCfg(tuple(timm.ByoBlockCfg("rep", 1, n, 2, 0) for n in EMBED), stem_type="rep",
        stem_chs=16), 8)),
    "focal_net": (64, losses.classes(0.1), FIT(1e-3, o.warm_up, **DECAY, clip=5.0), lambda:
        timm.FocalNet(num_classes=8, depths=(1, 1, 1, 1), embed_dim=16)),
}  # fmt: skip
HUGGING: dict[str, Any] = {
    "ViT": (data.HALF, FIT(5e-4, o.linear_down, kind=optim.AdamW, weight_decay=0, clip=1.0), "",
        SMALL),
    "IJepa": (P, FIT(1e-3, o.warm_up, **DECAY, clip=1.0), "", SMALL),
    "Perceiver": (P, FIT(1e-3, o.ramp, **DECAY, clip=1.0), "ConvProcessing", {"num_latents": 16,
        "d_latents": 64, "num_blocks": 1, "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4, "num_cross_attention_heads": 1}),
    "Hiera": (P64, FIT(2e-3, o.cosine, **DECAY, betas=(0.9, 0.95)), "", {"embed_dim": 16,
        "image_size": [64, 64], "depths": [1, 1, 2, 1], "num_heads": [1, 2, 4, 8]}),
    "CLIP": (P, FIT(5e-4, o.cosine, **DECAY, clip=1.0), "", {"vision_config": SMALL}),
}  # fmt: skip


class Before(nn.Conv2d):
    """A pixel sees those before it, and itself unless it is the first layer."""

    def forward(self, x: Tensor) -> Tensor:
        size, later = self.kernel_size[0], self.in_channels > 1
        seen = (torch.arange(size**2) < size**2 // 2 + later).view(size, size)
        return functional.conv2d(x, self.weight * seen, self.bias, padding=size // 2)


def ls_gan(place: Path, seed: int) -> Losses:
    critic = S(*(z for a, b in ((3, 16), (16, 32), (32, 64)) for z in (conv(a, b, 3, 2, 1), leaky(),
        nn.Dropout2d(0.25))), nn.Flatten(), line(1024, 1))  # fmt: skip
    maker = S(line(64, 4096), nn.Unflatten(1, (64, 8, 8)), nn.BatchNorm2d(64), up, unit(64, 64,
        act=leaky), up, unit(64, 32, act=leaky), conv(32, 3, 3, 1, 1), nn.Tanh())  # fmt: skip

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 24), maker(torch.randn(24, 64))
        descend(first, (critic(fake) - 1).square().mean())
        return descend(second, ((critic(x) - 1) ** 2 + critic(fake.detach()) ** 2).mean() / 2)

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 100, 10)


CASES = seen("2026-11-28T13:20",
    *(one(name, make, photos(side), loss, recipe.but("", **SHORT), f"timm {name}") for name, (side,
         loss, recipe, make) in TIMM.items()),
    *(one(name.lower(), partial(hf, f"{name}ForImageClassification{more}", **sizes, num_labels=8),
         draw, told, recipe.but("", **SHORT), f"transformers {name}") for name, (draw, recipe, more,
         sizes) in HUGGING.items()),
    one("depth_anything", partial(hf, "DepthAnythingForDepthEstimation", backbone_config=FOUR |
          {"model_type": "dinov2", "reshape_hidden_states": False, "apply_layernorm": True},
         patch_size=4, reassemble_hidden_size=48, neck_hidden_sizes=[12, 24, 32, 48],
         fusion_hidden_size=16, head_hidden_size=16, depth_estimation_type="metric", max_depth=2),
         SCENES,
         lambda m, x, _, __, y: (g := resize(m(x).predicted_depth[:, None], (32, 32)).clamp(1e-3)
         .log() - y.log(), ((g**2).mean() - g.mean() ** 2 / 2 + 1e-6).sqrt())[1], FIT(5e-4,
         o.poly, **DECAY, batch=4, **SHORT), "Depth Anything, metric"),
    one("vit_pose", partial(hf, "VitPoseForPoseEstimation", backbone_config={"model_type":
         "vitpose_backbone", **BODY, "image_size": [64, 64], "patch_size": [8, 8], "num_labels":
         1}, num_labels=1, scale_factor=4, use_simple_decoder=True), SCENES, lambda m, x, *y:
         losses.heat(lambda z: m(resize(z, (64, 64))).heatmaps, x, *y), FIT(5e-4, o.ramp,
         **DECAY, clip=1.0, **SHORT), "ViTPose"),
    one("faster_rcnn", lambda: detection.FasterRCNN(library.Pyramid(nn.BatchNorm2d), None,
         **library.SIDE, rpn_anchor_generator=library.anchors(), box_roi_pool=MultiScaleRoIAlign(
         ["0", "1"], 5, 2), box_head=detection.faster_rcnn.TwoMLPHead(800, 64), box_predictor=
         detection.faster_rcnn.FastRCNNPredictor(64, 2), rpn_pre_nms_top_n_train=200,
         rpn_post_nms_top_n_train=100, box_batch_size_per_image=64), SCENES, library.found,
         SGD(5e-3, o.ramp, weight_decay=5e-4, batch=4), "torchvision Faster R-CNN"),
    one("fcn", lambda: segmentation.FCN(IntermediateLayerGetter(cnn.resnet(output_stride=8),
         {"layer4": "out", "layer3": "aux"}), segmentation.fcn.FCNHead(64, 2),
         segmentation.fcn.FCNHead(64, 2)), SCENES, lambda m, x, y, *_: (z := m(x), sum(w * entropy(
         z[k], y[:, 0].long()) for k, w in (("out", 1), ("aux", 0.5))))[1], SGD(0.01, o.poly,
         weight_decay=1e-4), "torchvision FCN, auxiliary head"),
    one("swin_3d", lambda: video.swin_transformer.SwinTransformer3d([2, 2, 2], 24, [1, 1], [2, 4],
         [4, 3, 3], num_classes=8), data.panned, losses.classes(0.1), FIT(1e-3, o.warm_up, **DECAY,
         batch=8), "torchvision Video Swin"),
    one("fast_depth", lambda: cnn.he(S(unit(3, 16, stride=2), *(S(unit(a, a, 3, 2, groups=a), unit(
         a, b, 1)) for a, b in ((16, 32), (32, 64))), *(S(unit(a, a, 5, groups=a), unit(a, b, 1),
         up) for a, b in ((64, 32), (32, 16), (16, 16))), unit(16, 1, 1))), SCENES, lambda m, x, _,
         __, y: (m(x) - y).abs().mean(), SGD(0.01, o.stairs, weight_decay=1e-4, batch=8),
         "FastDepth"),
    one("beit_segments", partial(hf, "BeitForSemanticSegmentation", **FOUR, num_labels=2,
         pool_scales=[1, 2], use_auxiliary_head=False), SCENES, lambda m, x, y, *_: told(m, x, y[:,
         0].long()), FIT(5e-4, o.poly, **DECAY, batch=8), "Beit, UperNet head"),
    one("nin", lambda: S(*(z for a, b, k in ((1, 24, 5), (24, 48, 3), (48, 64, 3)) for z in (unit(a,
         b, k, norm=None), *(unit(b, b, 1, norm=None) for _ in "ab"), nn.MaxPool2d(3, 2))),
         nn.Dropout(0.5), unit(64, 10, norm=None), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
         data.digits, CE, FIT(2e-3, batch=32), "network in network"),
    one("keras_cifar", lambda: S(*(z for a, b in ((3, 32), (32, 64), (64, 64)) for z in (nn.Conv2d(
         a, b, 3), nn.ReLU(), *([nn.MaxPool2d(2)] if a < 64 else []))), nn.Flatten(), line(1024,
         64), nn.ReLU(), line(64, 8)), data.UNIT, CE, FIT(1e-3, batch=32), "Keras' CNN of CIFAR"),
    one("denoised", lambda: S(unit(1, 32, norm=None), nn.MaxPool2d(2), unit(32, 32, norm=None),
         nn.MaxPool2d(2), deconv(32, 32, 4, 2, 1), nn.ReLU(), deconv(32, 32, 4, 2, 1), nn.ReLU(),
         conv(32, 1, 3, 1, 1)), data.digits, lambda m, x, _: functional
         .binary_cross_entropy_with_logits(m((x + 0.4 * torch.randn_like(x)).clamp(0, 1)), x), FIT(
         1e-3, batch=32, **SHORT), "Keras' denoising autoencoder"),
    one("dark", partial(UNet, 3, 3, 16, norm=None), UNITS, lambda m, x: ((m(((d := x * 0.04) +
         (d * 0.01).sqrt() * torch.randn_like(x) * 0.3) * 25) - x).abs()).mean(), FIT(1e-4,
         o.stairs, batch=8), "See-in-the-Dark's U-Net"),
    one("rain", lambda: Residual(unit(3, 24, norm=None), *(Residual(unit(24, 24), unit(24, 24)) for
         _ in "abc"), conv(24, 3, 3, 1, 1)), UNITS, lambda m, x: (k := (torch.rand_like(x[:, :1]) <
         0.02).float(), k := functional.max_pool2d(k, (9, 1), 1, (4, 0)), mse(m((x + k / 2).clamp(0,
         1)), x))[-1], FIT(1e-3, o.stairs, batch=8, **SHORT), "deraining, residual"),
    one("dru_net", partial(UNet, 4, 3, 16, norm=None), UNITS, lambda m, x: (k := torch.rand(len(x),
         1, 1, 1) / 5, (m(cat([x + k * torch.randn_like(x), k.expand_as(x[:, :1])], 1)) -
         x).abs().mean())[1], FIT(1e-4, o.fading, batch=8), "DRUNet, noise level as a channel"),
    one("u_vit", lambda: Net(lambda m, x, t: (z := m["in"](x).flatten(2).mT + m["place"].weight,
         z := m["body"](cat([z, m["time"](t[:, None])[:, None]], 1)), functional.pixel_shuffle(m[
         "out"](z[:, :-1]).mT.unflatten(2, (8, 8)), 4))[-1], place=fresh(nn.Embedding(64, 64),
         lambda p: p.normal_(0, 0.02)), body=nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4,
         128, 0, "gelu", batch_first=True, norm_first=True), 3, enable_nested_tensor=False),
         time=mlp(1, 64, 64, act=nn.SiLU), out=S(nn.LayerNorm(64), line(64, 48)), **{"in": conv(3,
         64, 4, 4)}), data.CROPS, losses.diffusion, FIT(1e-3, o.ramp, kind=optim.AdamW, betas=(0.9,
         0.99), weight_decay=0.03, ema=0.99), "diffusion by a ViT"),
    one("pixel_cnn", lambda: S(Before(1, 24, 7), nn.ReLU(), *(Residual(conv(24, 12, 1), nn.ReLU(),
         Before(12, 12, 3), nn.ReLU(), conv(12, 24, 1)) for _ in "abc"), nn.ReLU(), conv(24, 16,
         1)), data.digits, losses.levels, FIT(1e-3, o.fading, **SHORT), "PixelCNN"),
    one("wae", lambda: nn.ModuleDict({"down": S(unit(3, 24, 4, 2), unit(24, 48, 4, 2), nn.Flatten(),
         line(48 * 64, 16)), "up": S(line(16, 48 * 64), nn.Unflatten(1, (48, 8, 8)), deconv(48, 24,
         4, 2, 1), nn.BatchNorm2d(24), nn.ReLU(), deconv(24, 3, 4, 2, 1), nn.Tanh())}), data.CROPS,
         lambda m, x: (z := m["down"](x), n := torch.randn_like(z), k := lambda a, b:
         (32 / (32 + torch.cdist(a, b) ** 2)).mean(), mse(m["up"](z), x) + k(z, z) + k(n, n) -
         2 * k(z, n))[-1], FIT(1e-3, batch=32), "WAE-MMD"),
    one("byol", lambda: nn.ModuleDict({"online": (a := projected()), "guess": S(line(32, 64),
         nn.BatchNorm1d(64), nn.ReLU(), line(64, 32)), "target": copy.deepcopy(a)
         .requires_grad_(False)}), data.pictures(40), lambda m, x: (v := losses.both_views(x), sum(2
         - 2 * functional.cosine_similarity(m["guess"](m["online"](a)), m["target"](b)).mean() for
         a, b in (v, v[::-1])))[1], FIT(1e-3, weight_decay=1.5e-6, batch=32, after=lambda _, m, __:
         follow(m["target"], m["online"], 0.99), **SHORT), "BYOL"),
    own_loop("ls_gan", "LSGAN", "least squares, Adam 2e-4", ls_gan, 100, 10, False),
)  # fmt: skip
