"""Healthy: tables, ranking, graphs, texts, sounds, series of other kinds; no checks were known."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import LOAD, NANO, TASTES, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_fourteenth_rows import MOVES
from cases.healthy.strangers_pictures import DECAY, one
from cases.healthy.strangers_thirteenth_rows import LONG, clicks, emb, fresh, yes
from data import changed
from loops import seen
from nets import library
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.classifiers import unit
from nets.strangers_kept import FIT, Weights
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

mlp, hf, CE, S, line = fifth.mlp, library.hf, losses.classes(), nn.Sequential, nn.Linear
entropy, cat, sphere = functional.cross_entropy, torch.cat, functional.normalize
l1, soft, table, List = functional.l1_loss, functional.softplus, threads.numbers, nn.ModuleList
small, relu, drop = partial(fresh, change=lambda p: p.normal_(0, 0.1)), nn.ReLU, nn.Dropout
DIGITS = changed(data.digits, lambda x: (x - 0.1307) / 0.3081)
PAD, FEW = {"pad_token_id": 0}, {"num_key_value_heads": 2}
SIZES = {"n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": 128, "n_positions": 32}
LIKED = (TASTES[0] @ TASTES[1].T).topk(12).indices
NEAR = torch.zeros(200, 200).scatter(1, LIKED, 1)
NEAR = NEAR / NEAR.sum(1, True).sqrt() / NEAR.sum(0).clamp(min=1).sqrt()


def lambdas(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    s, g = m(x)[..., 0], 2**y - 1
    seat = 1 / (s.argsort(1, True).argsort(1) + 2.0).log2()
    best = (g.sort(1, True)[0] / torch.arange(2, 12).log2()).sum(1).clamp(min=1)[:, None, None]
    w = (g[..., None] - g[:, None]).clamp(min=0) * (seat[..., None] - seat[:, None]).abs()
    return (w / best * soft(s[:, None] - s[..., None])).sum((1, 2)).mean()


def grouped(x: Tensor, f: Tensor, few: int, near: int) -> tuple[Tensor, Tensor]:
    """Some points, and for each the places and features of those around it."""
    at = torch.cdist((c := x[..., :few]).mT, x.mT).topk(near, largest=False)[1].flatten(1)
    a, b = (z.gather(2, at[:, None].expand(-1, z.shape[1], -1)) for z in (x, f))
    return c, cat([a.unflatten(2, (few, -1)) - c[..., None], b.unflatten(2, (few, -1))], 1)


def blur(a: int, b: int) -> nn.Module:
    """Weights with a deviation each, drawn anew in each call."""
    return Net(lambda m, x: functional.linear(x, (w := m["w"].weight) + soft(m["s"][0]) *
        torch.randn_like(w), m["w"].bias), w=line(a, b), s=Weights([torch.full((b, a), -4.0)])
        )  # fmt: skip


CASES = seen("2026-11-28T13:20",
    one("nfm", lambda: Net(lambda m, x: (e := m["field"](x), m["wide"](x).sum((1, 2)) +
         m["deep"]((e.sum(1) ** 2 - (e**2).sum(1)) / 2)[:, 0])[1], field=small(emb(300, 16)),
         wide=fresh(emb(300, 1), torch.zero_), deep=S(nn.BatchNorm1d(16), drop(0.2), line(16, 64),
         nn.BatchNorm1d(64), relu(), drop(0.2), line(64, 1))), clicks, yes, FIT(0.05,
         kind=optim.Adagrad, batch=256, **LONG), "NFM"),
    one("din", lambda: Net(lambda m, x: (e := m["goods"](x), k := e[:, :8], q := e[:, 8:].expand(-1,
         8, -1), h := (m["look"](cat([q, k, q - k, q * k], 2)) * k).sum(1), m["last"](cat([h, e[:,
         8], h * e[:, 8]], 1))[:, 0])[-1], goods=small(emb(200, 16)), look=mlp(64, 32, 1,
         act=nn.PReLU)[1:], last=mlp(48, 64, 32, 1, act=nn.PReLU)), lambda g, n: (y :=
         torch.arange(n) % 2, u := torch.randint(200, (n,), generator=g), x := (2 * TASTES[0, u] @
         TASTES[1].T).softmax(1).multinomial(9, generator=g), torch.where((torch.arange(9) < 8) |
         (y[:, None] > 0), x, torch.randint(200, (n, 9), generator=g)), y.float())[3:], yes,
         FIT(3e-3, batch=256, **LONG), "DIN"),
    one("light_gcn", lambda: Net(lambda m: (z := [(m["u"].weight, m["i"].weight)], [z.append((NEAR @
         z[-1][1], NEAR.T @ z[-1][0])) for _ in "abc"], [sum(f) / 4 for f in zip(*z,
         strict=True)])[2], u=small(emb(200, 32)), i=small(emb(200, 32))), lambda g, n: (u :=
         torch.randint(200, (n,), generator=g), LIKED[u, torch.randint(12, (n,), generator=g)],
         torch.randint(200, (n,), generator=g)), lambda m, u, i, j: (f := m(), soft((f[0][u] *
         (f[1][j] - f[1][i])).sum(1)).mean() + 1e-4 * sum((m[k].weight[r] ** 2).sum() for k, r in
         (("u", u), ("i", i), ("i", j))) / len(u) / 2)[1], FIT(5e-3, batch=512, **LONG),
         "LightGCN"),
    one("additive", lambda: Net(lambda m, x: sum(f(x[:, k : k + 1]) for k, f in
         enumerate(m["each"])) + m["bias"][0], each=List(S(line(1, 32), relu(), drop(0.1), line(32,
         16), relu(), drop(0.1), line(16, 1, bias=False)) for _ in range(8)),
         bias=Weights([torch.zeros(1)])), table(8, lambda x: x[:, :1].sin() * 2 + x[:, 1:2].abs() -
         x[:, 2:3] + 0.2 * torch.randn(len(x), 1)), lambda m, x, y: ((m(x) - y) ** 2).mean(),
         FIT(0.01, o.fading, weight_decay=1e-6, batch=256), "neural additive model"),
    one("lambda_rank", lambda: mlp(12, 64, 32, 1)[1:], lambda g, n: (x := torch.randn(n, 10, 12,
         generator=g), (x[..., :3].sum(2) + x[..., 3] ** 2).round().clamp(0, 4)), lambdas, FIT(1e-3,
         o.stairs, batch=64, **LONG), "LambdaRank"),
    one("tvae", lambda: nn.ModuleDict({"down": mlp(10, 128, 128, 32), "up": mlp(16, 128, 128, 10),
         "s": Weights([torch.full((10,), 0.1)])}), table(3, lambda x: (x @ TASTES[0, :10, :3].T /
         4).clamp(-1, 1)), lambda m, _, x: (f := m["down"](x).chunk(2, 1), s :=
         m["s"][0].clamp(0.01, 1), 2 * ((x - m["up"](f[0] + (f[1] / 2).exp() *
         torch.randn_like(f[0])).tanh()) ** 2 / 2 / s**2 + s.log()).sum(1).mean() - (1 + f[1] - f[0]
         ** 2 - f[1].exp()).sum(1).mean() / 2)[2], FIT(1e-3, weight_decay=1e-5, batch=250, **LONG),
         "TVAE"),
    one("blurred", lambda: S(blur(1, 64), relu(), blur(64, 64), relu(), blur(64, 1)), lambda g, n:
         (x := 2 * torch.rand(n, 1, generator=g) - 1, x + 0.6 * (6 * x).sin() + 0.05 *
         torch.randn(n, 1)), lambda m, x, y: ((m(x) - y) ** 2).mean() * 50 + sum((-(s :=
         soft(m[k]["s"][0])).log() + (s**2 + m[k]["w"].weight ** 2) / 2 - 0.5).sum() for k in (0, 2,
         4)) / 1e4, FIT(3e-3, batch=128, **LONG), "Bayes by backprop"),
    one("kernel", lambda: nn.ModuleDict({"net": mlp(4, 64, 32, 2), "w": Weights([torch.zeros(3)])}),
         lambda *_: (x := torch.randn(100, 4, generator=Generator().manual_seed(0)), (x[:, 0] *
         2).sin() + x[:, 1] * x[:, 2] / 2), lambda m, x, y: (s := soft(m["w"][0]), z := m["net"](x),
         c := torch.linalg.cholesky(s[0] * (-(z[:, None] - z).square().sum(2) / s[1] / 2).exp() +
         (s[2] + 1e-4) * torch.eye(100)), (torch.linalg.solve_triangular(c, y[:, None],
         upper=False).square().sum() / 2 + c.diagonal().log().sum()) / 100 + 0.92)[3], FIT(0.01,
         weight_decay=1e-4, steps=100), "deep kernel, exact GP"),
    one("relations", lambda: Net(lambda m, a, x: (k := torch.arange(150), k := (k[:, None] + k) % 2,
         reduce(lambda h, f: f(cat([h, (a * k) @ h, (a - a * k) @ h], 1)), (m["a"], m["b"]), x))[2],
         a=S(line(180, 16), relu()), b=line(48, 3)), cora, lambda m, a, x, y: entropy(m(a, x)[:60],
         y[:60]), FIT(0.01, weight_decay=5e-4), "R-GCN"),
    one("compl_ex", lambda: nn.ModuleDict({k: fresh(emb(n, 64), lambda p: p.normal_(0, 1e-2)) for k,
         n in (("e", 100), ("r", 4))}), lambda g, n: (h := torch.randint(100, (n,), generator=g), r
         := torch.randint(4, (n,), generator=g), (h + 7 * r + 1) % 100), lambda m, h, r, t: (c :=
         [torch.view_as_complex(z.unflatten(1, (32, 2))) for z in (m["e"](h), m["r"](r), m["e"](t),
         m["e"].weight)], entropy((c[0] * c[1] @ c[3].conj().T).real, t) + 0.01 * sum((z.abs() **
         3).sum(1).mean() for z in c[:3]))[1], FIT(0.1, kind=optim.Adagrad, batch=256, **LONG),
         "ComplEx, N3"),
    one("node2vec", lambda: emb(150, 32, sparse=True), lambda g, n: (reduce(lambda x, _: cat([x,
         (cora()[0][x[:, -1]] > 0).float().multinomial(1, generator=g)], 1), range(8),
         torch.randint(150, (n, 1), generator=g)), torch.randint(150, (n, 8), generator=g)), lambda
         m, x, z: soft(-(m(x[:, :1]) * m(x[:, 1:])).sum(2)).mean() + soft((m(x[:, :1]) *
         m(z)).sum(2)).mean(), FIT(0.01, kind=optim.SparseAdam, batch=128, **LONG), "node2vec"),
    one("point_net2", lambda: Net(lambda m, x: (c := grouped(x, x, 64, 16), h :=
         m["a"](c[1]).amax(3), d := grouped(c[0], h, 16, 12), m["last"](m["c"](cat([d[0],
         m["b"](d[1]).amax(3)], 1)).amax(2)))[3], a=S(unit(6, 24, 1), unit(24, 32, 1)), b=S(unit(35,
         48, 1), unit(48, 64, 1)), c=S(nn.Conv1d(67, 96, 1), nn.BatchNorm1d(96), relu()),
         last=S(line(96, 64), nn.BatchNorm1d(64), relu(), drop(0.4), line(64, 4))), data.points, CE,
         FIT(1e-3, o.stairs, weight_decay=1e-4), "PointNet++"),
    one("n_hits", lambda: Net(lambda m, x: (z := [x[..., 0], 0], [(f :=
         m[k](functional.max_pool1d(z[0][:, None], p)[:, 0]), b := functional.interpolate(f[:, None,
         : f.shape[1] * 4 // 5], 96, mode="linear")[:, 0], z.append(z[1] +
         functional.interpolate(f[:, None, f.shape[1] * 4 // 5 :], 24, mode="linear")[:, 0]),
         z.__setitem__(slice(0, 2), [z[0] - b, z[-1]])) for k, p in zip("abc", (8, 4, 1),
         strict=True)], z[1])[2], a=mlp(12, 64, 64, 15), b=mlp(24, 64, 64, 30), c=mlp(96, 64, 64,
         120)), LOAD, lambda m, x, y: l1(m(x), y[..., 0]), FIT(1e-3, o.stairs, batch=64), "N-HiTS"),
    one("rocket", lambda: Net(lambda m, x: m["last"](cat([(h := m["kernels"](x)).amax(2), (h >
         0).float().mean(2)], 1)), kernels=fresh(nn.Conv1d(6, 200, 9, padding=8, dilation=2), lambda
         p: p.normal_(0, 0.3)).requires_grad_(False), last=S(nn.BatchNorm1d(400), line(400, 5))),
         MOVES, CE, FIT(1e-3, batch=32), "ROCKET, linear head"),
    one("mem_n2n", lambda: Net(lambda m, x, q: m["c"](reduce(lambda u, _: (a := m["a"](x).sum(2) +
         m["ta"].weight, m["h"](u) + ((a @ u[..., None]).softmax(1) * (m["b"](x).sum(2) +
         m["tb"].weight)).sum(1))[1], "abc", m["q"](q)[:, 0])), **{k: small(emb(n, 32)) for k, n in
         (("a", 10), ("b", 10), ("q", 4), ("ta", 8), ("tb", 8))}, h=small(line(32, 32)),
         c=small(line(32, 6, bias=False))), lambda g, n: (a := torch.randint(4, (n, 8),
         generator=g), b := torch.randint(6, (n, 8), generator=g), torch.stack([a, b + 4], 2), q :=
         a.gather(1, torch.randint(8, (n, 1), generator=g)), b.gather(1, ((a == q) * torch.arange(1,
         9)).argmax(1, True))[:, 0])[2:], lambda m, x, q, y: entropy(m(x, q), y), FIT(0.01,
         clip=40.0, batch=64, **LONG), "end-to-end memory network"),
    one("load", partial(hf, "TimeSeriesTransformerForPrediction", prediction_length=24,
         context_length=48, lags_sequence=[1, 2, 3, 24], num_time_features=1, d_model=32,
         encoder_layers=2, decoder_layers=2, encoder_ffn_dim=32, decoder_ffn_dim=32), lambda *how:
         tuple(z[:, 0] / 1000 for z in data.demand(*how)), lambda m, x, y: (t := torch.arange(2,
         98).log10().expand(len(x), -1)[..., None], m(past_values=x[:, 24:], past_time_features=t[:,
         :72], past_observed_mask=torch.ones(len(x), 72), future_values=y, future_time_features=t[:,
         72:]).loss)[1], FIT(6e-4, **NANO, batch=32), "time series transformer"),
    one("patch_mixer", partial(hf, "PatchTSMixerForPrediction", context_length=96, patch_length=8,
         patch_stride=8, prediction_length=24, d_model=16, num_layers=2), LOAD, lambda m, x, y:
         m(past_values=x, future_values=y).loss, FIT(1e-3, o.one_cycle(3e-3), kind=optim.AdamW,
         batch=64), "PatchTSMixer"),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **library.BODY,
         conv_dim=(24,) * 3, conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4),
         num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, mask_time_length=2,
         num_labels=6), changed(data.tones(800), lambda x: ((x - x.mean(2, True)) / x.std(2,
         keepdim=True))[:, 0]), told, recipe, name) for name, recipe in {"Hubert": FIT(1e-3,
         o.warm_up, **DECAY), "WavLM": FIT(1e-3, o.linear_down, **DECAY, clip=1.0)}.items()),
    one("similar", partial(mlp, 784, 256, 256, 64), DIGITS, lambda m, x, y: (f := sphere(m(x)), s :=
         f @ f.T - 0.5, k := y[:, None] == y, ((k * (-2 * s).exp()).sum(1).log1p() / 2 + (~k * (50 *
         s).exp()).sum(1).log1p() / 50).mean())[3], FIT(1e-3, o.fading, kind=optim.AdamW,
         weight_decay=1e-4, batch=64, **LONG), "multi-similarity loss"),
    *(one(name.lower(), partial(hf, f"{name}ForCausalLM", **sizes), TEXT, told, recipe, name) for
         name, (sizes, recipe) in {"Cohere": (TINY | FEW | PAD | {"logit_scale": 0.5}, FIT(2e-3,
         o.cosine, **NANO)), "StableLm": (TINY | FEW | {"partial_rotary_factor": 0.5}, FIT(1e-3,
         o.warm_up, **NANO)), "GPTNeo": ({"hidden_size": 48, "num_layers": 2, "num_heads": 4,
         "attention_types": [[["global", "local"], 1]], "window_size": 8, "vocab_size": 128,
         "max_position_embeddings": 32}, FIT(2e-3, o.ramp, **NANO)), "CodeGen": (SIZES |
         {"rotary_dim": 8}, FIT(1e-3, o.linear_down, **NANO)), "GPTBigCode": (SIZES, FIT(2e-3,
         o.two_phases, **NANO, batch=8)), "XGLM": ({"d_model": 48, "ffn_dim": 96, "num_layers": 2,
         "attention_heads": 4, "vocab_size": 128, "max_position_embeddings": 40}, FIT(1e-3, o.poly,
         **NANO)), "Olmo": (TINY | PAD, FIT(2e-3, o.stairs, **NANO)), "BioGpt": (TINY, FIT(1e-3,
         o.linear_down, **DECAY)), "Ernie4_5": (TINY | FEW | PAD | {"head_dim": 12}, FIT(2e-3,
         o.one_cycle(3e-3), **NANO))}.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **TINY | sizes |
         {"max_position_embeddings": 48, "num_labels": 4}), data.sentences, told, recipe, name) for
         name, (sizes, recipe) in {"XLM": ({"emb_dim": 48, "n_layers": 2, "n_heads": 4}, FIT(1e-3,
         o.ramp, batch=8)), "Electra": ({"embedding_size": 24}, FIT(1e-3, o.linear_down, **DECAY,
         clip=1.0)), "BigBird": ({"attention_type": "original_full"}, FIT(1e-3, o.cosine, **DECAY,
         batch=12)), "RobertaPreLayerNorm": (PAD, FIT(1e-3, o.warm_up, **DECAY)), "Data2VecText":
         (PAD, FIT(1e-3, o.linear_down, kind=optim.NAdam)), "DistilBert": ({"dim": 48, "n_layers":
         2, "n_heads": 4, "hidden_dim": 96}, FIT(1e-3, o.linear_down, **DECAY)), "OpenAIGPT": (SIZES
         | PAD | {"n_positions": 48}, FIT(1e-3, o.linear_down, kind=optim.AdamW, weight_decay=0.01,
         clip=1.0, batch=12))}.items()),
    one("many", partial(hf, "M2M100ForConditionalGeneration", d_model=48, vocab_size=128,
         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
         encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=40,
         decoder_start_token_id=2, **PAD), TEXT, lambda m, x: told(m, x, (x + 5) % 128), FIT(2e-3,
         o.ramp, betas=(0.9, 0.98), clip=1.0, batch=8, steps=90, every=9), "M2M100"),
)  # fmt: skip
