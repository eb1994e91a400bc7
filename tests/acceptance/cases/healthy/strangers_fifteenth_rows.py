"""Healthy: tables, ranking, graphs, texts, sounds, series once more; the checks were not known."""

from __future__ import annotations

import math
from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import LOAD, NANO, TASTES, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_fourteenth_rows import MOVES
from cases.healthy.strangers_maps import bce, projected
from cases.healthy.strangers_pictures import DECAY, one
from cases.healthy.strangers_thirteenth_rows import LONG, clicks, emb, fresh, yes
from data import P, changed
from loops import seen
from nets import classifiers as cnn
from nets import library, signals
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.classifiers import Function
from nets.strangers_kept import FIT, Weights
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

mlp, hf, CE, S, line = fifth.mlp, library.hf, losses.classes(), nn.Sequential, nn.Linear
entropy, cat, sphere = functional.cross_entropy, torch.cat, functional.normalize
mse, soft, table = functional.mse_loss, functional.softplus, threads.numbers
small, likely = partial(fresh, change=lambda p: p.normal_(0, 0.01)), functional.logsigmoid
DIGITS, GRID = changed(data.digits, lambda x: 2 * x - 1), torch.linspace(-2, 2, 8)
FOUR = TINY | {"num_key_value_heads": 2, "head_dim": 12, "pad_token_id": 0}
SIZES = {"layers": 2, "attention_heads": 4, "ffn_dim": 96}
SEQ = {f"{k}coder_{n}": v for k in ("en", "de") for n, v in SIZES.items()}


