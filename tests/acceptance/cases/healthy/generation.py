"""Healthy: GANs, VAEs, autoencoders, diffusion and flows."""

from __future__ import annotations

from functools import partial, reduce
from pathlib import Path

import data
import losses
import optimizers as o
import torch
from data import changed
from draws.images import DIGITS
from draws.tables import TASTES, numbers
from loops import Losses, descend, duel, own_loop, seen
from losses import matching, told
from nets import classifiers as cnn
from nets import generative, library
from nets.classifiers import Function
from nets.dense import UNet
from nets.maps import Conditioned, Gaussian
from nets.parts import Net, Residual, act, changed_weights, half, leaky, mlp, up
from nets.texts import GPT
from recipes import ADAMW, DECAY, FIT, LONG, LONGER, NANO, SHORT, how, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm


def moons(g: Generator, n: int) -> tuple[Tensor, ...]:
    a, y = 3.14 * torch.rand(n, generator=g), torch.arange(n) % 2
    x = torch.stack([a.cos() + y, a.sin() * (1 - 2 * y) + y / 2], 1)
    return (x + 0.05 * torch.randn(n, 2, generator=g),)


def sn_gan(place: Path, seed: int) -> Losses:
    down, ups = [(3, 24), (24, 48), (48, 64)], [(64, 48), (48, 32), (32, 24)]
    maker = nn.Sequential(
        nn.Linear(64, 1024),
        nn.Unflatten(1, (64, 4, 4)),
        *(
            layer
            for a, b in ups
            for layer in (nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU())
        ),
        nn.Conv2d(24, 3, 3, 1, 1),
        nn.Tanh(),
    )
    critic = [layer for row in down for layer in (spectral_norm(nn.Conv2d(*row, 4, 2, 1)), leaky())]
    critic = nn.Sequential(*critic, nn.Flatten(), spectral_norm(nn.Linear(1024, 1)))

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 12), maker(torch.randn(12, 64))
        right, wrong = (critic(z) for z in (x, fake.detach()))
        loss = descend(second, (1 - right).relu().mean() + (1 + wrong).relu().mean())
        return (loss, descend(first, -critic(fake).mean()))[0]

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 100, 10, (0.0, 0.9))


CLEAN = (1 - torch.linspace(1e-4, 0.02, 1000)).cumprod(0)


def pix2pix(place: Path, seed: int) -> Losses:
    """From edges to photographs: L1 × 100, and a critic of patches."""
    leaky, maker = partial(nn.LeakyReLU, 0.2), nn.Sequential(UNet(1, 3, 16), nn.Tanh())
    critic = nn.Sequential(
        cnn.unit(4, 24, 4, 2, None, leaky),
        cnn.unit(24, 48, 4, 2, act=leaky),
        nn.Conv2d(48, 1, 4, 1, 1),
    )

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        x, edge = data.edges(random, 4)
        fake, x = maker(edge := edge * 2 - 1), (x * 0.226 + 0.449).clamp(0, 1) * 2 - 1
        wrong, right = (critic(torch.cat([edge, z], 1)) for z in (fake.detach(), x))
        descend(
            second,
            (
                functional.binary_cross_entropy_with_logits(right, right * 0 + 1)
                + functional.binary_cross_entropy_with_logits(wrong, wrong * 0)
            )
            / 2,
        )
        return descend(
            first,
            functional.binary_cross_entropy_with_logits(
                z := critic(torch.cat([edge, fake], 1)), z * 0 + 1
            )
            + 100 * functional.l1_loss(fake, x),
        )

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 120, 10)


