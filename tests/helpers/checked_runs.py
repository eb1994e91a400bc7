"""Small trainings on random images, healthy or with one planted fault, and `fmapboard check`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fmapboard
from fmapboard.cli.main import run

STEPS = 12
JUMP_AT, NAN_AT = 4, 6


def network() -> nn.Sequential:
    """Four convolutions with ReLU, and a classifier of ten classes."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 8), (8, 8), (8, 16), (16, 16)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def batches(count: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Images of 16×16 px with a class each."""
    for _ in range(count):
        yield torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))


def train(log_dir: Path, model: nn.Module, *, fault: str = "", **options: Any) -> None:
    """Train with SGD and log every step.

    Args:
        log_dir: the run's directory.
        model: the network.
        fault: ``"jump"`` for one step at a rate far too high, ``"nan"`` for a weight that becomes
            NaN; "" for none.
        options: further options of ``watch``.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, log_dir, optimizer=optimizer, every=1, **options):
        for step, (images, classes) in enumerate(batches()):
            if fault == "nan" and step == NAN_AT:
                with torch.no_grad():
                    model.get_parameter("4.weight")[0, 0, 0, 0] = math.nan
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), classes).backward()
            optimizer.step()
            if fault == "jump" and step == JUMP_AT:
                with torch.no_grad():  # as a step at a huge rate leaves the biases
                    model.get_parameter("2.bias").fill_(-100.0)


def check(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of ``fmapboard check``."""
    return _called(capsys, "check", *arguments)


def why(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of ``fmapboard why``."""
    return _called(capsys, "why", *arguments)


def _called(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run([*map(str, arguments)])
    said = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.out, said.err


def found(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, Any]]:
    """The findings of ``fmapboard check --json``."""
    _, output, _ = check(capsys, "--json", *arguments)
    listed: list[dict[str, Any]] = json.loads(output)
    return listed
