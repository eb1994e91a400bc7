"""Healthy: tables, series, texts, graphs, and classifiers with unusual settings."""

from __future__ import annotations

import functools
from functools import partial
from pathlib import Path

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_fifth as fifth
from cases.faults import strangers_seventh as threads
from cases.healthy.strangers_eighth import LOAD, TASTES, Net, cora
from cases.healthy.strangers_maps import agent, bce
from cases.healthy.strangers_pictures import DECAY, NESTEROV, album, lopsided, one, slim
from data import P
from loops import Losses, own_loop, seen, train
from nets import classifiers as cnn
from nets import dense, library
from nets import strangers as nets
from nets.classifiers import head, unit
from nets.strangers_kept import FIT, SGD
from timm.layers import StdConv2d
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torchvision.models import DenseNet
from torchvision.ops import sigmoid_focal_loss

mlp, CE, entropy, LONG = fifth.mlp, losses.classes(), functional.cross_entropy, threads.LONG
unit_sphere, scheduler, PAD = functional.normalize, optim.lr_scheduler, nn.ConstantPad1d


def probe(place: Path, seed: int) -> Losses:
    """Softmax regression on features of a trained CNN."""
    model, (x, y) = nn.Linear(64, 8), album()
    x = cnn.pretrained(threads.NORMED).eval()[:-1](x).detach()
    optimizer = optim.LBFGS(model.parameters(), 1.0, 1, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        (loss := entropy(model(x), y) + 1e-4 * model.weight.square().sum()).backward()
        return loss

    return train(place, seed, model, lambda *_: float(optimizer.step(closure)), 100, 10, optimizer)


def hard(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The farthest of the same class and the nearest of another, margin 0.2."""
    apart, same = torch.cdist(code := unit_sphere(m(x)), code), y[:, None] == y
    return ((apart * same).amax(1) - (apart + 9 * same).amin(1) + 0.2).relu().mean()


def easiest(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The share of a batch that counts grows from a half to all."""
    m.share = min(1.0, getattr(m, "share", 0.5) + 0.004 * torch.is_grad_enabled())
    return entropy(m(x), y, reduction="none").sort().values[: round(m.share * len(y))].mean()


def fix_match(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """8 labels, 16 pictures without; these are flipped, or moved and made darker."""
    strong = (x[8:] * (0.5 + torch.rand(16, 1, 1, 1))).roll((4, -3), (2, 3))
    found = m(torch.cat([x[:8], x[8:].flip(3), strong]))
    sure, guess = found[8:24].detach().softmax(1).max(1)
    return CE(lambda x: x[:8], found, y[:8]) + (
        (sure > 0.9) * entropy(found[24:], guess, reduction="none")).mean()  # fmt: skip


ROWS = [
    *one("california", partial(mlp, 8, 64, 64, 1), threads.numbers(8, lambda x: (2.07 + 0.8 * x[:, :
         1] - 0.5 * x[:, 6:7] * x[:, 7:] + 0.3 * torch.randn(len(x), 1)).clamp(0.15, 5)), lambda m,
         x, y: functional.huber_loss(m(x), y), FIT(1e-3, kind=optim.RMSprop, batch=128),
         "MLP of California housing"),
    *one("ft_transformer", lambda: Net(lambda m, x: m["last"](m["body"](torch.cat([m["w"][2].expand(
         len(x), 1, -1), x[..., None] * m["w"][0] + m["w"][1]], 1))[:, 0].relu()), w=
         nn.ParameterList([0.3 * torch.randn(k, 32) for k in (8, 8, 1)]), body=
         nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.1, "gelu", batch_first=True,
         norm_first=True), 2, nn.LayerNorm(32), False), last=nn.Linear(32, 1)), threads.numbers(8,
         lambda x: x[:, :1] * (x[:, 1:2] > 0) + x[:, 2:3].sin()), fifth.error, FIT(1e-3,
         kind=optim.AdamW, weight_decay=1e-5, batch=64, **LONG), "FT-Transformer"),
    *one("bpr", lambda: fifth.changed_weights(Net(lambda m, u, a, b: (m["u"](u) * (m["i"](a) - m["i"
         ](b))).sum(1) + (m["b"](a) - m["b"](b))[:, 0], u=nn.Embedding(200, 16), i=nn.Embedding(200,
         16), b=nn.Embedding(200, 1)), lambda p: p.normal_(0, 0.1)), lambda g, n: tuple(
         torch.randint(200, (3, n), generator=g)), lambda m, u, a, b: bce(m(u, a, b), (TASTES[0, u]
         * (TASTES[1, a] - TASTES[1, b])).sum(1).gt(0).float()), FIT(0.01, weight_decay=1e-5,
         batch=512, **LONG), "BPR"),
    *one("appnp", lambda: nn.Sequential(nn.Dropout(), nn.Linear(60, 32), nn.ReLU(), nn.Dropout(),
         nn.Linear(32, 3)), cora, lambda m, a, x, y: entropy(functools.reduce(lambda z, _: 0.9 * a @
         z + 0.1 * h, range(10), h := m(x))[:60], y[:60]), FIT(0.01, weight_decay=5e-3, **LONG),
         "APPNP"),
    *one("graph_autoencoder", lambda: Net(lambda m, a, x: (z := a @ m["last"]((a @ m["first"](x))
         .relu())) @ z.T, first=nn.Linear(60, 32, False), last=nn.Linear(32, 16, False)), cora,
         lambda m, a, x, _: bce(m(a, x), (a > 0).float(), pos_weight=(a == 0).sum() / (a > 0).sum()
         ) / 2, FIT(0.01, **LONG), "graph autoencoder"),
    *one("conservative", partial(agent, 3), data.catch, lambda m, x, y: functional.smooth_l1_loss(
         did := (q := m(x)).gather(1, a := torch.randint(3, (len(x), 1)))[:, 0], (a[:, 0] ==
         y).float()) + 0.1 * (q.logsumexp(1) - did).mean(), FIT(3e-3, batch=64, **LONG), "CQL"),
    *own_loop("probe", "softmax regression", "L-BFGS, line search", probe, 100, 10),
    *one("tcn", lambda: Net(lambda m, x: m["last"](m["body"](x.mT)).mT, body=nn.Sequential(*(layer
         for a, k in ((1, 1), (24, 2), (24, 4), (24, 8)) for layer in (nets.Residual(PAD((2 * k, 0),
         0.0), weight_norm(nn.Conv1d(a, 24, 3, dilation=k)), nn.ReLU(), nn.Dropout(0.1), PAD((2 * k,
         0), 0.0), weight_norm(nn.Conv1d(24, 24, 3, dilation=k)), nn.ReLU(), nn.Dropout(0.1), skip=
         nn.Conv1d(a, 24, 1)), nn.ReLU()))), last=nn.Conv1d(24, 1, 1)), LOAD, lambda m, x, _:
         functional.mse_loss(m(x[:, :-1]), x[:, 1:]), FIT(2e-3, clip=0.5, batch=24), "TCN"),
    *one("noam", lambda: Net(lambda m, x, y: m["last"](m["body"](8 * m["words"](x) + m["place"](
         torch.arange(8)), 8 * m["words"](y) + m["place"](torch.arange(8)), tgt_mask=torch.full((8,
         8), -torch.inf).triu(1))).mT, words=nn.Embedding(20, 64), place=nn.Embedding(8, 64), body=
         nn.Transformer(64, 4, 2, 2, 128, 0.1, batch_first=True), last=nn.Linear(64, 20)),
         threads.words(17, 8, lambda x: (x * 5 + 2) % 17), lambda m, x, y: entropy(m(x, torch.cat([
         0 * y[:, :1] + 19, y[:, :-1]], 1)), y, label_smoothing=0.1), FIT(1.0, lambda opt, _:
         scheduler.LambdaLR(opt, lambda s: 0.04 * min((s + 1) ** -0.5, (s + 1) * 60**-1.5)),
         betas=(0.9, 0.98), eps=1e-9, batch=24, **LONG), "transformer, Noam"),
    *one("toxic", lambda: Net(lambda m, x: m["last"](torch.cat([(h := m["body"](m["drop"](m["words"
         ](x).mT[..., None])[..., 0].mT)[0]).mean(1), h.amax(1)], 1)), words=nn.Embedding(100, 48),
         drop=nn.Dropout2d(0.2), body=nn.GRU(48, 32, batch_first=True, bidirectional=True), last=
         nn.Linear(128, 6)), threads.words(100, 30, lambda x: (x[..., None] == torch.arange(6)).any(
         1).float()), lambda m, x, y: bce(m(x), y, pos_weight=torch.tensor(3.0)), FIT(5e-3, clip=
         1.0, batch=32, **LONG), "bidirectional GRU, tags"),
]  # fmt: skip
PICTURES = [
    *one("adagrad", cnn.all_convolutions, P, CE, FIT(0.01, kind=optim.Adagrad, weight_decay=1e-4),
         "all-convolutional"),
    *one("densely", partial(DenseNet, 12, (2, 2, 2), 24, num_classes=8), P, losses.classes(0.1),
         FIT(2e-3, kind=optim.NAdam), "DenseNet"),
    *one("heavy_decay", library.vit, P, CE, FIT(1e-3, o.warm_up, kind=optim.AdamW, weight_decay=0.3,
         clip=1.0), "ViT"),
    *one("restarts", cnn.resnet, P, losses.augmented, SGD(0.05, lambda opt, _:
         scheduler.CosineAnnealingWarmRestarts(opt, 20, 2), weight_decay=5e-4, steps=140),
         "ResNet"),
    *one("eight_parts", partial(cnn.plain, norm=nets.group, act=nn.SiLU), P, CE, FIT(0.05,
         **NESTEROV, batch=4, micro=8, steps=100), "CNN, GroupNorm"),
    *one("half_precision", slim("convnextv2_atto", depths=(1, 1, 1, 1), dims=(16, 24, 32, 48)),
         data.P64, CE, FIT(2e-3, o.cosine, **DECAY, autocast=True, batch=6, micro=2), "ConvNeXt V2"
         ),
    *one("triplet_hard", partial(cnn.encoder, 32), data.few_classes, hard, FIT(1e-3, steps=100),
         "encoder, triplets"),
    *one("arc_face", lambda: losses.ArcFace(nn.Sequential(cnn.encoder(8)[:3], nn.Flatten(),
         nn.BatchNorm1d(4096), nn.Dropout(0.4), nn.Linear(4096, 32), nn.BatchNorm1d(32))), P,
         lambda m, x, y: entropy(16 * ((unit_sphere(m.back(x)) @ unit_sphere(m.centres).T).clamp(
         -0.999, 0.999).acos() + 0.3 * functional.one_hot(y, 8)).cos(), y), SGD(0.02, o.poly,
         weight_decay=5e-4, batch=32), "ArcFace"),
    *one("logit_adjusted", partial(cnn.plain, classes=4, norm=nn.BatchNorm2d), lopsided, lambda m,
         x, y: entropy(m(x) + x.new([0.7, 0.14, 0.1, 0.06]).log(), y), SGD(0.02, o.cosine,
         weight_decay=5e-4, batch=32), "CNN, rare classes"),
    *one("two_heads", lambda: Net(lambda m, x: (m["few"](f := m["back"](x)), m["all"](f)), back=
         cnn.trunk(24), few=nn.Linear(48, 2), all=nn.Linear(48, 8)), P, lambda m, x, y: 0.3 *
         entropy((f := m(x))[0], y // 4) + 0.7 * entropy(f[1], y), FIT(1e-3, weight_decay=1e-4,
         batch=24), "ResNet, two heads"),
    *one("layer_rates", partial(cnn.pretrained, threads.NORMED), data.colourless(), CE, FIT(0,
         lambda opt, steps: scheduler.OneCycleLR(opt, [1e-4, 5e-4, 2e-3], steps + 1),
         "AdamW by layer, one cycle", lambda m: optim.AdamW([{"params": p.parameters()} for p in (
         m[:3], m[3:-1], m[-1:])], 1e-3)), "trained CNN"),
    *one("half_frozen", lambda: (m := cnn.pretrained(cnn.resnet), [p.requires_grad_(False) for p in
         (m.conv1, m.bn1, m.layer1, m.layer2)])[0], data.colourless(), CE, SGD(0.01, o.cosine,
         prepare=lambda m: (m.bn1.eval(), m.layer1.eval(), m.layer2.eval())), "trained ResNet"),
    *one("weight_norm", lambda: nn.Sequential(*(layer for a, b in ((3, 24), (24, 32), (32, 48)) for
         layer in (weight_norm(nn.Conv2d(a, b, 3, 1, 1)), nn.LeakyReLU(0.1), nn.MaxPool2d(2))),
         *head(48, 8, 0.3)), P, CE, FIT(3e-3, batch=24), "CNN, weight norm"),
    *one("standardized", lambda: nn.Sequential(*(layer for a, b in ((3, 24), (24, 48), (48, 64)) for
         layer in (StdConv2d(a, b, 3, 2, 1), nets.group(b), nn.ReLU())), *head(64, 8)), P, CE,
         SGD(0.03, o.stairs, weight_decay=1e-4), "CNN, standardized weights"),
    *one("self_paced", threads.NORMED, P, easiest, FIT(2e-3, batch=24, steps=150), "self-paced CNN"
         ),
    *one("large_batch", lambda: nn.Sequential(unit(1, 16, stride=2), unit(16, 32, stride=2),
         *head(32, 10)), data.digits, CE, SGD(0.4, o.warm_up, batch=256, steps=100), "strided CNN"),
    *one("r_drop", partial(cnn.plain, norm=nn.BatchNorm2d, dropout=0.3), P, lambda m, x, y: entropy(
         a := m(x), y) + entropy(b := m(x), y) + (((p := a.log_softmax(1)).exp() - (q :=
         b.log_softmax(1)).exp()) * (p - q)).sum(1).mean() / 2, FIT(2e-3, o.linear_down),
         "CNN, R-Drop"),
    *one("fix_match", threads.NORMED, P, fix_match, FIT(0.03, o.cosine, **NESTEROV, ema=0.98,
         evaluate=40, batch=24), "CNN, FixMatch"),
    *one("stochastic_depth", partial(nets.squeezed, 0.2), P, losses.classes(0.1), FIT(1e-3,
         o.fading, kind=optim.RMSprop, momentum=0.9, eps=1e-3, batch=12), "inverted bottlenecks"),
    *one("dice_focal", dense.LinkNet, data.scenes, lambda m, x, y, *_: losses.dice(m, x, y) + 2 *
         sigmoid_focal_loss(m(x), y, reduction="mean"), FIT(3e-3, o.poly, batch=8, steps=160),
         "LinkNet"),
]  # fmt: skip
CASES = seen("2026-11-28T06:40", ROWS, PICTURES)
