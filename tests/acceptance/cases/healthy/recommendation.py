"""Healthy: clicks, ratings and rankings."""

from __future__ import annotations

from functools import reduce

import optimizers as o
import torch
from draws.tables import TASTES, clicks, numbers, ratings
from loops import seen
from losses import CE, answered
from nets.parts import Net, changed_weights, glorot, mlp, small, smaller
from nets.texts import coder
from recipes import FIT, LONG, LONGER, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

PAIRS = torch.triu_indices(6, 6, 1)


def picked(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Users, a good each, and whether it was bought, one of five."""
    u, y = torch.randint(200, (n,), generator=g), (torch.arange(n) % 5 == 0).float()
    liked = (2 * TASTES[0, u] @ TASTES[1].T).softmax(1).multinomial(1, generator=g)[:, 0]
    return u, torch.where(y > 0, liked, torch.randint(200, (n,), generator=g)), y


def xavier(p: Tensor) -> Tensor:
    return nn.init.xavier_normal_(p) if p.ndim > 1 else p.zero_()


LIKED = (TASTES[0] @ TASTES[1].T).topk(12).indices

KNOWN = torch.zeros(200, 200).scatter(1, LIKED, 1)

NEAR = KNOWN / KNOWN.sum(1, True).sqrt() / KNOWN.sum(0).clamp(min=1).sqrt()


def lambdas(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    s, g = m(x)[..., 0], 2**y - 1
    seat = 1 / (s.argsort(1, True).argsort(1) + 2.0).log2()
    best = (g.sort(1, True)[0] / torch.arange(2, 12).log2()).sum(1).clamp(min=1)[:, None, None]
    w = (g[..., None] - g[:, None]).clamp(min=0) * (seat[..., None] - seat[:, None]).abs()
    return (w / best * functional.softplus(s[:, None] - s[..., None])).sum((1, 2)).mean()


CASES = [
    *seen(
        "2026-11-28T03:00",
        one(
            "ranked",
            lambda: nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten()),
            lambda g, n: (
                (x := torch.randn(n, 10, 8, generator=g)),
                (2 * x[..., 0] - x[..., 1] ** 2).softmax(1),
            ),
            CE,
            FIT(3e-3),
            "ListNet",
        ),
        one(
            "stars",
            lambda: changed_weights(
                Net(
                    lambda m, u, i: (
                        5.5
                        * ((m["u"](u) * m["i"](i)).sum(1) + (m["a"](u) + m["b"](i))[:, 0]).sigmoid()
                    ),
                    u=nn.Embedding(200, 20),
                    i=nn.Embedding(200, 20),
                    a=nn.Embedding(200, 1),
                    b=nn.Embedding(200, 1),
                ),
                lambda p: p.normal_(0, 0.01),
            ),
            ratings,
            lambda m, u, i, y: (m(u, i) - y).square().mean(),
            FIT(5e-3, o.one_cycle(0.05), kind=optim.AdamW, weight_decay=0.1, batch=64, **LONGER),
            "matrix factorization",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "wide_deep",
            lambda: Net(
                lambda m, x: m["wide"](x).sum((1, 2)) + m["deep"](m["field"](x))[:, 0],
                wide=changed_weights(nn.Embedding(300, 1), torch.zero_),
                field=nn.Embedding(300, 8),
                deep=mlp(48, 64, 32, 1),
            ),
            clicks,
            answered,
            FIT(0.05, kind=optim.Adagrad, batch=256, **LONG),
            "wide and deep",
        ),
        one(
            "auto_int",
            lambda: Net(
                lambda m, x: m["last"](
                    reduce(lambda z, a: (a(z, z, z)[0] + z).relu(), m["layers"], m["field"](x))
                )[:, 0],
                field=changed_weights(nn.Embedding(300, 16), lambda p: p.normal_(0, 0.1)),
                layers=nn.ModuleList(
                    nn.MultiheadAttention(16, 2, batch_first=True) for _ in range(3)
                ),
                last=mlp(96, 1),
            ),
            clicks,
            answered,
            FIT(3e-3, batch=128, **LONG),
            "AutoInt",
        ),
        one(
            "rank_net",
            lambda: mlp(12, 64, 32, 1, act=nn.Tanh)[1:],
            lambda g, n: (
                x := torch.randn(n, 10, 12, generator=g),
                (x[..., :3].sum(2) + x[..., 3] ** 2).round(),
            ),
            lambda m, x, y: (
                (
                    functional.softplus((f := m(x)[..., 0])[:, None] - f[..., None])
                    * (p := (y[..., None] > y[:, None]).float())
                ).sum()
                / p.sum()
            ),
            FIT(1e-3, batch=16),
            "RankNet",
        ),
        one(
            "sessions",
            lambda: Net(
                lambda m, x: m["body"](m["words"](x))[0][:, -1],
                words=nn.Embedding(100, 32),
                body=nn.GRU(32, 32, batch_first=True),
                goods=nn.Embedding(100, 32),
            ),
            lambda g, n: (
                (
                    torch.randint(1, 3, (n, 16), generator=g).cumsum(1)
                    + torch.randint(100, (n, 1), generator=g)
                )
                % 100,
            ),
            lambda m, x: functional.cross_entropy(
                m(x[:, :-1]) @ m["goods"](x[:, -1]).T, torch.arange(len(x))
            ),
            FIT(0.05, kind=optim.Adagrad, batch=32, **LONG),
            "GRU4Rec",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "dcn",
            lambda: changed_weights(
                Net(
                    lambda m, x: m["last"](
                        torch.cat(
                            [
                                reduce(
                                    lambda z, c: h * c(z) + z,
                                    m["cross"],
                                    h := m["field"](x).flatten(1),
                                ),
                                m["deep"](h),
                            ],
                            1,
                        )
                    )[:, 0],
                    field=nn.Embedding(300, 8),
                    cross=nn.ModuleList(nn.Linear(48, 48) for _ in range(3)),
                    deep=nn.Sequential(mlp(48, 64, 32), nn.ReLU()),
                    last=nn.Linear(80, 1),
                ),
                xavier,
            ),
            clicks,
            answered,
            FIT(3e-3, batch=512, **LONG),
            "DCN v2",
        ),
        one(
            "sas_rec",
            lambda: changed_weights(
                Net(
                    lambda m, x: m["body"](
                        m["drop"](m["words"](x) * 32**0.5 + m["place"].weight),
                        torch.full((16, 16), -torch.inf).triu(1),
                    ),
                    words=nn.Embedding(100, 32),
                    place=nn.Embedding(16, 32),
                    drop=nn.Dropout(0.2),
                    body=coder(32, 0.2),
                ),
                lambda p: p.ndim > 1 and nn.init.xavier_normal_(p),
            ),
            lambda g, n: (
                (
                    torch.randint(1, 3, (n, 17), generator=g).cumsum(1)
                    + torch.randint(100, (n, 1), generator=g)
                )
                % 100,
            ),
            lambda m, x: (
                functional.softplus(-((h := m(x[:, :-1])) * m["words"](x[:, 1:])).sum(2)).mean()
                + functional.softplus(
                    (h * m["words"](torch.randint(100, x[:, 1:].shape))).sum(2)
                ).mean()
            ),
            FIT(1e-3, betas=(0.9, 0.98), batch=64, **LONG),
            "SASRec",
        ),
        one(
            "approx_ndcg",
            lambda: nn.Sequential(
                nn.Flatten(0, 1),
                nn.BatchNorm1d(12),
                nn.Linear(12, 64),
                nn.BatchNorm1d(64),
                nn.ReLU(),
                nn.Linear(64, 32),
                nn.BatchNorm1d(32),
                nn.ReLU(),
                nn.Dropout(0.2),
                nn.Linear(32, 1),
                nn.Unflatten(0, (-1, 10)),
                nn.Flatten(),
            ),
            lambda g, n: (
                x := torch.randn(n, 10, 12, generator=g),
                2 ** (x[..., :3].sum(2) + x[..., 3] ** 2).round().clamp(0, 4) - 1,
            ),
            lambda m, x, y: (
                1
                - (
                    (
                        y
                        / (
                            1.5 + ((f := m(x))[:, None] - f[..., None]).div(0.1).sigmoid().sum(2)
                        ).log2()
                    ).sum(1)
                    / (y.sort(1, True)[0] / torch.arange(2, 12).log2()).sum(1).clamp(0.1)
                ).mean()
            ),
            FIT(0.05, kind=optim.Adagrad, batch=32, **LONG),
            "TF-Ranking, approximate NDCG",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "neu_mf",
            lambda: Net(
                lambda m, u, i: m["last"](
                    torch.cat(
                        [m["a"](u) * m["b"](i), m["deep"](torch.cat([m["c"](u), m["d"](i)], 1))], 1
                    )
                )[:, 0],
                **{
                    k: smaller(nn.Embedding(200, n))
                    for k, n in zip("abcd", (8, 8, 16, 16), strict=True)
                },
                deep=nn.Sequential(mlp(32, 32, 16, 8), nn.ReLU()),
                last=nn.Linear(16, 1),
            ),
            picked,
            lambda m, u, i, y: functional.binary_cross_entropy_with_logits(m(u, i), y),
            FIT(1e-3, batch=512, **LONG),
            "NeuMF",
        ),
        one(
            "auto_rec",
            lambda: mlp(200, 64, 200, act=nn.Sigmoid),
            lambda g, n: (
                (3.6 + torch.randn(n, 4, generator=g) @ TASTES[1].T).round().clamp(1, 5)
                * (torch.rand(n, 200, generator=g) < 0.2),
            ),
            lambda m, x: ((m(x) - x) ** 2 * (x > 0)).sum() / (x > 0).sum(),
            FIT(1e-3, weight_decay=1e-4, batch=64, **LONG),
            "U-AutoRec",
        ),
        one(
            "esmm",
            lambda: Net(
                lambda m, x: (
                    h := m["field"](x).flatten(1),
                    functional.logsigmoid(m["a"](h)),
                    functional.logsigmoid(m["b"](h)),
                )[1:],
                field=nn.Embedding(300, 8),
                a=mlp(48, 64, 1),
                b=mlp(48, 64, 1),
            ),
            lambda g, n: (*(z := clicks(g, n)), z[1] * (TASTES[1, z[0][:, 4] - 200, 0] > 0)),
            lambda m, x, y, z: (
                lambda a, b: sum(
                    -(t * f + (1 - t) * torch.log1p(-f.exp() + 1e-6)).mean()
                    for f, t in ((a, y), (a + b, z))
                )
            )(*(f[:, 0] for f in m(x))),
            FIT(3e-3, batch=512, **LONG),
            "ESMM",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "nfm",
            lambda: Net(
                lambda m, x: (
                    e := m["field"](x),
                    m["wide"](x).sum((1, 2)) + m["deep"]((e.sum(1) ** 2 - (e**2).sum(1)) / 2)[:, 0],
                )[1],
                field=small(nn.Embedding(300, 16)),
                wide=changed_weights(nn.Embedding(300, 1), torch.zero_),
                deep=nn.Sequential(
                    nn.BatchNorm1d(16),
                    nn.Dropout(0.2),
                    nn.Linear(16, 64),
                    nn.BatchNorm1d(64),
                    nn.ReLU(),
                    nn.Dropout(0.2),
                    nn.Linear(64, 1),
                ),
            ),
            clicks,
            answered,
            FIT(0.05, kind=optim.Adagrad, batch=256, **LONG),
            "NFM",
        ),
        one(
            "din",
            lambda: Net(
                lambda m, x: (
                    e := m["goods"](x),
                    k := e[:, :8],
                    q := e[:, 8:].expand(-1, 8, -1),
                    h := (m["look"](torch.cat([q, k, q - k, q * k], 2)) * k).sum(1),
                    m["last"](torch.cat([h, e[:, 8], h * e[:, 8]], 1))[:, 0],
                )[-1],
                goods=small(nn.Embedding(200, 16)),
                look=mlp(64, 32, 1, act=nn.PReLU)[1:],
                last=mlp(48, 64, 32, 1, act=nn.PReLU),
            ),
            lambda g, n: (
                y := torch.arange(n) % 2,
                u := torch.randint(200, (n,), generator=g),
                x := (2 * TASTES[0, u] @ TASTES[1].T).softmax(1).multinomial(9, generator=g),
                torch.where(
                    (torch.arange(9) < 8) | (y[:, None] > 0),
                    x,
                    torch.randint(200, (n, 9), generator=g),
                ),
                y.float(),
            )[3:],
            answered,
            FIT(3e-3, batch=256, **LONG),
            "DIN",
        ),
        one(
            "light_gcn",
            lambda: Net(
                lambda m: (
                    z := [(m["u"].weight, m["i"].weight)],
                    [z.append((NEAR @ z[-1][1], NEAR.T @ z[-1][0])) for _ in "abc"],
                    [sum(f) / 4 for f in zip(*z, strict=True)],
                )[2],
                u=small(nn.Embedding(200, 32)),
                i=small(nn.Embedding(200, 32)),
            ),
            lambda g, n: (
                u := torch.randint(200, (n,), generator=g),
                LIKED[u, torch.randint(12, (n,), generator=g)],
                torch.randint(200, (n,), generator=g),
            ),
            lambda m, u, i, j: (
                f := m(),
                functional.softplus((f[0][u] * (f[1][j] - f[1][i])).sum(1)).mean()
                + 1e-4
                * sum((m[k].weight[r] ** 2).sum() for k, r in (("u", u), ("i", i), ("i", j)))
                / len(u)
                / 2,
            )[1],
            FIT(5e-3, batch=512, **LONG),
            "LightGCN",
        ),
        one(
            "lambda_rank",
            lambda: mlp(12, 64, 32, 1)[1:],
            lambda g, n: (
                x := torch.randn(n, 10, 12, generator=g),
                (x[..., :3].sum(2) + x[..., 3] ** 2).round().clamp(0, 4),
            ),
            lambdas,
            FIT(1e-3, o.stairs, batch=64, **LONG),
            "LambdaRank",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "x_deep_fm",
            lambda: Net(
                lambda m, x: (
                    e := m["field"](x),
                    h := [e],
                    [
                        h.append(f(torch.einsum("nid,njd->nijd", h[-1], e).flatten(1, 2)).relu())
                        for f in m["cross"]
                    ],
                    m["wide"](x).sum((1, 2))
                    + (m["deep"](e) + m["last"](torch.cat([z.sum(2) for z in h[1:]], 1)))[:, 0],
                )[3],
                field=small(nn.Embedding(300, 8)),
                wide=changed_weights(nn.Embedding(300, 1), torch.zero_),
                cross=nn.ModuleList(nn.Conv1d(k, 16, 1) for k in (36, 96)),
                deep=mlp(48, 64, 64, 1),
                last=nn.Linear(32, 1),
            ),
            clicks,
            answered,
            FIT(3e-3, weight_decay=1e-5, batch=512, **LONG),
            "xDeepFM",
        ),
        one(
            "list_mle",
            lambda: nn.Sequential(nn.Linear(12, 32), coder(32, 0.1), nn.Linear(32, 1)),
            lambda g, n: (
                x := torch.randn(n, 10, 12, generator=g),
                x[..., :2].sum(2) + x[..., 2] ** 2,
            ),
            lambda m, x, y: (
                s := m(x)[..., 0].gather(1, y.argsort(1)),
                (s.logcumsumexp(1) - s).mean(),
            )[1],
            FIT(1e-3, o.stairs, batch=64),
            "allRank, ListMLE",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "fi_bi_net",
            lambda: Net(
                lambda m, x: (
                    e := m["field"](x),
                    v := e * m["gate"](e.mean(2))[..., None],
                    m["last"](
                        torch.cat(
                            [(m["w"](z)[:, PAIRS[0]] * z[:, PAIRS[1]]).flatten(1) for z in (e, v)],
                            1,
                        )
                    )[:, 0],
                )[2],
                field=small(nn.Embedding(300, 8)),
                gate=nn.Sequential(
                    nn.Linear(6, 3, False), nn.ReLU(), nn.Linear(3, 6, False), nn.ReLU()
                ),
                w=nn.Linear(8, 8, False),
                last=mlp(240, 64, 64, 1),
            ),
            clicks,
            answered,
            FIT(3e-3, weight_decay=1e-5, batch=512, **LONG),
            "FiBiNET",
        ),
        one(
            "ple",
            lambda: Net(
                lambda m, x: (
                    e := {k: torch.stack([f(x) for f in m[k]], 1) for k in "abs"},
                    torch.cat(
                        [
                            m["t" + k](
                                (
                                    m["g" + k](x).softmax(1)[..., None]
                                    * torch.cat([e[k], e["s"]], 1)
                                ).sum(1)
                            )
                            for k in "ab"
                        ],
                        1,
                    ),
                )[1],
                **{
                    k: nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.ReLU()) for _ in "12")
                    for k in "abs"
                },
                **{"g" + k: nn.Linear(16, 4, False) for k in "ab"},
                **{"t" + k: mlp(32, 16, 1) for k in "ab"},
            ),
            numbers(
                16,
                lambda x: (
                    torch.stack([x[:, :6].sum(1), x[:, 3:9].sum(1) + x[:, 9] * x[:, 10]], 1) > 0.5
                ).float(),
            ),
            answered,
            FIT(1e-3, o.fading, batch=256, **LONG),
            "PLE",
        ),
        one(
            "bert4rec",
            lambda: Net(
                lambda m, x: (
                    m["body"](m["norm"](m["goods"](x) + m["at"].weight)) @ m["goods"].weight.T
                ),
                goods=small(nn.Embedding(61, 48)),
                at=small(nn.Embedding(12, 48)),
                norm=nn.Sequential(nn.LayerNorm(48), nn.Dropout(0.1)),
                body=coder(48, 0.1, activation="gelu"),
            ),
            lambda g, n: (
                (
                    torch.randint(1, 3, (n, 12), generator=g).cumsum(1)
                    + torch.randint(60, (n, 1), generator=g)
                )
                % 60,
            ),
            lambda m, x: functional.cross_entropy(
                m(x.where(~(k := torch.rand(x.shape) < 0.2), 60))[k], x[k]
            ),
            FIT(2e-3, o.linear_down, kind=optim.AdamW, weight_decay=0.01, clip=5.0, batch=48),
            "BERT4Rec",
        ),
        one(
            "metric",
            lambda: nn.ModuleDict(
                {
                    k: changed_weights(nn.Embedding(200, 32), lambda p: p.normal_(0, 0.18))
                    for k in "ui"
                }
            ),
            lambda g, n: (
                u := torch.randint(200, (n,), generator=g),
                LIKED[u, torch.randint(12, (n,), generator=g)],
                torch.randint(200, (n, 10), generator=g),
            ),
            lambda m, u, i, j: (
                p := m["u"](u),
                (
                    0.5
                    + (p - m["i"](i)).square().sum(1)
                    - (p[:, None] - m["i"](j)).square().sum(2).amin(1)
                )
                .relu()
                .mean(),
            )[1],
            FIT(
                0.05,
                kind=optim.Adagrad,
                batch=512,
                after=lambda _, m, __: [
                    p.data.copy_(p.data.renorm(2, 0, 1)) for p in m.parameters()
                ],
            ),
            "metric learning, CF",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "fm",
            lambda: glorot(
                Net(
                    lambda m, x: (
                        m["line"](x).sum((1, 2))
                        + ((e := m["field"](x)).sum(1) ** 2 - (e**2).sum(1)).sum(1) / 2
                    ),
                    line=nn.Embedding(300, 1),
                    field=nn.Embedding(300, 16),
                )
            ),
            clicks,
            answered,
            FIT(0.01, weight_decay=1e-6, batch=512, **LONG),
            "factorization machine",
        ),
        one(
            "pnn",
            lambda: Net(
                lambda m, x: (
                    e := m["field"](x),
                    m["last"](
                        torch.cat([e.flatten(1), (e[:, PAIRS[0]] * e[:, PAIRS[1]]).sum(2)], 1)
                    )[:, 0],
                )[1],
                field=glorot(nn.Embedding(300, 16)),
                last=nn.Sequential(
                    nn.Linear(111, 64),
                    nn.BatchNorm1d(64),
                    nn.ReLU(),
                    nn.Dropout(0.2),
                    nn.Linear(64, 1),
                ),
            ),
            clicks,
            answered,
            FIT(3e-3, weight_decay=1e-6, batch=512, **LONG),
            "PNN, inner products",
        ),
    ),
]
