"""While a CUDA graph is captured (on a simulated device), fmapboard stays out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from simulated_device import Machine, move, moved, simulated_device
from torch import nn

import fmapboard
from fmapboard.writers.memory import MemoryWriter

Capture = Callable[[], Any]


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch) -> Capture:
    """A ``with`` block in which the current stream captures."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])

    @contextmanager
    def captured() -> Iterator[None]:
        capturing[0] = True
        yield
        capturing[0] = False

    return captured


class Training:
    """A network on the simulated device, with one training step."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
        move(self.model, "cuda")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, foreach=False)
        self.images = moved(torch.rand(2, 3, 8, 8), "cuda")

    def step(self) -> None:
        self.model(self.images).square().mean().backward()
        self.optimizer.step()


def launches(machine: Machine, act: Callable[[], object]) -> int:
    before = machine.launches
    act()
    return machine.launches - before


def test_nothing_is_launched_or_waited_for_in_a_captured_step_and_the_next_one_is_logged(
    capture: Capture,
) -> None:
    writer = MemoryWriter()
    with simulated_device() as machine:
        training = Training()
        training.step()
        bare = launches(machine, training.step)
        board = fmapboard.watch(
            training.model, writer=writer, optimizer=training.optimizer, every=1
        )
        with capture():
            assert launches(machine, training.step) == bare
        assert machine.waits == []
        assert launches(machine, training.step) > bare
        board.close()
    assert [step.step for step in writer.steps] == [0]
    assert "gradient_norm/total" in writer.steps[0].scalars


def test_a_marked_step_that_is_captured_is_not_logged_and_the_next_one_is(
    capture: Capture,
) -> None:
    writer = MemoryWriter()
    with simulated_device() as machine:
        training = Training()
        training.step()
        bare = launches(machine, training.step)
        board = fmapboard.watch(
            training.model, writer=writer, every=1, probe=torch.rand(1, 3, 8, 8)
        )
        prepared = machine.waits.copy()

        def marked_step(number: int) -> None:
            with board.step(number):
                training.step()

        with capture():
            assert launches(machine, lambda: marked_step(0)) == bare
            board.before_clipping()
        assert machine.waits == prepared
        marked_step(1)
        board.close()
    assert [step.step for step in writer.steps] == [1]


def test_a_step_that_ends_in_a_capture_is_not_logged(capture: Capture) -> None:
    writer = MemoryWriter()
    with simulated_device() as machine:
        training = Training()
        board = fmapboard.watch(training.model, writer=writer, every=1)
        board.begin_step(0)
        training.step()
        with capture():
            assert launches(machine, board.end_step) == 0
        board.close()
    assert writer.steps == []
