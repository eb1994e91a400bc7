"""Healthy: pictures, maps and volumes of a fourteenth set; the checks were not known."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import DECAY, one, slim
from data import P64, P, changed, photos
from loops import Losses, descend, duel, own_loop, seen
from nets import classifiers as cnn
from nets import generative, library, restoration, strangers
from nets.dense import UNet
from nets.strangers_kept import FIT, SGD
from timm.models import mlp_mixer
from torch import Generator, nn, optim
from torch.nn import functional
from torchvision import models
from torchvision.transforms import v2

SCENES, UNITS, S, cat = data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat
mse, l1, entropy, hf = functional.mse_loss, functional.l1_loss, functional.cross_entropy, library.hf
conv, deconv, unit, act, FLAT = nn.Conv2d, nn.ConvTranspose2d, cnn.unit, nn.ReLU(), [1] * 4
resize, CE, line = functional.interpolate, losses.classes(), nn.Linear
DIGITS, SMALL = changed(data.digits, lambda x: (x - 0.1307) / 0.3081), library.SMALL
FILMS, SHORT = changed(data.panned, lambda x: x.transpose(1, 2)), {"steps": 80, "every": 8}
CLEAN, MAE = (1 - torch.linspace(1e-4, 0.02, 1000)).cumprod(0), {"betas": (0.9, 0.95)} | DECAY
STAGES, LONG = {"embed_dims": (16, 24, 32, 48), "img_size": 64}, {"steps": 182, "every": 13}
DECODER = {f"decoder_{k}": v for k, v in library.BODY.items()} | {"decoder_num_hidden_layers": 1}
CHOSEN = {
    "coat_lite_tiny": (64, losses.classes(0.1), FIT(1e-3, o.warm_up, **DECAY, clip=1.0), STAGES |
        {"serial_depths": FLAT}),
    "twins_svt_small": (64, losses.mixup(), FIT(1e-3, o.poly, **DECAY), STAGES | {"depths": FLAT}),
    "ghostnet_050": (48, CE, SGD(0.05, o.cosine, weight_decay=4e-5), {}),
    "hardcorenas_a": (40, losses.flip, FIT(2e-3, o.two_phases, **DECAY), {}),
    "dla46_c": (64, CE, SGD(0.05, o.stairs, weight_decay=1e-4), {}),
    "cs3darknet_s": (64, losses.cut_mix, FIT(1e-3, o.one_cycle(2e-3), **DECAY), {}),
    "mobilevitv2_050": (64, CE, FIT(1e-3, o.warm_up, **DECAY, clip=5.0, ema=0.99), {}),
    "mobilenet_edgetpu_v2_xs": (48, CE, FIT(5e-4, o.fading, kind=optim.RMSprop, eps=1e-3), {}),
    "test_resnet": (48, losses.augmented, FIT(2e-3, o.poly, kind=optim.NAdam), {}),
}  # fmt: skip
HUGGING = {
    "Swinv2": (P, FIT(1e-3, o.warm_up, **DECAY, clip=1.0, batch=8), {"image_size": 32, "embed_dim":
        24, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4, "drop_path_rate": 0.1}),
    "PvtV2": (P64, FIT(1e-3, o.cosine, **DECAY, batch=8), {"hidden_sizes": [16, 24, 32, 48],
        "depths": FLAT, "num_attention_heads": [1, 2, 4, 4], "mlp_ratios": [2] * 4}),
    "Beit": (P, FIT(1e-3, o.linear_down, **DECAY), SMALL | {"use_relative_position_bias": True}),
    "Dinov2WithRegisters": (P, FIT(5e-4, o.two_phases, **DECAY, clip=3.0), SMALL),
    "Siglip": (data.HALF, FIT(1e-3, o.warm_up, **MAE, clip=1.0), {"vision_config": SMALL}),
}  # fmt: skip


def pix2pix(place: Path, seed: int) -> Losses:
    """From edges to photographs: L1 × 100, and a critic of patches."""
    leaky, maker = partial(nn.LeakyReLU, 0.2), S(UNet(1, 3, 16), nn.Tanh())
    critic = S(unit(4, 24, 4, 2, None, leaky), unit(24, 48, 4, 2, act=leaky), conv(48, 1, 4, 1, 1))

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        x, edge = data.edges(random, 4)
        fake, x = maker(edge := edge * 2 - 1), (x * 0.226 + 0.449).clamp(0, 1) * 2 - 1
        wrong, right = (critic(cat([edge, z], 1)) for z in (fake.detach(), x))
        descend(second, (bce(right, right * 0 + 1) + bce(wrong, wrong * 0)) / 2)
        return descend(first, bce(z := critic(cat([edge, fake], 1)), z * 0 + 1) + 100 * l1(fake, x))

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 120, 10)


CASES = seen("2026-11-28T11:40",
    *(one(name.split("_")[0], slim(name, **sizes), photos(side), loss, recipe.but("", batch=8,
         **SHORT), f"timm {name}") for name, (side, loss, recipe, sizes) in CHOSEN.items()),
    *(one(name.lower(), partial(hf, f"{name}ForImageClassification", **sizes, num_labels=8), draw,
         told, recipe, f"transformers {name}") for name, (draw, recipe, sizes) in HUGGING.items()),
    one("vivit", partial(hf, "VivitForVideoClassification", **library.BODY, image_size=24,
         num_frames=8, tubelet_size=[2, 6, 6], num_labels=8), FILMS, told, FIT(1e-3, o.ramp,
         kind=optim.AdamW, clip=1.0, batch=8), "ViViT"),
    one("res_mlp", lambda: mlp_mixer.MlpMixer(8, 32, patch_size=4, num_blocks=4, embed_dim=64,
         mlp_ratio=4, block_layer=partial(mlp_mixer.ResBlock, init_values=1e-4),
         norm_layer=mlp_mixer.Affine), P, CE, FIT(2e-3, o.cosine, **DECAY), "ResMLP"),
    one("max_vit", lambda: models.MaxVit((32, 32), 16, 4, [24, 32], [1, 1], 8, 0.1, num_classes=8),
         P, losses.classes(0.1), FIT(1e-3, o.warm_up, **DECAY, batch=8), "torchvision MaxViT"),
    one("mobile_v3", library.mobilenet_v3, P, losses.flip, FIT(2e-3, o.fading, kind=optim.RMSprop,
         momentum=0.9, eps=0.0316, weight_decay=1e-5), "torchvision MobileNet v3"),
    one("naf_net", lambda: S(conv(3, 24, 3, 1, 1), *(strangers.Residual(nn.GroupNorm(1, 24),
         conv(24, 48, 1), conv(48, 48, 3, 1, 1, groups=48), cnn.Function(lambda x: x[:, :24] * x[:,
         24:]), conv(24, 24, 1)) for _ in range(4)), conv(24, 3, 3, 1, 1)), UNITS, lambda m, x: 10 *
         mse((z := x + 0.2 * torch.randn_like(x)) + m(z), x).log10(), FIT(1e-3, o.cosine,
         kind=optim.AdamW, betas=(0.9, 0.9), batch=8), "NAFNet, loss is -PSNR"),
    one("mae", lambda: hf("ViTMAEForPreTraining", **SMALL, **DECODER, norm_pix_loss=True), P, lambda
         m, x, _: m(x).loss, FIT(2e-3, o.warm_up, **MAE), "masked autoencoder"),
    one("video_mae", lambda: hf("VideoMAEForPreTraining", **library.BODY, **DECODER, image_size=24,
         patch_size=6, num_frames=8, norm_pix_loss=False), FILMS, lambda m, x, _: m(x,
         bool_masked_pos=(torch.rand(16).argsort() < 12).repeat(4).expand(len(x), 64)).loss,
         FIT(2e-3, o.warm_up, **MAE, **LONG, batch=8), "VideoMAE, tubes"),
    one("dpt", lambda: hf("DPTForDepthEstimation", **SMALL | {"num_hidden_layers": 4, "patch_size":
         8}, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[16, 24, 32, 48],
         fusion_hidden_size=32), SCENES, lambda m, x, *y: l1(*((c := z - z.median(1, True)[0]) /
         c.abs().mean(1, True) for z in (resize(m(x).predicted_depth[:, None], (32, 32)).flatten(1),
         y[-1].flatten(1)))), FIT(1e-3, o.cosine, batch=4, **SHORT), "DPT, loss as MiDaS"),
    one("hardest", partial(UNet, 3, 2, 12), SCENES, lambda m, x, y, *_: entropy(m(x), y[:,
         0].long(), reduction="none").flatten().topk(len(x) * 512)[0].mean(), SGD(0.05, o.poly,
         weight_decay=5e-4, batch=8), "U-Net, OHEM"),
    one("ordinal", partial(UNet, 3, 12, 12), SCENES, lambda m, x, *y: bce(m(x), (y[-1] >
         torch.linspace(0.2, 1.4, 12)[:, None, None]).float()), FIT(1e-3, o.poly, batch=8,
         weight_decay=5e-4), "DORN, depth"),
    one("vq_vae", lambda: Net(lambda m, x: (z := m["down"](x).movedim(1, 3), q := m["codes"](
         torch.cdist(z.flatten(0, 2), m["codes"].weight).argmin(1)).view_as(z), mse(m["up"]((z + (q
         - z).detach()).movedim(3, 1)), x) + mse(q, z.detach()) + mse(z, q.detach()) / 4)[2],
         codes=nn.Embedding(64, 16, _weight=torch.rand(64, 16) / 32 - 1 / 64), down=S(conv(3, 32, 4,
         2, 1), act, conv(32, 64, 4, 2, 1), act, conv(64, 16, 1)), up=S(conv(16, 64, 3, 1, 1), act,
         deconv(64, 32, 4, 2, 1), act, deconv(32, 3, 4, 2, 1))), data.CROPS, losses.own, FIT(2e-3,
         **LONG), "VQ-VAE"),
    one("guided", strangers.Conditioned, DIGITS, lambda m, x, y: mse(m((a := CLEAN[t :=
         torch.randint(1000, (len(x),))].view(-1, 1, 1, 1)).sqrt() * x + (1 - a).sqrt() * (e :=
         torch.randn_like(x)), t / 1000, y), e), FIT(1e-3, o.linear_down, batch=8), "DDPM, digits"),
    one("rectified", generative.Timed, data.CROPS, lambda m, x: mse(m(x.lerp(e :=
         torch.randn_like(x), (t := torch.randn(len(x)).sigmoid())[:, None, None, None]), t), e -
         x), FIT(1e-3, o.ramp, **DECAY, clip=1.0, ema=0.99), "rectified flow, as SD3"),
    own_loop("pix2pix", "pix2pix", "Adam 2e-4", pix2pix, 120, 10),
    one("jpeg", restoration.Denoiser, UNITS, lambda m, x: mse(m(torch.stack([v2.functional.jpeg(z,
         20) for z in (x * 255).byte()]) / 255), x), FIT(1e-3, o.stairs, batch=8), "DnCNN, JPEG"),
    one("pan_net", lambda: S(unit(17, 48, 9, norm=None), unit(48, 32, 5, norm=None), conv(32, 16, 5,
         1, 2)), data.bands, lambda m, x, _: mse(m(cat([resize(resize(x, (8, 8), mode="area"), (32,
         32), mode="bicubic"), x.mean(1, True)], 1)), x), FIT(1e-3, batch=8), "pan-sharpening"),
    one("bags", lambda: Net(lambda m, x: (f := m["back"](x.flatten(0, 1)).unflatten(0, (-1, 8)),
         m["last"]((m["look"](f).softmax(1) * f).sum(1))[:, 0])[1], back=S(conv(1, 20, 5), act,
         nn.MaxPool2d(2), conv(20, 50, 5), act, nn.MaxPool2d(2), nn.Flatten(), line(800, 64), act),
         look=S(line(64, 32), nn.Tanh(), line(32, 1)), last=line(64, 1)), lambda g, n: ((z :=
         DIGITS(g, 8 * n))[0].unflatten(0, (n, 8)), (z[1].view(n, 8) == 1).any(1).float()), lambda
         m, x, y: bce(m(x), y), FIT(1e-3, weight_decay=1e-4), "attention over a bag"),
    one("attacked", cnn.tutorial, data.digits, lambda m, x, y: entropy(m((x + torch.autograd.grad(
         entropy(m(z := x.clone().requires_grad_()), y), z)[0].sign() / 10).clamp(0, 1)), y),
         FIT(2e-3, batch=32, **LONG), "MNIST, trained on FGSM"),
    one("described", lambda: Net(lambda m, x, y: m["last"](m["body"](cat([m["see"](x)[:, None],
         m["words"](y)], 1))[0][:, 1:]).mT, see=cnn.encoder(48), words=nn.Embedding(64, 48),
         body=nn.LSTM(48, 64, batch_first=True), last=line(64, 64)), data.captions, lambda m, x, y,
         _: entropy(m(x, y[:, :-1]), y[:, 1:]), FIT(3e-3), "show and tell"),
    one("trivial", cnn.resnet, changed(data.UNIT, lambda x: data.scaled(torch.stack([
         v2.TrivialAugmentWide()(z) for z in (x * 255).byte()]) / 255, "imagenet")),
         losses.classes(0.1), SGD(0.05, o.two_phases, weight_decay=2e-5), "TrivialAugment"),
    one("mutual", lambda: nn.ModuleList([cnn.classifier(), cnn.resnet()]), P, lambda m, x, y:
         (lambda a, b: entropy(a, y) + entropy(b, y) + entropy(a, b.detach().softmax(1)) +
         entropy(b, a.detach().softmax(1)))(*(n(x) for n in m)), SGD(0.02,
         o.stairs, nesterov=True, weight_decay=5e-4), "mutual learning"),
)  # fmt: skip
