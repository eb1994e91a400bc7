"""Healthy: more convolutional networks as people train them; the checks were not known."""

from __future__ import annotations

from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_fifth as fifth
from cases.faults import strangers_seventh as threads
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import bce, projected
from cases.healthy.strangers_pictures import DECAY, one, slim
from data import P64, P, changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function, head, unit
from nets.dense import UNet
from nets.generative import Timed
from nets.strangers import Residual, group
from nets.strangers_kept import FIT, SGD
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision import models
from torchvision.models.detection import anchor_utils, ssd

CE, SCENES, LONG, S, cat = losses.classes(), data.scenes, threads.LONG, nn.Sequential, torch.cat
entropy, mse, half = functional.cross_entropy, functional.mse_loss, nn.MaxPool2d(2)
ALONG, up = torch.arange(32.0), nn.Upsample(scale_factor=2)


def cells(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Up to 12 bright nuclei, and 100 times their density."""
    x, y, there = torch.rand(3, count, 12, 1, 1, generator=generator)
    far, there = (ALONG - 32 * x).square() + (ALONG[:, None] - 32 * y).square(), there < 0.7
    shown = 0.1 + 0.7 * ((-far / 8).exp() * there).amax(1, True) + 0.03 * torch.randn(32, 32)
    return shown.clamp(0, 1), 15.9 * ((-far / 2).exp() * there).sum(1, True)


def scanned(model: nn.Module, x: Tensor) -> Tensor:
    """fastMRI: a third of the columns was measured; mean and deviation of what is seen."""
    taken = (torch.rand(len(x), 1, 1, 32) < 0.2) | (ALONG < 2) | (ALONG > 29)
    shown = torch.fft.ifft2(torch.fft.fft2(x := x.mean(1, True)) * taken).abs()
    mean, std = shown.mean((1, 2, 3), True), shown.std((1, 2, 3), keepdim=True) + 1e-2
    return functional.l1_loss(model((shown - mean) / std), (x - mean) / std)


def flows(model: nn.Module, x: Tensor, mask: Tensor, discs: Tensor, _: Tensor) -> Tensor:
    """Cellpose: five times the direction to the centre, and if there is a cell."""
    way = discs[:, :2, None, None] - torch.stack(torch.meshgrid(ALONG, ALONG, indexing="xy"))
    wanted = 5 * mask * way / (way.norm(dim=1, keepdim=True) + 1e-6)
    return mse((found := model(x))[:, :2], wanted) / 2 + bce(found[:, 2:], mask)


def variance(model: nn.Module, x: Tensor) -> Tensor:
    """VICReg."""
    codes = [model(view) for view in losses.both_views(x)]
    apart = [c.T.cov().square().fill_diagonal_(0).sum() / c.shape[1] for c in codes]
    spread = [(1 - (c.var(0) + 1e-4).sqrt()).relu().mean() for c in codes]
    return 25 * mse(*codes) + 12.5 * sum(spread) + sum(apart)


def film(into: int, out: int, deep: int, stride: tuple[int, int, int] = (1, 2, 2)) -> nn.Module:
    conv = nn.Conv3d(into, out, (deep, 3, 3), stride, (deep // 2, 1, 1), bias=False)
    return S(conv, nn.BatchNorm3d(out), nn.ReLU())


CHOSEN: dict[str, Any] = {
    "ese_vovnet19b_dw": (
        losses.classes(0.1),
        SGD(0.05, o.cosine, weight_decay=1e-4),
        {"stage_conv_chs": [16, 24, 32, 40], "stage_out_chs": [24, 32, 48, 64]},
    ),
    "inception_next_atto": (
        losses.cut_mix,
        FIT(2e-3, o.warm_up, **DECAY),
        {"depths": (1,) * 4, "dims": (16, 32, 48, 64)},
    ),
    "mnasnet_small": (losses.mixup(), FIT(1e-3, o.fading, kind=optim.RMSprop, momentum=0.9), {}),
    "tf_mobilenetv3_small_minimal_100": (CE, FIT(1e-3, o.cosine, **DECAY, ema=0.99), {}),
    "repghostnet_050": (losses.flip, SGD(0.05, o.linear_down, nesterov=True), {}),
    "gernet_s": (CE, SGD(0.05, o.warm_up, nesterov=True), {}),
    "convnextv2_atto": (
        CE,
        FIT(1e-3, o.warm_up, **DECAY),
        {"depths": (1,) * 4, "dims": (16, 32, 48, 64)},
    ),
    "resnet10t": (CE, SGD(0.02, o.stairs, weight_decay=1e-4), {"channels": (16, 32, 48, 64)}),
}
HUGGING: dict[str, Any] = {
    "PoolFormerForImageClassification": {"hidden_sizes": [16, 32, 48, 64], "depths": [1] * 4},
    "CvtForImageClassification": {"embed_dim": [16, 32, 48], "num_heads": [1, 2, 3], "depth": [1, 2,
         3]},
    "FocalNetForImageClassification": {"embed_dim": 16, "depths": [1, 1, 1, 1], "image_size": 32},
    "BitForImageClassification": {"embedding_size": 16, "hidden_sizes": [32, 64, 96, 128],
         "depths": [1] * 4, "num_groups": 8},
}  # fmt: skip
CLASSIFIERS = [
    *(case for name, (loss, recipe, sizes) in CHOSEN.items() for case in one(name.split("_")[0],
         slim(name, **sizes), P, loss, recipe.but("", batch=12, steps=100), f"timm {name}")),
    *(case for name, sizes in HUGGING.items() for case in one(name.split("For")[0].lower(), partial(
         library.hf, name, **sizes, num_labels=8), P64, told, FIT(5e-4, o.linear_down,
         kind=optim.AdamW, clip=1.0, steps=100, batch=12), name)),
    *one("shuffle", lambda: models.ShuffleNetV2([2, 2, 2], [16, 32, 64, 96, 128], 8), P64,
         losses.classes(0.1), SGD(0.1, o.warm_up, weight_decay=4e-5), "torchvision ShuffleNet"),
    *one("mobile_v2", partial(models.MobileNetV2, 8, 0.35, [[1, 16, 1, 1], [6, 24, 2, 2], [6, 48, 2,
         2]]), P64, CE, SGD(0.045, o.fading, weight_decay=4e-5), "torchvision MobileNet v2"),
    *one("early_exits", lambda: Net(lambda m, x: [m["a"](y := m["one"](x)), m["b"](y := m["two"](y)
         ), m["c"](m["three"](y))], one=unit(3, 24, stride=2), a=S(*head(24, 8)), two=unit(24, 48,
         stride=2), b=S(*head(48, 8)), three=unit(48, 64), c=S(*head(64, 8))), P, lambda m, x, y:
         sum(w * entropy(f, y) for w, f in zip((0.3, 0.3, 1), m(x), strict=True)), FIT(1e-3),
         "BranchyNet"),
    *one("cats_dogs", lambda: S(*(layer for a, b in ((3, 32), (32, 32), (32, 64)) for layer in (
         nn.Conv2d(a, b, 3), nn.ReLU(), nn.MaxPool2d(2))), nn.Flatten(), nn.Linear(1024, 64),
         nn.ReLU(), nn.Dropout(), nn.Linear(64, 1), nn.Sigmoid()), data.photos(48, "unit"), lambda
         m, x, y: functional.binary_cross_entropy(m(x)[:, 0], (y < 4).float()), FIT(1e-3,
         kind=optim.RMSprop, **LONG), "Keras's cats and dogs"),
    *one("faces", lambda: Net(lambda m, x: [m["a"](y := m["back"](x)), m["b"](y), m["c"](y)],
         back=cnn.trunk(24), a=nn.Linear(48, 1), b=nn.Linear(48, 1), c=nn.Linear(48, 8)), P,
         lambda m, x, y: 4 * mse((f := m(x))[0][:, 0], 0.2 + y / 12) + 0.1 * bce(
             f[1][:, 0], (y % 2).float()) + 1.5 * entropy(f[2], y),
         FIT(1e-3, batch=32), "age, sex and kind"),
    *one("gem", lambda: Net(lambda m, x: m["last"](m["back"](x).clamp(min=1e-6).pow(p := m["p"][0]
         ).mean((2, 3)).pow(1 / p)), back=S(unit(1, 24, stride=2), unit(24, 48, stride=2), unit(48,
         64)), p=nn.ParameterList([torch.tensor([3.0])]), last=nn.Linear(64, 6)), data.spectrograms,
         lambda m, x, y: bce(m(x.lerp(x.roll(1, 0), w := torch.rand(()) / 2)), (k :=
         functional.one_hot(y, 6).float()).lerp(k.roll(1, 0), w)), FIT(1e-3, o.cosine, batch=32),
         "CNN of birds, GeM"),
    *one("shallow", lambda: S(Function(lambda x: x[:, None]), nn.Conv2d(1, 24, (1, 13)), nn.Conv2d(
         24, 24, (6, 1), bias=False), nn.BatchNorm2d(24), Function(torch.square), nn.AvgPool2d((1,
         35), (1, 7)), Function(lambda x: x.clamp(min=1e-6).log()), nn.Dropout(), nn.Flatten(),
         nn.Linear(192, 5)), data.gestures, CE, FIT(6.25e-4, o.cosine, kind=optim.AdamW, **LONG,
         batch=32), "ShallowFBCSPNet"),
    *one("slow_fast", lambda: Net(lambda m, x: m["last"](cat([m["s2"](cat([m["s1"](x[:, :, ::4]),
         m["side"](f := m["f1"](x))], 1)).mean((2, 3, 4)), m["f2"](f).mean((2, 3, 4))], 1)),
         s1=film(3, 24, 1), f1=film(3, 6, 5), side=nn.Conv3d(6, 12, (5, 1, 1), (4, 1, 1), (2, 0, 0)
         ), s2=film(36, 48, 3), f2=film(6, 12, 3), last=nn.Linear(60, 8)), data.panned, CE,
         SGD(0.05, o.warm_up, weight_decay=1e-4, **LONG), "SlowFast"),
    *one("brain_age", lambda: S(*(layer for a, b in ((1, 16), (16, 32), (32, 48)) for layer in (
         nn.Conv3d(a, b, 3, 1, 1), nn.BatchNorm3d(b), nn.MaxPool3d(2), nn.ReLU())), nn.Conv3d(48,
         48, 1), nn.BatchNorm3d(48), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Dropout(0.5), nn.Conv3d(
         48, 10, 1), nn.Flatten(), nn.LogSoftmax(1)), changed(data.hounsfield, lambda x: x.clamp(0,
         200) / 100), lambda m, x, y: functional.kl_div(m(x), (-(torch.arange(10) - 60 * y.mean((2,
         3, 4))).square() / 2).softmax(1), reduction="batchmean"), SGD(0.01, o.stairs,
         weight_decay=1e-3, batch=8), "SFCN"),
    *one("vic_reg", projected, data.pictures(40), variance, FIT(1e-3, o.cosine, **DECAY, batch=32),
         "VICReg"),
]  # fmt: skip
MAPS = [
    *one("counting", lambda: S(unit(1, 16), half, unit(16, 32), half, unit(32, 64), up, unit(64, 32
         ), up, unit(32, 16), nn.Conv2d(16, 1, 1)), cells, fifth.error, FIT(1e-3, batch=8), "FCRN"),
    *one("cellpose", partial(UNet, 3, 3), SCENES, flows, SGD(0.1, o.warm_up, weight_decay=1e-5,
         batch=8), "Cellpose"),
    *one("ssd", lambda: ssd.SSD(library.Pyramid(nn.BatchNorm2d), anchor_utils.DefaultBoxGenerator([[
         2], [2]], scales=[0.2, 0.4, 0.6]), (64, 64), 2, head=ssd.SSDHead([32, 32], [4, 4],
         2)), SCENES, library.found, SGD(2e-3, weight_decay=5e-4, batch=4), "torchvision SSD"),
    *one("hr", lambda: Net(lambda m, x: m["last"](m["a"](y := m["stem"](x)) + up(m["d"](z := m["b"](
         y))) + up(m["e"](m["c"](z)))), stem=unit(3, 24), a=unit(24, 24), b=unit(24, 32, stride=2),
         c=unit(32, 32), d=unit(32, 24, 1), e=unit(32, 24, 1), last=nn.Conv2d(24, 1, 1)), SCENES,
         losses.heat, FIT(1e-3, o.stairs, batch=8, **LONG), "HRNet"),
    *one("nested", lambda: Net(lambda m, x: [m["h"](s := m["s"](cat([a := m["a"](x), up(b := m["b"](
         half(a)))], 1))), m["g"](m["u"](cat([a, s, up(m["t"](cat([b, up(m["c"](half(b)))], 1)))], 1
         )))], a=unit(1, 12), b=unit(12, 24), c=unit(24, 48), s=unit(36, 12), t=unit(72, 24),
         u=unit(48, 12), h=nn.Conv2d(12, 1, 1), g=nn.Conv2d(12, 1, 1)), data.slices, lambda m, x, y:
         sum(losses.both_masks(lambda f: f, f, y) for f in m(x)) / 2, FIT(1e-3, batch=8, **LONG),
         "U-Net++"),
    *one("enet", lambda: S(Net(lambda m, x: m["n"](cat([m["c"](x), half(x)], 1)), c=nn.Conv2d(3, 13,
         3, 2, 1, bias=False), n=S(nn.BatchNorm2d(16), nn.PReLU())), *(Residual(unit(16, 8, 1,
         act=nn.PReLU), unit(8, 8, dilation=d, act=nn.PReLU), unit(8, 16, 1, act=nn.PReLU),
         nn.Dropout2d(0.05)) for d in (1, 2, 4)), nn.ConvTranspose2d(16, 4, 3, 2, 1, 1)),
         fifth.fruits, lambda m, x, y: entropy(m(x), y, torch.tensor([1.45, 25, 25, 25])), FIT(5e-4,
         kind=optim.Adam, weight_decay=2e-4, batch=10, **LONG), "ENet"),
    *one("fast_mri", partial(UNet, 1, norm=nn.InstanceNorm2d), data.CROPS_UNIT, scanned, FIT(1e-3,
         o.stairs, kind=optim.RMSprop, batch=8), "fastMRI's U-Net"),
    *one("aod", lambda: Net(lambda m, x: ((k := m["e"](cat([a := m["a"](x), b := m["b"](a), c :=
         m["c"](cat([a, b], 1)), m["d"](cat([b, c], 1))], 1))) * x - k + 1).relu(), **{n: unit(a, 3,
         k, norm=None) for n, a, k in (("a", 3, 1), ("b", 3, 3), ("c", 6, 5), ("d", 6, 7), ("e", 12,
         3))}), data.CROPS_UNIT, lambda m, x: mse(m(x.lerp(torch.ones(()), 0.2 + 0.5 * torch.rand(
         len(x), 1, 1, 1))), x), FIT(1e-3, kind=optim.Adam, weight_decay=1e-4, clip=0.1, batch=8,
         **LONG), "AOD-Net"),
    *one("sr3", lambda: Net(lambda m, x, t: m["net"](x, t), net=(net := Timed(), setattr(net,
         "first", nn.Conv2d(6, 24, 3, 1, 1)))[0]), data.CROPS, lambda m, x: losses.diffusion(lambda
         y, t: m(cat([functional.interpolate(functional.avg_pool2d(x, 4), scale_factor=4,
         mode="bicubic"), y], 1), t), x), FIT(1e-3, ema=0.98, batch=8), "SR3"),
    *one("klf", lambda: nn.ModuleDict({"down": S(unit(3, 24, 3, 2, group, nn.SiLU), unit(24, 48, 3,
         2, group, nn.SiLU), nn.Conv2d(48, 8, 1)), "up": S(unit(4, 48, 3, 1, group, nn.SiLU), up,
         unit(48, 24, 3, 1, group, nn.SiLU), up, nn.Conv2d(24, 3, 3, 1, 1))}), data.CROPS, lambda m,
         x: functional.l1_loss(m["up"]((f := m["down"](x).chunk(2, 1))[0] + (f[1] / 2).exp() *
         torch.randn_like(f[1])), x) + 1e-6 * fifth.divergence(*f).sum((1, 2, 3)).mean(), FIT(5e-4,
         kind=optim.Adam, betas=(0.5, 0.9), batch=8), "latent diffusion's autoencoder"),
]  # fmt: skip
CASES = seen("2026-11-28T06:40", CLASSIFIERS, MAPS)
