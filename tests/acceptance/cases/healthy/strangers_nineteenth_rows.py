"""Healthy: tables, graphs, points, sounds, series, texts of a nineteenth set; no checks known."""

from __future__ import annotations

from functools import partial, reduce

import data
import losses
import optimizers as o
import timm.optim
import torch
from cases.healthy.strangers_eighteenth_rows import PAIRS, glorot, moons, sensors
from cases.healthy.strangers_eighth import LOAD, NANO, SOUNDS, TASTES, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_maps import bce
from cases.healthy.strangers_pictures import DECAY, one
from cases.healthy.strangers_seventeenth_rows import five_digits, norm1
from cases.healthy.strangers_sixteenth_rows import DIGITS, FEW, PAD
from cases.healthy.strangers_thirteenth_rows import LONG, clicks, emb, yes
from data import changed
from loops import seen
from nets import classifiers as cnn
from nets import library
from nets import strangers_fifth as fifth
from nets import strangers_kept as threads
from nets.strangers import Residual
from nets.strangers_kept import FIT, Weights
from torch import Generator, Tensor, nn, optim
from torch.nn import functional

mlp, hf, S, line, List = fifth.mlp, library.hf, nn.Sequential, nn.Linear, nn.ModuleList
entropy, cat, sphere, mse = functional.cross_entropy, torch.cat, functional.normalize, fifth.error
table, relu, drop, conv1, CE = threads.numbers, nn.ReLU, nn.Dropout, nn.Conv1d, losses.classes()
ORDER = [torch.arange(196), torch.randint(195, (256,), generator=Generator().manual_seed(1))]
MASKS = [(ORDER[1][:, None] >= ORDER[0]).float(), (ORDER[0][:, None] > ORDER[1]).float()]
INK = changed(data.digits, lambda x: (functional.avg_pool2d(x, 2) > 0.3).float().flatten(1))


def halves(z: Tensor, k: Tensor, tau: float) -> Tensor:
    """GRACE's loss of one of two views."""
    a, b = (z @ z.T / tau).exp(), (z @ k.T / tau).exp()
    return -(b.diag() / (a.sum(1) + b.sum(1) - a.diag())).log().mean()


