"""Healthy: pictures, maps and volumes of an eighteenth set; the checks were not known."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import ERASE, Net, told
from cases.healthy.strangers_pictures import DECAY, NESTEROV, one, slim
from data import P64, P
from loops import Losses, descend, duel, own_loop, seen
from nets import classifiers as cnn
from nets import generative, library
from nets.dense import LinkNet, UNet
from nets.strangers import Residual
from nets.strangers_kept import FIT, SGD
from timm import models as timm
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision.ops import sigmoid_focal_loss

SCENES, UNITS, S, cat, CE = data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat, losses.classes()
mse, entropy, hf, unit = functional.mse_loss, functional.cross_entropy, library.hf, cnn.unit
conv, line, deconv, half = nn.Conv2d, nn.Linear, nn.ConvTranspose2d, nn.MaxPool2d(2)
resize, leaky, up = functional.interpolate, partial(nn.LeakyReLU, 0.2), nn.Upsample(scale_factor=2)
FLAT, SHORT = [1] * 4, {"steps": 80, "every": 8}
ALONG, L1, soft = torch.arange(32.0), functional.l1_loss, functional.softplus
Byo = timm.ByoBlockCfg
TIMM: dict[str, Any] = {
    "dpn": (losses.augmented, SGD(0.02, o.cosine, weight_decay=1e-4), lambda: timm.DPN((1, 1, 1), (
        8, 8, 8), 24, 4, 8, small=True, num_init_features=16)),
    "xception": (losses.classes(0.1), SGD(0.045, o.fading, weight_decay=4e-5), lambda:
        timm.XceptionAligned([{"in_chs": a, "out_chs": b, "stride": s} for a, b, s in ((64, 48, 2),
        (48, 64, 2), (64, 64, 1))], 8)),
    "rep_ghost": (losses.flip, SGD(0.05, o.warm_up, batch=8, weight_decay=1e-5), slim(
        "repghostnet_050")),
    "mobile_v4": (losses.flip, FIT(4e-3, o.warm_up, **DECAY), slim("mobilenetv4_conv_small_035")),
    "rex_net": (losses.flip, SGD(0.05, o.cosine, nesterov=True, weight_decay=4e-5, batch=8), slim(
        "rexnet_100", width_mult=0.4, depth_mult=0.5)),
    "rd_net": (losses.cut_mix, FIT(1e-3, o.warm_up, **DECAY), lambda: timm.rdnet.RDNet(3, 8,
        growth_rates=(16, 24, 32), num_blocks_list=(2, 2, 2), block_type=("Block", "Block",
        "BlockESE"), is_downsample_block=(None, True, True), num_init_features=32)),
    "bot_net": (losses.classes(0.1), SGD(0.05, o.two_phases, nesterov=True, weight_decay=5e-5),
        lambda: timm.ByobNet(timm.ByoModelCfg((Byo("bottle", 1, 32, 1, 0, 0.25), Byo("bottle", 1,
        64, 2, 0, 0.25), Byo("self_attn", 1, 96, 2, 0, 0.5)), stem_type="tiered", stem_chs=24,
        self_attn_layer="bottleneck", fixed_input_size=True), 8, img_size=64)),
}  # fmt: skip
HUGGING: dict[str, Any] = {
    "Bit": (FIT(0.03, o.ramp, **NESTEROV), {"embedding_size": 16, "hidden_sizes": [32, 48, 64, 96],
        "depths": FLAT, "num_groups": 8}),
    "DonutSwin": (FIT(1e-3, o.linear_down, **DECAY, clip=1.0), {"image_size": 64, "embed_dim": 24,
        "depths": [1, 2], "num_heads": [2, 4], "window_size": 4}),
    "MobileViTV2": (FIT(2e-3, o.warm_up, **DECAY, clip=10.0, batch=8), {"image_size": 64,
        "width_multiplier": 0.5, "n_attn_blocks": [1, 1, 1], "base_attn_unit_dims": [32, 48, 64]}),
    "MetaClip2": (FIT(5e-4, o.cosine, **DECAY, clip=1.0), {"vision_config": library.SMALL |
        {"image_size": 64, "patch_size": 8}}),
}  # fmt: skip


def mlp(*sizes: int) -> nn.Module:
    return S(*(z for a, b in pairwise(sizes) for z in (line(a, b), nn.ReLU())))[:-1]


def ra_gan(place: Path, seed: int) -> Losses:
    maker = S(deconv(64, 64, 4), *(z for a, b in ((64, 48), (48, 24)) for z in (nn.BatchNorm2d(a),
        nn.ReLU(), deconv(a, b, 4, 2, 1))), nn.BatchNorm2d(24), nn.ReLU(), deconv(24, 3, 4, 2, 1),
        nn.Tanh())  # fmt: skip
    critic = S(*(z for a, b in ((3, 24), (24, 48), (48, 64)) for z in (conv(a, b, 4, 2, 1), leaky(
        ))), conv(64, 1, 4), nn.Flatten())  # fmt: skip

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 24), maker(torch.randn(24, 64, 1, 1))

        def better(a: Tensor, b: Tensor) -> Tensor:
            return (soft(b.mean() - a) + soft(b - a.mean())).mean() / 2

        loss = descend(second, better(critic(x), critic(fake.detach())))
        return (loss, descend(first, better(critic(fake), critic(x))))[0]

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 100, 10)


CASES = seen("2026-11-28T15:30",
    *(one(name, make, data.photos(64 if "bot" in name else 48), loss, recipe.but("", **SHORT),
         f"timm {name}") for name, (loss, recipe, make) in TIMM.items()),
    *(one(name.lower(), partial(hf, f"{name}ForImageClassification", **sizes, num_labels=8), P64,
         told, recipe.but("", **SHORT), f"transformers {name}") for name, (recipe, sizes) in
         HUGGING.items()),
    one("shake_shake", lambda: S(unit(3, 16), *(Net(lambda m, x: m["skip"](x) + m["a"](x).lerp(m[
         "b"](x), torch.rand(len(x), 1, 1, 1)), skip=S(conv(a, b, 1, s, bias=False), nn.BatchNorm2d(
         b)), **{k: S(nn.ReLU(), unit(a, b, 3, s), conv(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(
         b)) for k in "ab"}) for a, b, s in ((16, 24, 1), (24, 32, 2), (32, 48, 2))), nn.ReLU(),
         *cnn.head(48, 8)), P, losses.augmented, SGD(0.1, o.cosine, nesterov=True,
         weight_decay=1e-4, **SHORT), "Shake-Shake"),
    one("fix_match", cnn.classifier, lambda g, n: (*P(g, n), P(g, 3 * n)[0]), lambda m, x, y, u: (k
         := x.flip(3) if torch.rand(()) < 0.5 else x, z := m(cat([k, u, torch.stack([ERASE(v) for v
         in u])])).split([len(x), len(u), len(u)]), p := z[1].detach().softmax(1).max(1), entropy(z[
         0], y) + ((p[0] > 0.95) * entropy(z[2], p[1], reduction="none")).mean())[3], FIT(0.03,
         lambda a, n: optim.lr_scheduler.LambdaLR(a, lambda k: torch.tensor(7 * torch.pi * k / 16 /
         n).cos().item()), **NESTEROV, ema=0.99, batch=12, **SHORT), "FixMatch"),
    one("batch_all", cnn.encoder, data.few_classes, lambda m, x, y: (d := torch.cdist(z := m(x), z),
         k := y[:, None] == y, q := k[:, :, None] & ~k[:, None], (soft(d[:, :, None] - d[:, None]) *
         q).sum() / q.sum())[3], FIT(1e-3, o.fading, **SHORT), "triplets, batch all"),
    one("sr3", lambda: (m := generative.Timed(), setattr(m, "first", conv(6, 24, 3, 1, 1)), m)[2],
         data.CROPS, lambda m, x: losses.diffusion(lambda z, t: m(cat([resize(resize(x, (8, 8),
         mode="area"), (32, 32), mode="bicubic"), z], 1), t), x), FIT(1e-3, o.ramp, ema=0.99,
         batch=8), "SR3"),
    one("liif", lambda: Net(lambda m, x, p: (z := m["eye"](x), k := ((p + 1) * 8).long().clamp(0,
         15), n := torch.arange(len(x))[:, None], f := functional.unfold(z, 3, 1, 1).unflatten(2, (
         16, 16))[n, :, k[..., 1], k[..., 0]], m["net"](cat([f, 16 * (p - (2 * k + 1) / 16 + 1)],
         2)))[4], eye=S(conv(3, 24, 3, 1, 1), *(Residual(conv(24, 24, 3, 1, 1), nn.ReLU(), conv(24,
         24, 3, 1, 1)) for _ in "abc")), net=mlp(218, 128, 128, 3)), data.CROPS, lambda m, x: (p :=
         torch.rand(len(x), 1, 256, 2) * 2 - 1, L1(m(resize(x, (16, 16), mode="bicubic",
         antialias=True), p[:, 0]), functional.grid_sample(x, p, align_corners=False)[:, :, 0].mT))[
         1], FIT(1e-4, o.stairs), "LIIF"),
    one("aod_net", lambda: Net(lambda m, x: (a := m["a"](x).relu(), b := m["b"](a).relu(), c := m[
         "c"](cat([a, b], 1)).relu(), d := m["d"](cat([b, c], 1)).relu(), k := m["e"](cat([a, b, c,
         d], 1)).relu(), (k * x - k + 1).relu())[5], **{k: conv(n, 3, s, 1, s // 2) for k, n, s in (
         ("a", 3, 1), ("b", 3, 3), ("c", 6, 5), ("d", 6, 7), ("e", 12, 3))}), UNITS, lambda m, x: (t
         := 0.4 + 0.4 * torch.rand(len(x), 1, 1, 1), mse(m(x * t + 0.9 * (1 - t)), x))[1], FIT(1e-3,
         weight_decay=1e-4, clip=0.1, batch=8), "AOD-Net"),
    one("sim_vp", lambda: S(nn.Flatten(0, 1), unit(1, 16, norm=partial(nn.GroupNorm, 2),
         act=nn.SiLU), unit(16, 16, 3, 2, norm=partial(nn.GroupNorm, 2), act=nn.SiLU), nn.Unflatten(
         0, (-1, 4)), nn.Flatten(1, 2), *(Residual(unit(64, 64, k, norm=partial(nn.GroupNorm, 8),
         act=leaky, groups=8), conv(64, 64, 1)) for k in (3, 5, 7)), nn.Unflatten(1, (4, 16)),
         nn.Flatten(0, 1), up, unit(16, 16, norm=partial(nn.GroupNorm, 2), act=nn.SiLU), conv(16, 1,
         1), nn.Unflatten(0, (-1, 4))), data.films, lambda m, x: mse(m(x[:, :4]), x[:, 4:]), FIT(
         1e-3, o.one_cycle(1e-3)), "SimVP"),
    one("between", partial(UNet, 2, 1, 16, norm=None), data.films, lambda m, x: L1(m(x[:, 2:5:2,
         0]), x[:, 3]), FIT(1e-3, kind=optim.Adamax, steps=150, every=13),
         "frames between, Adamax"),
    one("tsn", cnn.resnet, data.panned, lambda m, x, y: entropy(torch.stack([m(x[:, :, k]) for k in
         (1, 4, 6)]).mean(0), y), SGD(0.01, o.stairs, weight_decay=5e-4, clip=20.0, batch=8),
         "TSN"),
    one("nerf", lambda: mlp(39, 96, 96, 96, 4), data.rays, lambda m, p, y: (k := p[..., None] * 2.0
         ** torch.arange(6) * 3.14, z := m(cat([p, k.sin().flatten(2), k.cos().flatten(2)], 2)), a
         := 1 - (-z[..., 3].relu() / 4).exp(), w := a * cat([torch.ones_like(a[:, :1]), (1 - a +
         1e-10).cumprod(1)[:, :-1]], 1), mse((w[..., None] * z[..., :3].sigmoid()).sum(1), y))[4],
         FIT(5e-4, o.fading, batch=512), "NeRF"),
    one("boundary", partial(UNet, 3, 1, 12), SCENES, lambda m, x, y, d, _: losses.dice(m, x, y) + (
         m(x).sigmoid() * ((torch.stack(torch.meshgrid(ALONG, ALONG, indexing="xy")) - d[:, :2,
         None, None]).norm(dim=1) - d[:, 2, None, None])[:, None]).mean() / 10, FIT(1e-3,
         weight_decay=1e-4, batch=8), "boundary loss"),
    one("fine_depth", partial(UNet, 3, 1, 16), SCENES, lambda m, x, _, __, y: (e := m(x) - y, (
         e.abs() + 0.5).log().mean() + sum((e.diff(dim=k).abs() + 0.5).log().mean() for k in (2, 3))
         + 2.08)[1], FIT(1e-3, o.stairs, weight_decay=1e-4, batch=8), "depth and its gradients"),
    one("mv_tec", lambda: S(*(unit(a, b, 4, 2, None, leaky) for a, b in ((1, 32), (32, 48), (48,
         64))), conv(64, 32, 3, 1, 1), *(z for a, b in ((32, 48), (48, 32)) for z in (deconv(a, b,
         4, 2, 1), leaky())), deconv(32, 1, 4, 2, 1)), data.changed(UNITS, lambda x: x.mean(1,
         True)), lambda m, x: (z := m(x), k := lambda v: functional.avg_pool2d(v, 7, 1), a := k(z),
         b := k(x), 1 - ((2 * a * b + 1e-4) * (2 * (k(x * z) - a * b) + 9e-4) / (a**2 + b**2 + 1e-4)
         / (k(z * z) - a**2 + k(x * x) - b**2 + 9e-4)).mean())[4], FIT(2e-4, weight_decay=1e-5),
         "autoencoder, SSIM"),
    one("noise_to_noise", partial(UNet, 3, 3, 16, norm=None), data.CROPS, losses.noise_to_noise,
         FIT(1e-3, betas=(0.9, 0.99), eps=1e-8, batch=8), "Noise2Noise"),
    one("localized", lambda: S(cnn.trunk(24), line(48, 32), nn.ReLU(), line(32, 3)), SCENES,
         losses.centre, FIT(1e-3, o.stairs), "a disc's place, regression"),
    one("arc_face", lambda: losses.ArcFace(cnn.encoder()), P, losses.angular, SGD(0.05, o.stairs,
         weight_decay=5e-4, batch=24), "ArcFace"),
    one("four_channels", partial(cnn.resnet, channels=4), data.photos(32, "imagenet", 4),
         losses.flip, FIT(1e-3, o.one_cycle(3e-3), **DECAY, **SHORT),
         "ResNet, colour and brightness"),
    one("focal_masks", LinkNet, SCENES, lambda m, x, y, *_: sigmoid_focal_loss(m(x), y,
         reduction="mean") * 10, FIT(1e-3, o.poly, kind=optim.AdamW), "LinkNet, focal loss"),
    one("link_depth", LinkNet, SCENES, losses.depth, FIT(2e-3, o.cosine, batch=8),
         "LinkNet, depth"),
    one("fine_tuned", partial(cnn.pretrained, cnn.resnet), data.colourless(), CE, SGD(1e-3,
         o.stairs, steps=100), "ResNet, all layers fine-tuned"),
    own_loop("ra_gan", "relativistic GAN", "Adam 2e-4", ra_gan, 100, 10, False),
)  # fmt: skip
