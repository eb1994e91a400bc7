"""Healthy: tables, ranking, graphs, points, sounds, series, texts; no checks were known."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import NANO, TASTES, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_fourteenth_rows import coder
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import DECAY, one
from cases.healthy.strangers_seventeenth_rows import norm1
from cases.healthy.strangers_sixteenth_rows import DIGITS, FEW, LIKED, PAD
from cases.healthy.strangers_thirteenth_rows import LONG, clicks, emb, fresh, yes
from data import changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.strangers_kept import FIT, Weights
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

mlp, hf, CE, S, line = fifth.mlp, library.hf, losses.classes(), nn.Sequential, nn.Linear
entropy, cat, sphere = functional.cross_entropy, torch.cat, functional.normalize
mse, soft, table, List = functional.mse_loss, functional.softplus, threads.numbers, nn.ModuleList
small, relu, drop = partial(fresh, change=lambda p: p.normal_(0, 0.1)), nn.ReLU, nn.Dropout
glorot = partial(fresh, change=lambda p: nn.init.xavier_uniform_(p) if p.ndim > 1 else p.zero_())
PAIRS, SENSORS = torch.triu_indices(6, 6, 1), torch.arange(8)
ROADS = sum(torch.eye(8).roll(k, 0) for k in (-1, 0, 1)) / 3


def moons(g: Generator, n: int) -> tuple[Tensor, ...]:
    a, y = 3.14 * torch.rand(n, generator=g), torch.arange(n) % 2
    x = torch.stack([a.cos() + y, a.sin() * (1 - 2 * y) + y / 2], 1)
    return (x + 0.05 * torch.randn(n, 2, generator=g),)


def sensors(g: Generator, n: int) -> tuple[Tensor, ...]:
    """Hours at eight places along a road, standardized: 48 of them, and the 12 after, [N, ·, 8]."""
    hour = torch.randint(24, (n, 1, 1), generator=g) + torch.arange(60)[:, None] - SENSORS / 2
    gain, noise = torch.rand(n, 1, 8, generator=g), torch.randn(n, 60, 8, generator=g)
    x = ((hour * 0.26).sin() + 0.5 * (hour * 0.52).cos()) * (0.7 + gain) + 0.2 * noise
    return x[:, :48], x[:, 48:]


CASES = seen("2026-11-28T15:30",
    one("fi_bi_net", lambda: Net(lambda m, x: (e := m["field"](x), v := e * m["gate"](e.mean(2))[
         ..., None], m["last"](cat([(m["w"](z)[:, PAIRS[0]] * z[:, PAIRS[1]]).flatten(1) for z in (
         e, v)], 1))[:, 0])[2], field=small(emb(300, 8)), gate=S(line(6, 3, False), relu(), line(3,
         6, False), relu()), w=line(8, 8, False), last=mlp(240, 64, 64, 1)), clicks, yes, FIT(3e-3,
         weight_decay=1e-5, batch=512, **LONG), "FiBiNET"),
    one("saint", lambda: Net(lambda m, x: m["last"](m["rows"](m["body"](m["w"][0] * functional.pad(
         x, (1, 0), value=1.0)[..., None] + m["w"][1]).flatten(1)[None])[0]), w=Weights([
         torch.randn(11, 16) / 4 for _ in "ab"]), body=coder(16, 0.1, activation="gelu",
         norm_first=True), rows=nn.TransformerEncoderLayer(176, 4, 64, 0.1, "gelu",
         batch_first=True), last=mlp(176, 64, 3)), table(10, lambda x: (x[:, :3] + x[:, 3:6] * x[:,
         6:9]).argmax(1)), CE, FIT(1e-3, kind=optim.AdamW, batch=96), "SAINT"),
    one("ple", lambda: Net(lambda m, x: (e := {k: torch.stack([f(x) for f in m[k]], 1) for k in
         "abs"}, cat([m["t" + k]((m["g" + k](x).softmax(1)[..., None] * cat([e[k], e["s"]], 1)).sum(
         1)) for k in "ab"], 1))[1], **{k: List(S(line(16, 32), relu()) for _ in "12") for k in
         "abs"}, **{"g" + k: line(16, 4, False) for k in "ab"}, **{"t" + k: mlp(32, 16, 1) for k in
         "ab"}), table(16, lambda x: (torch.stack([x[:, :6].sum(1), x[:, 3:9].sum(1) + x[:, 9] * x[
         :, 10]], 1) > 0.5).float()), yes, FIT(1e-3, o.fading, batch=256, **LONG), "PLE"),
    one("soft_tree", lambda: Net(lambda m, x: (g := m["gates"](x.flatten(1)).sigmoid(), reduce(
         lambda p, d: torch.stack([p * (1 - (k := g[:, 2**d - 1 : 2 ** (d + 1) - 1])), p * k],
         2).flatten(1), range(5), torch.ones(len(x), 1)))[1], gates=line(784, 31), leaves=Weights([
         torch.randn(32, 10)])), DIGITS, lambda m, x, y: (p := m(x), k := p.view(len(x), -1,
         2).mean(0), -(p * m["leaves"][0].log_softmax(1).T[y]).sum(1).mean() - 0.003 * (k / k.sum(1,
         True)).clamp(min=0.01).log().mean())[2], FIT(0.01, batch=64, **LONG), "soft tree"),
    one("sc_vi", lambda: nn.ModuleDict({"down": S(*(k := lambda a: (line(a, 128), nn.BatchNorm1d(
         128, 1e-3, 0.01), relu()))(100), drop(0.1), line(128, 20)), "up": S(*k(10), line(128,
         100)), "r": Weights([torch.randn(100)])}), table(5, lambda z: torch.poisson(500 * (z[:, 4:]
         / 3).exp() * (0.7 * z[:, :4] @ TASTES[0, :100].T).softmax(1))), lambda m, _, x: (f := m[
         "down"](x.log1p()).chunk(2, 1), z := f[0] + (f[1] / 2).exp() * torch.randn_like(f[0]), mu
         := m["up"](z).softmax(1) * x.sum(1, True), -torch.distributions.NegativeBinomial((r := m[
         "r"][0].exp()), logits=(mu + 1e-8).log() - r.log()).log_prob(x).sum(1).mean() - (1 + f[1] -
         f[0] ** 2 - f[1].exp()).sum(1).mean() / 2)[3], FIT(1e-3, eps=0.01, weight_decay=1e-6,
         batch=128, **LONG), "scVI"),
    one("deep_hit", lambda: S(*(z for a in (8, 32) for z in (line(a, 32), relu(), nn.BatchNorm1d(
         32), drop(0.1))), line(32, 10)), table(8, lambda x: (t := (x[:, :1] - x[:, 1:2] * x[:,
         2:3].sign()).exp() * -torch.rand(len(x), 1).log() * 3, cat([t.clamp(max=9).floor(), (t <
         9)], 1))[1]), lambda m, x, y: (p := m(x).softmax(1), f := p.cumsum(1), t := y[:, :1].long(
         ), e := y[:, 1], own := f.gather(1, t)[:, 0], -(e * (p.gather(1, t)[:, 0] + 1e-7).log() + (
         1 - e) * (1 - own + p.gather(1, t)[:, 0]).clamp(1e-7).log()).mean() + 0.2 * (e * (t > t.T)
         * ((f[:, t[:, 0]] - own) / 0.1).exp()).mean())[5], FIT(0.01, batch=256), "DeepHit"),
    one("real_nvp", lambda: Net(lambda m, x: reduce(lambda h, f: (k := f(h[:, :1]), s := k[:,
         :1].tanh(), cat([h[:, 1:2] * s.exp() + k[:, 1:], h[:, :1], h[:, 2:] + s], 1))[2], m["net"],
         functional.pad(x, (0, 1))), net=List(mlp(1, 64, 64, 2, act=nn.LeakyReLU) for _ in range(
         6))), moons, lambda m, x: ((z := m(x))[:, :2].square().sum(1) / 2 - z[:, 2] + 1.84).mean(),
         FIT(1e-3, batch=256), "RealNVP, moons"),
    one("california", lambda: glorot(Net(lambda m, x: m["last"](cat([x, m["deep"](x)], 1)), deep=S(
         mlp(8, 30, 30), relu()), last=line(38, 1))), table(8, lambda x: (2.07 + 0.8 * x[:, :1] -
         0.5 * x[:, 1:2] * x[:, 2:3].sigmoid() + 0.4 * torch.randn(len(x), 1)).clamp(0.15, 5)),
         fifth.error, FIT(1e-3, kind=optim.SGD, batch=32, **LONG), "Géron, housing"),
    one("sine", lambda: S(line(3, 1), nn.Flatten(0, 1)), lambda *_: (x := torch.linspace(-3.1416,
         3.1416, 2000), x[:, None] ** torch.arange(1, 4), x.sin())[1:], lambda m, x, y: mse(m(x), y,
         reduction="sum"), FIT(1e-3, kind=optim.RMSprop, **LONG), "PyTorch's polynomial"),
    one("bert4rec", lambda: Net(lambda m, x: m["body"](m["norm"](m["goods"](x) + m["at"].weight)) @
         m["goods"].weight.T, goods=small(emb(61, 48)), at=small(emb(12, 48)), norm=S(nn.LayerNorm(
         48), drop(0.1)), body=coder(48, 0.1, activation="gelu")), lambda g, n: ((torch.randint(1,
         3, (n, 12), generator=g).cumsum(1) + torch.randint(60, (n, 1), generator=g)) % 60,), lambda
         m, x: entropy(m(x.where(~(k := torch.rand(x.shape) < 0.2), 60))[k], x[k]), FIT(2e-3,
         o.linear_down, kind=optim.AdamW, weight_decay=0.01, clip=5.0, batch=48), "BERT4Rec"),
    one("metric", lambda: nn.ModuleDict({k: fresh(emb(200, 32), lambda p: p.normal_(0, 0.18)) for k
         in "ui"}), lambda g, n: (u := torch.randint(200, (n,), generator=g), LIKED[u,
         torch.randint(12, (n,), generator=g)], torch.randint(200, (n, 10), generator=g)), lambda m,
         u, i, j: (p := m["u"](u), (0.5 + (p - m["i"](i)).square().sum(1) - (p[:, None] - m["i"](
         j)).square().sum(2).amin(1)).relu().mean())[1], FIT(0.05, kind=optim.Adagrad, batch=512,
         after=lambda _, m, __: [p.data.copy_(p.data.renorm(2, 0, 1)) for p in m.parameters()]),
         "metric learning, CF"),
    one("col_bert", lambda: Net(lambda m, x: sphere(m["last"](m["body"](x).last_hidden_state),
         dim=2), body=hf("BertModel", **TINY), last=line(48, 32, False)), lambda g, n: (x :=
         torch.rand(n, 120, generator=g).argsort(1)[:, :12] + 4, x[:, torch.randperm(12)[:4]]),
         lambda m, x, q: (a := m(q), b := m(x), entropy(torch.einsum("qid,kjd->qkij", a, b).amax(
         3).sum(2), torch.arange(len(x))))[2], FIT(5e-4, o.linear_down, kind=optim.AdamW,
         weight_decay=0.01, batch=24), "ColBERT"),
    one("names", lambda: Net(lambda m, x: m["last"](m["body"](x)[1][0]).log_softmax(1), body=nn.RNN(
         27, 128, batch_first=True), last=line(128, 6)), lambda g, n: (y := torch.randint(6, (n,),
         generator=g), functional.one_hot((2 * TASTES[1, :6] @ TASTES[0, :27].T / 2).softmax(1)[
         y].multinomial(8, True, generator=g), 27).float(), y)[1:], lambda m, x, y:
         functional.nll_loss(m(x), y), FIT(0.15, kind=optim.SGD, clip=3.0, batch=64),
         "PyTorch's names"),
    one("cbow", lambda: nn.ModuleDict({"w": fresh(emb(64, 24), lambda p: p.uniform_(-0.5 / 24, 0.5 /
         24)), "v": fresh(emb(64, 24), torch.zero_)}), lambda *how: ((x := threads.contexts(*how)[
         0])[:, 1:5], cat([x[:, :1], torch.randint(64, (len(x), 5))], 1)), lambda m, x, y: soft((m[
         "w"](x).mean(1)[:, None] * m["v"](y)).sum(2) * torch.tensor([-1.0, 1, 1, 1, 1, 1])).sum(
         1).mean(), FIT(0.01, o.linear_down, batch=256, **LONG), "word2vec, bag of words"),
    *(one(name.lower(), partial(hf, f"{name}ForCausalLM", **TINY | PAD | sizes), TEXT, told,
         recipe.but("", batch=8), name) for name, (sizes, recipe) in {"Olmo3": (FEW, FIT(1e-3,
         o.warm_up, **NANO)), "DeepseekV3": ({"q_lora_rank": 16, "kv_lora_rank": 16,
         "qk_rope_head_dim": 6, "qk_nope_head_dim": 12, "v_head_dim": 12, "n_routed_experts": 4,
         "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 48,
         "first_k_dense_replace": 1}, FIT(2e-3, o.cosine, **NANO)), "Lfm2": (FEW | {"layer_types": [
         "conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False}, FIT(2e-3,
         o.two_phases, **NANO)), "GptOss": (FEW | {"head_dim": 12, "num_local_experts": 4,
         "num_experts_per_tok": 2, "num_hidden_layers": 2}, FIT(1e-3, o.ramp, **NANO)), "SeedOss": (
         FEW | {"head_dim": 12}, FIT(1e-3, o.poly, kind=optim.NAdam, clip=1.0)), "Exaone4": (FEW,
         FIT(2e-3, o.cosine, **NANO)), "Apertus": (FEW, FIT(1e-3, o.linear_down, **NANO)),
         "Qwen2Moe": (FEW | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size":
         48, "shared_expert_intermediate_size": 48}, FIT(1e-3, o.stairs, **NANO))}.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **TINY | sizes | {
         "max_position_embeddings": 48, "num_labels": 4}), data.sentences, told, recipe.but("",
         batch=8), name) for name, (sizes, recipe) in {"Roberta": (PAD, FIT(1e-3, o.linear_down,
         **DECAY, clip=1.0)), "Llama": (PAD, FIT(1e-3, o.linear_down, **DECAY, clip=1.0)),
         "XLMRobertaXL": (PAD, FIT(5e-4, o.two_phases, **DECAY, clip=1.0)), "NomicBert": (PAD, FIT(
         1e-3, o.ramp, **DECAY)), "GPT2": (PAD | {"n_embd": 48, "n_layer": 2, "n_head": 4,
         "n_positions": 48}, FIT(1e-3, o.linear_down, **DECAY, clip=1.0)), "IBert": (PAD, FIT(1e-3,
         o.linear_down, **DECAY)), "Xmod": (PAD | {"default_language": "en_XX", "languages": [
         "en_XX"]}, FIT(1e-3, o.cosine, **DECAY))}.items()),
    one("wav2vec2", partial(hf, "Wav2Vec2ForSequenceClassification", **library.BODY, conv_dim=(24,)
         * 3, conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4), num_conv_pos_embeddings=16,
         num_conv_pos_embedding_groups=4, mask_time_length=2, num_labels=6), changed(data.tones(
         800), lambda x: ((x - x.mean(2, True)) / x.std(2, keepdim=True))[:, 0]), told, FIT(1e-3,
         o.ramp, **DECAY, clip=1.0, steps=80, every=8), "wav2vec 2.0"),
    one("ts_mixer", lambda: Net(lambda m, x: m["last"](reduce(lambda h, f: (z := h + f[0](h.mT).mT,
         z + f[1](z))[1], m["mix"], x).mT).mT, mix=List(List([S(nn.BatchNorm1d(8), line(48, 48),
         relu(), drop(0.1)), S(nn.LayerNorm(8), line(8, 32), relu(), drop(0.1), line(32, 8), drop(
         0.1))]) for _ in "ab"), last=line(48, 12)), sensors, fifth.error, FIT(1e-3, batch=32),
         "TSMixer"),
    one("stgcn", lambda: Net(lambda m, x: (h := m["a"](x[:, None, -12:]), h := torch.einsum(
         "uv,nctv->nctu", ROADS, m["g"](h)).relu(), m["last"](m["norm"](m["b"](h).permute(0, 3, 1,
         2)).flatten(2)).mT)[2], a=S(nn.Conv2d(1, 48, (3, 1)), nn.GLU(1)), g=nn.Conv2d(24, 16, 1),
         b=S(nn.Conv2d(16, 48, (3, 1)), nn.GLU(1)), norm=nn.LayerNorm(8), last=line(192, 12)),
         sensors, fifth.error, FIT(1e-3, o.stairs, kind=optim.RMSprop, batch=50), "STGCN"),
    one("one_shot", lambda: Net(lambda m, x: m["last"](m["body"](x[:, -24:])[0][:, -1]).view(-1, 12,
         8), body=nn.LSTM(8, 32, batch_first=True), last=fresh(line(32, 96), torch.zero_)), sensors,
         fifth.error, FIT(1e-3, batch=32, **LONG), "TensorFlow's LSTM of weather"),
    one("jk_net", lambda: Net(lambda m, a, x: (h := [x], [h.append(m["drop"]((a @ f(h[-1])).relu()))
         for f in m["body"]], a @ m["last"](cat(h[1:], 1)))[2], body=List(line(k, 24) for k in (60,
         24, 24, 24)), drop=drop(), last=line(96, 3)), cora, lambda m, a, x, y: entropy(m(a, x)[
         :60], y[:60]), FIT(5e-3, weight_decay=5e-4), "jumping knowledge"),
    one("point_net_1", lambda: S(norm1(3, 32), norm1(32, 64), norm1(64, 128), nn.AdaptiveMaxPool1d(
         1), nn.Flatten(), line(128, 64), nn.BatchNorm1d(64), relu(), drop(0.3), line(64, 4)),
         data.points, CE, FIT(1e-3, o.stairs, weight_decay=1e-4, batch=24), "PointNet, no T-Net"),
    one("proxy_anchor", lambda: nn.ModuleDict({"body": cnn.plain(1, 64, (16, 32, 48),
         nn.BatchNorm2d), "goal": fresh(emb(10, 64), partial(nn.init.kaiming_normal_,
         mode="fan_out"))}), DIGITS, lambda m, x, y: (s := sphere(m["body"](x)) @ sphere(m[
         "goal"].weight).T, k := functional.one_hot(y, 10).bool(), (p := (torch.where(k, -32 * (s -
         0.1), -1e9).logsumexp(0)), soft(p[k.any(0)]).mean() + soft(torch.where(k, -1e9, 32 * (s +
         0.1)).logsumexp(0)).mean())[1])[2], FIT(0, o.stairs, "AdamW 1e-3, proxies 0.01", lambda m:
         optim.AdamW([{"params": m["body"].parameters()}, {"params": m["goal"].parameters(), "lr":
         0.01}], 1e-3, weight_decay=1e-4), batch=32), "proxy anchor"),
    one("dann", lambda: nn.ModuleDict({"body": S(*(z for a, b in ((1, 16), (16, 32)) for z in (
         nn.Conv2d(a, b, 5), nn.BatchNorm2d(b), nn.MaxPool2d(2), relu())), nn.Flatten()), "kind":
         mlp(512, 64, 10), "place": mlp(512, 64, 1)}), lambda g, n: (*DIGITS(g, n), 0.5 * DIGITS(g,
         n)[0] + torch.rand(n, 1, 1, 1, generator=g)), lambda m, x, y, z: (h := m["body"](cat([x,
         z])), entropy(m["kind"](h[: len(x)]), y) + bce(m["place"](1.3 * h.detach() - 0.3 * h)[:,
         0], (torch.arange(2 * len(x)) < len(x)).float()))[1], FIT(0.01, o.fading, kind=optim.SGD,
         momentum=0.9, batch=16), "DANN"),
)  # fmt: skip