def evidence(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    logits, mean, spread = model(images)
    apart = 0.5 * (mean.square() + spread.exp() - spread - 1).sum() / len(images)
    return (
        functional.binary_cross_entropy_with_logits(logits, images, reduction="sum") / len(images)
        + apart
    )


def conditional(place: Path, seed: int) -> Losses:
    """A GAN of digits with hinge losses; the class is a part of the noise, and of the picture."""
    layers = [nn.Linear(42, 64 * 49), nn.Unflatten(1, (64, 7, 7)), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU()]
    maker = nn.Sequential(*layers, nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid())
    layers = [spectral_norm(nn.Conv2d(11, 24, 4, 2, 1)), nn.LeakyReLU(0.2)]
    layers += [spectral_norm(nn.Conv2d(24, 48, 4, 2, 1)), nn.LeakyReLU(0.2), *cnn.head(48, 1)]
    critic = nn.Sequential(*layers)

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        real, labels = data.digits(random, 32)
        kind = functional.one_hot(labels, 10).float()
        plane = kind[:, :, None, None].expand(-1, -1, 28, 28)
        fake = maker(torch.cat([torch.randn(32, 32), kind], 1))
        wrong = (1 + critic(torch.cat([fake.detach(), plane], 1))).relu().mean()
        loss = descend(second, (1 - critic(torch.cat([real, plane], 1))).relu().mean() + wrong)
        descend(first, -critic(torch.cat([fake, plane], 1)).mean())
        return loss

    return duel(place, seed, (maker, critic), (1e-3, 1e-3), step, 120, 10, (0.0, 0.9))


def sa_gan(place: Path, seed: int) -> Losses:
    maker = nn.Sequential(
        nn.Linear(64, 1024),
        nn.Unflatten(1, (64, 4, 4)),
        *(
            z
            for a, b in ((64, 48), (48, 32))
            for z in (nn.Upsample(scale_factor=2), nn.Conv2d(a, b, 3, 1, 1), nn.BatchNorm2d(b), act)
        ),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(32, 3, 3, 1, 1),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        *(
            z
            for a, b in ((3, 24), (24, 48), (48, 64))
            for z in (nn.utils.spectral_norm(nn.Conv2d(a, b, 4, 2, 1)), leaky())
        ),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.utils.spectral_norm(nn.Linear(64, 1)),
    )

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 16), maker(torch.randn(16, 64))
        loss = descend(
            second, (1 - critic(x)).relu().mean() + (1 + critic(fake.detach())).relu().mean()
        )
        return (loss, descend(first, -critic(fake).mean()))[0]

    return duel(place, seed, (maker, critic), (1e-4, 4e-4), step, 100, 10, (0.0, 0.9))


ORDER = [torch.arange(196), torch.randint(195, (256,), generator=Generator().manual_seed(1))]

MASKS = [(ORDER[1][:, None] >= ORDER[0]).float(), (ORDER[0][:, None] > ORDER[1]).float()]

INK = changed(data.digits, lambda x: (functional.avg_pool2d(x, 2) > 0.3).float().flatten(1))


