"""Healthy: pictures, maps and volumes of a nineteenth set; the checks were not known."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import ERASE, Net, told
from cases.healthy.strangers_maps import bce, soft_tissue
from cases.healthy.strangers_pictures import DECAY, NESTEROV, numbers, one
from data import P64, P
from loops import Losses, descend, duel, own_loop, seen
from nets import classifiers as cnn
from nets import generative, library
from nets.dense import UNet
from nets.strangers import Residual
from nets.strangers_kept import FIT, SGD
from timm import models as timm
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import spectral_norm

SCENES, UNITS, S, cat, CE = data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat, losses.classes()
mse, entropy, hf, unit = functional.mse_loss, functional.cross_entropy, library.hf, cnn.unit
conv, line, deconv, half, act = nn.Conv2d, nn.Linear, nn.ConvTranspose2d, nn.MaxPool2d(2), nn.ReLU()
resize, leaky, L1 = functional.interpolate, partial(nn.LeakyReLU, 0.2), functional.l1_loss
SHORT, Byo, ALONG = {"steps": 80, "every": 8}, timm.ByoBlockCfg, torch.arange(32.0)
GRID = torch.stack(torch.meshgrid(ALONG, ALONG, indexing="xy"))
RAYS = torch.stack([(torch.arange(8) * torch.pi / 4).cos(), (torch.arange(8) * torch.pi / 4).sin()])
huber, pool = functional.smooth_l1_loss, functional.avg_pool2d
TIMM: dict[str, Any] = {
    "t_res_net": (losses.augmented, FIT(2e-3, o.one_cycle(2e-3), weight_decay=1e-4, ema=0.99,
        batch=8), lambda: timm.tresnet.TResNet([1] * 4, num_classes=8, width_factor=0.4)),
    "lambda_net": (losses.mixup(), FIT(0.05, o.two_phases, **NESTEROV), lambda: timm.ByobNet(
        timm.ByoModelCfg((Byo("bottle", 1, 32, 1, 0, 0.25), Byo("self_attn", 1, 64, 2, 0, 0.25),
        Byo("self_attn", 1, 96, 2, 0, 0.5)), stem_type="tiered", stem_chs=24,
        self_attn_layer="lambda", self_attn_kwargs={"r": 5}), 8)),
    "gc_res_net": (losses.flip, SGD(0.05, o.cosine, weight_decay=5e-4), partial(cnn.resnet,
        block_args={"attn_layer": "gca"})),
    "res_net_d": (losses.cut_mix, FIT(5e-3, o.warm_up, kind=library.timm.optim.Lamb,
        weight_decay=0.02), partial(cnn.resnet, stem_type="deep", avg_down=True,
        aa_layer=library.timm.layers.BlurPool2d)),
}  # fmt: skip


def warped(x: Tensor, left: Tensor) -> Tensor:
    """Each pixel comes from so many px to the left."""
    at = torch.stack([GRID[0] - left[:, 0], GRID[1].expand_as(left[:, 0])], 3)
    return functional.grid_sample(x, (at + 0.5) / 16 - 1, "bilinear", "border", False)


def stereo(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Two views in [-1, 1]; a nearer disc is shifted further. And the shift in px, 0 to 8."""
    _, masks, discs, _ = SCENES(g, n)
    (back,), (front,) = data.CROPS(g, n), data.CROPS(g, n)
    near, far = 4 + 3 * torch.rand(n, 1, 1, 1, generator=g), torch.full((n, 1, 32, 32), 1.0)
    shift = masks * near + (1 - masks) * far
    right = GRID + near * torch.tensor([1.0, 0]).view(1, 2, 1, 1) - discs[:, :2, None, None]
    there = (right.norm(dim=1) < discs[:, 2, None, None]).float()[:, None]
    second = there * warped(front, -near.expand_as(far)) + (1 - there) * warped(back, -far)
    return masks * front + (1 - masks) * back, second, shift


