"""Seeded trainings with fmapboard, one per set-up whose records must not change."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import torch
from torch import Tensor, nn

import fmapboard

Training = Callable[[Path], None]
TRAININGS: dict[str, Training] = {}
MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def training(function: Training) -> Training:
    """Register a training under its function's name."""
    TRAININGS[function.__name__] = function
    return function


def images(*shape: int) -> Tensor:
    return torch.randn(shape or (4, 3, 20, 24))


def learn(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss(model, x).backward()
    optimizer.step()


def loss(model: nn.Module, x: Tensor) -> Tensor:
    out = model(x)
    out = out.real if out.is_complex() else out.float()
    return nn.functional.cross_entropy(out, torch.arange(len(x)) % 4)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def fit(
    model: nn.Module, run: Path | None, *shape: int, steps: int = 3,
    before: Callable[[int], None] | None = None, **options: Any,
) -> None:  # fmt: skip
    """Train and log some marked steps; ``before`` is called before each."""
    optimizer = sgd(model)
    with fmapboard.watch(model, run, **{"every": 1, **options}) as board:
        for step in range(steps):
            if before is not None:
                before(step)
            with board.step(step):
                learn(model, images(*shape), optimizer)


def normalization() -> dict[str, Any]:
    """The options of this version that undo the normalization of the input."""
    if "normalization" in inspect.signature(fmapboard.watch).parameters:
        return {"normalization": (MEAN, STD)}
    return {"input_mean": MEAN, "input_std": STD}


PLAIN: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {"samples": 3, "inputs": True, "activation_gradients": True, "kernels": 1},
    "kernels_every_2": {"kernels": 2},
    "no_kernels": {"kernels": False},
    "scale_layer": {"scale": "layer"},
    "scale_locked": {"scale": "locked", "inputs": True},
    "viridis": {"colormap": "viridis", "kernels": 1},
    "signed": {"colormap": "signed", "activation_gradients": True},
    "few_small_channels": {"max_channels": 3, "max_tile": 7},
    "no_limits": {"max_channels": None, "max_tile": None},
    "named": {"name": "critic", "inputs": True},
    "input_normalized": normalization(),
    "chosen_layers": {"layers": ["2", "!0"]},
    "chosen_types": {"layers": [nn.ReLU, nn.Linear], "inputs": True},
    "few_bytes": {"max_bytes_per_step": 25_000, "samples": 2, "inputs": True},
    "fewer_bytes": {"max_bytes_per_step": 9_000, "activation_gradients": True},
    "schedule": {"every": lambda step: step in (1, 4), "steps": 6},
}
for _name, _options in PLAIN.items():
    TRAININGS[_name] = lambda run, options=_options: fit(models.convolutions(), run, **options)


def _other(name: str, build: Callable[[], nn.Module], *shape: int, **options: Any) -> None:
    TRAININGS[name] = lambda run: fit(build(), run, *shape, **options)


BOTH: dict[str, Any] = {"inputs": True, "activation_gradients": True, "kernels": 1, "samples": 2}
_other("repeated_calls", models.Repeated, **BOTH)
_other("wide", lambda: models.Flattened(nn.Conv2d(3, 80, 3), nn.ReLU()), 2, 3, 150, 130, **BOTH)
_other(
    "wide_few_bytes",
    lambda: models.Flattened(nn.Conv2d(3, 80, 3), nn.ReLU()),
    *(2, 3, 90, 70),
    max_bytes_per_step=60_000,
    inputs=True,
    max_channels=None,
)
_other(
    "transposed",
    lambda: models.Flattened(nn.ConvTranspose2d(3, 6, 3, stride=2), nn.ReLU(), nn.Conv2d(6, 4, 3)),
    layers="*",
    **BOTH,
)
_other(
    "sequences",
    lambda: models.Flattened(nn.Conv1d(3, 6, 5), nn.ReLU(), nn.Conv1d(6, 4, 3)),
    4,
    3,
    40,
    layers="body.*",
    **BOTH,
)
_other(
    "volumes",
    lambda: models.Flattened(nn.Conv3d(3, 5, 2), nn.ReLU(), nn.Conv3d(5, 4, 2)),
    2,
    3,
    4,
    8,
    8,
    layers="*",
    **BOTH,
)
_other("images_and_sequences", models.Sequences, 4, 3, 40, 40, layers="*", **BOTH)
_other("tokens", models.tokens, 2, 3, 32, 32, layers="*", inputs=True)
_other(
    "grouped",
    lambda: models.Flattened(
        nn.Conv2d(3, 6, 3, groups=3), nn.BatchNorm2d(6), nn.ReLU6(), nn.Conv2d(6, 4, 1)
    ),
    **BOTH,
)
_other("channels_last", lambda: models.convolutions().to(memory_format=torch.channels_last), **BOTH)
_other(
    "doubles",
    lambda: models.Flattened(models.Cast(torch.float64), nn.Conv2d(3, 4, 3).double()),
    **BOTH,
)
_other(
    "bfloat16",
    lambda: models.Flattened(models.Cast(torch.bfloat16), nn.Conv2d(3, 4, 3).to(torch.bfloat16)),
    **BOTH,
)
_other(
    "float16",
    lambda: models.Flattened(nn.Conv2d(3, 4, 3), models.Cast(torch.float16)),
    layers=[nn.Conv2d, models.Cast],
)
_other(
    "complex",
    lambda: models.Flattened(models.Cast(torch.complex64), nn.Conv2d(3, 4, 3).to(torch.complex64)),
    layers=[nn.Conv2d, models.Cast],
)


def _set(layer: Any, channel: int, weight: float, bias: float) -> None:
    with torch.no_grad():
        layer.weight[channel], layer.bias[channel] = weight, bias


@training
def bad_numbers(run: Path) -> None:
    model = models.convolutions()

    def spoil(step: int) -> None:
        _set(model[0], 0, 0.0, 2.0)  # constant
        _set(model[0], 1, 0.0, -2.0)  # constant, and dead after the ReLU
        model[2].bias.data[0] = -100.0  # dead after the ReLU
        if step == 2:
            _set(model[0], 2, float("nan"), 0.0)
            _set(model[0], 3, 0.0, float("inf"))
            _set(model[0], 4, 0.0, float("-inf"))

    fit(model, run, before=spoil, **BOTH)


@training
def probe(run: Path) -> None:
    model = nn.Sequential(models.convolutions(), nn.Dropout(0.5))
    fit(model, run, probe=images(2, 3, 26, 22), **normalization())


@training
def lazy_probe_tuple(run: Path) -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model(images())
    fit(model, run, probe=(images(1, 3, 9, 9),), inputs=True)
