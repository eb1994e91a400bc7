"""Faults to plant in a healthy training, each with the kinds of findings that name it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from check_networks import plain
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

Images = Callable[[Tensor], Tensor]


@dataclass(slots=True)
class Training:
    """A training whose parts a fault replaces.

    Attributes:
        make: creates the network.
        optimize: creates the optimizer.
        images: changes the batch of images, which have mean 0 and standard deviation 1.
        labels: changes the labels.
        build: changes the network, before the optimizer is created.
        late: changes the network afterwards.
        clears: calls ``zero_grad``.
        evaluates: leaves the network in eval mode.
        at: step -> what happens to network and optimizer after it.
    """

    make: Callable[[int], nn.Module]
    optimize: Callable[[nn.Module], Optimizer] = lambda model: Adam(model.parameters(), lr=1e-3)
    images: Images = lambda images: images
    labels: Images = lambda labels: labels
    build: Callable[[nn.Module], None] = lambda model: None
    late: Callable[[nn.Module], None] = lambda model: None
    clears: bool = True
    evaluates: bool = False
    at: dict[int, Callable[[nn.Module, Optimizer], None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """A training with a fault, and the kinds of which one must be found; none if it cannot be."""

    training: Training
    kinds: frozenset[str]


def _each_weight(change: Callable[[Tensor], object]) -> Callable[[nn.Module], None]:
    def build(model: nn.Module) -> None:
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                change(module.weight.data)

    return build


def _with_norm(classes: int) -> nn.Module:
    return plain(classes, norm=nn.BatchNorm2d)


def _biases(value: float) -> Callable[..., None]:
    def change(model: nn.Module, *_: object) -> None:
        for name, parameter in model.named_parameters():
            if name.endswith("bias") and parameter.ndim == 1 and len(parameter) > 10:
                parameter.data.fill_(value)

    return change


def _nan(model: nn.Module, _: Optimizer) -> None:
    next(p for p in model.parameters() if p.ndim == 4).data[0] = math.nan


def _rate(lr: float) -> Callable[[nn.Module, Optimizer], None]:
    def change(_: nn.Module, optimizer: Optimizer) -> None:
        optimizer.param_groups[0]["lr"] = lr

    return change


def _momentum(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1e-4


def _new_head(model: nn.Module) -> None:
    assert isinstance(model, nn.Sequential)
    model[-1] = nn.Linear(model[-1].in_features, model[-1].out_features)


def _deep(classes: int, act: Callable[[], nn.Module] = nn.Sigmoid) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, stride=2, padding=1), act()]
    for _ in range(9):
        layers += [nn.Conv2d(16, 16, 3, padding=1), act()]
    tail = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes))
    return nn.Sequential(*layers, *tail)


def _upsampling(kernel: int) -> Callable[[int], nn.Module]:
    def make(_: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(32, 3, kernel, 2, kernel // 2 - 1 + kernel % 2, kernel % 2),
        )  # fmt: skip

    return make


def _fault(kinds: str, make: Callable[[int], nn.Module] = plain, **parts: object) -> Fault:
    return Fault(Training(make, **parts), frozenset(kinds.split()))  # type: ignore[arg-type]


def _sgd(lr: float) -> Callable[[nn.Module], Optimizer]:
    return lambda model: SGD(model.parameters(), lr=lr, momentum=0.9)


def _constant(value: float) -> Callable[[nn.Module], None]:
    return _each_weight(lambda weight: nn.init.constant_(weight, value))


FAULTS: dict[str, Fault] = {
    "head in no optimizer": _fault("not_in_optimizer", late=_new_head),
    "no zero_grad": _fault("gradients_not_cleared", clears=False),
    "eval mode": _fault("eval_mode", _with_norm, evaluates=True),
    "black images": _fault("constant_images", images=torch.zeros_like),
    "one colour per image": _fault(
        "constant_images", images=lambda x: x.mean((1, 2, 3), keepdim=True).expand_as(x).clone()
    ),
    "one image": _fault("identical_images", images=lambda x: x[:1].expand_as(x).clone()),
    "nan in a weight": _fault("nonfinite", at={30: _nan}),
    "log of zero": _fault("nonfinite", images=lambda x: (x * 0.5 + 0.5).clamp(0).log()),
    "rate zero by mistake": _fault("unchanged_weights update_ratio", optimize=_sgd(1e-12)),
    "half precision updates": _fault(
        "unchanged_weights update_ratio",
        optimize=lambda model: AdamW(model.parameters(), lr=1e-9, weight_decay=0.0),
    ),
    "rate too low": _fault("update_ratio unchanged_weights", optimize=_sgd(1e-7)),
    "rate too high (Adam)": _fault(
        "update_ratio exploding nonfinite dead",
        optimize=lambda model: Adam(model.parameters(), lr=0.3),
    ),
    "rate too high (SGD)": _fault("update_ratio exploding nonfinite dead", optimize=_sgd(20.0)),
    "rate jumps": _fault("exploding nonfinite dead update_ratio", at={30: _rate(1.0)}),
    "negative biases": _fault("dead", late=_biases(-20.0)),
    "biases fall": _fault("dead", at={30: _biases(-20.0)}),
    "sigmoid, deep": _fault("vanishing", _deep),
    "tiny weights, deep": _fault(
        "vanishing", lambda n: _deep(n, nn.ReLU), build=_each_weight(lambda w: w.mul_(0.1))
    ),
    "large weights": _fault("exploding", build=_each_weight(lambda w: w.mul_(10))),
    "large weights, deep": _fault(
        "exploding nonfinite",
        lambda n: _deep(n, nn.ReLU),
        build=_each_weight(lambda w: w.mul_(5)),
    ),
    "constant weights": _fault("copied_channels", build=_constant(0.02)),
    "constant weights with norm": _fault("copied_channels", _with_norm, build=_constant(0.02)),
    "images 0 to 255": _fault("input_scale", images=lambda x: (x * 60 + 120).clamp(0, 255)),
    "images divided by 255 twice": _fault(
        "input_scale", images=lambda x: (x * 60 + 120).clamp(0, 255) / 255**2
    ),
    "momentum of batch norm": _fault("batchnorm_gap", _with_norm, build=_momentum),
    "mixed up batches": _fault(
        "batchnorm_gap",
        _with_norm,
        images=lambda x: x * (10 if torch.rand(()) < 0.5 else 0.1),
    ),
    "transposed kernel 3": _fault("uneven_upsampling", _upsampling(3)),
    "transposed kernel 5": _fault("uneven_upsampling", _upsampling(5)),
    "random labels": _fault("", labels=lambda y: y[torch.randperm(len(y))]),
    "normalized twice": _fault("", images=lambda x: (x - 0.45) / 0.22),
    "channels swapped": _fault("", images=lambda x: x.flip(1)),
}
"""31 faults; the last three are known to be invisible."""
