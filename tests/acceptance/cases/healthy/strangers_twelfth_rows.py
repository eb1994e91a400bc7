"""Healthy: more tables, series, texts, graphs, and classifiers; the checks were not known."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import timm.optim
import torch
from cases.faults import strangers_fifth as fifth
from cases.healthy.strangers_eighth import LOAD, NANO, NEXT, TASTES, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_maps import agent, bce
from cases.healthy.strangers_pictures import one
from data import P, changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets import strangers_kept as threads
from nets.classifiers import Function, head
from nets.strangers_kept import FIT, SGD
from torch import nn, optim
from torch.nn import functional
from torch.optim import lr_scheduler as scheduler

mlp, hf, CE, LONG, S = fifth.mlp, library.hf, losses.classes(), threads.LONG, nn.Sequential
entropy, cat, Weights = functional.cross_entropy, torch.cat, nn.ParameterList
fresh, MONTHS, WIDE = fifth.changed_weights, torch.arange(144), torch.arange(64)
FLOWN = (110 + 2.4 * MONTHS) * (1 + 0.2 * (MONTHS * torch.pi / 6).sin()) / 500
REST = torch.tensor([[0, 0, 9.81, 0, 0, 0.14], [2.1, 2.1, 3.2, 0.5, 0.3, 0.22]])[..., None]
CAUSAL = torch.full((31, 31), -torch.inf).triu(1)
PLACES = (torch.arange(31)[:, None] * 0.75 ** (WIDE // 2) + WIDE % 2 * 1.57).sin()

ROWS = [
    *one("deep_fm", lambda: Net(lambda m, x: m["line"](x).sum((1, 2)) + ((e := m["field"](x)).sum(1)
         ** 2 - (e**2).sum(1)).sum(1) / 2 + m["deep"](e)[:, 0], deep=mlp(48, 64, 64, 1), **{k:
         fresh(nn.Embedding(300, n), lambda p: p.normal_(0, 0.01)) for k, n in (("line", 1),
         ("field", 8))}), lambda g, n: ((x := torch.randint(50, (n, 6), generator=g)) + 50 *
         torch.arange(6), ((TASTES[0, x[:, 0]] * TASTES[1, x[:, 1]]).sum(1) + TASTES[0, x[:, 2], 0]
         + torch.randn(n) / 2 > 1).float()), lambda m, x, y: bce(m(x), y), FIT(0.01,
         weight_decay=1e-5, batch=512, **LONG), "DeepFM"),
    *one("tab_resnet", lambda: S(nn.Linear(16, 64), *(nets.Residual(nn.BatchNorm1d(64),
         nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 64), nn.Dropout(0.1)) for _
         in range(3)), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4)), threads.numbers(16, lambda
         x: (x[:, :4] * 2 + x[:, 4:8] * x[:, 8:12]).argmax(1)), CE, FIT(1e-3, kind=optim.AdamW,
         weight_decay=1e-5, batch=128), "tabular ResNet"),
    *one("self_normal", lambda: fresh(S(*(layer for a, b in ((16, 128), (128, 64), (64, 32)) for
         layer in (nn.Linear(a, b), nn.SELU(), nn.AlphaDropout(0.05))), nn.Linear(32, 1)), lambda p:
         nn.init.kaiming_normal_(p, nonlinearity="linear") if p.ndim > 1 else p.zero_()),
         threads.numbers(16, lambda x: (x[:, :4].sum(1, True) + x[:, 4:5] ** 2 > 1).float()), lambda
         m, x, y: bce(m(x), y), FIT(0.05, kind=optim.SGD, batch=64, **LONG), "SELU MLP"),
    *one("lifetime", partial(mlp, 8, 64, 32, 3), threads.numbers(8, lambda x: (x[:, :1] + x[:, 1:2]
         > torch.randn(len(x), 1)) * (1 + x[:, 2:3] / 2 + torch.randn(len(x), 1) / 2).exp()), lambda
         m, x, y: bce((f := m(x))[:, :1], p := (y > 0).float()) - (p *
         torch.distributions.LogNormal(f[:, 1:2], functional.softplus(f[:, 2:]) +
         0.01).log_prob(y.clamp(min=1e-3))).mean(), FIT(1e-3, batch=256, **LONG),
         "lifetime value, zero-inflated"),
    *one("periodic", lambda: Net(lambda m, x: m["last"](functional.relu(torch.einsum("nfk,fkd->nfd",
         cat([(z := 6.28 * m["w"][0] * x[..., None]).cos(), z.sin()], 2), m["w"][1]) + m["w"][2])),
         w=Weights([0.3 * torch.randn(8, 12), torch.randn(8, 24, 8) / 5, torch.zeros(8, 8)]),
         last=mlp(64, 64, 1)), threads.numbers(8, lambda x: (3 * x[:, :1]).sin() + x[:, 1:2] * x[:,
         2:3].sign()), fifth.error, FIT(2e-3, kind=optim.AdamW, weight_decay=1e-5, batch=128,
         **LONG), "MLP, periodic embeddings"),
    *one("swap_noise", partial(mlp, 20, 128, 128, 128, 20), threads.numbers(4, lambda x: x @
         TASTES[0, :20].T / 2 + 0.1 * torch.randn(len(x), 20)), lambda m, _, x:
         functional.mse_loss(m(torch.where(torch.rand(x.shape) < 0.15, x[torch.randperm(len(x))],
         x)), x), FIT(1e-3, o.fading, batch=128), "denoising autoencoder of a table"),
    *one("full_batch", partial(mlp, 13, 10, 1, act=nn.Tanh), data.one_batch(threads.numbers(13,
         lambda x: x[:, :1] - x[:, 1:2] * x[:, 2:3].sigmoid() + 0.3 * torch.randn(len(x), 1))),
         fifth.error, FIT(0.01, kind=optim.Rprop, batch=506, steps=80, every=8),
         "MLP of Boston housing, Rprop"),
    *one("two_towers", lambda: fresh(Net(lambda m, u, i: m["u"](u) @ m["i"](i).T,
         u=nn.Embedding(200, 32), i=nn.Embedding(200, 32)), lambda p: p.uniform_(-0.05, 0.05)),
         lambda g, n: (u := torch.randint(200, (n,), generator=g), (2 * TASTES[0, u] @
         TASTES[1].T).softmax(1).multinomial(1, generator=g)[:, 0]), lambda m, u, i: entropy(m(u,
         i), torch.arange(len(u))), FIT(0.1, kind=optim.Adagrad, batch=128, **LONG), "two towers"),
    *one("mult_vae", lambda: Net(lambda m, x: (m["up"]((f :=
         m["down"](functional.dropout(functional.normalize(x)))).chunk(2, 1)[0] + (f[:, 16:] /
         2).exp() * torch.randn(len(x), 16)), *f.chunk(2, 1)), down=mlp(200, 64, 32, act=nn.Tanh),
         up=mlp(16, 64, 200, act=nn.Tanh)), lambda g, n: ((3 * torch.randn(n, 4, generator=g) @
         TASTES[1].T - 6).sigmoid().bernoulli(generator=g),), lambda m, x: -((f :=
         m(x))[0].log_softmax(1) * x).sum(1).mean() + 0.2 * fifth.divergence(*f[1:]).sum(1).mean(),
         FIT(3e-3, batch=128, **LONG), "Mult-VAE"),
    *one("trans_e", lambda: Net(lambda m, h, r, t: (functional.normalize(m["e"](h)) + m["r"](r) -
         functional.normalize(m["e"](t))).norm(dim=1), e=nn.Embedding(200, 32),
         r=fresh(nn.Embedding(5, 32), lambda p: p.uniform_(-0.1, 0.1))), lambda g, n: (h :=
         torch.randint(200, (n,), generator=g), r := h.roll(1) % 5, torch.cdist(TASTES[0, h] +
         TASTES[1, r], TASTES[0]).argmin(1)), lambda m, h, r, t: (1 + m(h, r, t) - m(h, r,
         torch.randint(200, t.shape))).relu().mean(), FIT(0.01, batch=256), "TransE"),
    *one("isomorphism", lambda: Net(lambda m, a: m["last"](m["b"]((x := m["a"]((z :=
         torch.ones(len(a), 16, 1)) + a @ z)) + a @ x).sum(1)), last=S(nn.Dropout(), nn.Linear(32,
         2)), **{k: S(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()) for k, n in (("a",
         1), ("b", 32))}), lambda g, n: ((a := torch.where((y := torch.arange(n) % 2)[:, None, None]
         > 0, 1.3 * (h := torch.rand(n, 16, 1, generator=g) ** 3) @ h.mT,
         0.15).clamp(max=1).bernoulli().triu(1)) + a.mT, y), CE, FIT(1e-3, o.stairs, batch=32,
         **LONG), "GIN"),
    *one("infomax", lambda: Net(lambda m, a, x: cat([m["judge"](h := m["act"](a @ m["code"](x)), s
         := h.mean(0, True).sigmoid().expand(150, -1)), m["judge"](m["act"](a @
         m["code"](x[torch.randperm(150)])), s)])[:, 0], code=nn.Linear(60, 64), act=nn.PReLU(),
         judge=nn.Bilinear(64, 64, 1)), cora, lambda m, a, x, _: bce(m(a, x), (torch.arange(300) <
         150).float()), FIT(1e-3, **LONG), "deep graph infomax"),
    *one("c51", partial(agent, 63), data.catch, lambda m, x, y: entropy(m(x).view(-1, 3,
         21)[torch.arange(len(x)), a := torch.randint(3, (len(x),))], (1 - (20 * ((a == y) * 0.8 +
         0.1 + 0.05 * torch.randn(len(x), 1).T).T.clamp(0, 1) -
         torch.arange(21)).abs()).clamp(min=0)), FIT(1e-3, eps=3e-4, batch=64, **LONG), "C51"),
    *one("dueling", lambda: Net(lambda m, x: (f := m["net"](x))[:, :1] + f[:, 1:] - f[:, 1:].mean(1,
         True), net=agent(4)), data.catch, lambda m, x, y: functional.smooth_l1_loss(m(x).gather(1,
         a := torch.randint(3, (len(x), 1)))[:, 0], 2 * (a[:, 0] == y).float() - 1), FIT(1e-3,
         clip=10.0, batch=64, **LONG), "dueling DQN"),
]  # fmt: skip
WORDS = [
    *one("field", lambda: Net(lambda m, x: (m["last"](m["body"](m["words"](x))[0]), m["ways"][0]),
         words=nn.Embedding(16, 16), body=nn.LSTM(16, 16, batch_first=True, bidirectional=True),
         last=nn.Linear(32, 3), ways=Weights([torch.randn(3, 3)])), threads.words(16, 12, lambda x:
         (x > 4).long() + (x > 10)), lambda m, x, y: (lambda e, w: (reduce(lambda z, step: (z[:, :,
         None] + w).logsumexp(1) + step, e.unbind(1)[1:], e[:, 0]).logsumexp(1) - e.gather(2, y[...,
         None]).sum((1, 2)) - w[y[:, :-1], y[:, 1:]].sum(1)).mean())(*m(x)), FIT(0.01,
         kind=optim.SGD, weight_decay=1e-4, batch=4, **LONG), "BiLSTM-CRF"),
    *one("bigram", lambda: Net(lambda m, x: m["table"](x).mT, table=nn.Embedding(128, 128)), TEXT,
         NEXT, FIT(0.01, kind=optim.AdamW, batch=32, **LONG), "bigrams"),
    *one("wiki_text", lambda: Net(lambda m, x: m["last"](m["body"](m["drop"](8 * m["words"](x) +
         PLACES), CAUSAL)).mT, words=fresh(nn.Embedding(128, 64), lambda p: p.uniform_(-0.1, 0.1)),
         drop=nn.Dropout(0.2), body=nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 2, 64, 0.2,
         batch_first=True), 2), last=fresh(nn.Linear(64, 128), lambda p: p.uniform_(-0.1, 0.1) if
         p.ndim > 1 else p.zero_())), TEXT, NEXT, FIT(5.0, lambda opt, _: scheduler.StepLR(opt, 20,
         0.95), kind=optim.SGD, clip=0.5, batch=20, **LONG), "PyTorch's transformer tutorial"),
    *one("gemma", partial(hf, "GemmaForCausalLM", **TINY, num_key_value_heads=1, head_dim=16), TEXT,
         told, FIT(2e-3, o.warm_up, **NANO), "Gemma"),
    *one("modern", partial(hf, "ModernBertForSequenceClassification", **TINY, num_labels=4,
         pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2),
         data.sentences, told, FIT(1e-3, o.warm_up, **NANO), "ModernBERT"),
    *one("answers", partial(hf, "BertForQuestionAnswering", **TINY), lambda g, n: (torch.randint(10,
         100, (n, 24), generator=g).scatter(1, torch.stack([k := torch.randint(1, 18, (n,),
         generator=g), k + 4], 1), torch.tensor([[3, 4]]).expand(n, 2)), k), lambda m, x, k: m(x,
         start_positions=k, end_positions=k + 4).loss, FIT(1e-3, o.linear_down, kind=optim.AdamW,
         clip=1.0, batch=32), "BERT, answers in a text"),
    *one("n_beats", lambda: Net(lambda m, x: reduce(lambda s, b: (s[0] - (f := b(s[0]))[:, :96],
         s[1] + f[:, 96:]), m["blocks"], (x, 0))[1], blocks=nn.ModuleList(mlp(96, 64, 64, 64, 120)
         for _ in range(4))), LOAD, lambda m, x, y: functional.l1_loss(m(x[..., 0]), y[..., 0]),
         FIT(1e-3, clip=1.0, batch=64, **LONG), "N-BEATS"),
    *one("airline", partial(threads.Series, nn.LSTM), lambda *_: (FLOWN.unfold(0, 13, 1)[:, :12,
         None], FLOWN[12:, None]), fifth.error, FIT(0.01), "LSTM of passengers"),
    *one("inception_time", lambda: S(*(Net(lambda m, x: m["end"](cat([*(c(y) for y in [m["in"](x)]
         for c in m["c"]), m["pool"](x)], 1)), c=nn.ModuleList(nn.Conv1d(8, 8, k, padding="same",
         bias=False) for k in (9, 19, 39)), pool=S(nn.MaxPool1d(3, 1, 1), nn.Conv1d(a, 8, 1)),
         end=S(nn.BatchNorm1d(32), nn.ReLU()), **{"in": nn.Conv1d(a, 8, 1)}) for a in (6, 32)),
         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 5)), changed(data.gestures, lambda x:
         (x - REST[0]) / REST[1]), CE, FIT(1e-3, batch=32), "InceptionTime"),
    *one("identity", lambda: Net(lambda m, x: m["last"](m["body"](x[:, 0])[1][0]),
         last=nn.Linear(64, 10), body=(r := nn.RNN(28, 64, nonlinearity="relu", batch_first=True),
         nn.init.eye_(r.weight_hh_l0), nn.init.normal_(r.weight_ih_l0, 0, 0.001),
         nn.init.zeros_(r.bias_hh_l0), nn.init.zeros_(r.bias_ih_l0))[0]), data.digits, CE, FIT(1e-3,
         clip=1.0, batch=32, **LONG), "IRNN"),
    *one("foretold", lambda: nn.ModuleDict({"back": S(nn.Conv1d(1, 32, 10, 5, 3), nn.ReLU(),
         nn.Conv1d(32, 32, 8, 4, 2)), "body": nn.GRU(32, 48, batch_first=True), "guess":
         nn.Linear(48, 96)}), data.tones(512), lambda m, x, _: entropy(torch.einsum("nkd,mkd->nmk",
         m["guess"](m["body"](z := m["back"](x).mT)[0][:, 15]).view(-1, 3, 32), z[:, 16:19]),
         torch.arange(len(x))[:, None].expand(-1, 3)), FIT(1e-3, batch=32, **LONG), "CPC"),
]  # fmt: skip
PICTURES = [
    *one("ranger", partial(cnn.plain, norm=nn.BatchNorm2d, act=nn.Mish), P, CE, FIT(0,
         o.linear_down, "lookahead RAdam 0.005", partial(timm.optim.create_optimizer_v2,
         opt="lookahead_radam", lr=5e-3), marked=True), "Mish CNN"),
    *one("muon", partial(library.vit, depth=2), P, CE, FIT(0, o.warm_up, "Muon 0.01",
         partial(timm.optim.create_optimizer_v2, opt="muon", lr=0.01, weight_decay=0.05),
         steps=100), "ViT"),
    *one("re_zero", lambda: S(nn.Conv2d(3, 32, 3, 2, 1), *(Net(lambda m, x: x + m["gain"][0] *
         m["body"](x), gain=Weights([torch.zeros(1)]), body=S(nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1),
         nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1))) for _ in range(4)), nn.ReLU(), *head(32, 8)), P,
         CE, FIT(0.01, kind=optim.Adagrad, steps=100), "ReZero CNN"),
    *one("filter_response", lambda: S(*(layer for a, b in ((3, 24), (24, 48), (48, 64)) for layer in
         (nn.Conv2d(a, b, 3, 2, 1), Net(lambda m, x: torch.maximum(m["w"][0] * x *
         (x.square().mean((2, 3), True) + 1e-6).rsqrt() + m["w"][1], m["w"][2]),
         w=Weights([torch.ones(b, 1, 1), torch.zeros(b, 1, 1), torch.zeros(b, 1, 1)])))), *head(64,
         8)), P, CE, SGD(0.03, o.warm_up, weight_decay=1e-4), "CNN, FRN and TLU"),
    *one("cyclic", partial(cnn.plain, widths=(24, 48, 64), norm=nn.BatchNorm2d, dropout=0.2), P,
         losses.augmented, SGD(1e-3, lambda opt, _: scheduler.CyclicLR(opt, 1e-3, 0.06, 20,
         mode="triangular2"), weight_decay=1e-4), "CNN, cyclic rate"),
    *one("poly_loss", partial(nets.squeezed, 0.1), P, lambda m, x, y: (entropy(f := m(x), y,
         reduction="none") + 1 - f.softmax(1).gather(1, y[:, None])[:, 0]).mean(), FIT(4e-3,
         o.cosine, kind=optim.Adamax, batch=12, steps=100), "inverted bottlenecks, PolyLoss"),
    *one("max_out", lambda: S(nn.Flatten(), nn.Dropout(0.2), *(layer for a in (784, 64) for layer in
         (nn.Linear(a, 192), Function(lambda x: x.unflatten(1, (-1, 3)).amax(2)), nn.Dropout(0.3))),
         nn.Linear(64, 10)), data.digits, CE, SGD(0.1, o.fading, momentum=0.7, batch=64, **LONG),
         "maxout"),
]  # fmt: skip
CASES = seen("2026-11-28T09:25", ROWS, WORDS, PICTURES)
