"""Healthy: more tutorials, courses and reference implementations; the checks were not known."""

from __future__ import annotations

import copy
import functools
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_fifth as fifth
from cases.faults import strangers_seventh as threads
from cases.healthy import strangers_eighth as eighth
from cases.healthy.strangers_eighth import Net
from cases.healthy.strangers_maps import agent, bce, projected
from cases.healthy.strangers_pictures import DECAY, NESTEROV, one
from cases.healthy.strangers_seventh import FIT, SGD
from data import P, changed
from loops import Losses, descend, duel, own_loop, seen, train
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.classifiers import Function, head, unit
from nets.generative import Timed
from torch import Generator, Tensor, nn, optim
from torch.ao import quantization as quant
from torch.nn import functional
from torchvision.ops import box_convert, generalized_box_iou_loss
from torchvision.transforms import v2

mlp, CE, DIGITS, SCENES = fifth.mlp, losses.classes(), data.digits, data.scenes
LONG, FEW, NORMED = threads.LONG, threads.FEW, threads.NORMED
Adam = optim.Optimizer
larger = partial(functional.interpolate, scale_factor=2)
RANDOM = v2.Compose([v2.RandomCrop(32, 4), v2.RandomHorizontalFlip(), v2.RandAugment(2, 9),
         v2.ToDtype(torch.float32, scale=True), v2.Normalize(*data.IMAGENET)])  # fmt: skip


class Moments(nn.Module):
    """d2l's BatchNorm, written by hand."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.mean, self.var = torch.zeros(shape), torch.ones(shape)

    def forward(self, x: Tensor) -> Tensor:
        mean, var, over = self.mean, self.var, (0, 2, 3)[: 1 + 2 * (x.ndim > 2)]
        if self.training:
            mean = x.mean(over, keepdim=True)
            var = (x - mean).square().mean(over, keepdim=True)
            self.mean = 0.9 * self.mean + 0.1 * mean[0].detach()
            self.var = 0.9 * self.var + 0.1 * var[0].detach()
        return self.gain * (x - mean) / (var + 1e-5).sqrt() + self.shift


class Shaken(nn.Module):
    """Shake-Shake: other random shares of two branches forward and backward."""

    def __init__(self, width: int) -> None:
        super().__init__()
        body = [nn.ReLU(), unit(width, width), nn.Conv2d(width, width, 3, 1, 1)]
        self.sides = nn.ModuleList(nn.Sequential(*copy.deepcopy(body), nn.BatchNorm2d(width))
            for _ in range(2))  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        one, two = (side(x) for side in self.sides)
        there, back = torch.rand(2, len(x), 1, 1, 1) if self.training else torch.full((2, 1), 0.5)
        slope = back * one + (1 - back) * two
        return x + slope + (there * one + (1 - there) * two - slope).detach()


class Capsules(nn.Module):
    """CapsNet of digits; returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 32, 9), nn.Conv2d(32, 32, 9, 2)
        self.votes = nn.Parameter(0.05 * torch.randn(144, 10, 16, 8))
        self.back = nn.Sequential(mlp(160, 128, 784), nn.Sigmoid())

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        low = self.second(self.first(x).relu()).unflatten(1, (4, 8)).movedim(2, 4).flatten(1, 3)
        votes, share = torch.einsum("coij,ncj->ncoi", self.votes, squash(low)), x.new_zeros(1)
        for turn in range(3):
            high = squash((votes * (share.softmax(2) if turn else 0.1)).sum(1))
            share = share + (votes * high[:, None]).sum(3, keepdim=True)
        size, true = high.square().sum(2).add(1e-9).sqrt(), functional.one_hot(y, 10)
        apart = true * (0.9 - size).relu() ** 2 + 0.5 * (1 - true) * (size - 0.1).relu() ** 2
        again = self.back((high * true[..., None]).flatten(1)) - x.flatten(1)
        return apart.sum(1).mean() + 0.0005 * again.square().sum(1).mean()


def squash(x: Tensor) -> Tensor:
    size = x.square().sum(-1, keepdim=True)
    return x * size / (1 + size) / (size + 1e-9).sqrt()


@functools.cache
def teacher() -> nn.Module:
    return cnn.pretrained(cnn.resnet).eval().requires_grad_(False)


