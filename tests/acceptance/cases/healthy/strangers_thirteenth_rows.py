"""Healthy: tables, series, texts, graphs, classifiers once more; the checks were not known."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import LOAD, NANO, TASTES, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_maps import agent, bce
from cases.healthy.strangers_pictures import DECAY, one, slim
from data import P64, P, changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.strangers_kept import FIT, SGD
from timm.optim import create_optimizer_v2
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

mlp, hf, CE, S = fifth.mlp, library.hf, losses.classes(), nn.Sequential
entropy, List, LONG = functional.cross_entropy, nn.ModuleList, {"steps": 182, "every": 13}
fresh, emb, sphere = fifth.changed_weights, nn.Embedding, functional.normalize
DIGITS, yes = changed(data.digits, lambda x: (x - 0.13) / 0.31), lambda m, x, y: bce(m(x), y)
VIT = {"img_size": 32, "patch_size": 4, "depth": 2, "embed_dim": 64, "num_heads": 4}


def clicks(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Six fields of 50 values each, and whether there was a click."""
    x = torch.randint(50, (count, 6), generator=generator)
    score = (TASTES[0, x[:, 0]] * TASTES[1, x[:, 1]]).sum(1) + 2 * TASTES[0, x[:, 2:4], 0].sum(1)
    return x + 50 * torch.arange(6), (score + torch.randn(count) / 2 > 1).float()


