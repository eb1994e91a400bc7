"""Gradients of a small network: as a `GradientReader` reads them, and as float64 references."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from guards import strict_guard
from torch import Tensor, nn

from fmapboard.capture.guard import Guard
from fmapboard.gradients.reader import GradientReader
from fmapboard.model.layers import WatchedLayers
from fmapboard.records import Parameter


def reader_of(model: nn.Module, names: Any = (), guard: Guard | None = None) -> GradientReader:
    """A reader that raises its errors; ``names``: parameters that get histograms."""
    watched = WatchedLayers(model, lambda *_: True)
    watched.own_parameters = lambda: frozenset(names)  # type: ignore[method-assign]  # some of them
    return GradientReader(watched, guard or strict_guard())


def found_by(reader: GradientReader) -> tuple[Parameter, ...]:
    """What the reader has read."""
    return reader.pending().to_host()


def small_network() -> nn.Sequential:
    """Images [N, 3, 8, 8] -> [N, 4]."""
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 4))


def backward(model: nn.Module, scale: float = 1.0) -> Tensor:
    """Run a forward and a backward pass on fixed images; the loss times ``scale``."""
    torch.manual_seed(1)
    x = torch.rand(4, 3, 8, 8).to(next(model.parameters()).dtype)
    loss: Tensor = model(x).float().square().sum() * scale
    loss.backward()
    return loss


def reference_norms(model: nn.Module) -> dict[str, float]:
    """2-norms of the current gradients, in float64."""
    return {
        name: (p.grad.to_dense() if p.grad.is_sparse else p.grad).double().norm().item()
        for name, p in model.named_parameters()
        if p.grad is not None
    }


def norms_of(parameters: tuple[Parameter, ...]) -> dict[str, float]:
    return {p.name: p.norm for p in parameters if p.norm is not None}


def assert_close(found: dict[str, float], expected: dict[str, float]) -> None:
    assert list(found) == list(expected)
    for name, norm in expected.items():
        assert found[name] == pytest.approx(norm, rel=1e-6), name


def nothing(*_: object) -> None:
    """Do nothing when an optimizer steps."""


def read_at_step(model: nn.Module, optimizer: Any, names: Any = ()) -> tuple[Parameter, ...]:
    """Take one optimizer step with an armed reader; what it read."""
    reader = reader_of(model, names)
    reader.arm(nothing, nothing)
    optimizer.step()
    assert reader.stepped
    reader.disarm()
    return found_by(reader)