def crowd(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Photographs with 3 to 12 bright heads, and their density on a stride of 4, scaled."""
    (x, _), place = P(g, n), 32 * torch.rand(n, 12, 2, 1, 1, generator=g)
    there = torch.arange(12) < torch.randint(3, 13, (n, 1), generator=g)
    spots = (-(GRID - place).square().sum(2) / 4).exp() * there[..., None, None]
    spots = spots.sum(1, True)
    return x * 0.6 + 2 * spots.clamp(max=1), 2 * pool(spots, 4)


def videos(g: Generator, n: int) -> tuple[Tensor, ...]:
    return (data.panned(g, n)[0][:, :, :5] / 2 + 0.5,)


def sa_gan(place: Path, seed: int) -> Losses:
    maker = S(line(64, 1024), nn.Unflatten(1, (64, 4, 4)), *(z for a, b in ((64, 48), (48, 32)) for
        z in (nn.Upsample(scale_factor=2), conv(a, b, 3, 1, 1), nn.BatchNorm2d(b), act)),
        nn.Upsample(scale_factor=2), conv(32, 3, 3, 1, 1), nn.Tanh())  # fmt: skip
    critic = S(*(z for a, b in ((3, 24), (24, 48), (48, 64)) for z in (spectral_norm(conv(a, b, 4,
        2, 1)), leaky())), nn.AdaptiveAvgPool2d(1), nn.Flatten(), spectral_norm(line(
        64, 1)))  # fmt: skip

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 16), maker(torch.randn(16, 64))
        loss = descend(second, (1 - critic(x)).relu().mean() + (1 + critic(fake.detach())).relu(
            ).mean())  # fmt: skip
        return (loss, descend(first, -critic(fake).mean()))[0]

    return duel(place, seed, (maker, critic), (1e-4, 4e-4), step, 100, 10, (0.0, 0.9))


CASES = seen("2026-11-28T16:05",
    *(one(name, make, data.photos(48), loss, recipe.but("", **SHORT),
         f"timm {name}") for name, (loss, recipe, make) in TIMM.items()),
    one("focalnet", partial(hf, "FocalNetForImageClassification", image_size=64, embed_dim=24,
         depths=[1, 1, 2], hidden_sizes=[24, 48, 96], focal_levels=[2] * 3, focal_windows=[3] * 3,
         num_labels=8), P64, told, FIT(1e-3, o.warm_up, **DECAY, clip=5.0, **SHORT),
         "transformers FocalNet"),
    one("pyramid_net", lambda: S(unit(3, 16), *(Net(lambda m, x: (y := m["body"](x), y + functional.
         pad(pool(x, x.shape[2] // y.shape[2]), (0, 0, 0, 0, 0, y.shape[1] - x.shape[1])))[1],
         body=S(nn.BatchNorm2d(a), conv(a, b, 3, s, 1), nn.BatchNorm2d(b), act, conv(b, b, 3, 1, 1),
         nn.BatchNorm2d(b))) for a, b, s in ((16, 26, 1), (26, 36, 2), (36, 46, 2))),
         nn.BatchNorm2d(46), act, *cnn.head(46, 8)), P, losses.augmented, FIT(0.1, o.stairs,
         **NESTEROV, **SHORT), "PyramidNet"),
    one("captcha", lambda: Net(lambda m, x: m["last"](m["body"](x)).unflatten(1, (2, 10)).mT,
         body=S(unit(1, 24), half, unit(24, 48), half, unit(48, 48), half, nn.Flatten(),
         nn.Dropout(0.25)), last=line(48 * 21, 20)), numbers, lambda m, x, y: entropy(m(x),
         torch.stack([y // 10, y % 10], 1)), FIT(1e-3, batch=32), "CAPTCHA, a head per digit"),
    one("siamese", lambda: S(unit(1, 24), half, unit(24, 48), half, nn.Flatten(), line(2352, 32)),
         data.digits, lambda m, x, y: (d := (m(x).unflatten(0, (2, -1)).diff(dim=0)[0].square().sum(
         1) + 1e-9).sqrt(), k := (y[: len(d)] == y[len(d) :]).float(), (k * d**2 + (1 - k) * (1 -
         d).relu() ** 2).mean())[2], FIT(1e-3, kind=optim.RMSprop, batch=64), "siamese"),
    one("r2plus1d", lambda: S(*(z for a, b in ((3, 24), (
         24, 32), (32, 48)) for z in (nn.Conv3d(a, b, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False),
         nn.BatchNorm3d(b), act, nn.Conv3d(b, b, (3, 1, 1), 1, (1, 0, 0), bias=False),
         nn.BatchNorm3d(b), act)), nn.AdaptiveAvgPool3d(1), nn.Flatten(), line(48, 8)), data.panned,
         CE, SGD(0.01, o.two_phases, weight_decay=1e-4, batch=12), "R(2+1)D"),
    one("fast_dvd", partial(UNet, 16, 3, 16), videos, lambda m, x: (s := 0.02 + 0.18 * torch.rand(
         len(x), 1, 1, 1), z := (x + s[..., None] * torch.randn_like(x)).transpose(1, 2), mse(
         z[:, 2] - m(cat([z.flatten(1, 2), s.expand(-1, -1, 24, 24)], 1)), x[:, :, 2]))[2], FIT(
         1e-3, o.stairs, batch=8), "FastDVDnet"),
    one("gc_net", lambda: Net(lambda m, x, y: (a := m["eye"](x), b := m["eye"](y), c := torch.stack(
         [cat([a, b.roll(k, 3)], 1) for k in range(9)], 2), (m["cost"](c)[:, 0].softmax(1) *
         torch.arange(9.0)[:, None, None]).sum(1, True))[3], eye=S(unit(3, 16), unit(16, 16), conv(
         16, 8, 3, 1, 1)), cost=S(nn.Conv3d(16, 16, 3, 1, 1), nn.BatchNorm3d(16), act, nn.Conv3d(16,
         1, 3, 1, 1))), stereo, lambda m, x, y, d: huber(m(x, y), d), FIT(1e-3, batch=4, **SHORT),
         "GC-Net, stereo"),
    one("monodepth", partial(UNet, 6, 1, 16), stereo, lambda m, x, y, _: (d := 10 * m(cat([x, y],
         1)).sigmoid(), L1(warped(y, -d), x) + 0.01 * d.diff(dim=3).abs().mean())[1], FIT(1e-3,
         o.stairs, batch=6), "disparity by reconstruction"),
    one("csr_net", lambda: S(unit(3, 24, norm=None), half, unit(24, 48, norm=None), half, *(unit(48,
         48, norm=None, dilation=2) for _ in "abc"), conv(48, 1, 1)), crowd, lambda m, x, y: mse(
         m(x), y), FIT(1e-3, weight_decay=5e-4), "CSRNet"),
    one("star_dist", partial(UNet, 3, 9, 16), SCENES, lambda m, x, y, d, _: (z := m(x), p := GRID -
         d[:, :2, None, None], q := torch.einsum("nchw,cr->nrhw", p, RAYS), r := ((q**2 - p.square(
         ).sum(1, True) + d[:, 2, None, None, None] ** 2).relu() + 1e-6).sqrt() - q, bce(z[:, :1],
         y) + 0.2 * ((z[:, 1:] - r).abs() * y).sum() / y.sum() / 8)[4], FIT(3e-4, batch=8),
         "StarDist"),
    one("deep_masks", lambda: Net(lambda m, x: (a := m["a"](x), b := m["b"](half(a)), c := m["c"](
         half(b)), z := [m[k](resize(v, (32, 32), mode="bilinear")) for k, v in (("i", a), ("j", b),
         ("k", c))], [*z, m["last"](cat(z, 1))])[4], a=unit(3, 24), b=unit(24, 32), c=unit(32, 48),
         i=conv(24, 1, 3, 1, 1), j=conv(32, 1, 3, 1, 1), k=conv(48, 1, 3, 1, 1), last=conv(3, 1,
         1)), SCENES, lambda m, x, y, *_: sum(bce(z, y) for z in m(x)), FIT(1e-3, batch=12),
         "side outputs, as U²-Net"),
    one("bi_se_net", lambda: Net(lambda m, x: (a := m["path"](x), b := m["context"](x), b := b * m[
         "gate"](b), m["last"](resize(m["join"](cat([a, resize(b, (16, 16))], 1)), (32, 32),
         mode="bilinear")))[3], path=S(unit(3, 24, 3, 2), unit(24, 32)), context=S(unit(3, 16, 3,
         2), unit(16, 32, 3, 2), unit(32, 48, 3, 2)), gate=S(nn.AdaptiveAvgPool2d(1), conv(48, 48,
         1), nn.Sigmoid()), join=unit(80, 32), last=conv(32, 2, 1)), SCENES, losses.two_classes,
         SGD(0.025, o.poly, weight_decay=5e-4, batch=12), "BiSeNet"),
    one("rdn", lambda: S(conv(3, 24, 3, 1, 1), *(Residual(Net(lambda m, x: (a := cat([x, m["a"](x)],
         1), b := cat([a, m["b"](a)], 1), m["c"](b))[2], a=unit(24, 16, norm=None), b=unit(40, 16,
         norm=None), c=conv(56, 24, 1))) for _ in "ab"), conv(24, 12, 3, 1, 1), nn.PixelShuffle(2)),
         UNITS, losses.larger, FIT(1e-4, o.stairs, steps=150, every=13, batch=8), "RDN"),
    one("zero_dce", lambda: S(unit(3, 24, norm=None), unit(24, 24, norm=None), unit(24, 24,
         norm=None), conv(24, 24, 3, 1, 1), nn.Tanh()), UNITS, lambda m, x: (x := x * 0.3, a :=
         m(x), z := x, [z := z + k * (z**2 - z) for k in a.chunk(8, 1)], 10 * (pool(z.mean(1, True),
         16) - 0.6).square().mean() + 20 * a.diff(dim=2).square().mean() + 5 * z.mean((2, 3)).var(1
         ).mean())[4], FIT(1e-4, weight_decay=1e-4, clip=0.1, batch=8), "Zero-DCE"),
    one("cold", generative.Timed, data.CROPS, lambda m, x: (t := torch.randint(1, 4, ()).item(), y
         := resize(pool(x, 2**t), (32, 32)), L1(m(y, torch.full((len(x),), t / 4)), x))[2], FIT(
         1e-3, ema=0.995, batch=6), "cold diffusion"),
    one("d_vae", lambda: S(conv(3, 32, 4, 2, 1), act, conv(32, 48,
         4, 2, 1), act, conv(48, 64, 1), cnn.Function(lambda z: functional.gumbel_softmax(z, 0.9,
         dim=1)), conv(64, 48, 1), deconv(48, 32, 4, 2, 1), act, deconv(32, 3, 4, 2, 1)),
         data.CROPS, lambda m, x: huber(m(x), x), FIT(1e-3, o.fading), "discrete VAE, as DALL-E"),
    one("med_net", lambda: S(*(z for a, b in ((1, 12), (12, 24), (24, 32)) for z in (nn.Conv3d(a, b,
         3, 2, 1), nn.InstanceNorm3d(b), nn.PReLU())), nn.Flatten(), line(576, 1)), soft_tissue,
         lambda m, x, y: mse(m(x)[:, 0], 20 * y.mean((1, 2, 3, 4))), FIT(1e-3, batch=8),
         "MONAI's regressor, volume"),
    one("seg_res_net", lambda: S(nn.Conv3d(1, 12, 3, 1, 1), *(Residual(nn.GroupNorm(4, 12), act,
         nn.Conv3d(12, 12, 3, 1, 1), nn.GroupNorm(4, 12), act, nn.Conv3d(12, 12, 3, 1, 1)) for _ in
         "ab"), nn.GroupNorm(4, 12), act, nn.Conv3d(12, 1, 1)), soft_tissue, lambda m, x, y: (z :=
         m(x).sigmoid(), 1 - 2 * (z * y).sum() / (z.square().sum() + y.square().sum() + 1e-5))[1],
         FIT(1e-3, o.cosine, weight_decay=1e-5, batch=2, **SHORT), "SegResNet, 3-D"),
    one("super_convergence", cnn.classifier, P, lambda m, x, y: entropy(m(torch.stack([ERASE(z)
         for z in x])), y), FIT(0.1, o.one_cycle(0.1), **NESTEROV, **SHORT),
         "CNN, super-convergence"),
    one("coord_conv", lambda: Net(lambda m, x: m["net"](cat([x, (GRID / 16 - 1).expand(len(x), -1,
         -1, -1)], 1)), net=S(unit(5, 24, 3, 2), unit(24, 32, 3, 2), unit(32, 48), nn.MaxPool2d(8),
         nn.Flatten(), line(48, 3))), SCENES, losses.centre, FIT(5e-3, o.cosine, kind=optim.Adam,
         weight_decay=5e-4), "CoordConv"),
    one("big_earth", partial(cnn.resnet, channels=16), data.bands, losses.multi_label, FIT(1e-3,
         o.stairs, **SHORT), "ResNet, 16 bands, several labels"),
    one("mri", partial(UNet, 1), data.slices, losses.both_masks, FIT(1e-3, o.cosine, batch=12,
         **SHORT), "U-Net, slices"),
    own_loop("sa_gan", "GAN, hinge, two rates", "Adam 1e-4, 4e-4", sa_gan, 100, 10, False),
)  # fmt: skip
