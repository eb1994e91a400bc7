"""Healthy: convolutional networks of tutorials, papers and libraries; the checks were not known."""

from __future__ import annotations

from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_fifth as fifth
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import bce, projected
from cases.healthy.strangers_pictures import DECAY, one, slim
from data import P64, changed
from loops import own_loop, seen
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function, head, unit
from nets.dense import UNet
from nets.generative import Flow
from nets.strangers import Gate, Residual
from nets.strangers_kept import FIT, SGD
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision.models.segmentation.deeplabv3 import ASPP

CE, SCENES, UNITS, S, cat = losses.classes(), data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat
mse, half, pad, sphere = functional.mse_loss, nn.MaxPool2d(2), functional.pad, functional.normalize
PRIOR = 0.1 * torch.rand(1, 8, 32, 32, generator=Generator().manual_seed(3))
ADAMW, softplus, FLAT = {"kind": optim.AdamW, "weight_decay": 0.01}, functional.softplus, [1] * 4
leaky, up = partial(nn.LeakyReLU, 0.1), partial(nn.Upsample, scale_factor=4, mode="bilinear")


def shifted(x: Tensor) -> Tensor:
    """TSM: an eighth of the channels comes from the next frame, an eighth from the last."""
    n, y = x.shape[1] // 8, x.view(-1, 8, *x.shape[1:])
    later, sooner = y[:, 1:, :n], y[:, :-1, n : 2 * n]
    moved = [pad(later, (0,) * 7 + (1,)), pad(sooner, (0,) * 6 + (1, 0)), y[:, :, 2 * n :]]
    return cat(moved, 2).flatten(0, 1)


def yolo(m: nn.Module, x: Tensor, _: Tensor, discs: Tensor, __: Tensor) -> Tensor:
    """A box and a confidence in each of 8 × 8 cells."""
    (column, row), found = (discs[:, :2] / 4).long().clamp(0, 7).T, m(x)
    here = found[torch.arange(len(x)), :, row, column]
    box = cat([discs[:, :2] / 4 % 1, (discs[:, 2:] / 16).sqrt().expand(-1, 2)], 1)
    none = found[:, 0].square().sum((1, 2)) - here[:, 0].square()
    return (5 * (here[:, 1:] - box).square().sum(1) + (here[:, 0] - 1).square() + none / 2).mean()