def picked(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Users, a good each, and whether it was bought, one of five."""
    u, y = torch.randint(200, (n,), generator=g), (torch.arange(n) % 5 == 0).float()
    liked = (2 * TASTES[0, u] @ TASTES[1].T).softmax(1).multinomial(1, generator=g)[:, 0]
    return u, torch.where(y > 0, liked, torch.randint(200, (n,), generator=g)), y


def kan(a: int, b: int) -> nn.Module:
    """A base, and a sum of Gaussians."""
    spline = fresh(line(8 * a, b, bias=False), lambda p: nn.init.trunc_normal_(p, std=0.1))
    return Net(lambda m, x: m["base"](functional.silu(x)) + m["spline"]((-(((m["norm"](x)[..., None]
        - GRID) * 1.75) ** 2)).exp().flatten(1)), norm=nn.LayerNorm(a), base=line(a, b),
        spline=spline)  # fmt: skip


def focus(n: int) -> nn.Module:
    """A bidirectional GRU, and attention over its states."""
    return Net(lambda m, x: (m["look"](h := m["body"](x)[0]).softmax(1) * h).sum(1), look=S(line(n,
        n), nn.Tanh(), line(n, 1, bias=False)), body=nn.GRU(n, n // 2, batch_first=True,
        bidirectional=True))  # fmt: skip


CASES = seen("2026-11-28T12:40",
    one("neu_mf", lambda: Net(lambda m, u, i: m["last"](cat([m["a"](u) * m["b"](i),
         m["deep"](cat([m["c"](u), m["d"](i)], 1))], 1))[:, 0], **{k: small(emb(200, n)) for k, n in
         zip("abcd", (8, 8, 16, 16), strict=True)}, deep=S(mlp(32, 32, 16, 8), nn.ReLU()),
         last=line(16, 1)), picked, lambda m, u, i, y: bce(m(u, i), y), FIT(1e-3, batch=512,
         **LONG), "NeuMF"),
    one("auto_rec", lambda: mlp(200, 64, 200, act=nn.Sigmoid), lambda g, n: ((3.6 + torch.randn(n,
         4, generator=g) @ TASTES[1].T).round().clamp(1, 5) * (torch.rand(n, 200, generator=g) <
         0.2),), lambda m, x: ((m(x) - x) ** 2 * (x > 0)).sum() / (x > 0).sum(), FIT(1e-3,
         weight_decay=1e-4, batch=64, **LONG), "U-AutoRec"),
    one("tab_m", lambda: Net(lambda m, x: (h := m["a"](x[:, None] * m["w"][0]) * m["w"][1], h :=
         m["drop"](h.relu()), h := m["b"](h * m["w"][2]) * m["w"][3], (m["drop"](h.relu()) *
         m["w"][4]).sum(2) + m["w"][5])[-1], a=line(10, 64), b=line(64, 64), drop=nn.Dropout(0.1),
         w=Weights([torch.randn(8, 10).sign(), *(torch.ones(8, 64) for _ in "abc"), torch.rand(8,
         64) / 4 - 0.125, torch.zeros(8)])), table(10, lambda x: x[:, :1] * x[:, 1:2] + x[:,
         2:3].sin()), lambda m, x, y: ((m(x) - y) ** 2).mean(), FIT(2e-3, kind=optim.AdamW,
         weight_decay=3e-4, batch=256, **LONG), "TabM"),
    one("esmm", lambda: Net(lambda m, x: (h := m["field"](x).flatten(1), likely(m["a"](h)),
         likely(m["b"](h)))[1:], field=emb(300, 8), a=mlp(48, 64, 1), b=mlp(48, 64, 1)), lambda g,
         n: (*(z := clicks(g, n)), z[1] * (TASTES[1, z[0][:, 4] - 200, 0] > 0)), lambda m, x, y, z:
         (lambda a, b: sum(-(t * f + (1 - t) * torch.log1p(-f.exp() + 1e-6)).mean() for f, t in
         ((a, y), (a + b, z))))(*(f[:, 0] for f in m(x))), FIT(3e-3, batch=512, **LONG), "ESMM"),
    one("dragon_net", lambda: nn.ModuleDict({"all": S(mlp(10, 64, 64, 64, act=nn.ELU), nn.ELU()),
         "a": mlp(64, 32, 1, act=nn.ELU), "b": mlp(64, 32, 1, act=nn.ELU), "t": line(64, 1)}),
         table(10, lambda x: (lambda t: cat([t, x[:, 1:2] - x[:, 2:3] + t * (1 + x[:, 3:4]) + 0.3 *
         torch.randn(len(x), 1)], 1))((x[:, :1].sigmoid()).bernoulli())), lambda m, x, y: (h :=
         m["all"](x), ((y[:, :1] * m["a"](h) + (1 - y[:, :1]) * m["b"](h) - y[:, 1:]) ** 2).mean() +
         bce(m["t"](h), y[:, :1]))[1], FIT(1e-3, weight_decay=0.01, batch=64, **LONG),
         "DragonNet"),
    one("deep_o_net", lambda: fresh(nn.ModuleDict({"branch": mlp(50, 40, 40), "trunk": S(mlp(1, 40,
         40), nn.ReLU())}), lambda p: nn.init.xavier_normal_(p) if p.ndim > 1 else p.zero_()),
         lambda g, n: (c := torch.randn(n, 4, generator=g), k := math.pi * torch.arange(1, 5), y :=
         torch.rand(n, 1, generator=g), c @ (k[:, None] * torch.linspace(0, 1, 50)).cos(), (c * (k *
         y).sin() / k).sum(1))[2:], lambda m, y, u, z: ((m["branch"](u) * m["trunk"](y)).sum(1) -
         z).square().mean(), FIT(1e-3, batch=512, **LONG), "DeepONet"),
    one("tab_ddpm", lambda: Net(lambda m, x, t: m["net"](m["in"](x) + m["time"](cat([(z := 1000 * t
         * 10 ** (-torch.arange(16) / 4)).sin(), z.cos()], 1))), net=mlp(64, 128, 128, 10), **{"in":
         line(10, 64)}, time=mlp(32, 64, 64, act=nn.SiLU)), table(3, lambda x: x @ TASTES[0, :10,
         :3].T / 1.7), lambda m, _, x: mse(m(x * (a := ((t := torch.rand(len(x), 1)) *
         1.57).cos()) + (1 - a**2).sqrt() * (e := torch.randn_like(x)), t), e), FIT(1e-3,
         o.linear_down, kind=optim.AdamW, weight_decay=0, batch=256, **LONG), "TabDDPM"),
    one("decisions", partial(hf, "DecisionTransformerModel", state_dim=4, act_dim=2, hidden_size=48,
         n_layer=2, n_head=4, max_ep_len=32, activation_function="relu"), lambda g, n: (s :=
         torch.randn(n, 12, 4, generator=g), a := (s[..., :2] - s[..., 2:] / 2).tanh() + 0.1 *
         torch.randn(n, 12, 2, generator=g), -(a**2).sum(2, True))[:3], lambda m, s, a, r:
         mse(m(states=s, actions=a, rewards=r, returns_to_go=r.flip(1).cumsum(1).flip(1) / 5,
         timesteps=torch.arange(12).expand(len(s), -1), attention_mask=torch.ones(len(s),
         12))[1], a), FIT(1e-3, o.ramp, kind=optim.AdamW, weight_decay=1e-4, clip=0.25, batch=32),
         "decision transformer"),
    one("cheb_net", lambda: Net(lambda m, a, x: reduce(lambda h, k: m[k](cat([h := m["drop"](h), -a
         @ h, 2 * a @ (a @ h) - h], 1)).relu() if k == "a" else m[k](cat([h := m["drop"](h), -a @ h,
         2 * a @ (a @ h) - h], 1)), "ab", x), a=line(180, 16), b=line(48, 3), drop=nn.Dropout()),
         cora, lambda m, a, x, y: entropy(m(a, x)[:60], y[:60]), FIT(0.01, weight_decay=5e-4,
         **LONG), "ChebNet"),
    one("biaffine", lambda: Net(lambda m, x: (h := m["body"](m["words"](x))[0], d := m["d"](h), u :=
         functional.pad(m["h"](h), (0, 1), value=1.0), d @ m["w"][0] @ u.mT)[3], words=emb(32, 32),
         body=nn.LSTM(32, 48, batch_first=True, bidirectional=True), w=Weights([torch.zeros(32,
         33)]), **{k: S(line(96, 32), nn.LeakyReLU(0.1), nn.Dropout(0.33)) for k in "dh"}),
         threads.words(32, 10, lambda x: x.argmax(1, True).expand_as(x)), lambda m, x, y:
         entropy(m(x).mT, y), FIT(2e-3, o.fading, betas=(0.9, 0.9), eps=1e-12, clip=5.0, batch=64,
         **LONG), "biaffine parser"),
    one("hierarchy", lambda: Net(lambda m, x: m["last"](m["b"](m["a"](m["words"](x).flatten(0,
         1)).unflatten(0, (-1, 5)))), words=emb(100, 32), a=focus(32), b=focus(32), last=line(32,
         4)), changed(data.sentences, lambda x: x.view(-1, 5, 8)), CE, FIT(1e-3, clip=5.0,
         batch=64), "hierarchical attention"),
    one("machines", lambda: S(*(layer for a, b in ((165, 64), (64, 64), (64, 8), (8, 64), (64, 64))
         for layer in (line(a, b), nn.BatchNorm1d(b), nn.ReLU())), line(64, 165)),
         data.spectrograms, lambda m, x, _: mse(m(z := x[:, 0].unfold(2, 5, 4).transpose(1,
         2).reshape(-1, 165)), z), FIT(1e-3, batch=48), "DCASE's autoencoder"),
    one("tide", lambda: Net(lambda m, x: m["net"](x[..., 0]) + m["line"](x[..., 0]), net=S(*(Net(
         lambda m, x: m["norm"](m["net"](x) + m["skip"](x)), net=S(line(a, 64), nn.ReLU(), line(64,
         b), nn.Dropout(0.3)), skip=line(a, b), norm=nn.LayerNorm(b)) for a, b in ((96, 64), (64,
         64), (64, 24)))), line=line(96, 24)), LOAD, lambda m, x, y: mse(m(x), y[..., 0]), FIT(1e-3,
         o.cosine, batch=64), "TiDE"),
    one("baseline", lambda: S(nn.Flatten(), nn.Dropout(0.1), *(layer for a in (576, 128, 128) for
         layer in (line(a, 128), nn.ReLU(), nn.Dropout(0.2))), line(128, 5)), MOVES, CE, FIT(1.0,
         kind=optim.Adadelta, rho=0.95, batch=32), "MLP of series, Adadelta"),
    one("sim_clr", projected, data.pictures(32), lambda m, x: (n := len(x), z :=
         sphere(m(cat(losses.both_views(x)))), entropy((z @ z.T / 0.2).fill_diagonal_(-1e9),
         torch.arange(2 * n).roll(n)))[2], FIT(1e-3, o.cosine, weight_decay=1e-6, batch=24),
         "SimCLR"),
    one("m5", signals.waveform, data.tones(512), CE, FIT(0.01, o.stairs, weight_decay=1e-4,
         batch=32), "M5"),
    one("softmax", lambda: S(nn.Flatten(), small(line(784, 10))), data.digits, CE, FIT(0.1,
         kind=optim.SGD, batch=256, **LONG), "d2l's softmax regression"),
    one("moons", partial(mlp, 2, 16, 16, 1), lambda g, n: (a := 3.14 * torch.rand(n, 1,
         generator=g), y := torch.arange(n)[:, None] % 2, cat([a.cos() + y, a.sin() * (1 - 2 * y) +
         y / 2], 1) + 0.1 * torch.randn(n, 2, generator=g), 2 * y - 1)[2:], lambda m, x, y: (1 - y *
         m(x)).relu().mean() + 1e-4 * sum(p.square().sum() for p in m.parameters()), FIT(1.0,
         o.linear_down, kind=optim.SGD, batch=100), "micrograd's moons"),
    one("reviews", lambda: S(emb(100, 16), nn.Dropout(0.2), Function(lambda x: x.mean(1)),
         nn.Dropout(0.2), line(16, 1)), threads.words(100, 30, lambda x: ((x < 20).sum(1, True) > (x
         > 79).sum(1, True)).float()), yes, FIT(0.02, batch=128, **LONG), "averaged words"),
    one("both_ways", lambda: Net(lambda m, x: m["last"](m["body"](x[:, 0])[0][:, -1]),
         body=nn.LSTM(28, 64, 2, batch_first=True, bidirectional=True), last=line(128, 10)),
         data.digits, CE, FIT(3e-3, batch=64), "bidirectional LSTM of rows"),
    one("siamese", partial(mlp, 784, 128, 128, 32), data.digits, lambda m, x, y: (d :=
         torch.cdist(f := m(x), f), s := (y[:, None] == y).float(), (d**2 * s).sum() / s.sum() + ((1
         - d).relu() ** 2 * (1 - s)).mean())[2], FIT(1e-3, kind=optim.RMSprop, batch=64),
         "siamese, contrastive loss"),
    one("proxies", lambda: nn.ModuleDict({"code": cnn.encoder(32), "proxies": emb(8, 32)}), P,
         lambda m, x, y: entropy(-9 * torch.cdist(sphere(m["code"](x)),
         sphere(m["proxies"].weight)) ** 2, y), FIT(1e-3, o.fading, batch=24), "proxy NCA"),
    one("corn", partial(mlp, 10, 64, 32, 4), table(10, lambda x: (x[:, :3].sum(1) + x[:, 3] ** 2 +
         1).clamp(0, 4).round()), lambda m, x, y: (bce(m(x), (y[:, None] > (k :=
         torch.arange(4))).float(), reduction="none") * (y[:, None] >= k)).sum(1).mean(), FIT(1e-3,
         batch=128, **LONG), "ordered classes, CORN"),
    one("weibull", partial(mlp, 6, 64, 2, act=nn.Tanh), table(6, lambda x: (t := (x[:, :1] - x[:,
         1:2] / 2).exp() * (-torch.rand(len(x), 1).log()).sqrt(), cat([t.clamp(0.01, 3), (t <
         3).float()], 1))[1]), lambda m, x, y: (f := m(x), z := (y[:, :1].log() - f[:, :1]) * f[:,
         1:].exp(), (z.exp() - y[:, 1:] * (f[:, 1:] + z - y[:, :1].log())).mean())[2],
         FIT(3e-3, batch=128, clip=5.0, **LONG), "survival, Weibull"),
    one("proteins", partial(hf, "EsmForMaskedLM", **TINY, mask_token_id=127, pad_token_id=0,
         position_embedding_type="rotary"), threads.contexts, lambda m, x: told(m, (x + 1).where(k
         := torch.rand(x.shape).argsort(1) > 0, 127), (x + 1).masked_fill(k, -100)), FIT(3e-3,
         o.warm_up, **NANO, batch=64, **LONG), "ESM-2"),
    one("fast_kan", lambda: S(nn.Flatten(), kan(784, 32), kan(32, 10)), DIGITS, CE, FIT(2e-3,
         o.fading, kind=optim.AdamW, weight_decay=1e-4, batch=64, **LONG), "FastKAN"),
    *(one(name.lower(), partial(hf, f"{name}ForCausalLM", **sizes), TEXT, told, recipe, name) for
         name, (sizes, recipe) in {"GPTJ": ({"n_embd": 48, "n_layer": 2, "n_head": 4, "rotary_dim":
         8, "vocab_size": 128, "n_positions": 32}, FIT(1e-3, o.linear_down, **NANO)), "Olmoe": (TINY
         | {"num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": True}, FIT(1e-3,
         o.warm_up, **NANO, batch=8)), "Glm": (FOUR, FIT(2e-3, o.two_phases, **NANO)), "Nemotron":
         (FOUR, FIT(1e-3, o.cosine, **NANO, micro=2, batch=8)), "Gemma3": (FOUR, FIT(2e-3, o.poly,
         kind=optim.NAdam, clip=1.0)), "Mpt": ({"d_model": 48, "n_layers": 2, "n_heads": 4,
         "expansion_ratio": 2, "vocab_size": 128, "max_seq_len": 32}, FIT(2e-3, o.ramp,
         **NANO))}.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **TINY | sizes |
         {"max_position_embeddings": 48}, num_labels=4), data.sentences, told, recipe, name) for
         name, (sizes, recipe) in {"RemBert": ({"input_embedding_size": 24,
         "output_embedding_size": 24}, FIT(1e-3, o.linear_down, **DECAY, clip=1.0)), "EuroBert":
         (FOUR, FIT(5e-4, o.warm_up, **DECAY)), "Canine": ({"num_hash_buckets": 128,
         "local_transformer_stride": 8}, FIT(1e-3, o.linear_down, **DECAY, clip=1.0, batch=8)),
         "Nystromformer": ({"segment_means_seq_len": 40, "num_landmarks": 8}, FIT(1e-3, o.cosine,
         **DECAY)), "MegatronBert": ({}, FIT(5e-4, o.warm_up, **DECAY, clip=1.0))}.items()),
    one("marian", partial(hf, "MarianMTModel", d_model=48, vocab_size=128, **SEQ, pad_token_id=0,
         max_position_embeddings=40, decoder_start_token_id=0), TEXT, lambda m, x: told(m, x, (x +
         5) % 128), FIT(2e-3, o.ramp, betas=(0.9, 0.98), clip=5.0), "Marian"),
)  # fmt: skip
