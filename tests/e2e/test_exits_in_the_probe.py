"""A model that ends the process in a pass of fmapboard's own, and only there."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.memory import MemoryWriter

PROBE = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)


class CallsInEvalMode(nn.Module):
    """Calls a function in eval mode, in which only the probe runs."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.drop = nn.Conv2d(3, 4, 3), nn.Dropout(0.5)
        self.function, self.is_armed = function, False

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self.drop(self.conv(x))
        if self.is_armed and not self.training:
            self.function()
        return maps


def leave() -> None:
    raise SystemExit(3)


def interrupt() -> None:
    raise KeyboardInterrupt


def on_signal(number: int, frame: object) -> None:
    raise SystemExit(number)


def terminated() -> None:
    signal.raise_signal(signal.SIGUSR1)


@pytest.fixture
def handled() -> Iterator[None]:
    """A signal handler that raises SystemExit."""
    before = signal.signal(signal.SIGUSR1, on_signal)
    yield
    signal.signal(signal.SIGUSR1, before)


def trained(
    function: Callable[[], object], *, watched: bool = True, **options: Any
) -> tuple[list[Tensor], MemoryWriter]:
    """What two steps leave of a model, and what was logged."""
    model, kept = CallsInEvalMode(function), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watching: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if watched:
        watching = fmapboard.watch(
            model, writer=kept, optimizer=optimizer, every=1, probe=PROBE, **options
        )
    model.is_armed = True
    with watching:
        for _ in range(2):
            optimizer.zero_grad()
            model(PROBE).square().mean().backward()
            optimizer.step()
    return [*(p.detach().clone() for p in model.parameters()), torch.get_rng_state()], kept


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_system_exit_in_the_probes_pass_is_reported_and_training_is_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bare, _ = trained(leave, watched=False)
    seen, kept = trained(leave)
    assert all(map(torch.equal, bare, seen))
    assert caplog.messages == [
        "fmapboard: probe: SystemExit: 3; it is not logged; training continues"
    ]
    assert [step.step for step in kept.steps] == [0, 1]
    assert {m.layer_call.layer for step in kept.steps for m in step.statistics} == {"conv"}


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_system_exit_in_the_attribution_of_the_probe_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bare, _ = trained(int, watched=False)
    seen, _ = trained(int, attribution="conv", attribution_loss=lambda output: leave())
    assert all(map(torch.equal, bare, seen))
    assert caplog.messages == [
        "fmapboard: attribution: SystemExit: 3; it is not logged; training continues"
    ]


def test_an_interrupt_in_the_probes_pass_stops_the_training() -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(interrupt)


@pytest.mark.usefixtures("handled")
def test_the_system_exit_of_a_signal_in_the_probes_pass_stops_the_training() -> None:
    with pytest.raises(SystemExit):
        trained(terminated)


def test_a_model_that_leaves_on_the_probe_is_an_error_of_watch() -> None:
    model = CallsInEvalMode(leave)
    model.is_armed = True
    with pytest.raises(ConfigurationError, match=r"failed on the probe of shape \[2, 3, 8, 8\]: 3"):
        fmapboard.watch(model, writer=MemoryWriter(), probe=PROBE)


@pytest.mark.usefixtures("handled")
def test_the_system_exit_of_a_signal_while_the_probe_is_checked_is_raised() -> None:
    model = CallsInEvalMode(terminated)
    model.is_armed = True
    with pytest.raises(SystemExit):
        fmapboard.watch(model, writer=MemoryWriter(), probe=PROBE)
