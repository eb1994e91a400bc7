"""Healthy: rows of a table: regression, classification, survival."""

from __future__ import annotations

from functools import partial, reduce

import data
import optimizers as o
import torch
from data import changed
from draws.images import DIGITS
from draws.tables import TASTES, clicks, numbers
from draws.texts import words
from loops import seen
from losses import CE, answered, error
from nets.classifiers import Function
from nets.parts import Net, changed_weights, glorot, mlp
from nets.texts import coder
from recipes import FIT, LONG, LONGER, one
from torch import Generator, nn, optim
from torch.distributions import Normal
from torch.nn import functional

CARS = torch.tensor([[5.5, 194, 104, 2978, 15.6, 76], [1.7, 104, 38, 847, 2.8, 3.7]])

IRIS = torch.tensor([[5.0, 3.4, 1.5, 0.25], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])

SIGNED_DIGITS = changed(data.digits, lambda x: 2 * x - 1)

GRID = torch.linspace(-2, 2, 8)


def kan(a: int, b: int) -> nn.Module:
    """A base, and a sum of Gaussians."""
    spline = changed_weights(
        nn.Linear(8 * a, b, bias=False), lambda p: nn.init.trunc_normal_(p, std=0.1)
    )
    return Net(
        lambda m, x: (
            m["base"](functional.silu(x))
            + m["spline"]((-(((m["norm"](x)[..., None] - GRID) * 1.75) ** 2)).exp().flatten(1))
        ),
        norm=nn.LayerNorm(a),
        base=nn.Linear(a, b),
        spline=spline,
    )


