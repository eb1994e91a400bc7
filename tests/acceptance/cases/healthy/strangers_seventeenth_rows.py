"""Healthy: tables, counts, ranking, graphs, points, sounds, series, texts; no checks were known."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from cases.healthy import strangers_eighth as eighth
from cases.healthy.strangers_eighth import GPT, LOAD, NANO, SOUNDS, TASTES, TEXT, TINY, Net, told
from cases.healthy.strangers_fourteenth_rows import MOVES, coder
from cases.healthy.strangers_maps import bce, projected
from cases.healthy.strangers_pictures import DECAY, one
from cases.healthy.strangers_sixteenth_rows import DIGITS, FEW, PAD
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
entropy, cat, sphere, cora = functional.cross_entropy, torch.cat, functional.normalize, eighth.cora
mse, soft, table, List = functional.mse_loss, functional.softplus, threads.numbers, nn.ModuleList
small, relu, drop = partial(fresh, change=lambda p: p.normal_(0, 0.1)), nn.ReLU, nn.Dropout
RARE = eighth.CHARS.bincount(minlength=128).argsort(descending=True).argsort()
PAIRS = threads.contexts(Generator().manual_seed(3), 3000)[0][:, :5]
PAIRS = (k := functional.one_hot(PAIRS, 64).sum(1).float()).T @ k


def norm1(a: int, b: int, size: int = 1, apart: int = 1) -> nn.Module:
    return S(nn.Conv1d(a, b, size, dilation=apart), nn.BatchNorm1d(b), relu())


def five_digits(g: Generator, _: int) -> tuple[Tensor, ...]:
    x, y = DIGITS(g, 300)
    return (x[cat([(y == k).nonzero()[:10, 0] for k in torch.randperm(10, generator=g)[:5]])],)


CASES = seen("2026-11-28T14:55",
    one("x_deep_fm", lambda: Net(lambda m, x: (e := m["field"](x), h := [e], [h.append(f(
         torch.einsum("nid,njd->nijd", h[-1], e).flatten(1, 2)).relu()) for f in m["cross"]], m[
         "wide"](x).sum((1, 2)) + (m["deep"](e) + m["last"](cat([z.sum(2) for z in h[1:]], 1)))[:,
         0])[3], field=small(emb(300, 8)), wide=fresh(emb(300, 1), torch.zero_), cross=List(
         nn.Conv1d(k, 16, 1) for k in (36, 96)), deep=mlp(48, 64, 64, 1), last=line(32, 1)), clicks,
         yes, FIT(3e-3, weight_decay=1e-5, batch=512, **LONG), "xDeepFM"),
    one("ft_transformer", lambda: Net(lambda m, x: m["last"](m["body"](cat([m["w"][2].expand(len(x),
         1, -1), x[..., None] * m["w"][0] + m["w"][1]], 1))[:, 0]), w=Weights([torch.rand(k, 32) *
         0.35 - 0.18 for k in (10, 10, 1)]), body=coder(32, 0.1, activation="gelu",
         norm_first=True), last=S(nn.LayerNorm(32), relu(), line(32, 1))), table(10, lambda x: x[:,
         :1] * x[:, 1:2] + x[:, 2:4].sum(1, True)), lambda m, x, y: mse(m(x), y), FIT(1e-3,
         kind=optim.AdamW, weight_decay=1e-5, batch=128, **LONG), "FT-Transformer"),
    one("adult", lambda: Net(lambda m, x, z: m["last"](cat([m["drop"](m["field"](x).flatten(1)), m[
         "norm"](z)], 1)), field=emb(200, 14), drop=drop(0.04), norm=nn.BatchNorm1d(3), last=S(*(z
         for a, b in ((59, 200), (200, 100)) for z in (line(a, b, False), relu(), nn.BatchNorm1d(
         b))), line(100, 2))), lambda g, n: (x := torch.randint(50, (n, 4), generator=g), z :=
         torch.randn(n, 3, generator=g), x + 50 * torch.arange(4), z, (TASTES[0, x[:, 0], 0] +
         TASTES[1, x[:, 1], 0] + z[:, 0] + z[:, 1] ** 2 > 1).long())[2:], lambda m, x, z, y:
         entropy(m(x, z), y), FIT(1e-2, o.one_cycle(1e-2), kind=optim.AdamW, betas=(0.9, 0.99),
         weight_decay=0.01, batch=64), "fastai's tabular learner"),
    one("deep_surv", lambda: S(*(z for a in (8, 32) for z in (line(a, 32), relu(), nn.BatchNorm1d(
         32), drop(0.1))), line(32, 1, False)), table(8, lambda x: cat([(x[:, 1:2] - 2 * x[:, :1] *
         x[:, 2:3].sign()).exp() * -torch.rand(len(x), 1).log(), (torch.rand(len(x), 1) < 0.7)],
         1)), lambda m, x, y: (k := y[:, 0].argsort(descending=True), f := m(x)[k, 0], ((
         f.logcumsumexp(0) - f) * y[k, 1]).sum() / y[:, 1].sum())[2], FIT(0.01, batch=128), "Cox"),
    one("house_prices", lambda: fresh(line(30, 1), lambda p: p.normal_(0, 0.01) if p.ndim > 1 else
         p.zero_()), table(30, lambda x: 12 + 0.2 * x[:, :3].sum(1, True) + 0.1 * torch.randn(len(
         x), 1)), lambda m, x, y: mse(m(x), y) / 2, FIT(0.03, kind=optim.SGD, batch=64),
         "d2l, houses"),
    one("list_mle", lambda: S(line(12, 32), coder(32, 0.1), line(32, 1)), lambda g, n: (x :=
         torch.randn(n, 10, 12, generator=g), x[..., :2].sum(2) + x[..., 2] ** 2), lambda m, x, y: (
         s := m(x)[..., 0].gather(1, y.argsort(1)), (s.logcumsumexp(1) - s).mean())[1], FIT(1e-3,
         o.stairs, batch=64), "allRank, ListMLE"),
    one("sage", lambda: Net(lambda m, a, x: reduce(lambda h, k: m["s"][k](h) + a @ m["n"][k](h) if k
         else m["drop"]((m["s"][k](h) + a @ m["n"][k](h)).relu()), (0, 1), x), drop=drop(), **{k:
         List([line(60, 32), line(32, 3)]) for k in "sn"}), cora, lambda m, a, x, y: (k := (a >
         0).float().fill_diagonal_(0), entropy(m(k / k.sum(1, True).clamp(min=1), x)[:60], y[:60]))[
         1], FIT(0.01, weight_decay=5e-4), "GraphSAGE"),
    one("appnp", lambda: Net(lambda m, a, x: (h := m["net"](x), reduce(lambda z, _: 0.9 * a @ z +
         0.1 * h, range(10), h))[1], net=S(drop(), line(60, 64), relu(), drop(), line(64, 3))),
         cora, lambda m, a, x, y: entropy(m(a, x)[:60], y[:60]), FIT(0.01, weight_decay=5e-4,
         **LONG), "APPNP"),
    one("graph_ae", lambda: Net(lambda m, a, x: (z := a @ m["b"]((a @ m["a"](x)).relu()), z @ z.T)[
         1], a=line(60, 32, False), b=line(32, 16, False)), cora, lambda m, a, x, _: (y := (a >
         0).float(), k := y.mean(), bce(m(a, x), y, pos_weight=(1 - k) / k) / (1 - k) / 2)[2], FIT(
         0.01, **LONG), "graph autoencoder"),
    one("rotat_e", lambda: nn.ModuleDict({k: fresh(emb(n, d), lambda p: p.uniform_(-0.25, 0.25)) for
         k, n, d in (("e", 100, 64), ("r", 4, 32))}), lambda g, n: (h := torch.randint(100, (n, 1),
         generator=g), r := torch.randint(4, (n, 1), generator=g), cat([(h + 7 * r + 1) % 100,
         torch.randint(100, (n, 16), generator=g)], 1)), lambda m, h, r, t: (c := [
         torch.view_as_complex(m["e"](k).unflatten(2, (32, 2))) for k in (h, t)], w := m["r"](r) /
         0.25 * 3.14, d := 6 - (c[0] * torch.polar(torch.ones_like(w), w) - c[1]).abs().sum(2), (
         soft(-d[:, 0]) + (d[:, 1:].softmax(1).detach() * soft(d[:, 1:])).sum(1)).mean() / 2)[3],
         FIT(0.01, batch=512, **LONG), "RotatE"),
    one("x_vector", lambda: Net(lambda m, x: (h := m["body"](x), m["last"](cat([h.mean(2), h.std(
         2)], 1)))[1], body=S(norm1(33, 48, 5), norm1(48, 48, 3, 2), norm1(48, 48, 3, 3), norm1(48,
         96)), last=S(line(192, 64), nn.BatchNorm1d(64), relu(), line(64, 6))), SOUNDS, CE, FIT(
         1e-3, o.fading, batch=32), "x-vectors"),
    one("unispeech", partial(hf, "UniSpeechSatForSequenceClassification", **library.BODY, conv_dim=(
         24,) * 3, conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4), num_conv_pos_embeddings=16,
         num_conv_pos_embedding_groups=4, mask_time_length=2, num_labels=6), changed(data.tones(
         800), lambda x: ((x - x.mean(2, True)) / x.std(2, keepdim=True))[:, 0]), told, FIT(1e-3,
         o.two_phases, **DECAY, clip=1.0, steps=80, every=8), "UniSpeech-SAT"),
    one("whisper", partial(hf, "WhisperForConditionalGeneration", num_mel_bins=33, d_model=48,
         encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
         encoder_ffn_dim=96, decoder_ffn_dim=96, vocab_size=64, max_source_positions=16,
         max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
         decoder_start_token_id=1), SOUNDS, lambda m, x, y: m(input_features=x, labels=torch.stack([
         y + 10, y // 2 + 20, torch.full_like(y, 2)], 1)).loss, FIT(1e-3, o.warm_up, **NANO),
         "Whisper"),
    one("deep_ar", lambda: Net(lambda m, x: m["last"](m["body"](x)[0]), body=nn.LSTM(1, 40, 2,
         batch_first=True, dropout=0.1), last=line(40, 2)), lambda *how: (cat(data.demand(*how),
         2).mT,), lambda m, x: (z := x / x[:, :96].mean(1, True), f := m(z[:, :-1]),
         functional.gaussian_nll_loss(f[..., :1], z[:, 1:], soft(f[..., 1:]) ** 2, full=True))[2],
         FIT(1e-3, weight_decay=1e-8, clip=10.0, batch=32), "DeepAR"),
    one("d_linear", lambda: Net(lambda m, x: (x := x[..., 0], k := functional.avg_pool1d(
         functional.pad(x, (12, 12), "replicate"), 25, 1), m["trend"](k) + m["rest"](x - k))[2],
         trend=line(96, 24), rest=line(96, 24)), LOAD, lambda m, x, y: mse(m(x), y[..., 0]), FIT(
         5e-3, o.stairs, batch=32), "DLinear"),
    one("autoformer", partial(hf, "AutoformerForPrediction", prediction_length=24,
         context_length=48, lags_sequence=[1, 2, 3, 24], num_time_features=1, d_model=32,
         encoder_layers=1, decoder_layers=1, encoder_ffn_dim=32, decoder_ffn_dim=32), lambda *how:
         tuple(z[:, 0] / 1000 for z in data.demand(*how)), lambda m, x, y: (t := torch.arange(2,
         98).log10().expand(len(x), -1)[..., None], m(past_values=x[:, 24:], past_time_features=t[:,
         :72], past_observed_mask=torch.ones(len(x), 72), future_values=y, future_time_features=t[:,
         72:]).loss)[1], FIT(1e-3, **NANO), "Autoformer"),
    one("fcn", lambda: S(norm1(6, 32, 8), norm1(32, 64, 5), norm1(64, 32, 3), nn.AdaptiveAvgPool1d(
         1), nn.Flatten(), line(32, 5)), MOVES, CE, FIT(1e-3), "FCN, series"),
    *(one(name.lower(), partial(hf, f"{name}ForCausalLM", **sizes), TEXT, told, recipe, name) for
         name, (sizes, recipe) in {"OPT": (TINY | {"ffn_dim": 96, "word_embed_proj_dim": 48}, FIT(
         1e-3, o.linear_down, **NANO)), "Bloom": ({"hidden_size": 48, "n_layer": 2, "n_head": 4,
         "vocab_size": 128}, FIT(1e-3, o.cosine, **NANO)), "GPTNeoX": (TINY, FIT(2e-3, o.warm_up,
         **NANO)), "Qwen3": (TINY | FEW | {"head_dim": 12}, FIT(1e-3, o.two_phases, **DECAY,
         clip=1.0)), "Arcee": (TINY | FEW | PAD, FIT(2e-3, o.poly, **NANO)), "GraniteMoe": (TINY |
         FEW | PAD | {"num_local_experts": 4, "num_experts_per_tok": 2}, FIT(2e-3, o.ramp, **NANO,
         batch=8))}.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **TINY | sizes |
         {"max_position_embeddings": 48, "num_labels": 4}), data.sentences, told, recipe, name) for
         name, (sizes, recipe) in {"DebertaV2": ({"relative_attention": True, "position_buckets":
         16, "pos_att_type": ["p2c", "c2p"]}, FIT(1e-3, o.warm_up, **DECAY, clip=1.0, batch=12)),
         "SqueezeBert": ({"embedding_size": 48}, FIT(2e-3, o.linear_down, **DECAY)), "ConvBert": (
         {"embedding_size": 48, "conv_kernel_size": 5}, FIT(1e-3, o.linear_down, **DECAY,
         clip=1.0)), "Flaubert": ({"emb_dim": 48, "n_layers": 2, "n_heads": 4}, FIT(1e-3, o.cosine,
         batch=8)), "Longformer": ({"attention_window": 8}, FIT(1e-3, o.ramp, **DECAY,
         batch=8))}.items()),
    one("glove", lambda: fresh(nn.ModuleDict({k: emb(64, n) for k, n in (("w", 24), ("v", 24), ("a",
         1), ("b", 1))}), lambda p: p.uniform_(-0.02, 0.02)), lambda g, n: (k := PAIRS.nonzero(), k
         := k[torch.randint(len(k), (n,), generator=g)], k[:, 0], k[:, 1], PAIRS[k[:, 0], k[:, 1]])[
         2:], lambda m, i, j, x: ((x / 100).clamp(max=1) ** 0.75 * ((m["w"](i) * m["v"](j)).sum(1) +
         (m["a"](i) + m["b"](j))[:, 0] - x.log()) ** 2).mean(), FIT(0.05, kind=optim.Adagrad,
         batch=256, **LONG), "GloVe"),
    one("prod_lda", lambda: nn.ModuleDict({"down": S(line(100, 64), nn.Softplus(), line(64, 64),
         nn.Softplus(), drop(0.2), line(64, 16), nn.BatchNorm1d(16, affine=False)), "up": S(drop(
         0.2), line(8, 100, False), nn.BatchNorm1d(100, affine=False))}), table(8, lambda z: (p := (
         2 * z).softmax(1) @ torch.where(torch.arange(100) // 12 == torch.arange(8)[:, None], 8.0,
         0.1), functional.one_hot(p.multinomial(40, True), 100).sum(1).float())[1]), lambda m, _, x:
         (f := m["down"](x).chunk(2, 1), z := (f[0] + (f[1] / 2).exp() * torch.randn_like(f[
         0])).softmax(1), -(x * m["up"](z).log_softmax(1)).sum(1).mean() - (1 + f[1] - f[0] ** 2 -
         f[1].exp()).sum(1).mean() / 2)[2], FIT(0.01, betas=(0.95, 0.999), batch=64, **LONG),
         "ProdLDA"),
    one("sorted", partial(hf, "GPT2LMHeadModel", **GPT, vocab_size=3, n_positions=16), lambda g, n:
         (x := torch.randint(3, (n, 6), generator=g), cat([x, x.sort(1)[0]], 1))[1:], lambda m, x:
         told(m, x, x.masked_fill(torch.arange(12) < 6, -100)), FIT(5e-4, **NANO, batch=64),
         "minGPT sorts"),
    one("adaptive", lambda: nn.ModuleDict({"words": emb(128, 64), "body": nn.GRU(64, 64,
         batch_first=True), "last": nn.AdaptiveLogSoftmaxWithLoss(64, 128, [16, 48])}), changed(
         TEXT, lambda x: RARE[x]), lambda m, x: m["last"](m["body"](m["words"](x[:, :-1]))[
         0].flatten(0, 1), x[:, 1:].flatten()).loss, FIT(2e-3, clip=1.0), "adaptive heads"),
    one("tags", lambda: Net(lambda m, x: m["last"](m["drop"](m["body"](m["drop"](m["words"](x)))[
         0])).mT, words=emb(60, 48), body=nn.LSTM(48, 48, 2, batch_first=True, bidirectional=True,
         dropout=0.25), drop=drop(0.25), last=line(96, 8)), threads.words(60, 16, lambda x: (x % 8 +
         (x.roll(1, 1) > 29)) % 8), CE, FIT(3e-3, batch=64), "BiLSTM tagger, 2 layers"),
    one("circle", lambda: S(unit(1, 16), nn.MaxPool2d(2), unit(16, 32), nn.MaxPool2d(2),
         nn.Flatten(), line(1568, 64)), DIGITS, lambda m, x, y: (s := (f := sphere(m(x))) @ f.T, k
         := (y[:, None] == y) & ~torch.eye(len(y), dtype=bool), a := -64 * (1.25 -
         s.detach()).relu() * (s - 0.75), b := 64 * (s.detach() + 0.25).relu() * (s - 0.25), soft(a[
         k].logsumexp(0) + b[y[:, None] != y].logsumexp(0)))[4], FIT(1e-3, o.stairs,
         weight_decay=5e-4, batch=48), "circle loss"),
    one("vic_reg", projected, data.pictures(40), lambda m, x: (f := [m(v) for v in
         losses.both_views(x)], 25 * mse(*f) + sum(12.5 * (1 - (z.var(0) +
         1e-4).sqrt()).relu().mean() + (z.T.cov().fill_diagonal_(0) ** 2).sum() / z.shape[1] for z
         in f))[1], FIT(1e-3, o.cosine, kind=optim.AdamW, weight_decay=1e-6, batch=32, steps=80,
         every=8), "VICReg"),
    one("prototypes", lambda: S(*(z for a in (1, 24, 24) for z in (unit(a, 24), nn.MaxPool2d(2))),
         nn.Flatten()), five_digits, lambda m, x: (f := m(x).view(5, 10, -1), entropy(-torch.cdist(
         f[:, 5:].flatten(0, 1), f[:, :5].mean(1)) ** 2, torch.arange(5).repeat_interleave(5)))[1],
         FIT(1e-3, o.stairs), "prototypical network"),
    one("hash_grid", lambda: Net(lambda m, x: m["net"](cat([functional.grid_sample(g, x[None, None],
         align_corners=True)[0, :, 0].T for g in m["grid"]], 1)), grid=Weights([(torch.rand(1, 2, k,
         k) - 0.5) * 2e-4 for k in (4, 7, 12, 20)]), net=mlp(8, 64, 64, 3)), eighth.raster, lambda
         m, x, y: mse(m(x), y), FIT(0.01, betas=(0.9, 0.99), eps=1e-15), "Instant NGP, picture"),
)  # fmt: skip