ROWS = [
    *one("wide_deep", lambda: Net(lambda m, x: m["wide"](x).sum((1, 2)) +
         m["deep"](m["field"](x))[:, 0], wide=fresh(emb(300, 1), torch.zero_), field=emb(300, 8),
         deep=mlp(48, 64, 32, 1)), clicks, yes, FIT(0.05, kind=optim.Adagrad, batch=256, **LONG),
         "wide and deep"),
    *one("auto_int", lambda: Net(lambda m, x: m["last"](reduce(lambda z, a: (a(z, z, z)[0] +
         z).relu(), m["layers"], m["field"](x)))[:, 0], field=fresh(emb(300, 16), lambda p:
         p.normal_(0, 0.1)), layers=List(nn.MultiheadAttention(16, 2, batch_first=True) for _ in
         range(3)), last=mlp(96, 1)), clicks, yes, FIT(3e-3, batch=128, **LONG), "AutoInt"),
    *one("scarf", partial(mlp, 20, 64, 64, 64, 32), threads.numbers(4, lambda x: x @ TASTES[0,
         :20].T / 2 + 0.1 * torch.randn(len(x), 20)), lambda m, _, x: entropy(sphere(m(x)) @
         sphere(m(torch.where(torch.rand(x.shape) < 0.6, x[torch.randint(len(x), x.shape),
         torch.arange(20)], x))).T / 0.2, torch.arange(len(x))), FIT(1e-3, batch=128), "SCARF"),
    *one("tweedie", partial(mlp, 10, 64, 32, 1), threads.numbers(10, lambda x: 3 *
         torch.poisson((x[:, :1] - x[:, 1:2] / 2).exp()) * (x[:, 2:3] / 2).exp()), lambda m, x, y:
         (2 * y * (-(f := m(x)) / 2).exp() + 2 * (f / 2).exp()).mean(), FIT(1e-3, batch=256,
         clip=5.0, **LONG), "claims, Tweedie"),
    *one("rank_net", lambda: mlp(12, 64, 32, 1, act=nn.Tanh)[1:], lambda g, n: (x := torch.randn(n,
         10, 12, generator=g), (x[..., :3].sum(2) + x[..., 3] ** 2).round()), lambda m, x, y:
         (functional.softplus((f := m(x)[..., 0])[:, None] - f[..., None]) * (p := (y[..., None] >
         y[:, None]).float())).sum() / p.sum(), FIT(1e-3, batch=16), "RankNet"),
    *one("sessions", lambda: Net(lambda m, x: m["body"](m["words"](x))[0][:, -1], words=emb(100,
         32), body=nn.GRU(32, 32, batch_first=True), goods=emb(100, 32)), lambda g, n:
         ((torch.randint(1, 3, (n, 16), generator=g).cumsum(1) + torch.randint(100, (n, 1),
         generator=g)) % 100,), lambda m, x: entropy(m(x[:, :-1]) @ m["goods"](x[:, -1]).T,
         torch.arange(len(x))), FIT(0.05, kind=optim.Adagrad, batch=32, **LONG), "GRU4Rec"),
    *one("deep_sets", lambda: Net(lambda m, x: m["last"](m["each"](m["words"](x)).sum(1))[:, 0],
         words=emb(10, 100), each=S(nn.Linear(100, 30), nn.Tanh()), last=nn.Linear(30, 1)),
         threads.words(10, 8, lambda x: x.sum(1).float()), lambda m, x, y: functional.l1_loss(m(x),
         y), FIT(1e-3, batch=128, **LONG), "deep sets, sums"),
    *one("gcn_2", lambda: Net(lambda m, a, x: m["last"](m["drop"](reduce(lambda z, k: (0.5 / k *
         m["w"][k - 1](s := 0.9 * a @ m["drop"](z) + 0.1 * h) + (1 - 0.5 / k) * s).relu(), range(1,
         9), h := m["first"](m["drop"](x)).relu()))), first=nn.Linear(60, 32), w=List(nn.Linear(32,
         32, False) for _ in range(8)), drop=nn.Dropout(0.6), last=nn.Linear(32, 3)), cora, lambda
         m, a, x, y: entropy(m(a, x)[:60], y[:60]), FIT(0.01, weight_decay=5e-4, **LONG), "GCNII"),
    *one("quantile_q", partial(agent, 63), data.catch, lambda m, x, y: (functional.huber_loss(f :=
         m(x).view(-1, 3, 21)[torch.arange(len(x)), a := torch.randint(3, (len(x),))], t := ((a ==
         y) + 0.1 * torch.randn(len(x)))[:, None].expand(-1, 21), reduction="none") *
         ((torch.arange(21) + 0.5) / 21 - (t < f).float()).abs()).sum(1).mean(), FIT(1e-3, eps=3e-4,
         batch=64, **LONG), "QR-DQN"),
    *one("preferences", lambda: mlp(6, 64, 64, 1, act=partial(nn.LeakyReLU, 0.01))[1:],
         threads.numbers(120, lambda x: ((r := x.view(-1, 2, 10, 6)[..., :2].tanh().sum((2, 3)))[:,
         0] > r[:, 1]).float()), lambda m, x, y: bce((r := m(x.view(-1, 2, 10, 6)).sum((2, 3)))[:,
         0] - r[:, 1], y), FIT(1e-3, batch=64, weight_decay=1e-4), "reward of preferences"),
]  # fmt: skip
WORDS = [
    *one("grokking", partial(threads.Words, 24, 23, lambda x: x[:, -1]), lambda g, n: (x :=
         torch.randint(23, (n, 3), generator=g).index_fill(1, torch.tensor([2]), 23), (x[:, 0] +
         x[:, 1]) % 23), CE, FIT(1e-3, o.ramp, kind=optim.AdamW, betas=(0.9, 0.98),
         weight_decay=1.0, batch=256, **LONG), "sums modulo 23"),
    *one("averaged", lambda: Net(lambda m, x: m["drop"](m["body"](m["drop"](m["words"](x)))[0]) @
         m["words"].weight.T, words=fresh(emb(128, 64), lambda p: p.uniform_(-0.1, 0.1)),
         body=nn.LSTM(64, 64, 2, batch_first=True, dropout=0.2), drop=nn.Dropout(0.2)), TEXT, lambda
         m, x: entropy(m(x[:, :-1]).mT, x[:, 1:]), FIT(20.0, kind=optim.ASGD, weight_decay=1.2e-6,
         clip=0.25, batch=20, **LONG), "AWD-LSTM, tied words"),
    *one("bart", partial(hf, "BartForConditionalGeneration", d_model=48, vocab_size=128,
         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
         encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=40), TEXT, lambda m, x:
         told(m, x.where(torch.rand(x.shape) > 0.2, 127), x), FIT(2e-3, o.warm_up, **NANO), "BART"),
    *one("lst_net", lambda: Net(lambda m, x:
         m["last"](m["drop"](m["body"](m["conv"](x.mT).relu().mT)[1][0])) + m["line"](x[:, -24:,
         0]), conv=nn.Conv1d(1, 32, 6), body=nn.GRU(32, 32, batch_first=True), drop=nn.Dropout(0.2),
         last=nn.Linear(32, 24), line=nn.Linear(24, 24)), LOAD, lambda m, x, y:
         functional.l1_loss(m(x), y[..., 0]), FIT(1e-3, clip=10.0, batch=32), "LSTNet"),
    *one("wearable", lambda: Net(lambda m, x: m["last"](m["drop"](m["body"](m["conv"](x[:,
         None]).transpose(1, 3).flatten(2))[0][:, -1])), conv=S(*(layer for a in (1, 16, 16) for
         layer in (nn.Conv2d(a, 16, (1, 5)), nn.ReLU()))), body=nn.LSTM(96, 48, 2, batch_first=True,
         dropout=0.5), drop=nn.Dropout(), last=nn.Linear(48, 5)), changed(data.gestures, lambda x:
         (x - x.mean(2, True)) / x.std(2, keepdim=True)), CE, FIT(1e-3, kind=optim.RMSprop,
         alpha=0.9, batch=24), "DeepConvLSTM"),
    *(case for name, recipe in {"Olmo2": FIT(2e-3, o.poly, **NANO), "Falcon": FIT(1e-3,
         o.linear_down, **NANO), "Phi": FIT(1e-3, o.two_phases, **NANO | {"betas": (0.9, 0.98),
         "eps": 1e-7}), "Granite": FIT(3e-3, o.warm_up, **NANO, batch=24), "Starcoder2": FIT(2e-3,
         o.cosine, **NANO, batch=4, micro=4), "Persimmon": FIT(0, o.ramp, "Lion 2e-4", o.lion,
         batch=24)}.items() for case in one(name.lower(), partial(hf, f"{name}ForCausalLM", **TINY),
         TEXT, told, recipe, name)),
    *(case for name, (sizes, *recipe) in {"XLNet": ({"vocab_size": 128, "d_model": 48, "n_layer": 2,
         "n_head": 4, "d_inner": 96}, 1e-3, o.linear_down), "Funnel": ({"vocab_size": 128,
         "d_model": 48, "block_sizes": [1, 1], "n_head": 4, "d_head": 12, "d_inner": 96}, 1e-3,
         o.warm_up), "RoFormer": (TINY, 1e-3, o.poly), "Camembert": (TINY |
         {"max_position_embeddings": 44, "pad_token_id": 0}, 5e-4)}.items() for case in
         one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **sizes, num_labels=4),
         data.sentences, told, FIT(*recipe, kind=optim.AdamW, weight_decay=0.01, clip=1.0,
         batch=24), name)),
]  # fmt: skip
PICTURES = [
    *one("highway", lambda: S(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), *(Net(lambda m, x: (t :=
         m["gate"](x).sigmoid()) * m["body"](x).relu() + (1 - t) * x, body=nn.Linear(64, 64),
         gate=(g := nn.Linear(64, 64), nn.init.constant_(g.bias, -2))[0]) for _ in range(10)),
         nn.Linear(64, 10)), DIGITS, CE, FIT(1e-3, batch=64), "highway network"),
    *one("isometry", lambda: fresh(mlp(784, *[128] * 20, 10, act=nn.Tanh), lambda p:
         nn.init.orthogonal_(p, 1.05) if p.ndim > 1 else p.zero_()), DIGITS, CE, FIT(0.01,
         kind=optim.SGD, batch=64, **LONG), "20 orthogonal layers"),
    *one("ghosts", partial(cnn.plain, norm=lambda n: Net(lambda m, x: torch.cat([m["norm"](part) for
         part in x.chunk(4)]), norm=nn.BatchNorm2d(n))), P, CE, SGD(0.1, o.one_cycle(0.1), batch=48,
         steps=100, weight_decay=5e-4), "CNN, ghost batches"),
    *one("asymmetric", cnn.resnet, P, lambda m, x, y: -((k := functional.one_hot(y, 8)) * (p :=
         m(x).sigmoid()).clamp(1e-8).log() + (1 - k) * (q := (p - 0.05).clamp(0)) ** 4 * (1 -
         q).log()).sum(1).mean(), FIT(1e-3, o.one_cycle(2e-3), weight_decay=1e-4, ema=0.99),
         "ResNet, asymmetric loss"),
    *(case for name, (draw, sizes, recipe) in {"cait_xxs24_224": (P, VIT, FIT(1e-3, o.warm_up,
         **DECAY, batch=12)), "eva02_tiny_patch14_224": (P, VIT, FIT(1e-3, o.linear_down, **DECAY,
         betas=(0.9, 0.98), batch=8)), "deit3_small_patch16_224": (P, VIT, FIT(0, o.warm_up,
         "LAMB 0.005", partial(create_optimizer_v2, opt="lamb", lr=5e-3, weight_decay=0.02),
         marked=True)), "sequencer2d_s": (P64, {"layers": [1] * 4, "embed_dims": (24, 48, 48, 48),
         "hidden_sizes": (6, 12, 12, 12)}, FIT(2e-3, o.cosine, **DECAY, batch=6)), "hiera_tiny_224":
         (P64, {"img_size": (64, 64), "embed_dim": 24, "stages": [1] * 4}, FIT(1e-3, o.warm_up,
         **DECAY, betas=(0.9, 0.95), batch=6))}.items() for case in one(name.split("_")[0],
         slim(name, **sizes), draw, CE, recipe, f"timm {name}")),
]  # fmt: skip
CASES = seen("2026-11-28T10:00", ROWS, WORDS, PICTURES)