def correlated(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """DCCA's: 8 less the correlations of two views."""
    a, b = ((z - z.mean(0)) for z in (m["a"](x), m["b"](y)))
    roots = [torch.linalg.cholesky(z.T @ z / len(z) + 1e-3 * torch.eye(8)) for z in (a, b)]
    t = torch.linalg.solve_triangular(roots[0], a.T @ b / len(a), upper=False)
    t = torch.linalg.solve_triangular(roots[1], t.T, upper=False)
    return 8 - torch.linalg.matrix_norm(t, "nuc")


def burgers(m: nn.Module, inside: Tensor, x: Tensor, u: Tensor) -> Tensor:
    z = inside.clone().requires_grad_()
    y = m(z)
    d = torch.autograd.grad(y.sum(), z, create_graph=True)[0]
    bent = torch.autograd.grad(d[:, 0].sum(), z, create_graph=True)[0][:, :1]
    return (d[:, 1:] + y * d[:, :1] - 0.01 / 3.1416 * bent).square().mean() + mse(m, x, u)


def edge_of_time(g: Generator, n: int) -> tuple[Tensor, ...]:
    inside, x = torch.rand(n, 2, generator=g), torch.rand(100, 2, generator=g)
    x[:50, 1], x[50:75, 0], x[75:, 0] = 0, 0, 1
    x, inside = (z * torch.tensor([2.0, 1.0]) - torch.tensor([1.0, 0.0]) for z in (x, inside))
    return inside, x, -(3.1416 * x[:, :1]).sin() * (x[:, 1:] == 0)


def similar(m: nn.Module, x: Tensor) -> Tensor:
    """Multi-similarity loss of five classes with ten pictures each."""
    z, y = sphere(m(x)), torch.arange(50) // 10
    s, same = z @ z.T, y[:, None] == y
    other = same & ~torch.eye(50).bool()
    far = torch.where(other & (s - 0.1 < s.where(~same, -2).amax(1, True)), -2 * (s - 0.5), -1e9)
    near = torch.where(~same & (s + 0.1 > s.where(other, 2).amin(1, True)), 50 * (s - 0.5), -1e9)
    far, near = (cat([k, torch.zeros(50, 1)], 1).logsumexp(1) for k in (far, near))
    return (far / 2 + near / 50).mean()


CASES = seen("2026-11-28T16:05",
    one("fm", lambda: glorot(Net(lambda m, x: m["line"](x).sum((1, 2)) + ((e := m["field"](x)).sum(
         1) ** 2 - (e**2).sum(1)).sum(1) / 2, line=emb(300, 1), field=emb(300, 16))), clicks, yes,
         FIT(0.01, weight_decay=1e-6, batch=512, **LONG), "factorization machine"),
    one("pnn", lambda: Net(lambda m, x: (e := m["field"](x), m["last"](cat([e.flatten(1), (e[:,
         PAIRS[0]] * e[:, PAIRS[1]]).sum(2)], 1))[:, 0])[1], field=glorot(emb(300, 16)),
         last=S(line(111, 64), nn.BatchNorm1d(64), relu(), drop(0.2), line(64, 1))), clicks, yes,
         FIT(3e-3, weight_decay=1e-6, batch=512, **LONG), "PNN, inner products"),
    one("heart", lambda: line(13, 1), table(13, lambda x: (x[:, :1] + x[:, 1:2] - x[:, 2:3] / 2 +
         torch.randn(len(x), 1) / 2 > 0).float()), yes, FIT(0.05, kind=optim.SGD, batch=32, **LONG),
         "logistic regression"),
    one("emos", lambda: mlp(12, 50, 2), table(12, lambda x: x[:, :1] + x[:, 1:2] / 2 + (x[:, 2:3] /
         3).exp() / 2 * torch.randn(len(x), 1)), lambda m, x, y: (f := m(x), s :=
         functional.softplus(f[:, 1:]) + 1e-3, z := (y - f[:, :1]) / s, (s * (z * (z / 2**0.5).erf()
         + 0.7979 * (-z * z / 2).exp() - 0.5642)).mean())[3], FIT(2e-3, batch=256, **LONG),
         "forecasts corrected, CRPS"),
    one("rossmann", lambda: Net(lambda m, x: m["last"](m["field"](x)), field=emb(300, 10),
         last=S(mlp(60, 100, 50, 1), nn.Sigmoid())), lambda g, n: (x := clicks(g, n)[0], (TASTES[
         0, x[:, 0], :1] + TASTES[1, x[:, 1] - 50, :1] + 0.1 * torch.randn(n, 1)).div(2).sigmoid()),
         lambda m, x, y: functional.l1_loss(m(x), y), FIT(1e-3, batch=128, **LONG),
         "entity embeddings"),
    one("conv_e", lambda: Net(lambda m, h, r: m["body"](cat([m["e"](h), m["r"](r)], 1)) @ m[
         "e"].weight.T + m["b"][0], e=glorot(emb(60, 64)), r=glorot(emb(8, 64)), b=Weights([
         torch.zeros(60)]), body=S(nn.Unflatten(1, (1, 16, 8)), nn.BatchNorm2d(1), drop(0.2),
         nn.Conv2d(1, 32, 3), nn.BatchNorm2d(32), relu(), nn.Dropout2d(0.2), nn.Flatten(), line(
         2688, 64), drop(0.3), nn.BatchNorm1d(64), relu())), lambda g, n: (h := torch.randint(60, (
         n,), generator=g), r := torch.randint(8, (n,), generator=g), (h + 3 * r + 1) % 60), lambda
         m, h, r, y: bce(m(h, r), 0.9 * functional.one_hot(y, 60) + 1 / 60), FIT(3e-3, batch=128),
         "ConvE"),
    one("sgc", lambda: line(60, 3), cora, lambda m, a, x, y: entropy(m(a @ a @ x)[:60], y[:60]),
         FIT(0.2, weight_decay=5e-6), "SGC"),
    one("gated_graph", lambda: Net(lambda m, a, x: m["last"](reduce(lambda h, f: m["gru"](a @ f(h),
         h), m["w"], functional.pad(x, (0, 4)))), w=List(line(64, 64, False) for _ in "abc"),
         gru=nn.GRUCell(64, 64), last=line(64, 3)), cora, lambda m, a, x, y: entropy(m(a, x)[:60],
         y[:60]), FIT(5e-3), "gated graph network"),
    one("grace", lambda: Net(lambda m, a, x: (a @ m["b"]((a @ m["a"](x)).relu())).relu(), a=line(60,
         64), b=line(64, 32), last=S(line(32, 32), nn.ELU(), line(32, 32))), cora, lambda m, a, x,
         _: (z := [sphere(m["last"](m(functional.dropout(a, p), x * (torch.rand(60) > p)))) for p in
         (0.2, 0.4)], (halves(*z, 0.4) + halves(*z[::-1], 0.4)) / 2)[1], FIT(2e-3,
         weight_decay=1e-5), "GRACE"),
    one("pct", lambda: Net(lambda m, x: m["last"](m["wide"](cat([h := m["in"](x)] + [h := h + f[
         "r"](h - f["v"](h) @ (k := (f["q"](h).mT @ f["q"](h)).softmax(2)) / (1e-9 + k.sum(1,
         True))) for f in m["body"]], 1)).amax(2)), **{"in": S(norm1(3, 32), norm1(32, 32))},
         body=List(nn.ModuleDict({"q": conv1(32, 8, 1, bias=False), "v": conv1(32, 32, 1), "r":
         norm1(32, 32)}) for _ in "ab"), wide=S(conv1(96, 128, 1, bias=False), nn.BatchNorm1d(128),
         nn.LeakyReLU(0.2)), last=S(line(128, 64, False), nn.BatchNorm1d(64), nn.LeakyReLU(0.2),
         drop(), line(64, 4))), changed(data.points, lambda x: x[..., :128]), losses.classes(0.2),
         FIT(0.01, o.cosine, kind=optim.SGD, momentum=0.9, weight_decay=1e-4), "PCT"),
    one("r_linear", lambda: Net(lambda m, x: (c := x.mean(1, True), s := (x.var(1, keepdim=True) +
         1e-5).sqrt(), (m["last"](((x - c) / s * m["w"][0] + m["w"][1]).mT).mT - m["w"][1]) / m[
         "w"][0] * s + c)[2], w=Weights([torch.ones(8), torch.zeros(8)]), last=line(48, 12)),
         sensors, mse, FIT(5e-3, o.fading, batch=32), "RLinear"),
    one("seq2seq", lambda: Net(lambda m, x, y: m["last"](m["up"](cat([x[:, -1:], y[:, :-1]], 1), m[
         "down"](x)[1])[0]), down=nn.GRU(1, 48, batch_first=True), up=nn.GRU(1, 48,
         batch_first=True), last=line(48, 1)), LOAD, lambda m, x, y:
         functional.mse_loss(m(x, y), y), FIT(1e-3, batch=24, clip=1.0), "GRU, teacher forcing"),
    one("lstm_ae", lambda: Net(lambda m, x: m["last"](m["up"](m["down"](x)[1][0][0][:, None].expand(
         -1, 24, -1))[0]), down=nn.LSTM(1, 48, batch_first=True), up=nn.LSTM(48, 48,
         batch_first=True), last=line(48, 1)), lambda *how: (LOAD(*how)[1],), lambda m, x:
         functional.l1_loss(m(x), x), FIT(1e-3, batch=32, **LONG), "LSTM autoencoder"),
    one("matchbox", lambda: S(norm1(33, 48, 5), *(Residual(conv1(48, 48, k, 1, k // 2, groups=48),
         conv1(48, 48, 1), nn.BatchNorm1d(48), relu(), drop(0.1)) for k in (7, 9, 11)), norm1(48,
         64), nn.AdaptiveAvgPool1d(1), nn.Flatten(), line(64, 6)), SOUNDS, CE, FIT(0, o.warm_up,
         "NovoGrad 0.05", lambda m: timm.optim.NvNovoGrad(m.parameters(), 0.05, (0.95, 0.5),
         weight_decay=1e-3), batch=32), "MatchboxNet"),
    one("ecapa", lambda: Net(lambda m, x: (h := m["a"](x), h := m["wide"](cat([h := h + f(h) *
         g(f(h).mean(2))[..., None] for f, g in m["body"]], 1)), w := m["at"](h).softmax(2), c := (h
         * w).sum(2), sphere(m["last"](cat([c, ((h**2 * w).sum(2) - c**2).clamp(min=1e-4).sqrt()],
         1))) @ sphere(m["goal"].weight).T)[4], a=norm1(33, 48, 5), body=List(List([S(norm1(48, 48),
         conv1(48, 48, 3, 1, k, k), relu(), nn.BatchNorm1d(48)), S(mlp(48, 24, 48), nn.Sigmoid())])
         for k in (2, 3)), wide=S(conv1(96, 96, 1), relu()), at=S(norm1(96, 32), nn.Tanh(),
         conv1(32, 96, 1)), last=S(nn.BatchNorm1d(192), line(192, 48), nn.BatchNorm1d(48)),
         goal=glorot(emb(6, 48))), SOUNDS, lambda m, x, y: entropy(30 *
         torch.where(functional.one_hot(y, 6) > 0, ((c := m(x).clamp(-0.999, 0.999)).acos() +
         0.2).cos(), c), y), FIT(1e-3, o.stairs, weight_decay=2e-5, batch=24), "ECAPA-TDNN"),
    one("self_attentive", lambda: Net(lambda m, x: (h := m["body"](m["words"](x))[0], a := m["at"](
         h).softmax(1), (m["last"](a.mT @ h), a.mT @ a))[2], words=emb(102, 32, padding_idx=0),
         body=nn.LSTM(32, 32, batch_first=True, bidirectional=True), at=S(line(64, 32, False),
         nn.Tanh(), line(32, 4, False)), last=S(nn.Flatten(), drop(), line(256, 64), relu(), line(
         64, 4))), data.sentences, lambda m, x, y: (z := m(x), entropy(z[0], y) + 0.03 * (z[1] -
         torch.eye(4)).square().sum((1, 2)).mean())[1], FIT(1e-3, clip=0.5, batch=32),
         "self-attentive sentences"),
    one("flow_matching", lambda: mlp(3, 64, 64, 64, 2, act=nn.SiLU), moons, lambda m, x: (t :=
         torch.rand(len(x), 1), e := torch.randn_like(x), functional.mse_loss(m(cat([e.lerp(x, t),
         t], 1)), x - e))[2], FIT(0.01, batch=256), "flow matching, moons"),
    one("made", lambda: Net(lambda m, x: functional.linear(functional.linear(x, m["a"].weight *
         MASKS[0], m["a"].bias).relu(), m["b"].weight * MASKS[1], m["b"].bias), a=line(196, 256),
         b=line(256, 196)), INK, lambda m, x, _: bce(m(x), x), FIT(0.01, kind=optim.Adagrad,
         batch=100, **LONG), "MADE"),
    one("burgers", lambda: glorot(mlp(2, 20, 20, 20, 20, 1, act=nn.Tanh)), edge_of_time, burgers,
         FIT(2e-3, o.fading, batch=256, **LONG), "PINN, Burgers"),
    one("deep_cca", lambda: nn.ModuleDict({k: mlp(20, 64, 64, 8, act=nn.Sigmoid) for k in "ab"}),
         lambda g, n: (z := torch.randn(n, 4, generator=g), *(torch.tanh(z @ TASTES[k, :20].T / 2) +
         0.3 * torch.randn(n, 20, generator=g) for k in (0, 1)))[1:], correlated, FIT(1e-3,
         kind=optim.RMSprop, weight_decay=1e-5, batch=400), "deep CCA"),
    one("similarities", lambda: cnn.plain(1, 32, (16, 32, 48), nn.BatchNorm2d), five_digits,
         similar, FIT(1e-3, weight_decay=5e-4), "multi-similarity loss"),
    one("noisy_labels", lambda: cnn.plain(1, 10, (16, 32, 48), nn.BatchNorm2d), lambda g, n: (k :=
         DIGITS(g, n), (k[0], k[1].where(torch.rand(n, generator=g) > 0.2, torch.randint(10, (n,),
         generator=g))))[1], lambda m, x, y: (1 - m(x).softmax(1).gather(1, y[:, None]) **
         0.7).mean() / 0.7, FIT(3e-3, o.stairs, weight_decay=1e-4,
         batch=48), "generalized cross-entropy"),
    *(one(name.lower(), partial(hf, f"{name}ForCausalLM", **TINY | PAD | sizes), TEXT, told,
         recipe.but("", batch=8), name) for name, (sizes, recipe) in {"Phi": (FEW, FIT(1e-3,
         o.warm_up, **NANO)), "Olmo2": (FEW, FIT(2e-3, o.cosine, **NANO)), "Starcoder2": (FEW,
         FIT(1e-3, o.ramp, **NANO)), "Nemotron": (FEW, FIT(1e-3, o.linear_down, **NANO)), "Granite":
         (FEW, FIT(2e-3, o.two_phases, **NANO)), "Falcon": ({}, FIT(1e-3, o.warm_up,
         **NANO))}.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **TINY | PAD | sizes | {
         "max_position_embeddings": 48, "num_labels": 4}), data.sentences, told, recipe.but("",
         batch=8), name) for name, (sizes, recipe) in {"Ernie": ({}, FIT(1e-3, o.linear_down,
         **DECAY, clip=1.0)), "MPNet": ({"pad_token_id": 1}, FIT(1e-3, o.linear_down, **DECAY,
         clip=1.0)), "XLMRoberta": ({}, FIT(5e-4, o.ramp, **DECAY)), "Data2VecText": ({}, FIT(1e-3,
         o.linear_down, **DECAY, clip=1.0)), "Deberta": ({}, FIT(1e-3, o.cosine, **DECAY))
         }.items()),
    *(one(name.lower(), partial(hf, f"{name}ForSequenceClassification", **library.BODY, conv_dim=(
         24,) * 3, conv_stride=(5, 4, 2), conv_kernel=(10, 8, 4), num_conv_pos_embeddings=16,
         num_conv_pos_embedding_groups=4, mask_time_length=2, num_labels=6), changed(data.tones(
         800), lambda x: ((x - x.mean(2, True)) / x.std(2, keepdim=True))[:, 0]), told, FIT(1e-3,
         o.ramp, **DECAY, clip=1.0, steps=80, every=8), name) for name in ("Hubert", "WavLM")),
)  # fmt: skip
