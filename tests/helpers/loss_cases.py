"""Losses to be read from outputs and gradients: ten that can be read, and others.

A loss is a function of the outputs [N, C], the labels [N] and a generator of random numbers, which
returns the loss. Outputs may be float64, so that its exact gradient can be computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional as F

Loss = Callable[[Tensor, Tensor, Generator], Tensor]

STATES = ("initial", "trained", "1e-3")
CLASSES = (2, 3, 10, 1000)
UNITS = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


@dataclass(frozen=True, slots=True)
class Numbers:
    """A type of numbers.

    Attributes:
        dtype: of outputs and gradients.
        inside: in which the loss is computed.
        factor: of the loss.
    """

    dtype: torch.dtype
    inside: torch.dtype
    factor: float = 1.0

    def __str__(self) -> str:
        name = str(self.dtype).removeprefix("torch.")
        of_loss = "" if self.inside == torch.float32 else f", loss in {name}"
        return f"{name}{f' × {self.factor:,.0f}' if self.factor > 1 else ''}{of_loss}"


NUMBERS = (
    Numbers(torch.float32, torch.float32),
    Numbers(torch.bfloat16, torch.float32),
    Numbers(torch.float16, torch.float32, 65536.0),
    Numbers(torch.bfloat16, torch.bfloat16),
    Numbers(torch.float16, torch.float16, 1024.0),
)


@dataclass(frozen=True, slots=True)
class Case:
    """Outputs and labels.

    Attributes:
        seed: of what the losses draw.
        numbers: type of the numbers.
        state: of the network.
        classes: number of classes.
        labels: [N].
        logits: f32 [N, C].
    """

    seed: int
    numbers: Numbers
    state: str
    classes: int
    labels: Tensor
    logits: Tensor

    def __str__(self) -> str:
        return f"{self.numbers}, {self.state}, {self.classes} classes"


def case_of(seed: int, numbers: Numbers, state: str, classes: int, rows: int = 64) -> Case:
    """Outputs as of a network in this state."""
    generator = torch.Generator().manual_seed(1000 * seed + classes)
    labels = torch.randint(0, classes, (rows,), generator=generator)
    noise = torch.randn(rows, classes, generator=generator)
    is_right = (torch.rand(rows, 1, generator=generator) < 0.9).float()
    lift = (3.0 + math.log(classes)) * is_right * F.one_hot(labels, classes)
    logits = {"1e-3": 1e-3 * noise, "initial": 0.5 * noise, "trained": noise + lift}[state]
    return Case(seed, numbers, state, classes, labels, logits)


def gradient(loss: Loss, output: Tensor, case: Case) -> Tensor:
    """The gradient of the output, in the output's dtype."""
    leaf = output.clone().requires_grad_()
    generator = torch.Generator().manual_seed(case.seed)
    value = loss(leaf.to(case.numbers.inside), case.labels, generator)
    (value * case.numbers.factor).backward()
    assert leaf.grad is not None
    return leaf.grad


@dataclass(frozen=True, slots=True)
class Readable:
    """A loss that can be read.

    Attributes:
        kind: as which it is to be read.
        loss: what is trained with.
        value: loss per row without weights, of the rows that count; what is to be read.
        units: number of outputs; None for as many as classes.
        prepare: applied to the outputs.
        without: numbers of classes for which it does not count.
    """

    kind: str
    loss: Loss
    value: Loss
    units: int | None = None
    prepare: Callable[[Tensor], Tensor] = lambda o: o
    without: tuple[int, ...] = ()


def _ce(o: Tensor, y: Tensor, _: Generator) -> Tensor:
    return F.cross_entropy(o, y)


def _nll(o: Tensor, y: Tensor, _: Generator) -> Tensor:
    return F.nll_loss(o, y)


