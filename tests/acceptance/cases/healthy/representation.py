"""Healthy: self-supervised and metric learning."""

from __future__ import annotations

import copy
from functools import partial

import data
import losses
import optimizers as o
import timm
import torch
from data import P
from draws.graphs import cora
from draws.images import DIGITS
from draws.tables import TASTES, numbers
from loops import follow, seen
from losses import ArcFace
from nets import classifiers as cnn
from nets import library
from nets.images import projected
from nets.maps import DECODER
from nets.parts import Net, changed_weights, half, mlp
from recipes import DECAY, FIT, LONG, MAE, NESTEROV, SGD, SHORT, how, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional


def supervised(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """SupCon: all of the same class attract, of two views."""
    code = functional.normalize(model(torch.cat(losses.both_views(images))), dim=1)
    alike, own = code @ code.T / 0.2, torch.eye(len(code), dtype=torch.bool)
    same = (labels.repeat(2)[:, None] == labels.repeat(2)) & ~own
    share = alike.masked_fill(own, -1e4).log_softmax(1)
    return -((share * same).sum(1) / same.sum(1)).mean()


def barlow(model: nn.Module, images: Tensor) -> Tensor:
    """The correlation of two views is to be the identity."""
    one, two = (model(view) for view in losses.both_views(images))
    one, two = ((x - x.mean(0)) / (x.std(0) + 1e-4) for x in (one, two))
    apart = (one.T @ two / len(one) - torch.eye(one.shape[1])).square()
    return apart.diagonal().sum() + 0.01 * (apart.sum() - apart.diagonal().sum())


def turned(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """RotNet: by which of four right angles a picture is turned."""
    labels = torch.randint(4, (len(images),))
    shown = [x.rot90(k, (1, 2)) for x, k in zip(images, labels.tolist(), strict=True)]
    return functional.cross_entropy(model(torch.stack(shown)), labels)


def halves(z: Tensor, k: Tensor, tau: float) -> Tensor:
    """GRACE's loss of one of two views."""
    a, b = (z @ z.T / tau).exp(), (z @ k.T / tau).exp()
    return -(b.diag() / (a.sum(1) + b.sum(1) - a.diag())).log().mean()


def correlated(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """DCCA's: 8 less the correlations of two views."""
    a, b = ((z - z.mean(0)) for z in (m["a"](x), m["b"](y)))
    roots = [torch.linalg.cholesky(z.T @ z / len(z) + 1e-3 * torch.eye(8)) for z in (a, b)]
    t = torch.linalg.solve_triangular(roots[0], a.T @ b / len(a), upper=False)
    t = torch.linalg.solve_triangular(roots[1], t.T, upper=False)
    return 8 - torch.linalg.matrix_norm(t, "nuc")


def five_digits(g: Generator, _: int) -> tuple[Tensor, ...]:
    x, y = DIGITS(g, 300)
    return (
        x[torch.cat([(y == k).nonzero()[:10, 0] for k in torch.randperm(10, generator=g)[:5]])],
    )


def only_zeros(generator: Generator, count: int) -> tuple[Tensor, ...]:
    images, labels = data.digits(generator, 30 * count)
    return images[labels == 0][:count], labels[labels == 0][:count]


CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "sup_con",
            projected,
            data.P40,
            supervised,
            how(0.05, o.cosine, **NESTEROV, batch=24),
            "SupCon",
        ),
        one(
            "barlow",
            projected,
            data.pictures(40),
            barlow,
            how(1e-3, **DECAY, batch=48, steps=64),
            "Barlow Twins",
        ),
        one(
            "turned",
            partial(cnn.plain, 1, 4, norm=nn.BatchNorm2d),
            data.digits,
            turned,
            how(2e-3, o.cosine, batch=32, steps=120, every=12),
            "RotNet",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "one_class",
            lambda: nn.Sequential(
                *(
                    layer
                    for a, b in ((1, 8), (8, 16))
                    for layer in (
                        nn.Conv2d(a, b, 5, 2, 2, bias=False),
                        nn.BatchNorm2d(b, affine=False),
                        nn.LeakyReLU(),
                    )
                ),
                nn.Flatten(),
                nn.Linear(784, 32, bias=False),
            ),
            only_zeros,
            lambda m, x, _: (
                ((z := m(x)) - m.__dict__.setdefault("centre", z.detach().mean(0)))
                .square()
                .sum(1)
                .mean()
            ),
            FIT(1e-3, kind=optim.Adam, weight_decay=1e-6, batch=32),
            "Deep SVDD",
        ),
        one(
            "simsiam",
            lambda: nn.ModuleDict(
                {
                    "back": projected(),
                    "guess": nn.Sequential(
                        nn.Linear(32, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 32)
                    ),
                }
            ),
            data.pictures(32),
            lambda m, x: (
                lambda a, b: (
                    -(
                        functional.cosine_similarity(m["guess"](a), b.detach())
                        + functional.cosine_similarity(m["guess"](b), a.detach())
                    ).mean()
                    / 2
                )
            )(*map(m["back"], losses.both_views(x))),
            SGD(0.05, o.cosine, batch=20, weight_decay=1e-4),
            "SimSiam",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "centre_loss",
            lambda: Net(
                lambda m, x: (f := m["body"](x), m["last"](f)),
                last=nn.Linear(16, 8),
                body=cnn.encoder(16),
                w=nn.ParameterList([torch.randn(8, 16)]),
            ),
            P,
            lambda m, x, y: (
                functional.cross_entropy((f := m(x))[1], y)
                + (f[0] - m["w"][0][y]).square().sum(1).mean() / 100
            ),
            SGD(0.05, o.stairs, weight_decay=5e-4),
            "centre loss",
        ),
        one(
            "scarf",
            partial(mlp, 20, 64, 64, 64, 32),
            numbers(4, lambda x: x @ TASTES[0, :20].T / 2 + 0.1 * torch.randn(len(x), 20)),
            lambda m, _, x: functional.cross_entropy(
                functional.normalize(m(x))
                @ functional.normalize(
                    m(
                        torch.where(
                            torch.rand(x.shape) < 0.6,
                            x[torch.randint(len(x), x.shape), torch.arange(20)],
                            x,
                        )
                    )
                ).T
                / 0.2,
                torch.arange(len(x)),
            ),
            FIT(1e-3, batch=128),
            "SCARF",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "mae",
            lambda: library.hf(
                "ViTMAEForPreTraining", **library.SMALL, **DECODER, norm_pix_loss=True
            ),
            P,
            lambda m, x, _: m(x).loss,
            FIT(2e-3, o.warm_up, **MAE),
            "masked autoencoder",
        ),
        one(
            "described",
            lambda: Net(
                lambda m, x, y: (
                    m["last"](
                        m["body"](torch.cat([m["see"](x)[:, None], m["words"](y)], 1))[0][:, 1:]
                    ).mT
                ),
                see=cnn.encoder(48),
                words=nn.Embedding(64, 48),
                body=nn.LSTM(48, 64, batch_first=True),
                last=nn.Linear(64, 64),
            ),
            data.captions,
            lambda m, x, y, _: functional.cross_entropy(m(x, y[:, :-1]), y[:, 1:]),
            FIT(3e-3),
            "show and tell",
        ),
        one(
            "speakers",
            lambda: Net(
                lambda m, x: (
                    functional.normalize(m["last"](m["body"](x[:, 0].mT)[1][0][-1]).relu()),
                    m["w"][0],
                    m["w"][1],
                ),
                body=nn.LSTM(33, 48, 2, batch_first=True),
                last=nn.Linear(48, 32),
                w=nn.ParameterList([torch.tensor(10.0), torch.tensor(-5.0)]),
            ),
            data.spectrograms,
            lambda m, x, y: functional.cross_entropy(
                (f := m(x))[1]
                * f[0]
                @ functional.normalize(functional.one_hot(y, 6).float().T @ f[0]).T
                + f[2],
                y,
            ),
            SGD(0.01, clip=3.0, batch=48, **LONG),
            "GE2E",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "sim_clr",
            projected,
            data.pictures(40),
            lambda m, x: functional.cross_entropy(
                (f := functional.normalize(torch.cat([m(v) for v in losses.both_views(x)])))
                @ f.T
                / 0.2
                - 1e9 * torch.eye(len(f)),
                torch.arange(len(f)).roll(len(x)),
            ),
            FIT(1e-3, o.warm_up, weight_decay=1e-6, batch=48),
            "SimCLR",
        ),
        one(
            "siamese",
            partial(mlp, 784, 128, 128, 32),
            data.digits,
            lambda m, x, y: (
                d := torch.cdist(f := m(x), f),
                s := (y[:, None] == y).float(),
                (d**2 * s).sum() / s.sum() + ((1 - d).relu() ** 2 * (1 - s)).mean(),
            )[2],
            FIT(1e-3, kind=optim.RMSprop, batch=64),
            "siamese, contrastive loss",
        ),
        one(
            "proxies",
            lambda: nn.ModuleDict({"code": cnn.encoder(32), "proxies": nn.Embedding(8, 32)}),
            P,
            lambda m, x, y: functional.cross_entropy(
                -9
                * torch.cdist(
                    functional.normalize(m["code"](x)), functional.normalize(m["proxies"].weight)
                )
                ** 2,
                y,
            ),
            FIT(1e-3, o.fading, batch=24),
            "proxy NCA",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "byol",
            lambda: nn.ModuleDict(
                {
                    "online": (a := projected()),
                    "guess": nn.Sequential(
                        nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32)
                    ),
                    "target": copy.deepcopy(a).requires_grad_(False),
                }
            ),
            data.pictures(40),
            lambda m, x: (
                v := losses.both_views(x),
                sum(
                    2
                    - 2
                    * functional.cosine_similarity(
                        m["guess"](m["online"](a)), m["target"](b)
                    ).mean()
                    for a, b in (v, v[::-1])
                ),
            )[1],
            FIT(
                1e-3,
                weight_decay=1.5e-6,
                batch=32,
                after=lambda _, m, __: follow(m["target"], m["online"], 0.99),
                **SHORT,
            ),
            "BYOL",
        ),
        one(
            "similar",
            partial(mlp, 784, 256, 256, 64),
            DIGITS,
            lambda m, x, y: (
                f := functional.normalize(m(x)),
                s := f @ f.T - 0.5,
                k := y[:, None] == y,
                (
                    (k * (-2 * s).exp()).sum(1).log1p() / 2
                    + (~k * (50 * s).exp()).sum(1).log1p() / 50
                ).mean(),
            )[3],
            FIT(1e-3, o.fading, kind=optim.AdamW, weight_decay=1e-4, batch=64, **LONG),
            "multi-similarity loss",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "sim_mim",
            partial(library.hf, "ViTForMaskedImageModeling", **library.SMALL, encoder_stride=4),
            P,
            lambda m, x, _: m(x, bool_masked_pos=torch.rand(len(x), 64).argsort(1) < 38).loss,
            FIT(8e-4, o.warm_up, **DECAY, clip=5.0),
            "SimMIM",
        ),
        one(
            "vic_reg",
            projected,
            data.pictures(40),
            lambda m, x: (
                z := [m(v) for v in losses.both_views(x)],
                25 * functional.mse_loss(*z)
                + sum(
                    25 * (1 - (k.var(0) + 1e-4).sqrt()).relu().mean() / 2
                    + (k.T.cov().fill_diagonal_(0) ** 2).sum() / 32
                    for k in z
                ),
            )[1],
            FIT(
                0.3,
                o.warm_up,
                kind=timm.optim.Lars,
                momentum=0.9,
                weight_decay=1e-4,
                batch=32,
                **SHORT,
            ),
            "VICReg",
        ),
        one(
            "circle",
            lambda: nn.Sequential(
                cnn.unit(1, 16),
                nn.MaxPool2d(2),
                cnn.unit(16, 32),
                nn.MaxPool2d(2),
                nn.Flatten(),
                nn.Linear(1568, 64),
            ),
            DIGITS,
            lambda m, x, y: (
                s := (f := functional.normalize(m(x))) @ f.T,
                k := (y[:, None] == y) & ~torch.eye(len(y), dtype=bool),
                a := -64 * (1.25 - s.detach()).relu() * (s - 0.75),
                b := 64 * (s.detach() + 0.25).relu() * (s - 0.25),
                functional.softplus(a[k].logsumexp(0) + b[y[:, None] != y].logsumexp(0)),
            )[4],
            FIT(1e-3, o.stairs, weight_decay=5e-4, batch=48),
            "circle loss",
        ),
        one(
            "prototypes",
            lambda: nn.Sequential(
                *(z for a in (1, 24, 24) for z in (cnn.unit(a, 24), nn.MaxPool2d(2))), nn.Flatten()
            ),
            five_digits,
            lambda m, x: (
                f := m(x).view(5, 10, -1),
                functional.cross_entropy(
                    -(torch.cdist(f[:, 5:].flatten(0, 1), f[:, :5].mean(1)) ** 2),
                    torch.arange(5).repeat_interleave(5),
                ),
            )[1],
            FIT(1e-3, o.stairs),
            "prototypical network",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "batch_all",
            cnn.encoder,
            data.few_classes,
            lambda m, x, y: (
                d := torch.cdist(z := m(x), z),
                k := y[:, None] == y,
                q := k[:, :, None] & ~k[:, None],
                (functional.softplus(d[:, :, None] - d[:, None]) * q).sum() / q.sum(),
            )[3],
            FIT(1e-3, o.fading, **SHORT),
            "triplets, batch all",
        ),
        one(
            "arc_face",
            lambda: ArcFace(cnn.encoder()),
            P,
            losses.angular,
            SGD(0.05, o.stairs, weight_decay=5e-4, batch=24),
            "ArcFace",
        ),
        one(
            "proxy_anchor",
            lambda: nn.ModuleDict(
                {
                    "body": cnn.plain(1, 64, (16, 32, 48), nn.BatchNorm2d),
                    "goal": changed_weights(
                        nn.Embedding(10, 64), partial(nn.init.kaiming_normal_, mode="fan_out")
                    ),
                }
            ),
            DIGITS,
            lambda m, x, y: (
                s := functional.normalize(m["body"](x)) @ functional.normalize(m["goal"].weight).T,
                k := functional.one_hot(y, 10).bool(),
                (
                    p := (torch.where(k, -32 * (s - 0.1), -1e9).logsumexp(0)),
                    functional.softplus(p[k.any(0)]).mean()
                    + functional.softplus(torch.where(k, -1e9, 32 * (s + 0.1)).logsumexp(0)).mean(),
                )[1],
            )[2],
            FIT(
                0,
                o.stairs,
                "AdamW 1e-3, proxies 0.01",
                lambda m: optim.AdamW(
                    [
                        {"params": m["body"].parameters()},
                        {"params": m["goal"].parameters(), "lr": 0.01},
                    ],
                    1e-3,
                    weight_decay=1e-4,
                ),
                batch=32,
            ),
            "proxy anchor",
        ),
        one(
            "dann",
            lambda: nn.ModuleDict(
                {
                    "body": nn.Sequential(
                        *(
                            z
                            for a, b in ((1, 16), (16, 32))
                            for z in (
                                nn.Conv2d(a, b, 5),
                                nn.BatchNorm2d(b),
                                nn.MaxPool2d(2),
                                nn.ReLU(),
                            )
                        ),
                        nn.Flatten(),
                    ),
                    "kind": mlp(512, 64, 10),
                    "place": mlp(512, 64, 1),
                }
            ),
            lambda g, n: (
                *DIGITS(g, n),
                0.5 * DIGITS(g, n)[0] + torch.rand(n, 1, 1, 1, generator=g),
            ),
            lambda m, x, y, z: (
                h := m["body"](torch.cat([x, z])),
                functional.cross_entropy(m["kind"](h[: len(x)]), y)
                + functional.binary_cross_entropy_with_logits(
                    m["place"](1.3 * h.detach() - 0.3 * h)[:, 0],
                    (torch.arange(2 * len(x)) < len(x)).float(),
                ),
            )[1],
            FIT(0.01, o.fading, kind=optim.SGD, momentum=0.9, batch=16),
            "DANN",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "siamese",
            lambda: nn.Sequential(
                cnn.unit(1, 24), half, cnn.unit(24, 48), half, nn.Flatten(), nn.Linear(2352, 32)
            ),
            data.digits,
            lambda m, x, y: (
                d := (m(x).unflatten(0, (2, -1)).diff(dim=0)[0].square().sum(1) + 1e-9).sqrt(),
                k := (y[: len(d)] == y[len(d) :]).float(),
                (k * d**2 + (1 - k) * (1 - d).relu() ** 2).mean(),
            )[2],
            FIT(1e-3, kind=optim.RMSprop, batch=64),
            "siamese",
        ),
        one(
            "grace",
            lambda: Net(
                lambda m, a, x: (a @ m["b"]((a @ m["a"](x)).relu())).relu(),
                a=nn.Linear(60, 64),
                b=nn.Linear(64, 32),
                last=nn.Sequential(nn.Linear(32, 32), nn.ELU(), nn.Linear(32, 32)),
            ),
            cora,
            lambda m, a, x, _: (
                z := [
                    functional.normalize(
                        m["last"](m(functional.dropout(a, p), x * (torch.rand(60) > p)))
                    )
                    for p in (0.2, 0.4)
                ],
                (halves(*z, 0.4) + halves(*z[::-1], 0.4)) / 2,
            )[1],
            FIT(2e-3, weight_decay=1e-5),
            "GRACE",
        ),
        one(
            "deep_cca",
            lambda: nn.ModuleDict({k: mlp(20, 64, 64, 8, act=nn.Sigmoid) for k in "ab"}),
            lambda g, n: (
                z := torch.randn(n, 4, generator=g),
                *(
                    torch.tanh(z @ TASTES[k, :20].T / 2) + 0.3 * torch.randn(n, 20, generator=g)
                    for k in (0, 1)
                ),
            )[1:],
            correlated,
            FIT(1e-3, kind=optim.RMSprop, weight_decay=1e-5, batch=400),
            "deep CCA",
        ),
    ),
]