def distilled(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """PyTorch's tutorial: temperature 2, a quarter of the loss from the teacher."""
    found, soft = model(x), (teacher()(x) / 2).softmax(1)
    far = functional.kl_div((found / 2).log_softmax(1), soft, reduction="batchmean")
    return 0.25 * 4 * far + 0.75 * functional.cross_entropy(found, y)


def prepared() -> nn.Module:
    """PyTorch's eager quantization-aware training of a trained network."""
    warnings.simplefilter("ignore", DeprecationWarning)
    parts = [quant.QuantStub(), *cnn.pretrained(NORMED), quant.DeQuantStub()]
    fused = [[f"{n}.{k}" for k in range(3)] for n in (1, 3, 5)]
    model = quant.fuse_modules_qat(nn.Sequential(*parts).train(), fused)
    model.qconfig = quant.get_default_qat_qconfig("fbgemm")
    return quant.prepare_qat(model)


def settled(step: int, model: nn.Module, _: object) -> None:
    """The statistics of BatchNorm are frozen, then the observers."""
    if step in (70, 90):
        frozen = torch.ao.nn.intrinsic.qat.freeze_bn_stats
        model.apply(frozen if step == 70 else quant.disable_observer)


def scaler(place: Path, seed: int) -> Losses:
    """PyTorch's recipe of mixed precision, with clipping."""
    model, scale = NORMED(), torch.amp.GradScaler("cpu")
    optimizer = optim.SGD(model.parameters(), 0.02, 0.9)

    def step(_: int, random: Generator) -> float:
        with torch.autocast("cpu", torch.float16):
            loss = CE(model, *P(random, 16))
        optimizer.zero_grad()
        scale.scale(loss).backward()
        scale.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scale.step(optimizer)
        scale.update()
        return loss.item()

    return train(place, seed, model, step, 120, 10, optimizer)


def centred(place: Path, seed: int) -> Losses:
    """The centre loss of codes of two numbers, whose centres have an optimizer of their own."""
    layers = [unit(a, b, 5, 2, None, nn.PReLU) for a, b in ((1, 32), (32, 64), (64, 64))]
    back = nn.Sequential(*layers, nn.Flatten(), nn.Linear(1024, 2))
    model = Net(lambda m, x: ((f := m["back"](x)), m["last"](f)), back=back, last=nn.Linear(2, 10))
    centres = nn.Parameter(torch.randn(10, 2))
    first, second = optim.SGD(model.parameters(), 0.01, 0.9), optim.SGD([centres], 0.5)

    def step(_: int, random: Generator) -> float:
        x, y = DIGITS(random, 64)
        code, found = model(x)
        near = (code - centres[y]).square().sum(1).mean() / 2
        second.zero_grad()
        loss = descend(first, functional.cross_entropy(found, y) + 0.1 * near)
        centres.grad.mul_(10)
        second.step()
        return loss

    return train(place, seed, model, step, 195, 13, first)


class Mixed(nn.Module):
    """DARTS: a mean of all operations by their learnt shares."""

    def __init__(self, width: int) -> None:
        super().__init__()
        deep = nn.Sequential(unit(width, width, groups=width), unit(width, width, 1))
        pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.BatchNorm2d(width, affine=False))
        self.ways = nn.ModuleList([unit(width, width), deep, pool, nn.Identity()])
        self.share = nn.Parameter(1e-3 * torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        return sum(a * way(x) for a, way in zip(self.share.softmax(0), self.ways, strict=True))


def darts(place: Path, seed: int) -> Losses:
    """First order: shares by Adam on the other half of the data, weights by SGD."""
    model = nn.Sequential(unit(3, 24, 3, 2), Mixed(24), unit(24, 32, 3, 2), Mixed(32), *head(32, 8))
    shares = [model[1].share, model[3].share]
    weights = [p for n, p in model.named_parameters() if "share" not in n]
    first = optim.SGD(weights, 0.025, 0.9, weight_decay=3e-4)
    second = optim.Adam(shares, 3e-4, betas=(0.5, 0.999), weight_decay=1e-3)

    def step(_: int, random: Generator) -> float:
        descend(second, CE(model, *P(random, 16)))
        return descend(first, CE(model, *P(random, 16)))

    return train(place, seed, model, step, 120, 10)


def few_shot(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Prototypical networks: four of each class make its centre, four are asked."""
    code = model(x).view(4, 8, -1)
    far = torch.cdist(code[:, 4:].flatten(0, 1), code[:, :4].mean(1)).square()
    return functional.cross_entropy(-far, torch.arange(4).repeat_interleave(4))


def chest() -> nn.Module:
    model = cnn.pretrained(library.densenet)
    model.classifier = nn.Linear(model.classifier.in_features, 4)
    return model


AUX = [nn.AdaptiveAvgPool2d, unit]
CLASSIFIERS = [
    *one("cs231n", lambda: nn.Sequential(nn.Conv2d(3, 32, 5, 1, 2), nn.ReLU(), nn.Conv2d(32, 16, 3,
         1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16384, 8)), P, CE, SGD(0.01, nesterov=True,
         batch=64, steps=100), "three-layer ConvNet"),
    *one("fastbook", lambda: nn.Sequential(*(layer for n, (a, b) in enumerate(((1, 8), (8, 16), (16,
         32), (32, 64), (64, 10)), 1) for layer in (nn.Conv2d(a, b, 5 if n == 1 else 3, 2, 2 if n ==
         1 else 1), nn.ReLU() if n < 5 else nn.Identity(), nn.BatchNorm2d(b))), nn.Flatten()),
         DIGITS, CE, FIT(6e-3, o.one_cycle(0.06), batch=64), "fastbook's CNN"),
    *one("bn_scratch", lambda: nn.Sequential(nn.Conv2d(1, 6, 5), Moments(6, 1, 1), nn.Sigmoid(),
         nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), Moments(16, 1, 1), nn.Sigmoid(), nn.AvgPool2d(2),
         nn.Flatten(), nn.Linear(256, 120), Moments(120), nn.Sigmoid(), nn.Linear(120, 84),
         Moments(84), nn.Sigmoid(), nn.Linear(84, 10)), DIGITS, CE, FIT(1.0, kind=optim.SGD,
         batch=64), "LeNet, own BatchNorm"),
    *one("auxiliary", lambda: Net(lambda m, x: (m["back"](f := m["front"](x)), m["aux"](f)),
         front=nn.Sequential(unit(3, 24, 5, 2), nets.Branches(24, 12)), back=nn.Sequential(
         nets.Branches(48, 12), nn.MaxPool2d(2), nets.Branches(48, 20), *head(80, 8, 0.4)),
         aux=nn.Sequential(nn.AdaptiveAvgPool2d(4), unit(48, 32, 1), nn.Flatten(), mlp(512, 64),
         nn.ReLU(), nn.Dropout(0.7), nn.Linear(64, 8))), P, lambda m, x, y: (lambda f, a:
         functional.cross_entropy(f, y) + 0.3 * functional.cross_entropy(a, y))(*m(x)), SGD(0.01,
         o.stairs), "GoogLeNet, auxiliary head"),
    *one("shake_shake", lambda: nn.Sequential(unit(3, 24, 3, 2), Shaken(24), unit(24, 32, 3, 2),
         Shaken(32), nn.ReLU(), *head(32, 8)), P, CE, FIT(0.05, o.cosine, **NESTEROV),
         "Shake-Shake"),
    *one("rand_augment", cnn.resnet, data.UNIT, lambda m, x, y: losses.classes(0.1)(m, torch.stack([
         RANDOM((255 * i).byte()) for i in x]), y), SGD(0.05, o.warm_up, weight_decay=1e-4, ema=0.98
         ), "ResNet, RandAugment"),
    *one("distilled", NORMED, P, distilled, FIT(1e-3), "CNN, taught"),
    *one("eager_qat", prepared, P, CE, SGD(2e-3, before=settled), "CNN, 8 bits"),
    *own_loop("scaler", "CNN", "float16, GradScaler", scaler, 120, 10),
    *one("capsules", Capsules, DIGITS, lambda m, x, y: m(x, y), FIT(1e-3, o.fading, batch=16),
         "CapsNet"),
    *one("prototypes", lambda: nn.Sequential(*(layer for a in (3, 24, 24, 24) for layer in (unit(a,
         24), nn.MaxPool2d(2))), nn.Flatten()), data.few_classes, few_shot, FIT(1e-3, steps=100),
         "prototypical network"),
    *own_loop("center_loss", "LeNet++", "centre loss", centred, 195, 13),
    *own_loop("darts", "DARTS", "SGD, and Adam for the shares", darts, 120, 10),
    *one("steering", lambda: nn.Sequential(Function(lambda x: x / 127.5 - 1), *(unit(a, b, k, s,
         None, nn.ELU) for a, b, k, s in ((3, 24, 5, 2), (24, 36, 5, 2), (36, 48, 3, 1), (48, 64, 3,
         1))), nn.Dropout(0.5), nn.Flatten(), mlp(4096, 100, 50, 10, 1, act=nn.ELU)), changed(SCENES
         , lambda x: 127.5 * (x + 1)), lambda m, x, *y: functional.mse_loss(m(x), y[1][:, :1] / 16 -
         1), FIT(1e-3), "PilotNet"),
    *one("chest", chest, data.colourless(), lambda m, x, y: bce(m(x), (y[:, None] == torch.arange(4)
         ).float(), pos_weight=torch.tensor(7.0)), FIT(1e-4, **LONG), "CheXNet"),
]  # fmt: skip
CASES = seen("2026-11-28T06:00", CLASSIFIERS)
