"""Healthy: images are denoised, enlarged, coloured or repaired."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import torch
from data import P, changed
from loops import seen
from nets import classifiers as cnn
from nets import generative
from nets.classifiers import Function
from nets.dense import UNet
from nets.maps import perceptron
from nets.parts import Net, Residual, act, changed_weights, leaky, up
from nets.restoration import Denoiser, RedNet, super_resolution
from recipes import FIT, SGD, SHORT, how, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torchvision.ops import SqueezeExcitation
from torchvision.transforms import v2


def charbonnier(model: nn.Module, images: Tensor) -> Tensor:
    noisy = images + 0.1 * torch.randn_like(images)
    return ((noisy - model(noisy) - images).square() + 1e-6).sqrt().mean()


def videos(g: Generator, n: int) -> tuple[Tensor, ...]:
    return (data.panned(g, n)[0][:, :, :5] / 2 + 0.5,)


def attended(width: int = 24) -> nn.Module:
    """RCAN's block: convolutions without norm, then a gain per channel."""
    body = [cnn.unit(width, width, norm=None), nn.Conv2d(width, width, 3, 1, 1)]
    return Residual(*body, SqueezeExcitation(width, width // 4))


def restorer(out: int = 3, *end: nn.Module) -> nn.Module:
    blocks = [attended() for _ in range(3)]
    return nn.Sequential(nn.Conv2d(3, 24, 3, 1, 1), *blocks, nn.Conv2d(24, out, 3, 1, 1), *end)


CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "rcan",
            partial(restorer, 12, nn.PixelShuffle(2)),
            data.CROPS_UNIT,
            losses.larger,
            how(5e-4, batch=8),
            "RCAN",
        ),
        one(
            "charbonnier",
            restorer,
            data.CROPS_UNIT,
            charbonnier,
            how(5e-4, o.cosine, batch=8),
            "attention, no norm",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "red_net",
            RedNet,
            data.CROPS_UNIT,
            losses.repaired,
            FIT(1e-3, o.stairs, batch=8),
            "RED-Net",
        ),
        one(
            "fsrcnn",
            partial(super_resolution, "fsrcnn"),
            data.CROPS_UNIT,
            losses.larger,
            FIT(1e-3),
            "FSRCNN",
        ),
        one(
            "vdsr",
            lambda: Residual(
                cnn.he(
                    nn.Sequential(
                        *(cnn.unit(a, 24, norm=None) for a in (1, *[24] * 4)),
                        nn.Conv2d(24, 1, 3, 1, 1),
                    )
                )
            ),
            changed(data.CROPS_UNIT, lambda x: x.mean(1, True)),
            lambda m, x: functional.mse_loss(
                m(
                    functional.interpolate(
                        functional.avg_pool2d(x, 2), scale_factor=2, mode="bicubic"
                    )
                ),
                x,
            ),
            SGD(0.1, o.stairs, weight_decay=1e-4, clip=0.4, batch=8),
            "VDSR",
        ),
        one(
            "colours",
            partial(UNet, 1, 2, 12),
            P,
            lambda m, x, _: functional.smooth_l1_loss(m(g := x.mean(1, True)), 2 * (x - g)[:, ::2]),
            FIT(1e-3, o.fading, batch=8),
            "colorization",
        ),
        one(
            "sharpened",
            partial(UNet, 3, 3, 12, nn.InstanceNorm2d),
            data.CROPS_UNIT,
            lambda m, x: functional.l1_loss((z := functional.avg_pool2d(x, 5, 1, 2)) + m(z), x),
            FIT(1e-3, o.cosine, batch=8),
            "deblur",
        ),
        one(
            "noise_to_void",
            partial(UNet, 3, 3, 12),
            data.CROPS,
            lambda m, x: (
                (
                    (
                        m(
                            torch.where(
                                k := torch.rand(len(x), 1, 32, 32) < 0.03,
                                (z := x + 0.2 * torch.randn_like(x)).roll((1, -1), (2, 3)),
                                z,
                            )
                        )
                        - z
                    ).square()
                    * k
                ).sum()
                / (3 * k.sum())
            ),
            FIT(1e-3, o.stairs, batch=8),
            "Noise2Void",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "naf_net",
            lambda: nn.Sequential(
                nn.Conv2d(3, 24, 3, 1, 1),
                *(
                    Residual(
                        nn.GroupNorm(1, 24),
                        nn.Conv2d(24, 48, 1),
                        nn.Conv2d(48, 48, 3, 1, 1, groups=48),
                        Function(lambda x: x[:, :24] * x[:, 24:]),
                        nn.Conv2d(24, 24, 1),
                    )
                    for _ in range(4)
                ),
                nn.Conv2d(24, 3, 3, 1, 1),
            ),
            data.CROPS_UNIT,
            lambda m, x: (
                10 * functional.mse_loss((z := x + 0.2 * torch.randn_like(x)) + m(z), x).log10()
            ),
            FIT(1e-3, o.cosine, kind=optim.AdamW, betas=(0.9, 0.9), batch=8),
            "NAFNet, loss is -PSNR",
        ),
        one(
            "jpeg",
            Denoiser,
            data.CROPS_UNIT,
            lambda m, x: functional.mse_loss(
                m(torch.stack([v2.functional.jpeg(z, 20) for z in (x * 255).byte()]) / 255), x
            ),
            FIT(1e-3, o.stairs, batch=8),
            "DnCNN, JPEG",
        ),
        one(
            "pan_net",
            lambda: nn.Sequential(
                cnn.unit(17, 48, 9, norm=None),
                cnn.unit(48, 32, 5, norm=None),
                nn.Conv2d(32, 16, 5, 1, 2),
            ),
            data.bands,
            lambda m, x, _: functional.mse_loss(
                m(
                    torch.cat(
                        [
                            functional.interpolate(
                                functional.interpolate(x, (8, 8), mode="area"),
                                (32, 32),
                                mode="bicubic",
                            ),
                            x.mean(1, True),
                        ],
                        1,
                    )
                ),
                x,
            ),
            FIT(1e-3, batch=8),
            "pan-sharpening",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "rrdb",
            lambda: nn.Sequential(
                nn.Conv2d(3, 24, 3, 1, 1),
                *(
                    Residual(
                        *(
                            Net(
                                lambda m, x: torch.cat([x, m["a"](x)], 1),
                                a=cnn.unit(24 + 12 * k, 12, 3, 1, None, leaky),
                            )
                            for k in range(3)
                        ),
                        nn.Conv2d(60, 24, 3, 1, 1),
                        Function(lambda x: x / 5),
                    )
                    for _ in range(3)
                ),
                nn.Conv2d(24, 24, 3, 1, 1),
                up,
                cnn.unit(24, 24, norm=None, act=leaky),
                nn.Conv2d(24, 3, 3, 1, 1),
            ),
            data.CROPS_UNIT,
            losses.larger,
            FIT(2e-4, betas=(0.9, 0.99), batch=8),
            "ESRGAN's RRDB, L1",
        ),
        one(
            "examples_sr",
            lambda: changed_weights(
                nn.Sequential(
                    *(
                        z
                        for a, b, k in ((1, 64, 5), (64, 64, 3), (64, 32, 3))
                        for z in (nn.Conv2d(a, b, k, 1, k // 2), act)
                    ),
                    nn.Conv2d(32, 4, 3, 1, 1),
                    nn.PixelShuffle(2),
                ),
                lambda p: p.ndim > 1 and nn.init.orthogonal_(p, 2**0.5),
            ),
            changed(data.CROPS_UNIT, lambda x: x.mean(1, True)),
            lambda m, x: functional.mse_loss(
                m(functional.interpolate(x, (16, 16), mode="area")), x
            ),
            FIT(1e-3, batch=8),
            "PyTorch's super-resolution",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "denoised",
            lambda: nn.Sequential(
                cnn.unit(1, 32, norm=None),
                nn.MaxPool2d(2),
                cnn.unit(32, 32, norm=None),
                nn.MaxPool2d(2),
                nn.ConvTranspose2d(32, 32, 4, 2, 1),
                nn.ReLU(),
                nn.ConvTranspose2d(32, 32, 4, 2, 1),
                nn.ReLU(),
                nn.Conv2d(32, 1, 3, 1, 1),
            ),
            data.digits,
            lambda m, x, _: functional.binary_cross_entropy_with_logits(
                m((x + 0.4 * torch.randn_like(x)).clamp(0, 1)), x
            ),
            FIT(1e-3, batch=32, **SHORT),
            "Keras' denoising autoencoder",
        ),
        one(
            "dark",
            partial(UNet, 3, 3, 16, norm=None),
            data.CROPS_UNIT,
            lambda m, x: (
                (
                    m(((d := x * 0.04) + (d * 0.01).sqrt() * torch.randn_like(x) * 0.3) * 25) - x
                ).abs()
            ).mean(),
            FIT(1e-4, o.stairs, batch=8),
            "See-in-the-Dark's U-Net",
        ),
        one(
            "rain",
            lambda: Residual(
                cnn.unit(3, 24, norm=None),
                *(Residual(cnn.unit(24, 24), cnn.unit(24, 24)) for _ in "abc"),
                nn.Conv2d(24, 3, 3, 1, 1),
            ),
            data.CROPS_UNIT,
            lambda m, x: (
                k := (torch.rand_like(x[:, :1]) < 0.02).float(),
                k := functional.max_pool2d(k, (9, 1), 1, (4, 0)),
                functional.mse_loss(m((x + k / 2).clamp(0, 1)), x),
            )[-1],
            FIT(1e-3, o.stairs, batch=8, **SHORT),
            "deraining, residual",
        ),
        one(
            "dru_net",
            partial(UNet, 4, 3, 16, norm=None),
            data.CROPS_UNIT,
            lambda m, x: (
                k := torch.rand(len(x), 1, 1, 1) / 5,
                (m(torch.cat([x + k * torch.randn_like(x), k.expand_as(x[:, :1])], 1)) - x)
                .abs()
                .mean(),
            )[1],
            FIT(1e-4, o.fading, batch=8),
            "DRUNet, noise level as a channel",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "edsr",
            lambda: nn.Sequential(
                nn.Conv2d(3, 32, 3, 1, 1),
                Residual(
                    *(
                        Residual(nn.Conv2d(32, 32, 3, 1, 1), act, nn.Conv2d(32, 32, 3, 1, 1))
                        for _ in range(4)
                    ),
                    nn.Conv2d(32, 32, 3, 1, 1),
                ),
                nn.Conv2d(32, 128, 3, 1, 1),
                nn.PixelShuffle(2),
                nn.Conv2d(32, 3, 3, 1, 1),
            ),
            changed(
                data.CROPS_UNIT,
                lambda x: 255 * (x - torch.tensor([0.449, 0.437, 0.404])[:, None, None]),
            ),
            losses.larger,
            FIT(1e-4, o.stairs, batch=8),
            "EDSR, 255 levels",
        ),
        one(
            "sr_resnet",
            lambda: nn.Sequential(
                nn.Conv2d(3, 32, 9, 1, 4),
                nn.PReLU(),
                Residual(
                    *(
                        Residual(
                            cnn.unit(32, 32, act=nn.PReLU),
                            nn.Conv2d(32, 32, 3, 1, 1),
                            nn.BatchNorm2d(32),
                        )
                        for _ in range(4)
                    ),
                    nn.Conv2d(32, 32, 3, 1, 1),
                    nn.BatchNorm2d(32),
                ),
                nn.Conv2d(32, 128, 3, 1, 1),
                nn.PixelShuffle(2),
                nn.PReLU(),
                nn.Conv2d(32, 3, 9, 1, 4),
                nn.Tanh(),
            ),
            data.CROPS,
            lambda m, x: functional.mse_loss(
                m(
                    data.scaled(
                        functional.interpolate(x / 2 + 0.5, (16, 16), mode="area"), "imagenet"
                    )
                ),
                x,
            ),
            FIT(1e-4, batch=8),
            "SRResNet",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "sr3",
            lambda: (m := generative.Timed(), setattr(m, "first", nn.Conv2d(6, 24, 3, 1, 1)), m)[2],
            data.CROPS,
            lambda m, x: losses.diffusion(
                lambda z, t: m(
                    torch.cat(
                        [
                            functional.interpolate(
                                functional.interpolate(x, (8, 8), mode="area"),
                                (32, 32),
                                mode="bicubic",
                            ),
                            z,
                        ],
                        1,
                    ),
                    t,
                ),
                x,
            ),
            FIT(1e-3, o.ramp, ema=0.99, batch=8),
            "SR3",
        ),
        one(
            "liif",
            lambda: Net(
                lambda m, x, p: (
                    z := m["eye"](x),
                    k := ((p + 1) * 8).long().clamp(0, 15),
                    n := torch.arange(len(x))[:, None],
                    f := functional.unfold(z, 3, 1, 1).unflatten(2, (16, 16))[
                        n, :, k[..., 1], k[..., 0]
                    ],
                    m["net"](torch.cat([f, 16 * (p - (2 * k + 1) / 16 + 1)], 2)),
                )[4],
                eye=nn.Sequential(
                    nn.Conv2d(3, 24, 3, 1, 1),
                    *(
                        Residual(nn.Conv2d(24, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, 24, 3, 1, 1))
                        for _ in "abc"
                    ),
                ),
                net=perceptron(218, 128, 128, 3),
            ),
            data.CROPS,
            lambda m, x: (
                p := torch.rand(len(x), 1, 256, 2) * 2 - 1,
                functional.l1_loss(
                    m(functional.interpolate(x, (16, 16), mode="bicubic", antialias=True), p[:, 0]),
                    functional.grid_sample(x, p, align_corners=False)[:, :, 0].mT,
                ),
            )[1],
            FIT(1e-4, o.stairs),
            "LIIF",
        ),
        one(
            "aod_net",
            lambda: Net(
                lambda m, x: (
                    a := m["a"](x).relu(),
                    b := m["b"](a).relu(),
                    c := m["c"](torch.cat([a, b], 1)).relu(),
                    d := m["d"](torch.cat([b, c], 1)).relu(),
                    k := m["e"](torch.cat([a, b, c, d], 1)).relu(),
                    (k * x - k + 1).relu(),
                )[5],
                **{
                    k: nn.Conv2d(n, 3, s, 1, s // 2)
                    for k, n, s in (
                        ("a", 3, 1),
                        ("b", 3, 3),
                        ("c", 6, 5),
                        ("d", 6, 7),
                        ("e", 12, 3),
                    )
                },
            ),
            data.CROPS_UNIT,
            lambda m, x: (
                t := 0.4 + 0.4 * torch.rand(len(x), 1, 1, 1),
                functional.mse_loss(m(x * t + 0.9 * (1 - t)), x),
            )[1],
            FIT(1e-3, weight_decay=1e-4, clip=0.1, batch=8),
            "AOD-Net",
        ),
        one(
            "mv_tec",
            lambda: nn.Sequential(
                *(cnn.unit(a, b, 4, 2, None, leaky) for a, b in ((1, 32), (32, 48), (48, 64))),
                nn.Conv2d(64, 32, 3, 1, 1),
                *(
                    z
                    for a, b in ((32, 48), (48, 32))
                    for z in (nn.ConvTranspose2d(a, b, 4, 2, 1), leaky())
                ),
                nn.ConvTranspose2d(32, 1, 4, 2, 1),
            ),
            changed(data.CROPS_UNIT, lambda x: x.mean(1, True)),
            lambda m, x: (
                z := m(x),
                k := lambda v: functional.avg_pool2d(v, 7, 1),
                a := k(z),
                b := k(x),
                1
                - (
                    (2 * a * b + 1e-4)
                    * (2 * (k(x * z) - a * b) + 9e-4)
                    / (a**2 + b**2 + 1e-4)
                    / (k(z * z) - a**2 + k(x * x) - b**2 + 9e-4)
                ).mean(),
            )[4],
            FIT(2e-4, weight_decay=1e-5),
            "autoencoder, SSIM",
        ),
        one(
            "noise_to_noise",
            partial(UNet, 3, 3, 16, norm=None),
            data.CROPS,
            losses.noise_to_noise,
            FIT(1e-3, betas=(0.9, 0.99), eps=1e-8, batch=8),
            "Noise2Noise",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "fast_dvd",
            partial(UNet, 16, 3, 16),
            videos,
            lambda m, x: (
                s := 0.02 + 0.18 * torch.rand(len(x), 1, 1, 1),
                z := (x + s[..., None] * torch.randn_like(x)).transpose(1, 2),
                functional.mse_loss(
                    z[:, 2] - m(torch.cat([z.flatten(1, 2), s.expand(-1, -1, 24, 24)], 1)),
                    x[:, :, 2],
                ),
            )[2],
            FIT(1e-3, o.stairs, batch=8),
            "FastDVDnet",
        ),
        one(
            "rdn",
            lambda: nn.Sequential(
                nn.Conv2d(3, 24, 3, 1, 1),
                *(
                    Residual(
                        Net(
                            lambda m, x: (
                                a := torch.cat([x, m["a"](x)], 1),
                                b := torch.cat([a, m["b"](a)], 1),
                                m["c"](b),
                            )[2],
                            a=cnn.unit(24, 16, norm=None),
                            b=cnn.unit(40, 16, norm=None),
                            c=nn.Conv2d(56, 24, 1),
                        )
                    )
                    for _ in "ab"
                ),
                nn.Conv2d(24, 12, 3, 1, 1),
                nn.PixelShuffle(2),
            ),
            data.CROPS_UNIT,
            losses.larger,
            FIT(1e-4, o.stairs, steps=150, every=13, batch=8),
            "RDN",
        ),
        one(
            "zero_dce",
            lambda: nn.Sequential(
                cnn.unit(3, 24, norm=None),
                cnn.unit(24, 24, norm=None),
                cnn.unit(24, 24, norm=None),
                nn.Conv2d(24, 24, 3, 1, 1),
                nn.Tanh(),
            ),
            data.CROPS_UNIT,
            lambda m, x: (
                x := x * 0.3,
                a := m(x),
                z := x,
                [z := z + k * (z**2 - z) for k in a.chunk(8, 1)],
                10 * (functional.avg_pool2d(z.mean(1, True), 16) - 0.6).square().mean()
                + 20 * a.diff(dim=2).square().mean()
                + 5 * z.mean((2, 3)).var(1).mean(),
            )[4],
            FIT(1e-4, weight_decay=1e-4, clip=0.1, batch=8),
            "Zero-DCE",
        ),
        one(
            "cold",
            generative.Timed,
            data.CROPS,
            lambda m, x: (
                t := torch.randint(1, 4, ()).item(),
                y := functional.interpolate(functional.avg_pool2d(x, 2**t), (32, 32)),
                functional.l1_loss(m(y, torch.full((len(x),), t / 4)), x),
            )[2],
            FIT(1e-3, ema=0.995, batch=6),
            "cold diffusion",
        ),
    ),
]
