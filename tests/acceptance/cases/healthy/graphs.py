"""Healthy: nodes, links and points in space."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import data
import losses
import optimizers as o
import torch
from data import changed
from draws.graphs import cora
from loops import seen
from losses import CE
from nets import classifiers as cnn
from nets.classifiers import Function
from nets.parts import Net, changed_weights, glorot, mlp, norm1
from recipes import FIT, LONG, LONGER, SGD, one
from torch import Tensor, nn, optim
from torch.nn import functional


def attend(into: int, heads: int, out: int) -> nn.Module:
    def forward(m: Any, links: Any, x: Any) -> Any:
        h = m["w"](m["drop"](x)).unflatten(1, (heads, out))
        near = functional.leaky_relu((h * m["a"][0]).sum(2)[:, None] + (h * m["a"][1]).sum(2), 0.2)
        near = m["drop"](near.masked_fill((links == 0)[..., None], -1e9).softmax(1))
        return torch.einsum("ijh,jhd->ihd", near, h).flatten(1)

    weights = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(heads, out)) for _ in "ij")
    return Net(forward, w=nn.Linear(into, heads * out, bias=False), drop=nn.Dropout(0.6), a=weights)


def edges(x: torch.Tensor) -> torch.Tensor:
    near = torch.cdist(x.mT, x.mT).topk(8, largest=False)[1]
    others = x[torch.arange(len(x))[:, None, None], :, near].permute(0, 3, 1, 2)
    return torch.cat([others - x[..., None], x[..., None].expand_as(others)], 1)


def grouped(x: Tensor, f: Tensor, few: int, near: int) -> tuple[Tensor, Tensor]:
    """Some points, and for each the places and features of those around it."""
    at = torch.cdist((c := x[..., :few]).mT, x.mT).topk(near, largest=False)[1].flatten(1)
    a, b = (z.gather(2, at[:, None].expand(-1, z.shape[1], -1)) for z in (x, f))
    return c, torch.cat([a.unflatten(2, (few, -1)) - c[..., None], b.unflatten(2, (few, -1))], 1)


CASES = [
    *seen(
        "2026-11-28T03:00",
        one(
            "communities",
            lambda: Net(
                lambda m, a, x: a @ m["last"](m["drop"](a @ m["first"](m["drop"](x))).relu()),
                drop=nn.Dropout(),
                first=nn.Linear(60, 16),
                last=nn.Linear(16, 3),
            ),
            cora,
            lambda m, a, x, y: CE(lambda x: m(a, x)[:60], x, y[:60]),
            FIT(0.01, kind=optim.Adam, weight_decay=5e-4, **LONGER),
            "GCN",
        ),
        one(
            "chamfer",
            lambda: nn.Sequential(
                nn.Conv1d(3, 32, 1),
                nn.ReLU(),
                nn.Conv1d(32, 64, 1),
                nn.AdaptiveMaxPool1d(1),
                mlp(64, 128, 192),
                nn.Unflatten(1, (64, 3)),
            ),
            changed(data.points, lambda x: x[..., :64]),
            lambda m, x, _: (d := torch.cdist(m(x), x.mT)).amin(1).mean() + d.amin(2).mean(),
            FIT(2e-3),
            "autoencoder of points",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "vox_net",
            lambda: nn.Sequential(
                nn.Conv3d(1, 32, 5, 2),
                nn.LeakyReLU(0.1),
                nn.Dropout(0.2),
                nn.Conv3d(32, 32, 3),
                nn.LeakyReLU(0.1),
                nn.MaxPool3d(2),
                nn.Dropout(0.3),
                nn.Flatten(),
                nn.Linear(256, 128),
                nn.ReLU(),
                nn.Dropout(0.4),
                nn.Linear(128, 4),
            ),
            changed(data.voxels, lambda x: 2 * x - 1),
            CE,
            SGD(0.01, weight_decay=1e-3, batch=32),
            "VoxNet",
        ),
        one(
            "gcn_2",
            lambda: Net(
                lambda m, a, x: m["last"](
                    m["drop"](
                        reduce(
                            lambda z, k: (
                                0.5 / k * m["w"][k - 1](s := 0.9 * a @ m["drop"](z) + 0.1 * h)
                                + (1 - 0.5 / k) * s
                            ).relu(),
                            range(1, 9),
                            h := m["first"](m["drop"](x)).relu(),
                        )
                    )
                ),
                first=nn.Linear(60, 32),
                w=nn.ModuleList(nn.Linear(32, 32, False) for _ in range(8)),
                drop=nn.Dropout(0.6),
                last=nn.Linear(32, 3),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(0.01, weight_decay=5e-4, **LONG),
            "GCNII",
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "simple",
            lambda: Net(lambda m, a, x: m["last"](a @ (a @ x)), last=nn.Linear(60, 3)),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(0.2, weight_decay=5e-5),
            "simplified graph convolution",
        ),
        one(
            "point_net",
            lambda: Net(
                lambda m, x: m["net"]((m["turn"](x).view(-1, 3, 3) + torch.eye(3)) @ x),
                **{
                    k: nn.Sequential(
                        *(
                            layer
                            for a, b in ((3, 24), (24, 48), (48, 96))
                            for layer in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
                        ),
                        nn.AdaptiveMaxPool1d(1),
                        nn.Flatten(),
                        nn.Linear(96, 64),
                        nn.BatchNorm1d(64),
                        nn.ReLU(),
                        *end,
                    )
                    for k, end in (
                        ("turn", (changed_weights(nn.Linear(64, 9), torch.zero_),)),
                        ("net", (nn.Dropout(0.3), nn.Linear(64, 4))),
                    )
                },
            ),
            changed(data.points, lambda x: x[..., :128]),
            CE,
            FIT(1e-3, o.stairs, weight_decay=1e-4),
            "PointNet with T-Net",
        ),
        one(
            "graph_attention",
            lambda: Net(
                lambda m, a, x: m["b"](a, functional.elu(m["a"](a, x))),
                a=attend(60, 8, 8),
                b=attend(64, 1, 3),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(5e-3, weight_decay=5e-4, **LONG),
            "GAT",
        ),
        one(
            "sch_net",
            lambda: Net(
                lambda m, k, d: m["last"](
                    reduce(
                        lambda h, b: (
                            h
                            + b["out"](
                                torch.einsum(
                                    "nijf,njf->nif",
                                    b["sift"](
                                        (-10 * (d[..., None] - torch.linspace(0, 4, 16)) ** 2).exp()
                                    ),
                                    b["in"](h),
                                )
                            )
                        ),
                        m["blocks"],
                        m["kinds"](k),
                    )
                ).sum(1),
                kinds=nn.Embedding(4, 32),
                last=mlp(32, 16, 1, act=nn.Softplus)[1:],
                blocks=nn.ModuleList(
                    nn.ModuleDict(
                        {
                            "in": nn.Linear(32, 32, bias=False),
                            "sift": mlp(16, 32, 32, act=nn.Softplus)[1:],
                            "out": mlp(32, 32, 32, act=nn.Softplus)[1:],
                        }
                    )
                    for _ in "ab"
                ),
            ),
            lambda g, n: (
                torch.randint(4, (n, 8), generator=g),
                torch.cdist(x := 1.2 * torch.randn(n, 8, 3, generator=g), x),
            ),
            lambda m, k, d: functional.mse_loss(
                m(k, d)[:, 0],
                ((1 + k[:, None]) * (1 + k[..., None]) * (-d).exp()).sum((1, 2)) / 20 - 5,
            ),
            FIT(1e-3, batch=32, **LONG),
            "SchNet",
        ),
        one(
            "edge_conv",
            lambda: nn.Sequential(
                Function(lambda x: x[..., :64]),
                *(
                    layer
                    for a, b in ((6, 24), (48, 48))
                    for layer in (
                        Function(edges),
                        cnn.unit(a, b, 1, act=partial(nn.LeakyReLU, 0.2)),
                        Function(lambda x: x.amax(3)),
                    )
                ),
                nn.Conv1d(48, 96, 1, bias=False),
                nn.BatchNorm1d(96),
                nn.LeakyReLU(0.2),
                Function(lambda x: torch.cat([x.amax(2), x.mean(2)], 1)),
                nn.Linear(192, 64),
                nn.BatchNorm1d(64),
                nn.LeakyReLU(0.2),
                nn.Dropout(),
                nn.Linear(64, 4),
            ),
            data.points,
            losses.classes(0.2),
            SGD(0.1, o.cosine, weight_decay=1e-4),
            "DGCNN",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "cheb_net",
            lambda: Net(
                lambda m, a, x: reduce(
                    lambda h, k: (
                        m[k](torch.cat([h := m["drop"](h), -a @ h, 2 * a @ (a @ h) - h], 1)).relu()
                        if k == "a"
                        else m[k](torch.cat([h := m["drop"](h), -a @ h, 2 * a @ (a @ h) - h], 1))
                    ),
                    "ab",
                    x,
                ),
                a=nn.Linear(180, 16),
                b=nn.Linear(48, 3),
                drop=nn.Dropout(),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(0.01, weight_decay=5e-4, **LONG),
            "ChebNet",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "relations",
            lambda: Net(
                lambda m, a, x: (
                    k := torch.arange(150),
                    k := (k[:, None] + k) % 2,
                    reduce(
                        lambda h, f: f(torch.cat([h, (a * k) @ h, (a - a * k) @ h], 1)),
                        (m["a"], m["b"]),
                        x,
                    ),
                )[2],
                a=nn.Sequential(nn.Linear(180, 16), nn.ReLU()),
                b=nn.Linear(48, 3),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(0.01, weight_decay=5e-4),
            "R-GCN",
        ),
        one(
            "compl_ex",
            lambda: nn.ModuleDict(
                {
                    k: changed_weights(nn.Embedding(n, 64), lambda p: p.normal_(0, 1e-2))
                    for k, n in (("e", 100), ("r", 4))
                }
            ),
            lambda g, n: (
                h := torch.randint(100, (n,), generator=g),
                r := torch.randint(4, (n,), generator=g),
                (h + 7 * r + 1) % 100,
            ),
            lambda m, h, r, t: (
                c := [
                    torch.view_as_complex(z.unflatten(1, (32, 2)))
                    for z in (m["e"](h), m["r"](r), m["e"](t), m["e"].weight)
                ],
                functional.cross_entropy((c[0] * c[1] @ c[3].conj().T).real, t)
                + 0.01 * sum((z.abs() ** 3).sum(1).mean() for z in c[:3]),
            )[1],
            FIT(0.1, kind=optim.Adagrad, batch=256, **LONG),
            "ComplEx, N3",
        ),
        one(
            "node2vec",
            lambda: nn.Embedding(150, 32, sparse=True),
            lambda g, n: (
                reduce(
                    lambda x, _: torch.cat(
                        [x, (cora()[0][x[:, -1]] > 0).float().multinomial(1, generator=g)], 1
                    ),
                    range(8),
                    torch.randint(150, (n, 1), generator=g),
                ),
                torch.randint(150, (n, 8), generator=g),
            ),
            lambda m, x, z: (
                functional.softplus(-(m(x[:, :1]) * m(x[:, 1:])).sum(2)).mean()
                + functional.softplus((m(x[:, :1]) * m(z)).sum(2)).mean()
            ),
            FIT(0.01, kind=optim.SparseAdam, batch=128, **LONG),
            "node2vec",
        ),
        one(
            "point_net2",
            lambda: Net(
                lambda m, x: (
                    c := grouped(x, x, 64, 16),
                    h := m["a"](c[1]).amax(3),
                    d := grouped(c[0], h, 16, 12),
                    m["last"](m["c"](torch.cat([d[0], m["b"](d[1]).amax(3)], 1)).amax(2)),
                )[3],
                a=nn.Sequential(cnn.unit(6, 24, 1), cnn.unit(24, 32, 1)),
                b=nn.Sequential(cnn.unit(35, 48, 1), cnn.unit(48, 64, 1)),
                c=nn.Sequential(nn.Conv1d(67, 96, 1), nn.BatchNorm1d(96), nn.ReLU()),
                last=nn.Sequential(
                    nn.Linear(96, 64),
                    nn.BatchNorm1d(64),
                    nn.ReLU(),
                    nn.Dropout(0.4),
                    nn.Linear(64, 4),
                ),
            ),
            data.points,
            CE,
            FIT(1e-3, o.stairs, weight_decay=1e-4),
            "PointNet++",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "sage",
            lambda: Net(
                lambda m, a, x: reduce(
                    lambda h, k: (
                        m["s"][k](h) + a @ m["n"][k](h)
                        if k
                        else m["drop"]((m["s"][k](h) + a @ m["n"][k](h)).relu())
                    ),
                    (0, 1),
                    x,
                ),
                drop=nn.Dropout(),
                **{k: nn.ModuleList([nn.Linear(60, 32), nn.Linear(32, 3)]) for k in "sn"},
            ),
            cora,
            lambda m, a, x, y: (
                k := (a > 0).float().fill_diagonal_(0),
                functional.cross_entropy(m(k / k.sum(1, True).clamp(min=1), x)[:60], y[:60]),
            )[1],
            FIT(0.01, weight_decay=5e-4),
            "GraphSAGE",
        ),
        one(
            "appnp",
            lambda: Net(
                lambda m, a, x: (
                    h := m["net"](x),
                    reduce(lambda z, _: 0.9 * a @ z + 0.1 * h, range(10), h),
                )[1],
                net=nn.Sequential(
                    nn.Dropout(), nn.Linear(60, 64), nn.ReLU(), nn.Dropout(), nn.Linear(64, 3)
                ),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(0.01, weight_decay=5e-4, **LONG),
            "APPNP",
        ),
        one(
            "graph_ae",
            lambda: Net(
                lambda m, a, x: (z := a @ m["b"]((a @ m["a"](x)).relu()), z @ z.T)[1],
                a=nn.Linear(60, 32, False),
                b=nn.Linear(32, 16, False),
            ),
            cora,
            lambda m, a, x, _: (
                y := (a > 0).float(),
                k := y.mean(),
                functional.binary_cross_entropy_with_logits(m(a, x), y, pos_weight=(1 - k) / k)
                / (1 - k)
                / 2,
            )[2],
            FIT(0.01, **LONG),
            "graph autoencoder",
        ),
        one(
            "rotat_e",
            lambda: nn.ModuleDict(
                {
                    k: changed_weights(nn.Embedding(n, d), lambda p: p.uniform_(-0.25, 0.25))
                    for k, n, d in (("e", 100, 64), ("r", 4, 32))
                }
            ),
            lambda g, n: (
                h := torch.randint(100, (n, 1), generator=g),
                r := torch.randint(4, (n, 1), generator=g),
                torch.cat([(h + 7 * r + 1) % 100, torch.randint(100, (n, 16), generator=g)], 1),
            ),
            lambda m, h, r, t: (
                c := [torch.view_as_complex(m["e"](k).unflatten(2, (32, 2))) for k in (h, t)],
                w := m["r"](r) / 0.25 * 3.14,
                d := 6 - (c[0] * torch.polar(torch.ones_like(w), w) - c[1]).abs().sum(2),
                (
                    functional.softplus(-d[:, 0])
                    + (d[:, 1:].softmax(1).detach() * functional.softplus(d[:, 1:])).sum(1)
                ).mean()
                / 2,
            )[3],
            FIT(0.01, batch=512, **LONG),
            "RotatE",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "jk_net",
            lambda: Net(
                lambda m, a, x: (
                    h := [x],
                    [h.append(m["drop"]((a @ f(h[-1])).relu())) for f in m["body"]],
                    a @ m["last"](torch.cat(h[1:], 1)),
                )[2],
                body=nn.ModuleList(nn.Linear(k, 24) for k in (60, 24, 24, 24)),
                drop=nn.Dropout(),
                last=nn.Linear(96, 3),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(5e-3, weight_decay=5e-4),
            "jumping knowledge",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "conv_e",
            lambda: Net(
                lambda m, h, r: (
                    m["body"](torch.cat([m["e"](h), m["r"](r)], 1)) @ m["e"].weight.T + m["b"][0]
                ),
                e=glorot(nn.Embedding(60, 64)),
                r=glorot(nn.Embedding(8, 64)),
                b=nn.ParameterList([torch.zeros(60)]),
                body=nn.Sequential(
                    nn.Unflatten(1, (1, 16, 8)),
                    nn.BatchNorm2d(1),
                    nn.Dropout(0.2),
                    nn.Conv2d(1, 32, 3),
                    nn.BatchNorm2d(32),
                    nn.ReLU(),
                    nn.Dropout2d(0.2),
                    nn.Flatten(),
                    nn.Linear(2688, 64),
                    nn.Dropout(0.3),
                    nn.BatchNorm1d(64),
                    nn.ReLU(),
                ),
            ),
            lambda g, n: (
                h := torch.randint(60, (n,), generator=g),
                r := torch.randint(8, (n,), generator=g),
                (h + 3 * r + 1) % 60,
            ),
            lambda m, h, r, y: functional.binary_cross_entropy_with_logits(
                m(h, r), 0.9 * functional.one_hot(y, 60) + 1 / 60
            ),
            FIT(3e-3, batch=128),
            "ConvE",
        ),
        one(
            "gated_graph",
            lambda: Net(
                lambda m, a, x: m["last"](
                    reduce(lambda h, f: m["gru"](a @ f(h), h), m["w"], functional.pad(x, (0, 4)))
                ),
                w=nn.ModuleList(nn.Linear(64, 64, False) for _ in "abc"),
                gru=nn.GRUCell(64, 64),
                last=nn.Linear(64, 3),
            ),
            cora,
            lambda m, a, x, y: functional.cross_entropy(m(a, x)[:60], y[:60]),
            FIT(5e-3),
            "gated graph network",
        ),
        one(
            "pct",
            lambda: Net(
                lambda m, x: m["last"](
                    m["wide"](
                        torch.cat(
                            [h := m["in"](x)]
                            + [
                                h := h
                                + f["r"](
                                    h
                                    - f["v"](h)
                                    @ (k := (f["q"](h).mT @ f["q"](h)).softmax(2))
                                    / (1e-9 + k.sum(1, True))
                                )
                                for f in m["body"]
                            ],
                            1,
                        )
                    ).amax(2)
                ),
                **{"in": nn.Sequential(norm1(3, 32), norm1(32, 32))},
                body=nn.ModuleList(
                    nn.ModuleDict(
                        {
                            "q": nn.Conv1d(32, 8, 1, bias=False),
                            "v": nn.Conv1d(32, 32, 1),
                            "r": norm1(32, 32),
                        }
                    )
                    for _ in "ab"
                ),
                wide=nn.Sequential(
                    nn.Conv1d(96, 128, 1, bias=False), nn.BatchNorm1d(128), nn.LeakyReLU(0.2)
                ),
                last=nn.Sequential(
                    nn.Linear(128, 64, False),
                    nn.BatchNorm1d(64),
                    nn.LeakyReLU(0.2),
                    nn.Dropout(),
                    nn.Linear(64, 4),
                ),
            ),
            changed(data.points, lambda x: x[..., :128]),
            losses.classes(0.2),
            FIT(0.01, o.cosine, kind=optim.SGD, momentum=0.9, weight_decay=1e-4),
            "PCT",
        ),
    ),
]