CASES = [
    *seen(
        "2026-11-28T03:00",
        one(
            "iris",
            partial(mlp, 4, 16, 3),
            data.one_batch(
                lambda g, _: (
                    (y := torch.arange(150) % 3),
                    (IRIS[y] + 0.4 * IRIS.std(0) * torch.randn(150, 4, generator=g), y),
                )[1]
            ),
            CE,
            FIT(0.01),
            "MLP of iris",
        ),
        one(
            "auto_mpg",
            lambda: nn.Sequential(Function(lambda x: (x - CARS[0]) / CARS[1]), mlp(6, 64, 64, 1)),
            changed(
                numbers(6, lambda x: 23.5 + x[:, :1] - 5 * x[:, 3:4] + 3 * x[:, 5:]),
                lambda x: CARS[0] + CARS[1] * x,
            ),
            lambda m, x, y: functional.l1_loss(m(x), y),
            FIT(1e-3, batch=32, **LONGER),
            "TensorFlow's regression",
        ),
        one(
            "counts",
            lambda: nn.Linear(5, 1),
            numbers(5, lambda x: torch.poisson((1 + x[:, :2].sum(1, True) / 2).exp())),
            lambda m, x, y: functional.poisson_nll_loss(m(x), y),
            FIT(0.02, batch=64),
            "Poisson regression",
        ),
        one(
            "spread",
            partial(mlp, 4, 64, 64, 2),
            numbers(4, lambda x: x[:, :1].sin() + 0.3 * x[:, 1:2].exp() * torch.randn(len(x), 1)),
            lambda m, x, y: functional.gaussian_nll_loss(
                (f := m(x))[:, :1], y, functional.softplus(f[:, 1:]) + 1e-6
            ),
            FIT(3e-3, batch=64),
            "mean and variance",
        ),
        one(
            "mixture",
            partial(mlp, 1, 20, 15, act=nn.Tanh),
            lambda g, n: (
                (y := torch.rand(n, 1, generator=g))
                + 0.3 * (6.3 * y).sin()
                + 0.05 * torch.randn(n, 1),
                y,
            ),
            lambda m, x, y: (
                -(
                    (f := m(x).view(-1, 3, 5))[:, 0].log_softmax(1)
                    + Normal(f[:, 1], f[:, 2].exp()).log_prob(y)
                )
                .logsumexp(1)
                .mean()
            ),
            FIT(0.01, batch=64),
            "mixture density",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "tweedie",
            partial(mlp, 10, 64, 32, 1),
            numbers(
                10,
                lambda x: (
                    3 * torch.poisson((x[:, :1] - x[:, 1:2] / 2).exp()) * (x[:, 2:3] / 2).exp()
                ),
            ),
            lambda m, x, y: (2 * y * (-(f := m(x)) / 2).exp() + 2 * (f / 2).exp()).mean(),
            FIT(1e-3, batch=256, clip=5.0, **LONG),
            "claims, Tweedie",
        ),
        one(
            "deep_sets",
            lambda: Net(
                lambda m, x: m["last"](m["each"](m["words"](x)).sum(1))[:, 0],
                words=nn.Embedding(10, 100),
                each=nn.Sequential(nn.Linear(100, 30), nn.Tanh()),
                last=nn.Linear(30, 1),
            ),
            words(10, 8, lambda x: x.sum(1).float()),
            lambda m, x, y: functional.l1_loss(m(x), y),
            FIT(1e-3, batch=128, **LONG),
            "deep sets, sums",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "gated_experts",
            lambda: Net(
                lambda m, x: (
                    e := torch.stack([f(x) for f in m["experts"]], 1),
                    torch.cat(
                        [
                            t((g(x).softmax(1)[..., None] * e).sum(1))
                            for g, t in zip(m["gates"], m["towers"], strict=True)
                        ],
                        1,
                    ),
                )[1],
                experts=nn.ModuleList(
                    nn.Sequential(nn.Linear(16, 32), nn.ReLU()) for _ in range(4)
                ),
                gates=nn.ModuleList(nn.Linear(16, 4) for _ in "ab"),
                towers=nn.ModuleList(mlp(32, 16, 1) for _ in "ab"),
            ),
            numbers(
                16,
                lambda x: (
                    torch.stack([x[:, :6].sum(1), x[:, 3:6].sum(1) + x[:, 6] * x[:, 7]], 1) > 0.5
                ).float(),
            ),
            answered,
            FIT(1e-3, batch=128, **LONG),
            "MMoE, two tasks",
        ),
        one(
            "tab_transformer",
            lambda: Net(
                lambda m, x: m["last"](m["body"](m["field"](x)))[:, 0],
                field=nn.Embedding(300, 32),
                body=coder(32, 0.1, norm_first=True, activation="gelu"),
                last=mlp(192, 64, 1),
            ),
            clicks,
            answered,
            FIT(1e-3, kind=optim.AdamW, weight_decay=0.01, batch=128, **LONG),
            "TabTransformer",
        ),
        one(
            "evidential",
            partial(mlp, 1, 64, 64, 4),
            lambda g, n: (
                x := 4 * torch.rand(n, 1, generator=g) - 2,
                x**3 / 3.4 + 0.2 * torch.randn(n, 1, generator=g),
            ),
            lambda m, x, y: (
                lambda e, v, a, b: (
                    torch.log(torch.pi / v) / 2
                    - a * (w := 2 * b * (1 + v)).log()
                    + (a + 0.5) * (v * e**2 + w).log()
                    + a.lgamma()
                    - (a + 0.5).lgamma()
                    + 0.01 * e.abs() * (2 * v + a)
                ).mean()
            )(
                y - (f := m(x))[:, :1],
                *(functional.softplus(f[:, 1:]) + f.new([0, 1, 0])).split(1, 1),
            ),
            FIT(1e-3, batch=128, **LONG),
            "evidential regression",
        ),
        one(
            "largest",
            lambda: Net(
                lambda m, x: m["last"](
                    m["pool"](
                        m["seed"][0].expand(len(x), -1, -1), h := m["body"](m["first"](x)), h
                    )[0][:, 0]
                ),
                first=nn.Linear(1, 32),
                body=coder(32),
                pool=nn.MultiheadAttention(32, 4, batch_first=True),
                seed=nn.ParameterList([nn.init.xavier_uniform_(torch.empty(1, 1, 32))]),
                last=nn.Linear(32, 1),
            ),
            lambda g, n: (
                x := torch.rand(n, 10, 1, generator=g) * torch.rand(n, 1, 1, generator=g),
                x.amax(1),
            ),
            lambda m, x, y: functional.l1_loss(m(x), y),
            FIT(1e-3, batch=64, **LONG),
            "set transformer",
        ),
        one(
            "neural_process",
            lambda: nn.ModuleDict(
                {"code": mlp(2, 64, 64, 64)[1:], "guess": mlp(65, 64, 64, 2)[1:]}
            ),
            lambda g, n: (
                x := 4 * torch.rand(n, 30, 1, generator=g) - 2,
                (0.5 + torch.rand(n, 1, 1, generator=g))
                * (2 * x + 6.3 * torch.rand(n, 1, 1, generator=g)).sin(),
            ),
            lambda m, x, y: functional.gaussian_nll_loss(
                (
                    f := m["guess"](
                        torch.cat(
                            [
                                x,
                                m["code"](torch.cat([x, y], 2)[:, :10])
                                .mean(1, True)
                                .expand(-1, 30, -1),
                            ],
                            2,
                        )
                    )
                )[..., :1],
                y,
                (0.1 + 0.9 * functional.softplus(f[..., 1:])) ** 2,
            ),
            FIT(1e-3, batch=64, **LONG),
            "conditional neural process",
        ),
        one(
            "hazards",
            lambda: nn.Sequential(
                *(
                    layer
                    for a in (9, 32)
                    for layer in (nn.Linear(a, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.1))
                ),
                nn.Linear(32, 10),
            ),
            numbers(
                9,
                lambda x: torch.stack(
                    [
                        (-torch.rand(len(x)).log() * 5 * (x[:, 0] - x[:, 1] * x[:, 2]).exp())
                        .long()
                        .clamp(0, 9),
                        (torch.rand(len(x)) < 0.7).long(),
                    ],
                    1,
                ),
            ),
            lambda m, x, y: (
                (
                    functional.binary_cross_entropy_with_logits(
                        m(x),
                        ((t := torch.arange(10)) == y[:, :1]).float() * y[:, 1:],
                        reduction="none",
                    )
                    * (t <= y[:, :1])
                )
                .sum(1)
                .mean()
            ),
            FIT(0.01, batch=256, **LONG),
            "discrete hazards, as pycox",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "tab_m",
            lambda: Net(
                lambda m, x: (
                    h := m["a"](x[:, None] * m["w"][0]) * m["w"][1],
                    h := m["drop"](h.relu()),
                    h := m["b"](h * m["w"][2]) * m["w"][3],
                    (m["drop"](h.relu()) * m["w"][4]).sum(2) + m["w"][5],
                )[-1],
                a=nn.Linear(10, 64),
                b=nn.Linear(64, 64),
                drop=nn.Dropout(0.1),
                w=nn.ParameterList(
                    [
                        torch.randn(8, 10).sign(),
                        *(torch.ones(8, 64) for _ in "abc"),
                        torch.rand(8, 64) / 4 - 0.125,
                        torch.zeros(8),
                    ]
                ),
            ),
            numbers(10, lambda x: x[:, :1] * x[:, 1:2] + x[:, 2:3].sin()),
            lambda m, x, y: ((m(x) - y) ** 2).mean(),
            FIT(2e-3, kind=optim.AdamW, weight_decay=3e-4, batch=256, **LONG),
            "TabM",
        ),
        one(
            "dragon_net",
            lambda: nn.ModuleDict(
                {
                    "all": nn.Sequential(mlp(10, 64, 64, 64, act=nn.ELU), nn.ELU()),
                    "a": mlp(64, 32, 1, act=nn.ELU),
                    "b": mlp(64, 32, 1, act=nn.ELU),
                    "t": nn.Linear(64, 1),
                }
            ),
            numbers(
                10,
                lambda x: (
                    lambda t: torch.cat(
                        [
                            t,
                            x[:, 1:2]
                            - x[:, 2:3]
                            + t * (1 + x[:, 3:4])
                            + 0.3 * torch.randn(len(x), 1),
                        ],
                        1,
                    )
                )((x[:, :1].sigmoid()).bernoulli()),
            ),
            lambda m, x, y: (
                h := m["all"](x),
                ((y[:, :1] * m["a"](h) + (1 - y[:, :1]) * m["b"](h) - y[:, 1:]) ** 2).mean()
                + functional.binary_cross_entropy_with_logits(m["t"](h), y[:, :1]),
            )[1],
            FIT(1e-3, weight_decay=0.01, batch=64, **LONG),
            "DragonNet",
        ),
        one(
            "moons",
            partial(mlp, 2, 16, 16, 1),
            lambda g, n: (
                a := 3.14 * torch.rand(n, 1, generator=g),
                y := torch.arange(n)[:, None] % 2,
                torch.cat([a.cos() + y, a.sin() * (1 - 2 * y) + y / 2], 1)
                + 0.1 * torch.randn(n, 2, generator=g),
                2 * y - 1,
            )[2:],
            lambda m, x, y: (
                (1 - y * m(x)).relu().mean() + 1e-4 * sum(p.square().sum() for p in m.parameters())
            ),
            FIT(1.0, o.linear_down, kind=optim.SGD, batch=100),
            "micrograd's moons",
        ),
        one(
            "weibull",
            partial(mlp, 6, 64, 2, act=nn.Tanh),
            numbers(
                6,
                lambda x: (
                    t := (x[:, :1] - x[:, 1:2] / 2).exp() * (-torch.rand(len(x), 1).log()).sqrt(),
                    torch.cat([t.clamp(0.01, 3), (t < 3).float()], 1),
                )[1],
            ),
            lambda m, x, y: (
                f := m(x),
                z := (y[:, :1].log() - f[:, :1]) * f[:, 1:].exp(),
                (z.exp() - y[:, 1:] * (f[:, 1:] + z - y[:, :1].log())).mean(),
            )[2],
            FIT(3e-3, batch=128, clip=5.0, **LONG),
            "survival, Weibull",
        ),
        one(
            "fast_kan",
            lambda: nn.Sequential(nn.Flatten(), kan(784, 32), kan(32, 10)),
            SIGNED_DIGITS,
            CE,
            FIT(2e-3, o.fading, kind=optim.AdamW, weight_decay=1e-4, batch=64, **LONG),
            "FastKAN",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "additive",
            lambda: Net(
                lambda m, x: (
                    sum(f(x[:, k : k + 1]) for k, f in enumerate(m["each"])) + m["bias"][0]
                ),
                each=nn.ModuleList(
                    nn.Sequential(
                        nn.Linear(1, 32),
                        nn.ReLU(),
                        nn.Dropout(0.1),
                        nn.Linear(32, 16),
                        nn.ReLU(),
                        nn.Dropout(0.1),
                        nn.Linear(16, 1, bias=False),
                    )
                    for _ in range(8)
                ),
                bias=nn.ParameterList([torch.zeros(1)]),
            ),
            numbers(
                8,
                lambda x: (
                    x[:, :1].sin() * 2 + x[:, 1:2].abs() - x[:, 2:3] + 0.2 * torch.randn(len(x), 1)
                ),
            ),
            lambda m, x, y: ((m(x) - y) ** 2).mean(),
            FIT(0.01, o.fading, weight_decay=1e-6, batch=256),
            "neural additive model",
        ),
        one(
            "kernel",
            lambda: nn.ModuleDict(
                {"net": mlp(4, 64, 32, 2), "w": nn.ParameterList([torch.zeros(3)])}
            ),
            lambda *_: (
                x := torch.randn(100, 4, generator=Generator().manual_seed(0)),
                (x[:, 0] * 2).sin() + x[:, 1] * x[:, 2] / 2,
            ),
            lambda m, x, y: (
                s := functional.softplus(m["w"][0]),
                z := m["net"](x),
                c := torch.linalg.cholesky(
                    s[0] * (-(z[:, None] - z).square().sum(2) / s[1] / 2).exp()
                    + (s[2] + 1e-4) * torch.eye(100)
                ),
                (
                    torch.linalg.solve_triangular(c, y[:, None], upper=False).square().sum() / 2
                    + c.diagonal().log().sum()
                )
                / 100
                + 0.92,
            )[3],
            FIT(0.01, weight_decay=1e-4, steps=100),
            "deep kernel, exact GP",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "ft_transformer",
            lambda: Net(
                lambda m, x: m["last"](
                    m["body"](
                        torch.cat(
                            [m["w"][2].expand(len(x), 1, -1), x[..., None] * m["w"][0] + m["w"][1]],
                            1,
                        )
                    )[:, 0]
                ),
                w=nn.ParameterList([torch.rand(k, 32) * 0.35 - 0.18 for k in (10, 10, 1)]),
                body=coder(32, 0.1, activation="gelu", norm_first=True),
                last=nn.Sequential(nn.LayerNorm(32), nn.ReLU(), nn.Linear(32, 1)),
            ),
            numbers(10, lambda x: x[:, :1] * x[:, 1:2] + x[:, 2:4].sum(1, True)),
            lambda m, x, y: functional.mse_loss(m(x), y),
            FIT(1e-3, kind=optim.AdamW, weight_decay=1e-5, batch=128, **LONG),
            "FT-Transformer",
        ),
        one(
            "adult",
            lambda: Net(
                lambda m, x, z: m["last"](
                    torch.cat([m["drop"](m["field"](x).flatten(1)), m["norm"](z)], 1)
                ),
                field=nn.Embedding(200, 14),
                drop=nn.Dropout(0.04),
                norm=nn.BatchNorm1d(3),
                last=nn.Sequential(
                    *(
                        z
                        for a, b in ((59, 200), (200, 100))
                        for z in (nn.Linear(a, b, False), nn.ReLU(), nn.BatchNorm1d(b))
                    ),
                    nn.Linear(100, 2),
                ),
            ),
            lambda g, n: (
                x := torch.randint(50, (n, 4), generator=g),
                z := torch.randn(n, 3, generator=g),
                x + 50 * torch.arange(4),
                z,
                (TASTES[0, x[:, 0], 0] + TASTES[1, x[:, 1], 0] + z[:, 0] + z[:, 1] ** 2 > 1).long(),
            )[2:],
            lambda m, x, z, y: functional.cross_entropy(m(x, z), y),
            FIT(
                1e-2,
                o.one_cycle(1e-2),
                kind=optim.AdamW,
                betas=(0.9, 0.99),
                weight_decay=0.01,
                batch=64,
            ),
            "fastai's tabular learner",
        ),
        one(
            "deep_surv",
            lambda: nn.Sequential(
                *(
                    z
                    for a in (8, 32)
                    for z in (nn.Linear(a, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.1))
                ),
                nn.Linear(32, 1, False),
            ),
            numbers(
                8,
                lambda x: torch.cat(
                    [
                        (x[:, 1:2] - 2 * x[:, :1] * x[:, 2:3].sign()).exp()
                        * -torch.rand(len(x), 1).log(),
                        (torch.rand(len(x), 1) < 0.7),
                    ],
                    1,
                ),
            ),
            lambda m, x, y: (
                k := y[:, 0].argsort(descending=True),
                f := m(x)[k, 0],
                ((f.logcumsumexp(0) - f) * y[k, 1]).sum() / y[:, 1].sum(),
            )[2],
            FIT(0.01, batch=128),
            "Cox",
        ),
        one(
            "house_prices",
            lambda: changed_weights(
                nn.Linear(30, 1), lambda p: p.normal_(0, 0.01) if p.ndim > 1 else p.zero_()
            ),
            numbers(30, lambda x: 12 + 0.2 * x[:, :3].sum(1, True) + 0.1 * torch.randn(len(x), 1)),
            lambda m, x, y: functional.mse_loss(m(x), y) / 2,
            FIT(0.03, kind=optim.SGD, batch=64),
            "d2l, houses",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "saint",
            lambda: Net(
                lambda m, x: m["last"](
                    m["rows"](
                        m["body"](
                            m["w"][0] * functional.pad(x, (1, 0), value=1.0)[..., None] + m["w"][1]
                        ).flatten(1)[None]
                    )[0]
                ),
                w=nn.ParameterList([torch.randn(11, 16) / 4 for _ in "ab"]),
                body=coder(16, 0.1, activation="gelu", norm_first=True),
                rows=nn.TransformerEncoderLayer(176, 4, 64, 0.1, "gelu", batch_first=True),
                last=mlp(176, 64, 3),
            ),
            numbers(10, lambda x: (x[:, :3] + x[:, 3:6] * x[:, 6:9]).argmax(1)),
            CE,
            FIT(1e-3, kind=optim.AdamW, batch=96),
            "SAINT",
        ),
        one(
            "soft_tree",
            lambda: Net(
                lambda m, x: (
                    g := m["gates"](x.flatten(1)).sigmoid(),
                    reduce(
                        lambda p, d: torch.stack(
                            [p * (1 - (k := g[:, 2**d - 1 : 2 ** (d + 1) - 1])), p * k], 2
                        ).flatten(1),
                        range(5),
                        torch.ones(len(x), 1),
                    ),
                )[1],
                gates=nn.Linear(784, 31),
                leaves=nn.ParameterList([torch.randn(32, 10)]),
            ),
            DIGITS,
            lambda m, x, y: (
                p := m(x),
                k := p.view(len(x), -1, 2).mean(0),
                -(p * m["leaves"][0].log_softmax(1).T[y]).sum(1).mean()
                - 0.003 * (k / k.sum(1, True)).clamp(min=0.01).log().mean(),
            )[2],
            FIT(0.01, batch=64, **LONG),
            "soft tree",
        ),
        one(
            "sc_vi",
            lambda: nn.ModuleDict(
                {
                    "down": nn.Sequential(
                        *(
                            k := lambda a: (
                                nn.Linear(a, 128),
                                nn.BatchNorm1d(128, 1e-3, 0.01),
                                nn.ReLU(),
                            )
                        )(100),
                        nn.Dropout(0.1),
                        nn.Linear(128, 20),
                    ),
                    "up": nn.Sequential(*k(10), nn.Linear(128, 100)),
                    "r": nn.ParameterList([torch.randn(100)]),
                }
            ),
            numbers(
                5,
                lambda z: torch.poisson(
                    500 * (z[:, 4:] / 3).exp() * (0.7 * z[:, :4] @ TASTES[0, :100].T).softmax(1)
                ),
            ),
            lambda m, _, x: (
                f := m["down"](x.log1p()).chunk(2, 1),
                z := f[0] + (f[1] / 2).exp() * torch.randn_like(f[0]),
                mu := m["up"](z).softmax(1) * x.sum(1, True),
                -torch.distributions.NegativeBinomial(
                    (r := m["r"][0].exp()), logits=(mu + 1e-8).log() - r.log()
                )
                .log_prob(x)
                .sum(1)
                .mean()
                - (1 + f[1] - f[0] ** 2 - f[1].exp()).sum(1).mean() / 2,
            )[3],
            FIT(1e-3, eps=0.01, weight_decay=1e-6, batch=128, **LONG),
            "scVI",
        ),
        one(
            "deep_hit",
            lambda: nn.Sequential(
                *(
                    z
                    for a in (8, 32)
                    for z in (nn.Linear(a, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.1))
                ),
                nn.Linear(32, 10),
            ),
            numbers(
                8,
                lambda x: (
                    t := (x[:, :1] - x[:, 1:2] * x[:, 2:3].sign()).exp()
                    * -torch.rand(len(x), 1).log()
                    * 3,
                    torch.cat([t.clamp(max=9).floor(), (t < 9)], 1),
                )[1],
            ),
            lambda m, x, y: (
                p := m(x).softmax(1),
                f := p.cumsum(1),
                t := y[:, :1].long(),
                e := y[:, 1],
                own := f.gather(1, t)[:, 0],
                -(
                    e * (p.gather(1, t)[:, 0] + 1e-7).log()
                    + (1 - e) * (1 - own + p.gather(1, t)[:, 0]).clamp(1e-7).log()
                ).mean()
                + 0.2 * (e * (t > t.T) * ((f[:, t[:, 0]] - own) / 0.1).exp()).mean(),
            )[5],
            FIT(0.01, batch=256),
            "DeepHit",
        ),
        one(
            "california",
            lambda: glorot(
                Net(
                    lambda m, x: m["last"](torch.cat([x, m["deep"](x)], 1)),
                    deep=nn.Sequential(mlp(8, 30, 30), nn.ReLU()),
                    last=nn.Linear(38, 1),
                )
            ),
            numbers(
                8,
                lambda x: (
                    2.07
                    + 0.8 * x[:, :1]
                    - 0.5 * x[:, 1:2] * x[:, 2:3].sigmoid()
                    + 0.4 * torch.randn(len(x), 1)
                ).clamp(0.15, 5),
            ),
            error,
            FIT(1e-3, kind=optim.SGD, batch=32, **LONG),
            "Géron, housing",
        ),
        one(
            "sine",
            lambda: nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1)),
            lambda *_: (
                x := torch.linspace(-3.1416, 3.1416, 2000),
                x[:, None] ** torch.arange(1, 4),
                x.sin(),
            )[1:],
            lambda m, x, y: functional.mse_loss(m(x), y, reduction="sum"),
            FIT(1e-3, kind=optim.RMSprop, **LONG),
            "PyTorch's polynomial",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "heart",
            lambda: nn.Linear(13, 1),
            numbers(
                13,
                lambda x: (
                    x[:, :1] + x[:, 1:2] - x[:, 2:3] / 2 + torch.randn(len(x), 1) / 2 > 0
                ).float(),
            ),
            answered,
            FIT(0.05, kind=optim.SGD, batch=32, **LONG),
            "logistic regression",
        ),
        one(
            "rossmann",
            lambda: Net(
                lambda m, x: m["last"](m["field"](x)),
                field=nn.Embedding(300, 10),
                last=nn.Sequential(mlp(60, 100, 50, 1), nn.Sigmoid()),
            ),
            lambda g, n: (
                x := clicks(g, n)[0],
                (TASTES[0, x[:, 0], :1] + TASTES[1, x[:, 1] - 50, :1] + 0.1 * torch.randn(n, 1))
                .div(2)
                .sigmoid(),
            ),
            lambda m, x, y: functional.l1_loss(m(x), y),
            FIT(1e-3, batch=128, **LONG),
            "entity embeddings",
        ),
    ),
]
