"""Healthy: unusual loops and ways to log."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path

import torch
from data import P, photos
from loops import Losses, Task, descend, eighty, evaluated, own_loop, seen, train
from losses import named
from nets import classifiers as cnn
from nets.library import timm_model
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.ao.quantization import FakeQuantize, default_weight_fake_quant
from torch.func import functional_call
from torch.nn import functional

QUICK = by(optim.AdamW, lr=2e-3)
NORMED = partial(cnn.plain, norm=nn.BatchNorm2d)


def line_search(place: Path, seed: int) -> Losses:
    """L-BFGS on 128 examples; ends at a loss of 9e-8 with weights that grow."""
    layers = [cnn.unit(3, 16, 5, 2, None, nn.Tanh), cnn.unit(16, 32, 5, 2, None, nn.Tanh)]
    model = nn.Sequential(*layers, *cnn.head(32, 8))
    optimizer = optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
    images, labels = P(Generator().manual_seed(seed), 128)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = named(model, images, labels)
        loss.backward()
        return loss

    def step(*_: object) -> float:
        return float(optimizer.step(closure))

    return train(place, seed, model, step, 40, 4, optimizer)


def sharpness_aware(place: Path, seed: int) -> Losses:
    """SAM: the gradient at the worst point nearby is used for the step."""
    model = NORMED()
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    @torch.no_grad()
    def move(moves: list[Tensor], sign: int) -> None:
        for parameter, way in zip(model.parameters(), moves, strict=True):
            parameter.add_(way, alpha=sign)

    def step(_: int, random: Generator) -> float:
        batch = P(random, 16)
        loss = named(model, *batch)
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
        moves = [0.05 * p.grad / (norm + 1e-12) for p in model.parameters()]
        move(moves, 1)
        optimizer.zero_grad()
        named(model, *batch).backward()
        move(moves, -1)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return train(place, seed, model, step, 60, 10, optimizer)


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return -0.3 * gradient


def domains(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """DANN: half of the photographs are grey, without labels; a domain head behind a reversed
    gradient tells which.
    """
    half = len(images) // 2
    grey = images[half:].mean(1, keepdim=True).expand(-1, 3, -1, -1)
    code = model["back"](torch.cat([images[:half], grey])).relu()
    task = functional.cross_entropy(model["label"](code[:half]), labels[:half])
    where = torch.arange(2).repeat_interleave(half)
    return task + functional.cross_entropy(model["domain"](Reversed.apply(code)), where)


def adversarial() -> nn.Module:
    parts = {"back": cnn.encoder(64), "label": nn.Linear(64, 8), "domain": nn.Linear(64, 2)}
    return nn.ModuleDict(parts)


class Quantized(nn.Module):
    """Weights and activations of 8 bits, simulated."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out)
        self.weights, self.values = default_weight_fake_quant(), FakeQuantize()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv._conv_forward(x, self.weights(self.conv.weight), self.conv.bias)
        return self.values(self.norm(y).relu())


def quantized() -> nn.Module:
    parts = [Quantized(3, 24), nn.MaxPool2d(2), Quantized(24, 48), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(48, 8))


