"""Healthy: tables, sets, graphs, texts, sounds, classifiers again; the checks were not known."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import LOAD, NANO, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import DECAY, one, slim
from cases.healthy.strangers_thirteenth_rows import LONG, clicks, emb, fresh, yes
from data import P64, changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.classifiers import Function
from nets.strangers_kept import FIT, REST, SGD, Weights
from torch import nn, optim
from torch.nn import functional

mlp, hf, CE, S, cat = fifth.mlp, library.hf, losses.classes(), nn.Sequential, torch.cat
entropy, List, sphere = functional.cross_entropy, nn.ModuleList, functional.normalize
mse, soft = functional.mse_loss, functional.softplus
table, xavier = threads.numbers, lambda p: nn.init.xavier_normal_(p) if p.ndim > 1 else p.zero_()
MOVES = changed(data.gestures, lambda x: (x - REST[0]) / REST[1])


def coder(width: int, drop: float = 0.0, **how: Any) -> nn.Module:
    layer = partial(nn.TransformerEncoderLayer, width, 4, 2 * width, drop, batch_first=True)
    return nn.TransformerEncoder(layer(**how), 2, enable_nested_tensor=False)


def attend(into: int, heads: int, out: int) -> nn.Module:
    def forward(m: Any, links: Any, x: Any) -> Any:
        h = m["w"](m["drop"](x)).unflatten(1, (heads, out))
        near = functional.leaky_relu((h * m["a"][0]).sum(2)[:, None] + (h * m["a"][1]).sum(2), 0.2)
        near = m["drop"](near.masked_fill((links == 0)[..., None], -1e9).softmax(1))
        return torch.einsum("ijh,jhd->ihd", near, h).flatten(1)

    weights = Weights(nn.init.xavier_uniform_(torch.empty(heads, out)) for _ in "ij")
    return Net(forward, w=nn.Linear(into, heads * out, bias=False), drop=nn.Dropout(0.6), a=weights)


def edges(x: torch.Tensor) -> torch.Tensor:
    near = torch.cdist(x.mT, x.mT).topk(8, largest=False)[1]
    others = x[torch.arange(len(x))[:, None, None], :, near].permute(0, 3, 1, 2)
    return cat([others - x[..., None], x[..., None].expand_as(others)], 1)


CASES = seen("2026-11-28T11:40",
    one("dcn", lambda: fresh(Net(lambda m, x: m["last"](cat([reduce(lambda z, c: h * c(z) + z,
         m["cross"], h := m["field"](x).flatten(1)), m["deep"](h)], 1))[:, 0], field=emb(300, 8),
         cross=List(nn.Linear(48, 48) for _ in range(3)), deep=S(mlp(48, 64, 32), nn.ReLU()),
         last=nn.Linear(80, 1)), xavier), clicks, yes, FIT(3e-3, batch=512, **LONG), "DCN v2"),
    one("gated_experts", lambda: Net(lambda m, x: (e := torch.stack([f(x) for f in m["experts"]],
         1), cat([t((g(x).softmax(1)[..., None] * e).sum(1)) for g, t in zip(m["gates"],
         m["towers"], strict=True)], 1))[1], experts=List(S(nn.Linear(16, 32), nn.ReLU()) for _ in
         range(4)), gates=List(nn.Linear(16, 4) for _ in "ab"), towers=List(mlp(32, 16, 1) for _ in
         "ab")), table(16, lambda x: (torch.stack([x[:, :6].sum(1), x[:, 3:6].sum(1) + x[:, 6] *
         x[:, 7]], 1) > 0.5).float()), yes, FIT(1e-3, batch=128, **LONG), "MMoE, two tasks"),
    one("tab_transformer", lambda: Net(lambda m, x: m["last"](m["body"](m["field"](x)))[:, 0],
         field=emb(300, 32), body=coder(32, 0.1, norm_first=True, activation="gelu"), last=mlp(192,
         64, 1)), clicks, yes, FIT(1e-3, kind=optim.AdamW, weight_decay=0.01, batch=128, **LONG),
         "TabTransformer"),
    one("evidential", partial(mlp, 1, 64, 64, 4), lambda g, n: (x := 4 * torch.rand(n, 1,
         generator=g) - 2, x**3 / 3.4 + 0.2 * torch.randn(n, 1, generator=g)), lambda m, x, y:
         (lambda e, v, a, b: (torch.log(torch.pi / v) / 2 - a * (w := 2 * b * (1 + v)).log() + (a +
         0.5) * (v * e**2 + w).log() + a.lgamma() - (a + 0.5).lgamma() + 0.01 * e.abs() * (2 * v +
         a)).mean())(y - (f := m(x))[:, :1], *(soft(f[:, 1:]) + f.new([0, 1, 0])).split(1, 1)),
         FIT(1e-3, batch=128, **LONG), "evidential regression"),
    one("dictionary", lambda: S(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 32)), lambda g, n:
         (torch.where(torch.rand(n, 80, generator=g) < 0.05, torch.rand(n, 80, generator=g), 0) @
         sphere(torch.randn(80, 32, generator=torch.Generator().manual_seed(7))) * 4,), lambda m, x:
         (m[2](z := m[:2](x)) - x).square().sum(1).mean() + 0.3 * z.sum(1).mean(), FIT(1e-3, o.ramp,
         batch=512, after=lambda _, m, __: m[2].weight.data.div_(m[2].weight.data.norm(dim=0)),
         **LONG), "sparse autoencoder of activations"),
    one("largest", lambda: Net(lambda m, x: m["last"](m["pool"](m["seed"][0].expand(len(x), -1, -1),
         h := m["body"](m["first"](x)), h)[0][:, 0]), first=nn.Linear(1, 32), body=coder(32),
         pool=nn.MultiheadAttention(32, 4, batch_first=True),
         seed=Weights([nn.init.xavier_uniform_(torch.empty(1, 1, 32))]), last=nn.Linear(32, 1)),
         lambda g, n: (x := torch.rand(n, 10, 1, generator=g) * torch.rand(n, 1, 1, generator=g),
         x.amax(1)), lambda m, x, y: functional.l1_loss(m(x), y), FIT(1e-3, batch=64, **LONG),
         "set transformer"),
    one("simple", lambda: Net(lambda m, a, x: m["last"](a @ (a @ x)), last=nn.Linear(60, 3)), cora,
         lambda m, a, x, y: entropy(m(a, x)[:60], y[:60]), FIT(0.2, weight_decay=5e-5),
         "simplified graph convolution"),
    one("point_net", lambda: Net(lambda m, x: m["net"]((m["turn"](x).view(-1, 3, 3) + torch.eye(3))
         @ x), **{k: S(*(layer for a, b in ((3, 24), (24, 48), (48, 96)) for layer in (nn.Conv1d(a,
         b, 1), nn.BatchNorm1d(b), nn.ReLU())), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(96,
         64), nn.BatchNorm1d(64), nn.ReLU(), *end) for k, end in (("turn", (fresh(nn.Linear(64, 9),
         torch.zero_),)), ("net", (nn.Dropout(0.3), nn.Linear(64, 4))))}), changed(data.points,
         lambda x: x[..., :128]), CE, FIT(1e-3, o.stairs, weight_decay=1e-4),
         "PointNet with T-Net"),
    one("translated", lambda: fresh(Net(lambda m, x, y: (e := m["in"](m["words"](x)), d :=
         m["out"](m["goal"](y), e[1])[0], m["last"](m["both"](cat([d, (d @ e[0].mT).softmax(2) @
         e[0]], 2)).tanh()).mT)[2], words=emb(32, 32), goal=emb(33, 32), both=nn.Linear(128, 64,
         bias=False), last=nn.Linear(64, 32), **{k: nn.LSTM(32, 64, batch_first=True) for k in
         ("in", "out")}), lambda p: p.uniform_(-0.1, 0.1)), threads.words(32, 8, lambda x:
         (x.flip(1) + 3) % 32), lambda m, x, y: entropy(m(x, functional.pad(y[:, :-1], (1, 0),
         value=32)), y), FIT(3e-3, clip=5.0, batch=64, **LONG), "LSTM with Luong's attention"),
    *(one(name.lower(), partial(hf, f"{name}ForCausalLM", **TINY | sizes), TEXT, told, recipe, name)
         for name, (sizes, recipe) in {"Mistral": ({"num_key_value_heads": 2, "sliding_window": 8},
         FIT(2e-3, o.two_phases, **NANO)), "SmolLM3": ({"num_key_value_heads": 2, "pad_token_id":
         0}, FIT(1e-3, o.one_cycle(3e-3), **NANO)), "Gemma2": ({"num_key_value_heads": 2,
         "head_dim": 12}, FIT(1e-3, o.ramp, **NANO, ema=0.99)), "Qwen2": ({"num_key_value_heads":
         2}, FIT(3e-3, o.stairs, kind=optim.Adamax, batch=24)), "Phi3": ({"pad_token_id": 0},
         FIT(1e-3, o.linear_down, **NANO, micro=2, batch=8)), "Helium": ({"pad_token_id": 0,
         "head_dim": 12, "num_key_value_heads": 4}, FIT(2e-3, o.cosine, kind=optim.NAdam,
         clip=1.0))}.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **TINY |
         {"max_position_embeddings": 44}, num_labels=4), data.sentences, told, recipe, name) for
         name, recipe in {"MPNet": FIT(1e-3, o.linear_down, **DECAY, clip=1.0), "XLMRoberta":
         FIT(5e-4, o.linear_down, **DECAY, batch=24), "Deberta": FIT(1e-3, o.cosine, **DECAY,
         clip=1.0), "Ernie": FIT(1e-3, o.ramp, batch=32)}.items()),
    one("pegasus", partial(hf, "PegasusForConditionalGeneration", d_model=48, vocab_size=128,
         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
         encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=40), TEXT, lambda m, x:
         told(m, x.index_fill(1, torch.arange(8, 16), 127), x[:, 8:16].contiguous()), FIT(0, None,
         "Adafactor", o.adafactor), "Pegasus, gaps"),
    one("variates", lambda: Net(lambda m, x: (u := x.mean(2, True), s := x.std(2, keepdim=True) +
         0.01, m["last"](m["body"](m["first"]((x - u) / s))) * s + u)[2], first=nn.Linear(72, 48),
         body=coder(48, 0.1, activation="gelu"), last=nn.Linear(48, 24)), MOVES, lambda m, x, _:
         mse(m(x[..., :72]), x[..., 72:]), FIT(1e-3, o.fading, batch=32), "iTransformer"),
    one("n_linear", lambda: Net(lambda m, x: m["line"]((x - x[:, -1:])[..., 0]) + x[:, -1],
         line=nn.Linear(96, 24)), LOAD, lambda m, x, y: mse(m(x), y[..., 0]), FIT(5e-3, o.stairs,
         batch=32), "NLinear"),
    one("lstm_fcn", lambda: Net(lambda m, x: m["last"](cat([m["conv"](x).mean(2),
         m["drop"](m["body"](x)[0][:, -1])], 1)), conv=cnn.he(S(*(layer for a, b, k in ((6, 32, 8),
         (32, 64, 5), (64, 32, 3)) for layer in (nn.Conv1d(a, b, k, 1, k // 2), nn.BatchNorm1d(b),
         nn.ReLU())))), body=nn.LSTM(96, 8, batch_first=True), drop=nn.Dropout(0.8),
         last=nn.Linear(40, 5)), MOVES, CE, FIT(1e-3, batch=32), "LSTM-FCN"),
    one("speakers", lambda: Net(lambda m, x: (sphere(m["last"](m["body"](x[:,
         0].mT)[1][0][-1]).relu()), m["w"][0], m["w"][1]), body=nn.LSTM(33, 48, 2,
         batch_first=True), last=nn.Linear(48, 32), w=Weights([torch.tensor(10.0),
         torch.tensor(-5.0)])), data.spectrograms, lambda m, x, y: entropy((f := m(x))[1] * f[0] @
         sphere(functional.one_hot(y, 6).float().T @ f[0]).T + f[2], y), SGD(0.01, clip=3.0,
         batch=48, **LONG), "GE2E"),
    *(one(name.removeprefix("test_").split("_")[0], slim(name, **sizes), P64, loss, recipe.but("",
         batch=6, steps=80, every=8), f"timm {name}") for name, (sizes, loss, recipe) in
         {"test_coatnet": ({"img_size": 64}, losses.classes(0.1), FIT(1e-3, o.cosine, **DECAY)),
         "test_efficientnet_ln": ({}, losses.flip, FIT(1e-3, **DECAY, ema=0.98)), "test_convnext2":
         ({}, CE, FIT(2e-3, o.two_phases, **DECAY)), "test_vit3": ({"img_size": 64}, CE, FIT(1e-3,
         o.linear_down, kind=optim.NAdam)), "test_maxvit": ({"img_size": 64}, losses.flip, FIT(1e-3,
         o.warm_up, **DECAY, clip=1.0))}.items()),
    one("spikes", lambda: Net(lambda m, x: reduce(lambda s, _: (a := 0.95 * s[0] + m["a"](x) - (s[0]
         > 1).float(), h := (a > 1).float() - (t := (5 * (a - 1)).sigmoid()).detach() + t, b := 0.95
         * s[2] + m["b"](h), s[3] + b / 10), range(10), (torch.zeros(1), 0, 0, 0))[3],
         a=S(nn.Flatten(), nn.Linear(784, 128)), b=nn.Linear(128, 10)), data.digits, CE, FIT(1e-3,
         batch=64), "spiking network"),
    one("bottleneck", lambda: nn.ModuleDict({"down": mlp(784, 256, 256, 64), "up": nn.Linear(32,
         10)}), changed(data.digits, lambda x: 2 * x - 1), lambda m, x, y: entropy(m["up"]((u := (f
         := m["down"](x))[:, :32]) + (s := soft(f[:, 32:] - 5) + 1e-6) * torch.randn_like(u)), y) +
         1e-3 * (u**2 + s**2 - 2 * s.log() - 1).sum(1).mean() / 2, FIT(1e-3, o.fading, betas=(0.5,
         0.999), batch=64), "variational bottleneck"),
    one("sas_rec", lambda: fresh(Net(lambda m, x: m["body"](m["drop"](m["words"](x) * 32**0.5 +
         m["place"].weight), torch.full((16, 16), -torch.inf).triu(1)), words=emb(100, 32),
         place=emb(16, 32), drop=nn.Dropout(0.2), body=coder(32, 0.2)), lambda p: p.ndim > 1 and
         nn.init.xavier_normal_(p)), lambda g, n: ((torch.randint(1, 3, (n, 17),
         generator=g).cumsum(1) + torch.randint(100, (n, 1), generator=g)) % 100,), lambda m, x:
         soft(-((h := m(x[:, :-1])) * m["words"](x[:, 1:])).sum(2)).mean() + soft((h *
         m["words"](torch.randint(100, x[:, 1:].shape))).sum(2)).mean(), FIT(1e-3, betas=(0.9,
         0.98), batch=64, **LONG), "SASRec"),
    one("approx_ndcg", lambda: S(nn.Flatten(0, 1), nn.BatchNorm1d(12), nn.Linear(12, 64),
         nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(),
         nn.Dropout(0.2), nn.Linear(32, 1), nn.Unflatten(0, (-1, 10)), nn.Flatten()), lambda g, n:
         (x := torch.randn(n, 10, 12, generator=g), 2 ** (x[..., :3].sum(2) + x[..., 3] **
         2).round().clamp(0, 4) - 1), lambda m, x, y: 1 - ((y / (1.5 + ((f := m(x))[:, None] -
         f[..., None]).div(0.1).sigmoid().sum(2)).log2()).sum(1) / (y.sort(1, True)[0] /
         torch.arange(2, 12).log2()).sum(1).clamp(0.1)).mean(), FIT(0.05, kind=optim.Adagrad,
         batch=32, **LONG), "TF-Ranking, approximate NDCG"),
    one("neural_process", lambda: nn.ModuleDict({"code": mlp(2, 64, 64, 64)[1:], "guess": mlp(65,
         64, 64, 2)[1:]}), lambda g, n: (x := 4 * torch.rand(n, 30, 1, generator=g) - 2, (0.5 +
         torch.rand(n, 1, 1, generator=g)) * (2 * x + 6.3 * torch.rand(n, 1, 1,
         generator=g)).sin()), lambda m, x, y: functional.gaussian_nll_loss((f :=
         m["guess"](cat([x, m["code"](cat([x, y], 2)[:, :10]).mean(1, True).expand(-1, 30, -1)],
         2)))[..., :1], y, (0.1 + 0.9 * soft(f[..., 1:])) ** 2), FIT(1e-3, batch=64, **LONG),
         "conditional neural process"),
    one("hazards", lambda: S(*(layer for a in (9, 32) for layer in (nn.Linear(a, 32), nn.ReLU(),
         nn.BatchNorm1d(32), nn.Dropout(0.1))), nn.Linear(32, 10)), table(9, lambda x:
         torch.stack([(-torch.rand(len(x)).log() * 5 * (x[:, 0] - x[:, 1] * x[:,
         2]).exp()).long().clamp(0, 9), (torch.rand(len(x)) < 0.7).long()], 1)), lambda m, x, y:
         (bce(m(x), ((t := torch.arange(10)) == y[:, :1]).float() * y[:, 1:], reduction="none") *
         (t <= y[:, :1])).sum(1).mean(), FIT(0.01, batch=256, **LONG),
         "discrete hazards, as pycox"),
    one("dynamics", lambda: Net(lambda m, x: ((f := m["net"](x).chunk(2, 1))[0], (low :=
         m["at"][0]) + soft((high := m["at"][1]) - soft(high - f[1]) - low), high - low),
         net=mlp(5, 64, 64, 64, 8, act=nn.SiLU), at=Weights([torch.full((4,), -10.0),
         torch.full((4,), 0.5)])), table(5, lambda x: cat([x[:, 2:4], x[:, :2].sin() * 1.3 + x[:,
         4:]], 1) + 0.1 * torch.randn(len(x), 4)), lambda m, x, y: ((f := m(x))[1] + (f[0] - y) **
         2 * (-f[1]).exp()).mean() + 0.01 * f[2].sum(), FIT(1e-3, weight_decay=5e-5, batch=256,
         **LONG), "dynamics, as PETS"),
    one("graph_attention", lambda: Net(lambda m, a, x: m["b"](a, functional.elu(m["a"](a, x))),
         a=attend(60, 8, 8), b=attend(64, 1, 3)), cora, lambda m, a, x, y: entropy(m(a, x)[:60],
         y[:60]), FIT(5e-3, weight_decay=5e-4, **LONG), "GAT"),
    one("sch_net", lambda: Net(lambda m, k, d: m["last"](reduce(lambda h, b: h +
         b["out"](torch.einsum("nijf,njf->nif", b["sift"]((-10 * (d[..., None] - torch.linspace(0,
         4, 16)) ** 2).exp()), b["in"](h))), m["blocks"], m["kinds"](k))).sum(1), kinds=emb(4, 32),
         last=mlp(32, 16, 1, act=nn.Softplus)[1:], blocks=List(nn.ModuleDict({"in": nn.Linear(32,
         32, bias=False), "sift": mlp(16, 32, 32, act=nn.Softplus)[1:], "out": mlp(32, 32, 32,
         act=nn.Softplus)[1:]}) for _ in "ab")), lambda g, n: (torch.randint(4, (n, 8),
         generator=g), torch.cdist(x := 1.2 * torch.randn(n, 8, 3, generator=g), x)), lambda m, k,
         d: functional.mse_loss(m(k, d)[:, 0], ((1 + k[:, None]) * (1 + k[..., None]) *
         (-d).exp()).sum((1, 2)) / 20 - 5), FIT(1e-3, batch=32, **LONG), "SchNet"),
    one("edge_conv", lambda: S(Function(lambda x: x[..., :64]), *(layer for a, b in ((6, 24), (48,
         48)) for layer in (Function(edges), cnn.unit(a, b, 1, act=partial(nn.LeakyReLU, 0.2)),
         Function(lambda x: x.amax(3)))), nn.Conv1d(48, 96, 1, bias=False), nn.BatchNorm1d(96),
         nn.LeakyReLU(0.2), Function(lambda x: cat([x.amax(2), x.mean(2)], 1)), nn.Linear(192, 64),
         nn.BatchNorm1d(64), nn.LeakyReLU(0.2), nn.Dropout(), nn.Linear(64, 4)), data.points,
         losses.classes(0.2), SGD(0.1, o.cosine, weight_decay=1e-4), "DGCNN"),
    one("pointers", lambda: fresh(Net(lambda m, x, y: (e := m["in"](x), d :=
         m["out"](functional.pad(y[:, :-1], (0, 0, 1, 0)), e[1])[0], m["v"]((m["a"](e[0])[:, None]
         + m["b"](d)[:, :, None]).tanh())[..., 0])[2], a=nn.Linear(64, 64), b=nn.Linear(64, 64),
         v=nn.Linear(64, 1), **{k: nn.LSTM(1, 64, batch_first=True) for k in ("in", "out")}),
         lambda p: p.uniform_(-0.08, 0.08)), lambda g, n: (x := torch.rand(n, 6, 1, generator=g),
         *x.sort(1)), lambda m, x, y, k: entropy(m(x, y).mT, k[..., 0]), FIT(3e-3, clip=2.0,
         batch=128, **LONG), "pointer network, sorting"),
    one("inferred", lambda: Net(lambda m, x: (a := m["words"](x[:, :8]), b := m["words"](x[:, 8:]),
         e := m["f"](a) @ m["f"](b).mT, m["last"](cat([m["g"](cat([a, e.softmax(2) @ b],
         2)).sum(1), m["g"](cat([b, e.mT.softmax(2) @ a], 2)).sum(1)], 1)))[3], words=emb(64, 32),
         f=S(nn.Dropout(0.2), *mlp(32, 64, 64)[1:], nn.ReLU()), g=S(nn.Dropout(0.2), *mlp(64, 64,
         64)[1:], nn.ReLU()), last=mlp(128, 64, 2)), lambda g, n: (cat([x := torch.randint(64, (n,
         8), generator=g), torch.where((y := torch.arange(n) % 2)[:, None] > 0, x.gather(1,
         torch.randint(8, (n, 4), generator=g)), torch.randint(64, (n, 4), generator=g))], 1), y),
         CE, FIT(1e-3, batch=128, **LONG), "decomposable attention"),
)  # fmt: skip
