"""Healthy: pictures, maps and volumes of a fifteenth set; the checks were not known."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import bce, projected
from cases.healthy.strangers_pictures import DECAY, NESTEROV, one, slim
from cases.healthy.strangers_thirteenth_rows import fresh
from data import P64, P, changed, photos
from loops import Losses, descend, duel, own_loop, seen
from nets import classifiers as cnn
from nets import library
from nets.classifiers import Function, unit
from nets.dense import LinkNet, UNet, balanced
from nets.strangers import Residual
from nets.strangers_kept import FIT, SGD
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm
from torchvision import models

SCENES, UNITS, S, cat, CE = data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat, losses.classes()
mse, l1, entropy, hf = functional.mse_loss, functional.l1_loss, functional.cross_entropy, library.hf
conv, half, line = nn.Conv2d, nn.MaxPool2d(2), nn.Linear
resize, sphere, leaky = functional.interpolate, functional.normalize, partial(nn.LeakyReLU, 0.2)
DIGITS, act = changed(data.digits, lambda x: (x - 0.1307) / 0.3081), nn.ReLU()
FILMS, SHORT = changed(data.panned, lambda x: x.transpose(1, 2)), {"steps": 80, "every": 8}
FLAT, LONG, up = [1] * 4, {"steps": 182, "every": 13}, nn.Upsample(scale_factor=2)
CHOSEN: dict[str, Any] = {
    "test_vit4": (64, CE, FIT(1e-3, o.warm_up, **DECAY, clip=1.0), {"img_size": 64}),
    "cait_xxs24_224": (32, losses.classes(0.1), FIT(1e-3, o.warm_up, **DECAY), {"img_size": 32,
        "patch_size": 4, "embed_dim": 48, "depth": 3, "num_heads": 4}),
    "pit_ti_224": (64, losses.mixup(), FIT(1e-3, o.two_phases, **DECAY), {"img_size": 64, "stride":
        4, "patch_size": 8, "base_dims": [16] * 3, "depth": [1, 2, 1], "heads": [1, 2, 4]}),
    "hiera_tiny_224": (64, losses.cut_mix, FIT(2e-3, o.cosine, **DECAY, betas=(0.9, 0.95)),
        {"img_size": (64, 64), "embed_dim": 16, "num_heads": 1, "stages": (1, 1, 2, 1)}),
    "sequencer2d_s": (32, losses.flip, FIT(2e-3, o.cosine, **DECAY), {"layers": FLAT, "embed_dims":
        [24, 48, 48, 48], "hidden_sizes": [8, 16, 16, 16], "patch_sizes": [4, 1, 1, 1]}),
    "eva02_tiny_patch14_224": (32, CE, FIT(1e-3, o.ramp, **DECAY, clip=3.0), {"img_size": 32,
        "patch_size": 4, "embed_dim": 48, "depth": 3, "num_heads": 4}),
    "tnt_s_legacy_patch16_224": (32, losses.augmented, FIT(1e-3, o.linear_down, kind=optim.NAdam),
        {"img_size": 32, "patch_size": 8, "embed_dim": 48, "inner_dim": 12, "depth": 3,
         "num_heads_outer": 4}),
    "test_vit_relpos": (64, losses.flip, FIT(1e-3, o.cosine, **DECAY, ema=0.99), {"img_size": 64}),
    "test_convnext": (64, losses.classes(0.1), FIT(2e-3, o.warm_up, **DECAY), {}),
}  # fmt: skip
HUGGING: dict[str, Any] = {
    "DeiT": (P, FIT(1e-3, o.cosine, **DECAY), library.SMALL),
    "ConvNextV2": (P64, FIT(2e-3, o.two_phases, **DECAY, ema=0.99), {"hidden_sizes": [16, 24, 32,
        48], "depths": FLAT}),
    "Pvt": (P64, FIT(1e-3, o.linear_down, **DECAY, clip=1.0), {"image_size": 64, "hidden_sizes":
        [16, 24, 32, 48], "depths": FLAT, "num_attention_heads": [1, 1, 2, 2], "mlp_ratios":
        [2] * 4}),
    "ViTMSN": (data.HALF, FIT(5e-4, o.ramp, **DECAY, clip=1.0), library.SMALL),
    "Data2VecVision": (data.HALF, FIT(1e-3, o.cosine, **DECAY, clip=3.0), library.SMALL |
        {"use_shared_relative_position_bias": True, "layer_scale_init_value": 0.1}),
    "Swin": (P, FIT(1e-3, o.one_cycle(2e-3), **DECAY), {"image_size": 32, "patch_size": 2,
        "embed_dim": 24, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4}),
}  # fmt: skip


def conv_lstm(m: Any, x: Tensor) -> Tensor:
    h = c = torch.zeros(len(x), 16, 24, 24)
    found = []
    for frame in x[:, :-1].unbind(1):
        i, f, g, out = m["gates"](cat([frame, h], 1)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        found.append(m["last"](h := out.sigmoid() * c.tanh()))
    return torch.stack(found, 1)


def glass(width: int, deep: int = 2) -> nn.Module:
    """Residual blocks, on the map and on one of half its size."""
    low, *more = (Residual(unit(width, 12, 1), conv(12, width, 3, 1, 1)) for _ in "abc")
    inner = glass(width, deep - 1) if deep else more.pop()
    return Net(lambda m, x: m["a"](x) + m["b"](x), a=more[0], b=S(half, low, inner, up))


def sn_gan(place: Path, seed: int) -> Losses:
    down, ups = [(3, 24), (24, 48), (48, 64)], [(64, 48), (48, 32), (32, 24)]
    maker = S(line(64, 1024), nn.Unflatten(1, (64, 4, 4)), *(layer for a, b in ups for layer in (
         nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU())),
         conv(24, 3, 3, 1, 1), nn.Tanh())  # fmt: skip
    critic = [layer for row in down for layer in (spectral_norm(conv(*row, 4, 2, 1)), leaky())]
    critic = S(*critic, nn.Flatten(), spectral_norm(line(1024, 1)))

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 12), maker(torch.randn(12, 64))
        right, wrong = (critic(z) for z in (x, fake.detach()))
        loss = descend(second, (1 - right).relu().mean() + (1 + wrong).relu().mean())
        return (loss, descend(first, -critic(fake).mean()))[0]

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 100, 10, (0.0, 0.9))


CASES = seen("2026-11-28T12:40",
    *(one(name.removeprefix("test_").split("_")[0], slim(name, **sizes), photos(side), loss,
         recipe.but("", **SHORT), f"timm {name}") for name, (side, loss, recipe, sizes) in
         CHOSEN.items()),
    *(one(name.lower(), partial(hf, f"{name}ForImageClassification", **sizes, num_labels=8), draw,
         told, recipe, f"transformers {name}") for name, (draw, recipe, sizes) in HUGGING.items()),
    one("dense", library.densenet, P, losses.augmented, FIT(0.1, o.stairs, **NESTEROV),
         "torchvision DenseNet"),
    one("squeeze", partial(models.squeezenet1_1, num_classes=8), P64, CE, FIT(3e-4, o.linear_down,
         weight_decay=2e-4, batch=12), "torchvision SqueezeNet"),
    one("efficient", library.efficientnet, P, losses.classes(0.1), FIT(2e-3, o.fading,
         kind=optim.RMSprop, alpha=0.9, momentum=0.9, eps=1e-3, weight_decay=1e-5, batch=12),
         "torchvision EfficientNet"),
    one("le_net", cnn.lenet, DIGITS, CE, SGD(0.05, weight_decay=5e-4, batch=64), "LeNet-5, tanh"),
    one("link_net", LinkNet, SCENES, losses.masks, FIT(5e-4, o.stairs, kind=optim.RMSprop, batch=8),
         "LinkNet"),
    one("vgg", library.vgg, P, losses.flip, SGD(0.05, o.stairs, weight_decay=5e-4),
         "torchvision VGG, BatchNorm"),
    one("stn", lambda: Net(lambda m, x: m["net"](functional.grid_sample(x, functional.affine_grid(
         m["turn"](x).view(-1, 2, 3) + torch.eye(2, 3), x.shape, False), align_corners=False)),
         turn=S(conv(1, 8, 7), half, act, conv(8, 10, 5), half, act, nn.Flatten(), line(90, 32),
         act, fresh(line(32, 6), torch.zero_)), net=S(conv(1, 10, 5), half, act, conv(10, 20, 5),
         nn.Dropout2d(), half, act, nn.Flatten(), line(320, 50), act, nn.Dropout(), line(50, 10))),
         DIGITS, CE, FIT(1e-3, batch=64, **LONG), "spatial transformer"),
    one("sim_clr", projected, data.pictures(40), lambda m, x: entropy((f := sphere(cat([m(v) for v
         in losses.both_views(x)]))) @ f.T / 0.2 - 1e9 * torch.eye(len(f)), torch.arange(len(
         f)).roll(len(x))), FIT(1e-3, o.warm_up, weight_decay=1e-6, batch=48), "SimCLR"),
    one("retina_net", library.retinanet, SCENES, library.boxes, SGD(0.01, o.ramp, weight_decay=1e-4,
         batch=4), "torchvision RetinaNet"),
    one("conv_lstm", lambda: Net(conv_lstm, gates=conv(17, 64, 3, 1, 1), last=conv(16, 1, 1)),
         data.films, lambda m, x: mse(m(x), x[:, 1:]), FIT(1e-3, kind=optim.RMSprop, batch=8),
         "ConvLSTM, next frames"),
    one("c3d", lambda: cnn.he(S(*(layer for a, b, k in ((3, 16, (1, 2, 2)), (16, 32, 2), (32, 48, 2
         )) for layer in (nn.Conv3d(a, b, 3, 1, 1), nn.ReLU(), nn.MaxPool3d(k))), nn.Flatten(),
         line(864, 128), nn.ReLU(), nn.Dropout(), line(128, 8))), data.panned, CE, SGD(3e-3,
         o.stairs, weight_decay=5e-4), "C3D"),
    one("timesformer", partial(hf, "TimesformerForVideoClassification", **library.BODY,
         image_size=24, patch_size=6, num_frames=8, num_labels=8), FILMS, told, FIT(1e-3, o.cosine,
         **DECAY, batch=8), "TimeSformer"),
    one("rrdb", lambda: S(conv(3, 24, 3, 1, 1), *(Residual(*(Net(lambda m, x: cat([x, m["a"](x)],
         1), a=unit(24 + 12 * k, 12, 3, 1, None, leaky)) for k in range(3)), conv(60, 24, 3, 1, 1),
         Function(lambda x: x / 5)) for _ in range(3)), conv(24, 24, 3, 1, 1), up, unit(24, 24,
         norm=None, act=leaky), conv(24, 3, 3, 1, 1)), UNITS, losses.larger, FIT(2e-4, betas=(0.9,
         0.99), batch=8), "ESRGAN's RRDB, L1"),
    one("examples_sr", lambda: fresh(S(*(z for a, b, k in ((1, 64, 5), (64, 64, 3), (64, 32, 3)) for
         z in (conv(a, b, k, 1, k // 2), act)), conv(32, 4, 3, 1, 1), nn.PixelShuffle(2)), lambda p:
         p.ndim > 1 and nn.init.orthogonal_(p, 2**0.5)), changed(UNITS, lambda x: x.mean(1, True)),
         lambda m, x: mse(m(resize(x, (16, 16), mode="area")), x), FIT(1e-3, batch=8),
         "PyTorch's super-resolution"),
    one("voxel_ae", lambda: S(nn.Conv3d(1, 16, 3, 2, 1), nn.ELU(), nn.Conv3d(16, 32, 3, 2, 1),
         nn.ELU(), nn.Flatten(), line(2048, 64), nn.ELU(), line(64, 2048), nn.ELU(), nn.Unflatten(1,
         (32, 4, 4, 4)), nn.ConvTranspose3d(32, 16, 4, 2, 1), nn.ELU(), nn.ConvTranspose3d(16, 1, 4,
         2, 1)), data.voxels, lambda m, x, _: bce(m(x), x, 1 + 4 * x), FIT(1e-3, o.fading),
         "autoencoder of voxels"),
    one("mixer", library.mixer, P, losses.mixup(), FIT(1e-3, o.warm_up, **DECAY, clip=1.0),
         "MLP-Mixer"),
    one("milesial", partial(UNet, 3, 1, 16), changed(SCENES, lambda x: x / 2 + 0.5),
         losses.both_masks, FIT(1e-5, kind=optim.RMSprop, weight_decay=1e-8, momentum=0.999,
         clip=1.0, batch=4), "Pytorch-UNet"),
    one("psp_net", lambda: Net(lambda m, x: (m["last"](cat([h := m["b"](z := m["a"](x)), *(resize(
         m[k](h), (8, 8), mode="bilinear") for k in "1236")], 1)), m["side"](z)), a=S(unit(3, 24,
         stride=2), unit(24, 32, stride=2), unit(32, 32)), b=S(unit(32, 48, dilation=2), unit(48,
         48, dilation=4)), **{k: S(nn.AdaptiveAvgPool2d(int(k)), unit(48, 12, 1)) for k in "1236"},
         last=S(unit(96, 32), nn.Dropout2d(0.1), conv(32, 2, 1)), side=S(unit(32, 16), conv(16, 2,
         1))), SCENES, lambda m, x, y, *_: sum(w * entropy(resize(f, (32, 32), mode="bilinear"),
         y[:, 0].long()) for w, f in zip((1, 0.4), m(x), strict=True)), SGD(0.01, o.poly,
         weight_decay=1e-4, batch=16), "PSPNet"),
    one("hed", lambda: cnn.he(Net(lambda m, x: [*(z := [resize(m[f"side{k}"](x), (40, 40),
         mode="bilinear") for k in "abc" if (x := m[k](x)) is not None]), m["fuse"](cat(z, 1))],
         a=S(unit(3, 16,
         norm=None), unit(16, 16, norm=None)), b=S(half, unit(16, 32, norm=None), unit(32, 32,
         norm=None)), c=S(half, unit(32, 48, norm=None), unit(48, 48, norm=None)), sidea=conv(16, 1,
         1), sideb=conv(32, 1, 1), sidec=conv(48, 1, 1), fuse=conv(3, 1, 1))), data.edges, balanced,
         FIT(1e-3, o.stairs, weight_decay=2e-4, batch=6), "HED"),
    one("hourglass", lambda: Net(lambda m, x: (h := m["stem"](x), a := m["a"](h), p := m["p"](a), b
         := m["b"](h + m["q"](a) + m["r"](p)), p, m["s"](b))[4:], stem=unit(3, 24), a=S(glass(24),
         unit(24, 24, 1)), b=S(glass(24), unit(24, 24, 1)), p=conv(24, 1, 1), q=conv(24, 24, 1),
         r=conv(1, 24, 1), s=conv(24, 1, 1)),
         SCENES, lambda m, x, y, d, _: sum(losses.heat(lambda _, h=h: h, x, y, d) for h in m(x)),
         FIT(2.5e-4, kind=optim.RMSprop, batch=6), "stacked hourglass"),
    one("keras_ae", lambda: S(conv(1, 16, 3, 1, 1), act, half, conv(16, 8, 3, 1, 1), act, half,
         conv(8, 8, 3, 1, 1), act, up, conv(8, 16, 3, 1, 1), act, up, conv(16, 1, 3, 1, 1)),
         data.digits, lambda m, x, _: bce(m(x), x), FIT(1e-3, batch=64), "Keras' autoencoder"),
    one("vae_mnist", lambda: nn.ModuleDict({"down": S(nn.Flatten(), line(784, 400), act, line(400,
         40)), "up": S(line(20, 400), act, line(400, 784))}), data.digits, lambda m, x, _: bce(
         m["up"]((f := m["down"](x).chunk(2, 1))[0] + (f[1] / 2).exp() * torch.randn_like(f[0])),
         x.flatten(1), reduction="sum") - (1 + f[1] - f[0] ** 2 - f[1].exp()).sum() / 2, FIT(1e-3,
         batch=128), "PyTorch's VAE"),
    own_loop("sn_gan", "SNGAN", "hinge, Adam 2e-4", sn_gan, 100, 10, False),
)  # fmt: skip