def micro_steps(place: Path, seed: int) -> Losses:
    """Each micro-batch is a marked step; the optimizer steps after every fourth."""
    model = cnn.encoder(8, norm=False)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)

    def step(number: int, random: Generator) -> float:
        loss = named(model, *P(random, 4))
        (loss / 4).backward()
        if (number + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    return train(place, seed, model, step, 240, 13)


def epochs(place: Path, seed: int) -> Losses:
    """A marked step is an epoch: twelve batches, then validation in eval mode."""
    model = cnn.encoder(8)
    optimizer = optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    losses, held_out = Losses(), P(Generator().manual_seed(seed), 32)

    def step(_: int, random: Generator) -> float:
        model.train()
        losses.extend(descend(optimizer, named(model, *P(random, 16))) for _ in range(12))
        model.eval()
        with torch.no_grad():
            model(held_out[0])
        return losses[-1]

    train(place, seed, model, step, 12, 1)
    return losses


def in_backward(place: Path, seed: int) -> Losses:
    """An optimizer per parameter steps as soon as its gradient is there, and drops it."""
    model = cnn.encoder(8)
    own = {p: optim.AdamW([p], lr=1e-3) for p in model.parameters()}

    def update(parameter: Tensor) -> None:
        own[parameter].step()
        own[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)

    def step(_: int, random: Generator) -> float:
        loss = named(model, *P(random, 16))
        loss.backward()
        return loss.item()

    return train(place, seed, model, step, 120, 10)


def maml(place: Path, seed: int) -> Losses:
    """MAML: two inner steps by functional_call, second order; the loss after them."""
    layers = [cnn.unit(3, 24, norm=None), nn.MaxPool2d(2), cnn.unit(24, 32, norm=None)]
    model = nn.Sequential(*layers, nn.MaxPool2d(2), *cnn.head(32, 2))
    optimizer = optim.Adam(model.parameters(), lr=3e-3)

    def task(random: Generator) -> Tensor:
        images, labels = photos(24)(random, 20)
        binary, fast = (labels < 4).long(), dict(model.named_parameters())
        entropy = functional.cross_entropy
        for _ in range(2):
            loss = entropy(functional_call(model, fast, images[:10]), binary[:10])
            slopes = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {n: p - 0.1 * g for (n, p), g in zip(fast.items(), slopes, strict=True)}
        return entropy(functional_call(model, fast, images[10:]), binary[10:])

    def step(_: int, random: Generator) -> float:
        return descend(optimizer, (task(random) + task(random)) / 2)

    return train(place, seed, model, step, 60, 6, optimizer)


def surgery(place: Path, seed: int) -> Losses:
    """PCGrad: gradients of two tasks by autograd.grad, projected, written to ``.grad``."""
    back = nn.Sequential(cnn.unit(3, 24, stride=2), cnn.unit(24, 48, stride=2), *cnn.head(48, 48))
    model = nn.ModuleDict({"back": back, "kind": nn.Linear(48, 8), "tint": nn.Linear(48, 3)})
    optimizer, shared = optim.Adam(model.parameters(), lr=1e-3), list(back.parameters())

    def both(images: Tensor, labels: Tensor) -> list[Tensor]:
        code = model["back"](images).relu()
        tint = functional.mse_loss(model["tint"](code), images.mean((2, 3)))
        return [functional.cross_entropy(model["kind"](code), labels), tint]

    def step(_: int, random: Generator) -> float:
        terms = both(*P(random, 16))
        slopes = [torch.autograd.grad(term, shared, retain_graph=True) for term in terms]
        one, two = (torch.cat([g.flatten() for g in parts]) for parts in slopes)
        across = (one @ two).clamp(max=0)
        mixed = one + two - across * (two / two.norm() ** 2 + one / one.norm() ** 2)
        optimizer.zero_grad()
        sum(terms).backward()
        for p, g in zip(shared, mixed.split([p.numel() for p in shared]), strict=True):
            p.grad = g.view_as(p).clone()
        optimizer.step()
        return sum(terms).item()

    losses = train(place, seed, model, step, 80, 8, optimizer)
    held_out = P(Generator().manual_seed(seed + 1000), 32)
    losses.evaluated = evaluated(model, lambda: sum(both(*held_out)))
    return losses


class Supernet(nn.Module):
    """One-shot architecture search: each block has three branches, and a step uses one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = cnn.unit(3, 24, stride=2)
        deep = nn.Sequential(cnn.unit(24, 24, groups=24), cnn.unit(24, 24, 1))
        branches = [cnn.unit(24, 24, 3), cnn.unit(24, 24, 5), deep]
        self.blocks = nn.ModuleList(nn.ModuleList(copy.deepcopy(branches)) for _ in range(3))
        self.last = nn.Sequential(cnn.unit(24, 48, stride=2), *cnn.head(48, 8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block[int(torch.randint(3, ()))](x)
        return self.last(x)


def muon(place: Path, seed: int) -> Losses:
    """Muon for the matrices of a ViT's blocks, AdamW for the rest; steps are marked."""
    model = timm_model("test_vit", img_size=64)
    inside = [p for n, p in model.named_parameters() if p.ndim == 2 and "blocks" in n]
    known = {id(p) for p in inside}
    rest = [p for p in model.parameters() if id(p) not in known]
    first, second = optim.Muon(inside, lr=0.01, weight_decay=0.01), optim.AdamW(rest, lr=2e-3)

    def step(_: int, random: Generator) -> float:
        second.zero_grad()
        loss = descend(first, named(model, *photos(64)(random, 16)))
        second.step()
        return loss

    return train(place, seed, model, step, 80, 8)


def plateau(place: Path, seed: int) -> Losses:
    """The rate falls when a validation loss, measured in eval mode each 10 steps, does not."""
    model = cnn.encoder(8)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
    shown = P(Generator().manual_seed(seed), 64)

    def step(number: int, random: Generator) -> float:
        if number and number % 10 == 0:
            model.eval()
            with torch.no_grad():
                scheduler.step(named(model, *shown))
        return descend(optimizer, named(model.train(), *P(random, 16)))

    losses = train(place, seed, model, step, 100, lambda number: number % 10 == 9)
    losses.evaluated = evaluated(model, lambda: named(model, *shown))
    return losses


CASES = seen(
    "2026-11-23T03:56",
    own_loop("sam", "plain CNN, BatchNorm", "SAM", sharpness_aware, 60, 10),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("DANN", adversarial, P, domains).cases(
        dann=eighty("gradient reversal", by(optim.SGD, lr=0.02, momentum=0.9), steps=120, batch=32)
    ),
    Task("CNN, fake quantization", quantized, P, named).cases(
        quantized=eighty("Adam 1e-3", steps=100, every=10)
    ),
    own_loop("micro_steps", "encoder CNN, no norm", "micro-batches as steps", micro_steps, 240, 13),
    own_loop("epochs", "encoder CNN", "a step is an epoch with validation", epochs, 12, 1),
    own_loop("in_backward", "encoder CNN", "optimizers in backward", in_backward, 120, 10),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("one-shot supernet", Supernet, P, named).cases(
        supernet=eighty(
            "a random path per step", by(optim.SGD, lr=0.05, momentum=0.9), steps=120, every=6
        )
    ),
    own_loop("maml", "CNN, no norm", "MAML, second order", maml, 60, 6),
    own_loop("surgery", "two-task CNN", "PCGrad", surgery, 80, 8),
    own_loop("muon", "timm ViT", "Muon and AdamW", muon, 80, 8),
)
CASES += seen(
    "2026-11-23T10:43",
    own_loop("line_search", "tanh CNN", "L-BFGS, 128 examples", line_search, 40, 4),
    own_loop("plateau", "encoder CNN", "plateau of the eval loss, marked", plateau, 100, 10),
    held_out=True,
)
