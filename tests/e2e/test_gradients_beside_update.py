"""Gradients of large models, whose rows are read beside the optimizer's update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from exact_updates import Exact, largest_error, update_ratios
from large_network import RIGHT, network, nothing, train
from torch_threads import torch_threads

import fmapboard
from fmapboard.capture.side_thread import SideThread, _Task
from fmapboard.measure.cpu_updates import CpuUpdates
from fmapboard.writers.memory import MemoryWriter


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with torch_threads(2):
        yield


class Masked(torch.optim.SGD):
    """Sets the first half of each gradient to 0 before it uses it."""

    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad[: len(parameter) // 2] = 0
        return super().step(closure)


class MaskedData(torch.optim.SGD):
    """The same where versions do not count it, as many older optimizers do."""

    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad.data[: len(parameter) // 2] = 0
        return super().step(closure)


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the helper should read is read when it is needed."""
    monkeypatch.setattr(SideThread, "start", lambda helper, act: _Task(act).result)


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, Masked, MaskedData])
def test_gradients_are_read_beside_the_update_if_it_leaves_them(
    kind: type[torch.optim.SGD], is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, real = [], CpuUpdates.ratios

    def ratios(updates: CpuUpdates, norms: Any) -> Any:
        used.append(updates.gradients is not None)
        return real(updates, norms)

    monkeypatch.setattr(CpuUpdates, "ratios", ratios)
    if is_late:
        late(monkeypatch)
    model = network()
    error = train(model, [kind(model.parameters(), lr=0.1)], nothing, steps=4)
    assert used == [kind is torch.optim.SGD] * 4
    assert error < (0.01 if kind is torch.optim.SGD else RIGHT)


class Scaling(torch.optim.SGD):
    """Divides the gradients by the loss scale itself, as fused optimizers do."""

    _step_supports_amp_scaling = True

    def step(self, closure: Any = None) -> Any:
        """Update the parameters."""
        factor = float(getattr(self, "grad_scale", 1.0))
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter -= group["lr"] / factor * parameter.grad


def test_gradients_that_are_still_scaled() -> None:
    model, kept = network(), MemoryWriter()
    exact, optimizer = Exact(model), Scaling(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=0.125)
    with fmapboard.watch(model, writer=kept, every=1, scaler=scaler) as board:
        for number in range(3):
            with board.step(number):
                optimizer.zero_grad()
                scaler.scale(model(torch.randn(2, 3, 7, 7)).square().mean()).backward()
                with exact.update():
                    scaler.step(optimizer)
                scaler.update()
    found = [update_ratios(step) for step in kept.steps]
    assert all(map(len, found))
    pairs = zip(found, exact.ratios, strict=True)
    assert max(largest_error(own, true) for own, true in pairs) < RIGHT