def registered(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """A digit is moved onto another one of its class; the flow is smooth."""
    x, y = x[order := y.argsort()], y[order]
    x = cat([x[1:], x[:-1]], 1)[y[1:] == y[:-1]]
    flow, plain = m(x), torch.eye(2, 3).expand(len(x), 2, 3)
    grid = functional.affine_grid(plain, x[:, :1].shape, False) + flow.permute(0, 2, 3, 1) / 14
    moved = functional.grid_sample(x[:, :1], grid, align_corners=False)
    slopes = flow.diff(dim=2).square().mean() + flow.diff(dim=3).square().mean()
    return mse(moved, x[:, 1:]) + 0.01 * slopes


def r1(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """Softplus, and the squared slope at true pictures."""
    said = critic(real.requires_grad_())
    (slope,) = torch.autograd.grad(said.sum(), real, create_graph=True)
    return (softplus(-said) + softplus(critic(fake))).mean() + 5 * slope.square().sum() / len(real)


CHOSEN: dict[str, Any] = {
    "mobilevit_xxs": (losses.classes(0.1), FIT(2e-3, o.warm_up, **ADAMW)),
    "fasternet_t0": (CE, FIT(1e-3, o.warm_up, **DECAY)),
    "pvt_v2_b0": (losses.cut_mix, FIT(5e-4, o.warm_up, **DECAY, clip=1.0), ("depths", FLAT)),
    "shvit_s1": (CE, FIT(1e-3, o.cosine, **DECAY), ("embed_dim", (64, 112, 160)),
         ("partial_dim", (16, 24, 32))),
    "swiftformer_xs": (losses.mixup(), FIT(1e-3, o.two_phases, **ADAMW), ("layers", FLAT)),
}  # fmt: skip
HUGGING: dict[str, Any] = {
    "Levit": {"image_size": 64, "hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4],
         "depths": [1] * 3, "key_dim": [8] * 3},
    "ResNet": {"embedding_size": 16, "hidden_sizes": [32, 48, 64, 96], "depths": FLAT},
    "MobileNetV1": {"depth_multiplier": 0.25, "classifier_dropout_prob": 0.001},
}  # fmt: skip
CASES = seen("2026-11-28T09:25",
    *(one(name.split("_")[0], slim(name, **dict(sizes)), P64, loss, recipe.but("", batch=6,
         steps=90, every=9), f"timm {name}") for name, (loss, recipe, *sizes) in CHOSEN.items()),
    *(one(name.lower(), partial(library.hf, f"{name}ForImageClassification", **sizes, num_labels=8),
         P64, told, FIT(1e-3, o.linear_down, **ADAMW, clip=1.0), f"transformers {name}") for name,
         sizes in HUGGING.items()),
    one("euro_sat", partial(cnn.resnet, channels=16), data.bands, CE, SGD(0.05, o.one_cycle(0.05),
         weight_decay=1e-4), "ResNet, 16 bands"),
    one("hybrid_sn", lambda: S(Function(lambda x: x[:, None, :, 6:25, 6:25]), *(layer for a, b, k in
         ((1, 8, 7), (8, 16, 5), (16, 32, 3)) for layer in (nn.Conv3d(a, b, (k, 3, 3)), nn.ReLU())),
         nn.Flatten(1, 2), nn.Conv2d(128, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(7744, 128),
         nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.4), nn.Linear(64,
         8)), data.bands, CE, FIT(1e-3, weight_decay=1e-6), "HybridSN"),
    one("landmarks", partial(cnn.resnet, classes=3), SCENES, lambda m, x, _, discs, __:
         torch.where((far := (16 + 16 * m(x) - discs).abs()) < 10, 10 * (far / 2).log1p(), far +
         7.918).mean(), FIT(1e-3, o.stairs), "ResNet, wing loss"),
    one("tsm", lambda: S(Function(lambda x: x.transpose(1, 2).flatten(0, 1)), unit(3, 24, stride=2),
         *(Residual(Function(shifted), unit(24, 24), nn.Conv2d(24, 24, 3, 1, 1), nn.BatchNorm2d(24))
         for _ in range(2)), nn.ReLU(), *head(24, 8, 0.2), Function(lambda x: x.view(-1, 8,
         8).mean(1))), data.panned, CE, SGD(0.05, o.cosine, clip=20, batch=8), "TSM"),
    one("ct_scans", lambda: S(*(layer for a, b in ((1, 16), (16, 24), (24, 32)) for layer in
         (nn.Conv3d(a, b, 3, 1, 1), nn.ReLU(), nn.MaxPool3d(2), nn.BatchNorm3d(b))),
         nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.3),
         nn.Linear(64, 1)), changed(data.hounsfield, lambda x: x.clamp(-160, 240) / 200), lambda m,
         x, y: bce(m((x - 0.6 * y * (1 - (k := torch.rand(len(x), 1).round())[..., None, None,
         None])).clamp(min=-0.8)), k), FIT(1e-3, o.fading, batch=8), "3-D CNN, lesion or none"),
    one("wav2vec", partial(library.hf, "Wav2Vec2ForSequenceClassification", **library.BODY,
         conv_dim=[32] * 3, conv_stride=[5, 2, 2], conv_kernel=[10, 3, 3],
         num_feat_extract_layers=3, num_labels=6, num_conv_pos_embeddings=16,
         num_conv_pos_embedding_groups=4, classifier_proj_size=32, mask_time_length=2),
         changed(data.tones(1024), lambda x: (x - x.mean(2, True)) / x.std(2, keepdim=True)), lambda
         m, x, y: told(m, x[:, 0], y), FIT(1e-3, o.warm_up, **ADAMW, clip=1.0), "wav2vec 2.0"),
    one("alignment", projected, data.pictures(40), lambda m, x: ((f := [sphere(m(view)) for view in
         losses.both_views(x)])[0] - f[1]).square().sum(1).mean() +
         sum(torch.pdist(c).square().mul(-2).exp().mean().log() for c in f) / 2, SGD(0.05, o.stairs,
         weight_decay=1e-4, batch=32), "alignment and uniformity"),
    one("masked_pixels", partial(UNet, 3, 3, 16), data.pictures(32, "imagenet"), lambda m, x: ((m(x
         * (k := functional.interpolate((torch.rand(len(x), 1, 8, 8) > 0.6).float(),
         scale_factor=4))) - x).square() * (1 - k)).sum() / (3 * (1 - k).sum()), FIT(1e-3,
         o.warm_up, **DECAY, betas=(0.9, 0.95), batch=8), "masked U-Net, as SparK"),
    one("segformer", partial(library.hf, "SegformerForSemanticSegmentation", hidden_sizes=[16, 32,
         40, 64], depths=FLAT, num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=32,
         num_labels=2), SCENES, lambda m, x, y, *_: told(m, x, y[:, 0].long()), FIT(1e-3, o.poly,
         **ADAMW, batch=8), "SegFormer"),
    one("glpn", partial(library.hf, "GLPNForDepthEstimation", hidden_sizes=[16, 24, 32, 48],
         depths=FLAT, num_attention_heads=[1, 1, 2, 2], decoder_hidden_size=24, max_depth=2),
         SCENES, lambda m, x, _, __, far: functional.l1_loss(m(x).predicted_depth[:, None], far),
         FIT(1e-3, o.one_cycle(2e-3), batch=8), "GLPN"),
    one("swin2", partial(library.hf, "Swin2SRForImageSuperResolution", image_size=16, embed_dim=24,
         depths=[2], num_heads=[2], window_size=4, upscale=2, num_channels_out=3), UNITS, lambda m,
         x: losses.larger(lambda y: m(y).reconstruction, x), FIT(5e-4, o.stairs, betas=(0.9, 0.99),
         batch=8), "Swin2SR"),
    one("deep_lab", lambda: Net(lambda m, x: (m["last"](m["aspp"](m["b"](z := m["a"](x)))),
         m["side"](z)), a=S(unit(3, 24, stride=2), unit(24, 32, stride=2), unit(32, 48)), b=unit(48,
         64, dilation=2), aspp=ASPP(64, [2, 4, 6], 32), last=S(unit(32, 32), nn.Conv2d(32, 2, 1),
         up()), side=S(unit(48, 16), nn.Conv2d(16, 2, 1), up())), SCENES, lambda m, x, y, *_: sum(w
         * losses.two_classes(lambda f: f, f, y) for w, f in zip((1, 0.5), m(x), strict=True)),
         SGD(0.02, o.poly, weight_decay=1e-4, batch=8), "torchvision's DeepLab v3"),
    one("yolo", lambda: S(unit(3, 16, act=leaky), half, unit(16, 32, act=leaky), half, unit(32, 64,
         act=leaky), unit(64, 64, act=leaky), nn.Conv2d(64, 5, 1)), SCENES, yolo, SGD(1e-3, o.ramp,
         weight_decay=5e-4), "YOLO v1"),
    one("mask_rcnn", library.mask_rcnn, SCENES, library.found, SGD(5e-3, o.stairs,
         weight_decay=5e-4, batch=2), "torchvision Mask R-CNN"),
    one("spleen", partial(Gate, 1, norm=nn.BatchNorm3d, wide=False), changed(data.hounsfield, lambda
         x: (x.clamp(-57, 164) + 57) / 221), losses.both_masks, FIT(2e-3, o.cosine, **ADAMW,
         batch=2, steps=100), "MONAI's spleen, 3-D"),
    one("voxel_morph", lambda: (n := UNet(2, 2, 16, None), nn.init.normal_(n.last.weight, 0, 1e-5),
         nn.init.zeros_(n.last.bias))[0], data.digits, registered, FIT(1e-3, batch=24, steps=180,
         every=15), "VoxelMorph, 2-D"),
    one("srcnn", lambda: S(nn.Conv2d(1, 64, 9, padding=4), nn.ReLU(), nn.Conv2d(64, 32, 1),
         nn.ReLU(), nn.Conv2d(32, 1, 5, padding=2)), changed(UNITS, lambda x: x.mean(1, True)),
         lambda m, x: mse(m(functional.interpolate(functional.avg_pool2d(x, 2), scale_factor=2,
         mode="bicubic")), x), FIT(0, None, "Adam 1e-4, 1e-5 at the end", lambda m:
         optim.Adam([{"params": m[:4].parameters()}, {"params": m[4].parameters(), "lr": 1e-5}],
         1e-4), batch=8), "SRCNN"),
    one("context_encoder", lambda: S(*(unit(a, b, 4, 2, act=leaky) for a, b in ((3, 24), (24, 48),
         (48, 64))), nn.Flatten(), nn.Linear(1024, 256), nn.Unflatten(1, (16, 4, 4)), nn.ReLU(),
         nn.ConvTranspose2d(16, 48, 4, 2, 1), nn.BatchNorm2d(48), nn.ReLU(), nn.ConvTranspose2d(48,
         3, 4, 2, 1), nn.Tanh()), data.CROPS, lambda m, x: mse(m(x * pad(torch.zeros(16, 16), (8,) *
         4, value=1.0)), x[..., 8:24, 8:24]), FIT(2e-3, betas=(0.5, 0.999)), "context encoder"),
    one("deep_prior", partial(UNet, 8, 3, 16, transposed=False), data.one_batch(changed(UNITS,
         lambda x: x + 0.1 * torch.randn_like(x))), lambda m, x: mse(m(PRIOR +
         torch.randn_like(PRIOR) / 30).sigmoid(), x), FIT(0.01, batch=1), "deep image prior"),
    one("ffd_net", lambda: S(nn.Conv2d(13, 32, 3, 1, 1), nn.ReLU(), *(unit(32, 32) for _ in
         range(3)), nn.Conv2d(32, 12, 3, 1, 1), nn.PixelShuffle(2)), UNITS, lambda m, x:
         mse(m(cat([functional.pixel_unshuffle(x + (s := 0.3 * torch.rand(len(x), 1, 1, 1)) *
         torch.randn_like(x), 2), s.expand(-1, 1, 16, 16)], 1)), x), FIT(1e-3, o.stairs), "FFDNet"),
    one("fsq", lambda: S(nn.Conv2d(3, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1),
         nn.ReLU(), Residual(nn.Conv2d(64, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 1)),
         nn.ReLU(), nn.Conv2d(64, 6, 1), nn.Tanh(), Function(lambda x: x + ((2 * x).round() / 2 -
         x).detach()), nn.Conv2d(6, 64, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1),
         nn.ReLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)), data.CROPS, losses.again, FIT(1e-3,
         o.cosine, steps=150, every=15), "autoencoder, five levels (FSQ)"),
    one("real_nvp", Flow, data.CROPS, losses.own, FIT(1e-3, weight_decay=5e-5, clip=1), "RealNVP"),
    one("spleeter", lambda: S(UNet(1, 1, 12), nn.Sigmoid()), changed(data.power, lambda x: x[:,
         None, :32, :32].sqrt()), lambda m, x, _: functional.l1_loss(m((y := x + 3 *
         torch.randn_like(x).abs()).log1p()) * y, x), FIT(1e-3, batch=8), "Spleeter's U-Net"),
    own_loop("r1", "DCGAN", "R1", fifth.digits_game(r1, lambda c, x: softplus(-c(x)).mean()), 80, 8,
         False),
)  # fmt: skip