def _class_weights(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    weight = torch.rand(o.shape[1], generator=g).to(o.dtype) + 0.2
    return F.cross_entropy(o, y, weight=weight)


def _ignored(o: Tensor, y: Tensor, _: Generator) -> Tensor:
    return F.cross_entropy(o, torch.where(torch.arange(len(y)) % 4 == 0, -100, y))


def _mixup(o: Tensor, y: Tensor, _: Generator) -> Tensor:
    return 0.7 * F.cross_entropy(o, y) + 0.3 * F.cross_entropy(o, y.flip(0))


def _smoothing(o: Tensor, y: Tensor, _: Generator) -> Tensor:
    return F.cross_entropy(o, y, label_smoothing=0.1)


def _several(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    chance = (0.5 * F.one_hot(y, o.shape[1]) + 0.25).float()
    return F.binary_cross_entropy_with_logits(o, torch.bernoulli(chance, generator=g).to(o.dtype))


def _one_logit(o: Tensor, y: Tensor, _: Generator) -> Tensor:
    return F.binary_cross_entropy_with_logits(o[:, 0], (y % 2).to(o.dtype))


READABLE: dict[str, Readable] = {
    "cross-entropy, mean": Readable("cross-entropy", _ce, _ce),
    "cross-entropy, sum": Readable(
        "cross-entropy", lambda o, y, g: F.cross_entropy(o, y, reduction="sum"), _ce
    ),
    "cross-entropy / 4": Readable("cross-entropy", lambda o, y, g: _ce(o, y, g) / 4, _ce),
    "class weights": Readable("cross-entropy, class weights", _class_weights, _ce, without=(1000,)),
    "ignore_index": Readable("cross-entropy", _ignored, _ignored),
    "label smoothing": Readable("cross-entropy, smoothing", _smoothing, _smoothing, without=(2, 3)),
    "mixup": Readable("cross-entropy, mixed labels", _mixup, _mixup, without=(2, 3)),
    "nll_loss": Readable(
        "NLL of log-probabilities",
        _nll,
        _nll,
        prepare=lambda o: o.log_softmax(1),
    ),
    "BCE, several labels": Readable("BCE with logits", _several, _several),
    "BCE, one logit": Readable("BCE with logits", _one_logit, _one_logit, units=1),
}


def _p(o: Tensor, y: Tensor) -> Tensor:
    return o.softmax(1).gather(1, y[:, None])[:, 0]


def _logp(o: Tensor, y: Tensor) -> Tensor:
    return o.log_softmax(1).gather(1, y[:, None])[:, 0]


def _hot(o: Tensor, y: Tensor) -> Tensor:
    return F.one_hot(y, o.shape[1]).to(o.dtype)


def _noise(o: Tensor, generator: Generator, *shape: int) -> Tensor:
    return torch.randn(*(shape or o.shape), generator=generator).to(o.dtype)


def _uniform(o: Tensor, generator: Generator, *shape: int) -> Tensor:
    return torch.rand(*(shape or o.shape), generator=generator).to(o.dtype)


def _focal(o: Tensor, y: Tensor, power: float = 2.0) -> Tensor:
    return ((1 - _p(o, y)) ** power * -_logp(o, y)).mean()


def _dice(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    p, t = o.softmax(1), _hot(o, y)
    return (1 - (2 * (p * t).sum(0) + 1) / (p.sum(0) + t.sum(0) + 1)).mean()


def _sigmoid_focal(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    t, q = _hot(o, y), o.sigmoid()
    each = F.binary_cross_entropy_with_logits(o, t, reduction="none")
    return (((1 - q) * t + q * (1 - t)) ** 2 * each).mean()


def _distillation(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    teacher = _noise(o, g) + 3 * _hot(o, y)
    soft = F.kl_div((o / 4).log_softmax(1), (teacher / 4).softmax(1), reduction="batchmean")
    return 0.5 * F.cross_entropy(o, y) + 8 * soft


def _noise_matrix(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    size = o.shape[1]
    matrix = 0.9 * torch.eye(size, dtype=o.dtype) + 0.1 * _uniform(o, g, size, size).softmax(1)
    return F.nll_loss((o.softmax(1) @ matrix).log(), y)


def _bootstrapping(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    target = 0.8 * _hot(o, y) + 0.2 * o.softmax(1)
    return -(target * o.log_softmax(1)).sum(1).mean()


def _symmetric(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    return F.cross_entropy(o, y) + 4 * (1 - _p(o, y)).mean()


def _entropy(o: Tensor) -> Tensor:
    return -(o.softmax(1) * o.log_softmax(1)).sum(1).mean()


def _large_margin(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    return F.cross_entropy(4 * (F.normalize(o) - 0.35 * _hot(o, y)), y)


def _contrastive(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    unit = F.normalize(o)
    return F.cross_entropy(unit @ unit.flip(0).T / 0.1, torch.arange(len(o)))


def _ppo(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    old = (o + 0.1 * _noise(o, g)).detach()
    ratio, advantage = (_logp(o, y) - _logp(old, y)).exp(), _noise(o, g, len(y))
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


def _asymmetric(o: Tensor, y: Tensor, g: Generator) -> Tensor:
    q, t = o.sigmoid(), _hot(o, y)
    shifted = (q - 0.05).clamp_min(0)
    return -(t * q.clamp_min(1e-8).log() + (1 - t) * shifted**4 * (1 - shifted).log()).mean()


OTHERS: dict[str, Loss] = {
    "focal": lambda o, y, g: _focal(o, y),
    "focal, power 0.5": lambda o, y, g: _focal(o, y, 0.5),
    "sigmoid focal": _sigmoid_focal,
    "dice": _dice,
    "generalized cross-entropy": lambda o, y, g: ((1 - _p(o, y) ** 0.7) / 0.7).mean(),
    "generalized cross-entropy, q 0.1": lambda o, y, g: ((1 - _p(o, y) ** 0.1) / 0.1).mean(),
    "poly-1": lambda o, y, g: (1 - _p(o, y) - _logp(o, y)).mean(),
    "Brier": lambda o, y, g: (o.softmax(1) - _hot(o, y)).square().sum(1).mean(),
    "probability of the label": lambda o, y, g: -_p(o, y).mean(),
    "L1 of probabilities": lambda o, y, g: (o.softmax(1) - _hot(o, y)).abs().sum(1).mean(),
    "MSE with one-hot labels": lambda o, y, g: F.mse_loss(o, _hot(o, y)),
    "MSE with random targets": lambda o, y, g: F.mse_loss(o, _noise(o, g)),
    "L1": lambda o, y, g: F.l1_loss(o, _noise(o, g)),
    "smooth L1": lambda o, y, g: F.smooth_l1_loss(o, _noise(o, g)),
    "Huber of sigmoid": lambda o, y, g: F.huber_loss(o.sigmoid(), _uniform(o, g)),
    "MSE of sigmoid": lambda o, y, g: F.mse_loss(o.sigmoid(), _hot(o, y)),
    "hinge": lambda o, y, g: F.multi_margin_loss(o, y),
    "squared hinge": lambda o, y, g: F.multi_margin_loss(o, y, p=2),
    "hinge, most violated class": lambda o, y, g: (
        (o + 1 - _hot(o, y)).max(1).values - o.gather(1, y[:, None])[:, 0]
    ).mean(),
    "hinge per output": lambda o, y, g: (1 - (2 * _hot(o, y) - 1) * o).clamp_min(0).mean(),
    "soft margin": lambda o, y, g: F.soft_margin_loss(2 * o, 2 * _hot(o, y) - 1),
    "WGAN critic": lambda o, y, g: ((2 * (y % 2) - 1) * o[:, 0]).mean(),
    "LSGAN": lambda o, y, g: (o[:, 0] - (y % 2)).square().mean(),
    "policy gradient": lambda o, y, g: (-_logp(o, y) * _noise(o, g, len(y))).mean(),
    "policy gradient, rewards 0 to 1": lambda o, y, g: (
        -_logp(o, y) * _uniform(o, g, len(y))
    ).mean(),
    "PPO": _ppo,
    "weights per sample": lambda o, y, g: (-_logp(o, y) * (_uniform(o, g, len(y)) + 0.1)).mean(),
    "distillation": _distillation,
    "soft teacher": lambda o, y, g: F.cross_entropy(o, (2 * _noise(o, g)).softmax(1)),
    "logit adjustment": lambda o, y, g: F.cross_entropy(
        o + _uniform(o, g, o.shape[1]).log_softmax(0), y
    ),
    "temperature 2": lambda o, y, g: F.cross_entropy(o / 2, y),
    "temperature 1.05": lambda o, y, g: F.cross_entropy(o / 1.05, y),
    "temperature 0.1": lambda o, y, g: F.cross_entropy(o / 0.1, y),
    "noise matrix": _noise_matrix,
    "symmetric noise": lambda o, y, g: -(0.9 * _p(o, y) + 0.1 / o.shape[1]).log().mean(),
    "entropy added": lambda o, y, g: F.cross_entropy(o, y) + 0.1 * _entropy(o),
    "entropy subtracted": lambda o, y, g: F.cross_entropy(o, y) - 0.1 * _entropy(o),
    "bootstrapping": _bootstrapping,
    "bootstrapping, probabilities detached": lambda o, y, g: F.cross_entropy(
        o, 0.8 * _hot(o, y) + 0.2 * o.softmax(1).detach()
    ),
    "symmetric cross-entropy": _symmetric,
    "z-loss added": lambda o, y, g: F.cross_entropy(o, y) + 1e-2 * o.logsumexp(1).square().mean(),
    "L2 of the logits added": lambda o, y, g: F.cross_entropy(o, y) + 0.01 * o.square().mean(),
    "additive margin": _large_margin,
    "margin on logits": lambda o, y, g: F.cross_entropy(o - 0.5 * _hot(o, y), y),
    "contrastive": _contrastive,
    "BCE with pos_weight": lambda o, y, g: F.binary_cross_entropy_with_logits(
        o, _hot(o, y), pos_weight=torch.full_like(o[0], 3.0)
    ),
    "BCE with smoothed targets": lambda o, y, g: F.binary_cross_entropy_with_logits(
        o, 0.9 * _hot(o, y) + 0.05
    ),
    "BCE with soft targets": lambda o, y, g: F.binary_cross_entropy_with_logits(o, _uniform(o, g)),
    "BCE of logits / 2": lambda o, y, g: F.binary_cross_entropy_with_logits(o / 2, _hot(o, y)),
    "asymmetric": _asymmetric,
    "Poisson NLL": lambda o, y, g: F.poisson_nll_loss(o, _hot(o, y)),
    "cross-entropy of logarithms": lambda o, y, g: F.cross_entropy(o.abs().log1p(), y),
    "log-cosh": lambda o, y, g: (o - _hot(o, y)).cosh().log().mean(),
    "mean": lambda o, y, g: o.mean(),
    "sum of squares": lambda o, y, g: o.square().sum(),
}


def _at(o: Tensor, y: Tensor) -> Tensor:
    return o.gather(1, y[:, None])[:, 0]


OF_LOGARITHMS: dict[str, Loss] = {
    "focal": lambda o, y, g: ((1 - _at(o, y).exp()) ** 2 * -_at(o, y)).mean(),
    "generalized cross-entropy": lambda o, y, g: (1 - (0.7 * _at(o, y)).exp()).mean() / 0.7,
    "poly-1": lambda o, y, g: (1 - _at(o, y).exp() - _at(o, y)).mean(),
    "policy gradient": lambda o, y, g: (-_at(o, y) * _noise(o, g, len(y))).mean(),
    "weights per sample": lambda o, y, g: (-_at(o, y) * (_uniform(o, g, len(y)) + 0.1)).mean(),
    "probability of the label": lambda o, y, g: -_at(o, y).exp().mean(),
    "square": lambda o, y, g: _at(o, y).square().mean(),
    "smoothing": lambda o, y, g: -(0.9 * _at(o, y) + 0.1 * o.mean(1)).mean(),
    "soft teacher": lambda o, y, g: F.kl_div(
        o, (2 * _noise(o, g)).softmax(1), reduction="batchmean"
    ),
    "MSE": lambda o, y, g: F.mse_loss(o, _noise(o, g)),
}
"""Of outputs that are logarithms of probabilities."""