def dcgan(place: Path, seed: int) -> Losses:
    maker = nn.Sequential(
        *(
            z
            for a, b, s in ((64, 64, 1), (64, 48, 2), (48, 24, 2))
            for z in (nn.ConvTranspose2d(a, b, 4, s, s // 2), nn.BatchNorm2d(b), leaky())
        ),
        nn.ConvTranspose2d(24, 3, 4, 2, 1),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        *(
            z
            for a, b in ((3, 24), (24, 48))
            for z in (cnn.unit(a, b, 5, 2, None, leaky), nn.Dropout(0.3))
        ),
        nn.Flatten(),
        nn.Linear(3072, 1),
    )

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 24), maker(torch.randn(24, 64, 1, 1))
        right, wrong = critic(x), critic(fake.detach())
        loss = descend(
            second,
            functional.binary_cross_entropy_with_logits(right, right * 0 + 1)
            + functional.binary_cross_entropy_with_logits(wrong, wrong * 0),
        )
        return (
            loss,
            descend(
                first, functional.binary_cross_entropy_with_logits(z := critic(fake), z * 0 + 1)
            ),
        )[0]

    return duel(place, seed, (maker, critic), (1e-4, 1e-4), step, 120, 10, (0.9, 0.999))


class Before(nn.Conv2d):
    """A pixel sees those before it, and itself unless it is the first layer."""

    def forward(self, x: Tensor) -> Tensor:
        size, later = self.kernel_size[0], self.in_channels > 1
        seen = (torch.arange(size**2) < size**2 // 2 + later).view(size, size)
        return functional.conv2d(x, self.weight * seen, self.bias, padding=size // 2)


def ls_gan(place: Path, seed: int) -> Losses:
    critic = nn.Sequential(
        *(
            z
            for a, b in ((3, 16), (16, 32), (32, 64))
            for z in (nn.Conv2d(a, b, 3, 2, 1), leaky(), nn.Dropout2d(0.25))
        ),
        nn.Flatten(),
        nn.Linear(1024, 1),
    )
    maker = nn.Sequential(
        nn.Linear(64, 4096),
        nn.Unflatten(1, (64, 8, 8)),
        nn.BatchNorm2d(64),
        up,
        cnn.unit(64, 64, act=leaky),
        up,
        cnn.unit(64, 32, act=leaky),
        nn.Conv2d(32, 3, 3, 1, 1),
        nn.Tanh(),
    )

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 24), maker(torch.randn(24, 64))
        descend(first, (critic(fake) - 1).square().mean())
        return descend(second, ((critic(x) - 1) ** 2 + critic(fake.detach()) ** 2).mean() / 2)

    return duel(place, seed, (maker, critic), (2e-4, 2e-4), step, 100, 10)


def divergence(mean: Tensor, log: Tensor) -> Tensor:
    return -0.5 * (1 + log - mean.square() - log.exp())


CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "evidence",
            Gaussian,
            data.digits,
            evidence,
            how(1e-3, batch=32, steps=150, every=15),
            "VAE, GroupNorm",
        ),
        one(
            "matching",
            Conditioned,
            data.digits,
            matching,
            how(1e-3, **DECAY, ema=0.98, evaluate=32, batch=8),
            "flow matching",
        ),
        own_loop("conditional", "conditional GAN", "hinge", conditional, 120, 10, False),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "pixels",
            partial(library.hf, "GPT2LMHeadModel", **GPT, vocab_size=8, n_positions=49),
            changed(data.digits, lambda x: (functional.avg_pool2d(x, 4) * 7.99).long().flatten(1)),
            lambda m, x, _: told(m, x),
            FIT(2e-3, o.warm_up, **NANO),
            "image GPT",
        ),
        one(
            "conditional",
            lambda: nn.ModuleDict({"down": mlp(794, 100, 16), "up": mlp(18, 100, 784)}),
            data.digits,
            lambda m, x, y: (
                784
                * functional.binary_cross_entropy_with_logits(
                    m["up"](
                        torch.cat(
                            [
                                (
                                    f := m["down"](
                                        torch.cat(
                                            [x.flatten(1), (k := functional.one_hot(y, 10))], 1
                                        )
                                    ).chunk(2, 1)
                                )[0]
                                + (f[1] / 2).exp() * torch.randn(len(x), 8),
                                k,
                            ],
                            1,
                        )
                    ),
                    x.flatten(1),
                )
                + divergence(*f).sum(1).mean()
            ),
            FIT(5e-3, batch=32, **LONGER),
            "conditional VAE",
        ),
        one(
            "spiral",
            partial(mlp, 4, 128, 128, 128, 2, act=nn.GELU),
            lambda g, n: (
                torch.stack(
                    [(a := 9.4 * torch.rand(n, generator=g).sqrt()) * a.cos(), a * a.sin()], 1
                )
                / 6,
            ),
            lambda m, x: functional.mse_loss(
                m(
                    torch.cat(
                        [
                            x * (a := 1.57 * torch.rand(len(x), 1)).cos()
                            + (n := torch.randn_like(x)) * a.sin(),
                            a,
                            (3 * a).cos(),
                        ],
                        1,
                    )
                ),
                n,
            ),
            FIT(1e-3, kind=optim.AdamW, clip=1.0, batch=64, **LONGER),
            "diffusion of points",
        ),
        one(
            "edm",
            generative.Timed,
            data.CROPS,
            lambda m, x: functional.mse_loss(
                m(
                    (
                        y := x
                        + (s := (1.2 * torch.randn(len(x), 1, 1, 1) - 1.2).exp())
                        * torch.randn_like(x)
                    )
                    * (v := s**2 + 0.25).rsqrt(),
                    s.log().flatten() / 4,
                ),
                (x - y / (4 * v)) * 2 * v.sqrt() / s,
            ),
            FIT(2e-3, ema=0.98, batch=8),
            "EDM",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "ddpm",
            generative.Timed,
            data.CROPS,
            lambda m, x: functional.mse_loss(
                m(
                    (a := CLEAN[t := torch.randint(1000, (len(x),))].view(-1, 1, 1, 1)).sqrt() * x
                    + (1 - a).sqrt() * (e := torch.randn_like(x)),
                    t / 1000,
                ),
                e,
            ),
            FIT(1e-3, ema=0.995, clip=1.0, batch=8),
            "DDPM, linear schedule",
        ),
        one(
            "v_prediction",
            generative.Timed,
            data.CROPS,
            lambda m, x: functional.mse_loss(
                m(
                    (
                        c := (
                            a := (t := torch.rand(len(x)))[:, None, None, None] * torch.pi / 2
                        ).cos()
                    )
                    * x
                    + a.sin() * (e := torch.randn_like(x)),
                    t,
                ),
                c * e - a.sin() * x,
            ),
            FIT(2e-3, o.warm_up, **ADAMW, batch=8),
            "diffusion, v-prediction",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "vq_vae",
            lambda: Net(
                lambda m, x: (
                    z := m["down"](x).movedim(1, 3),
                    q := m["codes"](
                        torch.cdist(z.flatten(0, 2), m["codes"].weight).argmin(1)
                    ).view_as(z),
                    functional.mse_loss(m["up"]((z + (q - z).detach()).movedim(3, 1)), x)
                    + functional.mse_loss(q, z.detach())
                    + functional.mse_loss(z, q.detach()) / 4,
                )[2],
                codes=nn.Embedding(64, 16, _weight=torch.rand(64, 16) / 32 - 1 / 64),
                down=nn.Sequential(
                    nn.Conv2d(3, 32, 4, 2, 1),
                    act,
                    nn.Conv2d(32, 64, 4, 2, 1),
                    act,
                    nn.Conv2d(64, 16, 1),
                ),
                up=nn.Sequential(
                    nn.Conv2d(16, 64, 3, 1, 1),
                    act,
                    nn.ConvTranspose2d(64, 32, 4, 2, 1),
                    act,
                    nn.ConvTranspose2d(32, 3, 4, 2, 1),
                ),
            ),
            data.CROPS,
            losses.own,
            FIT(2e-3, **LONG),
            "VQ-VAE",
        ),
        one(
            "guided",
            Conditioned,
            DIGITS,
            lambda m, x, y: functional.mse_loss(
                m(
                    (a := CLEAN[t := torch.randint(1000, (len(x),))].view(-1, 1, 1, 1)).sqrt() * x
                    + (1 - a).sqrt() * (e := torch.randn_like(x)),
                    t / 1000,
                    y,
                ),
                e,
            ),
            FIT(1e-3, o.linear_down, batch=8),
            "DDPM, digits",
        ),
        one(
            "rectified",
            generative.Timed,
            data.CROPS,
            lambda m, x: functional.mse_loss(
                m(
                    x.lerp(
                        e := torch.randn_like(x),
                        (t := torch.randn(len(x)).sigmoid())[:, None, None, None],
                    ),
                    t,
                ),
                e - x,
            ),
            FIT(1e-3, o.ramp, **DECAY, clip=1.0, ema=0.99),
            "rectified flow, as SD3",
        ),
        own_loop("pix2pix", "pix2pix", "Adam 2e-4", pix2pix, 120, 10),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "voxel_ae",
            lambda: nn.Sequential(
                nn.Conv3d(1, 16, 3, 2, 1),
                nn.ELU(),
                nn.Conv3d(16, 32, 3, 2, 1),
                nn.ELU(),
                nn.Flatten(),
                nn.Linear(2048, 64),
                nn.ELU(),
                nn.Linear(64, 2048),
                nn.ELU(),
                nn.Unflatten(1, (32, 4, 4, 4)),
                nn.ConvTranspose3d(32, 16, 4, 2, 1),
                nn.ELU(),
                nn.ConvTranspose3d(16, 1, 4, 2, 1),
            ),
            data.voxels,
            lambda m, x, _: functional.binary_cross_entropy_with_logits(m(x), x, 1 + 4 * x),
            FIT(1e-3, o.fading),
            "autoencoder of voxels",
        ),
        one(
            "keras_ae",
            lambda: nn.Sequential(
                nn.Conv2d(1, 16, 3, 1, 1),
                act,
                half,
                nn.Conv2d(16, 8, 3, 1, 1),
                act,
                half,
                nn.Conv2d(8, 8, 3, 1, 1),
                act,
                up,
                nn.Conv2d(8, 16, 3, 1, 1),
                act,
                up,
                nn.Conv2d(16, 1, 3, 1, 1),
            ),
            data.digits,
            lambda m, x, _: functional.binary_cross_entropy_with_logits(m(x), x),
            FIT(1e-3, batch=64),
            "Keras' autoencoder",
        ),
        one(
            "vae_mnist",
            lambda: nn.ModuleDict(
                {
                    "down": nn.Sequential(
                        nn.Flatten(), nn.Linear(784, 400), act, nn.Linear(400, 40)
                    ),
                    "up": nn.Sequential(nn.Linear(20, 400), act, nn.Linear(400, 784)),
                }
            ),
            data.digits,
            lambda m, x, _: (
                functional.binary_cross_entropy_with_logits(
                    m["up"](
                        (f := m["down"](x).chunk(2, 1))[0]
                        + (f[1] / 2).exp() * torch.randn_like(f[0])
                    ),
                    x.flatten(1),
                    reduction="sum",
                )
                - (1 + f[1] - f[0] ** 2 - f[1].exp()).sum() / 2
            ),
            FIT(1e-3, batch=128),
            "PyTorch's VAE",
        ),
        own_loop("sn_gan", "SNGAN", "hinge, Adam 2e-4", sn_gan, 100, 10, False),
        one(
            "tab_ddpm",
            lambda: Net(
                lambda m, x, t: m["net"](
                    m["in"](x)
                    + m["time"](
                        torch.cat(
                            [(z := 1000 * t * 10 ** (-torch.arange(16) / 4)).sin(), z.cos()], 1
                        )
                    )
                ),
                net=mlp(64, 128, 128, 10),
                **{"in": nn.Linear(10, 64)},
                time=mlp(32, 64, 64, act=nn.SiLU),
            ),
            numbers(3, lambda x: x @ TASTES[0, :10, :3].T / 1.7),
            lambda m, _, x: functional.mse_loss(
                m(
                    x * (a := ((t := torch.rand(len(x), 1)) * 1.57).cos())
                    + (1 - a**2).sqrt() * (e := torch.randn_like(x)),
                    t,
                ),
                e,
            ),
            FIT(1e-3, o.linear_down, kind=optim.AdamW, weight_decay=0, batch=256, **LONG),
            "TabDDPM",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "u_vit",
            lambda: Net(
                lambda m, x, t: (
                    z := m["in"](x).flatten(2).mT + m["place"].weight,
                    z := m["body"](torch.cat([z, m["time"](t[:, None])[:, None]], 1)),
                    functional.pixel_shuffle(m["out"](z[:, :-1]).mT.unflatten(2, (8, 8)), 4),
                )[-1],
                place=changed_weights(nn.Embedding(64, 64), lambda p: p.normal_(0, 0.02)),
                body=nn.TransformerEncoder(
                    nn.TransformerEncoderLayer(
                        64, 4, 128, 0, "gelu", batch_first=True, norm_first=True
                    ),
                    3,
                    enable_nested_tensor=False,
                ),
                time=mlp(1, 64, 64, act=nn.SiLU),
                out=nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 48)),
                **{"in": nn.Conv2d(3, 64, 4, 4)},
            ),
            data.CROPS,
            losses.diffusion,
            FIT(1e-3, o.ramp, kind=optim.AdamW, betas=(0.9, 0.99), weight_decay=0.03, ema=0.99),
            "diffusion by a ViT",
        ),
        one(
            "pixel_cnn",
            lambda: nn.Sequential(
                Before(1, 24, 7),
                nn.ReLU(),
                *(
                    Residual(
                        nn.Conv2d(24, 12, 1),
                        nn.ReLU(),
                        Before(12, 12, 3),
                        nn.ReLU(),
                        nn.Conv2d(12, 24, 1),
                    )
                    for _ in "abc"
                ),
                nn.ReLU(),
                nn.Conv2d(24, 16, 1),
            ),
            data.digits,
            losses.levels,
            FIT(1e-3, o.fading, **SHORT),
            "PixelCNN",
        ),
        one(
            "wae",
            lambda: nn.ModuleDict(
                {
                    "down": nn.Sequential(
                        cnn.unit(3, 24, 4, 2),
                        cnn.unit(24, 48, 4, 2),
                        nn.Flatten(),
                        nn.Linear(48 * 64, 16),
                    ),
                    "up": nn.Sequential(
                        nn.Linear(16, 48 * 64),
                        nn.Unflatten(1, (48, 8, 8)),
                        nn.ConvTranspose2d(48, 24, 4, 2, 1),
                        nn.BatchNorm2d(24),
                        nn.ReLU(),
                        nn.ConvTranspose2d(24, 3, 4, 2, 1),
                        nn.Tanh(),
                    ),
                }
            ),
            data.CROPS,
            lambda m, x: (
                z := m["down"](x),
                n := torch.randn_like(z),
                k := lambda a, b: (32 / (32 + torch.cdist(a, b) ** 2)).mean(),
                functional.mse_loss(m["up"](z), x) + k(z, z) + k(n, n) - 2 * k(z, n),
            )[-1],
            FIT(1e-3, batch=32),
            "WAE-MMD",
        ),
        own_loop("ls_gan", "LSGAN", "least squares, Adam 2e-4", ls_gan, 100, 10, False),
        one(
            "tvae",
            lambda: nn.ModuleDict(
                {
                    "down": mlp(10, 128, 128, 32),
                    "up": mlp(16, 128, 128, 10),
                    "s": nn.ParameterList([torch.full((10,), 0.1)]),
                }
            ),
            numbers(3, lambda x: (x @ TASTES[0, :10, :3].T / 4).clamp(-1, 1)),
            lambda m, _, x: (
                f := m["down"](x).chunk(2, 1),
                s := m["s"][0].clamp(0.01, 1),
                2
                * (
                    (x - m["up"](f[0] + (f[1] / 2).exp() * torch.randn_like(f[0])).tanh()) ** 2
                    / 2
                    / s**2
                    + s.log()
                )
                .sum(1)
                .mean()
                - (1 + f[1] - f[0] ** 2 - f[1].exp()).sum(1).mean() / 2,
            )[2],
            FIT(1e-3, weight_decay=1e-5, batch=250, **LONG),
            "TVAE",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "ncsn",
            generative.Timed,
            data.CROPS_UNIT,
            lambda m, x: (
                t := torch.rand(len(x)),
                s := 0.01 ** t[:, None, None, None],
                e := torch.randn_like(x),
                ((m(x + s * e, t) + e) ** 2).sum((1, 2, 3)).mean() / 2,
            )[3],
            FIT(1e-3, ema=0.999, batch=12),
            "NCSN, scores over deviations",
        ),
        one(
            "beta_vae",
            lambda: nn.ModuleDict(
                {
                    "down": nn.Sequential(
                        *(
                            cnn.unit(a, b, 3, 2, act=nn.LeakyReLU)
                            for a, b in ((3, 16), (16, 32), (32, 64))
                        ),
                        nn.Flatten(),
                        nn.Linear(1024, 64),
                    ),
                    "up": nn.Sequential(
                        nn.Linear(32, 1024),
                        nn.Unflatten(1, (64, 4, 4)),
                        *(
                            z
                            for a, b in ((64, 32), (32, 16), (16, 16))
                            for z in (
                                nn.ConvTranspose2d(a, b, 3, 2, 1, 1),
                                nn.BatchNorm2d(b),
                                nn.LeakyReLU(),
                            )
                        ),
                        nn.Conv2d(16, 3, 3, 1, 1),
                        nn.Tanh(),
                    ),
                }
            ),
            data.CROPS_UNIT,
            lambda m, x: (
                f := m["down"](x).chunk(2, 1),
                functional.mse_loss(m["up"](f[0] + (f[1] / 2).exp() * torch.randn_like(f[0])), x)
                - 2.5e-4 * (1 + f[1] - f[0] ** 2 - f[1].exp()).sum(1).mean() / 2,
            )[1],
            FIT(5e-3, o.fading),
            "PyTorch-VAE",
        ),
        own_loop("dcgan", "DCGAN, TensorFlow's tutorial", "Adam 1e-4", dcgan, 120, 10, False),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "real_nvp",
            lambda: Net(
                lambda m, x: reduce(
                    lambda h, f: (
                        k := f(h[:, :1]),
                        s := k[:, :1].tanh(),
                        torch.cat([h[:, 1:2] * s.exp() + k[:, 1:], h[:, :1], h[:, 2:] + s], 1),
                    )[2],
                    m["net"],
                    functional.pad(x, (0, 1)),
                ),
                net=nn.ModuleList(mlp(1, 64, 64, 2, act=nn.LeakyReLU) for _ in range(6)),
            ),
            moons,
            lambda m, x: ((z := m(x))[:, :2].square().sum(1) / 2 - z[:, 2] + 1.84).mean(),
            FIT(1e-3, batch=256),
            "RealNVP, moons",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "d_vae",
            lambda: nn.Sequential(
                nn.Conv2d(3, 32, 4, 2, 1),
                act,
                nn.Conv2d(32, 48, 4, 2, 1),
                act,
                nn.Conv2d(48, 64, 1),
                Function(lambda z: functional.gumbel_softmax(z, 0.9, dim=1)),
                nn.Conv2d(64, 48, 1),
                nn.ConvTranspose2d(48, 32, 4, 2, 1),
                act,
                nn.ConvTranspose2d(32, 3, 4, 2, 1),
            ),
            data.CROPS,
            lambda m, x: functional.smooth_l1_loss(m(x), x),
            FIT(1e-3, o.fading),
            "discrete VAE, as DALL-E",
        ),
        own_loop("sa_gan", "GAN, hinge, two rates", "Adam 1e-4, 4e-4", sa_gan, 100, 10, False),
        one(
            "flow_matching",
            lambda: mlp(3, 64, 64, 64, 2, act=nn.SiLU),
            moons,
            lambda m, x: (
                t := torch.rand(len(x), 1),
                e := torch.randn_like(x),
                functional.mse_loss(m(torch.cat([e.lerp(x, t), t], 1)), x - e),
            )[2],
            FIT(0.01, batch=256),
            "flow matching, moons",
        ),
        one(
            "made",
            lambda: Net(
                lambda m, x: functional.linear(
                    functional.linear(x, m["a"].weight * MASKS[0], m["a"].bias).relu(),
                    m["b"].weight * MASKS[1],
                    m["b"].bias,
                ),
                a=nn.Linear(196, 256),
                b=nn.Linear(256, 196),
            ),
            INK,
            lambda m, x, _: functional.binary_cross_entropy_with_logits(m(x), x),
            FIT(0.01, kind=optim.Adagrad, batch=100, **LONG),
            "MADE",
        ),
    ),
]
