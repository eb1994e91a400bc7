"""While a CUDA graph is captured (on a simulated device), fmapboard stays out of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from simulated_device import Machine, move, moved, simulated_device
from torch import nn

import fmapboard
from fmapboard import logger
from fmapboard.capture import compiled
from fmapboard.capture.compiled import CAPTURES
from fmapboard.writers.folder import MemoryWriter

Capture = Callable[[], Any]
LIMIT = 30.0  # s; only broken code takes that long


@pytest.fixture
def graph() -> Any:
    """Begins and ends captures, as a `torch.cuda.CUDAGraph` does."""

    class Graph:
        def capture_begin(self) -> None:
            return

        def capture_end(self) -> None:
            return

    CAPTURES.follow(Graph)
    return Graph()


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch, graph: Any) -> Capture:
    """A ``with`` block in which the current stream captures."""
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])

    @contextmanager
    def captured() -> Iterator[None]:
        graph.capture_begin()
        capturing[0] = True
        yield
        capturing[0] = False
        graph.capture_end()

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


@pytest.mark.usefixtures("errors_are_only_logged")
def test_no_event_is_waited_for_while_a_graph_of_another_thread_is_captured(
    monkeypatch: pytest.MonkeyPatch, graph: Any, caplog: pytest.LogCaptureFixture
) -> None:
    writer = MemoryWriter()
    waits: list[str] = []
    monkeypatch.setattr(CAPTURES, "_limit", 0.0)  # so that the worker gives the step up
    with simulated_device():
        training = Training()
        board = fmapboard.watch(
            training.model, writer=writer, optimizer=training.optimizer, every=1
        )
        event = torch.get_device_module("cuda").Event
        synchronize = event.synchronize

        def noted(self: object) -> None:
            waits.append(threading.current_thread().name)
            synchronize(self)

        monkeypatch.setattr(event, "synchronize", noted)
        thread = threading.Thread(target=graph.capture_begin)
        thread.start()
        thread.join(LIMIT)
        training.step()
        board.flush()
        assert waits == []
        assert "a CUDA graph was still being captured" in caplog.text
        graph.capture_end()
        training.step()
        board.close()
    assert waits == ["fmapboard"]
    assert [step.step for step in writer.steps] == [1]


def test_flush_and_close_inside_a_capture_return_and_the_steps_are_written_after_it(
    capture: Capture, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, at_exit = MemoryWriter(), list[Callable[[], None]]()
    monkeypatch.setattr(logger.atexit, "register", at_exit.append)
    with simulated_device():
        training = Training()
        board = fmapboard.watch(
            training.model, writer=writer, optimizer=training.optimizer, every=1
        )
        training.step()
        with capture(), caplog.at_level(logging.WARNING):
            board.flush()
            board.flush()
            board.close()
        assert [record.getMessage() for record in caplog.records] == [
            "fmapboard: steps are not flushed while a CUDA graph is captured; flush after the "
            "capture"
        ]
        assert board.is_closed
        (close,) = at_exit
        close()
        assert [step.step for step in writer.steps] == [0]


@pytest.mark.parametrize("uses_cuda", [True, False])
def test_captures_are_noted_from_the_first_logged_step_of_a_process_that_uses_cuda(
    uses_cuda: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[int] = []
    monkeypatch.setattr(compiled, "_follow_all", lambda: followed.append(1))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: uses_cuda)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    board = fmapboard.watch(nn.Conv2d(3, 4, 3), writer=MemoryWriter(), every=10)
    board.begin_step(5)
    assert followed == []
    board.begin_step(10)
    assert bool(followed) == uses_cuda
    board.close()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_graphs_are_captured_while_steps_are_on_their_way_to_the_host() -> None:
    writer = MemoryWriter()
    model = nn.Conv2d(3, 8, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.rand(8, 3, 64, 64, device="cuda")
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        for _ in range(20):
            model(images).square().mean().backward()
            optimizer.step()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                doubled = images * 2
            graph.replay()
            assert torch.equal(doubled, images * 2)
    assert len(writer.steps) == 20


def test_an_exception_inside_a_capture_does_not_wait_for_the_steps(capture: Capture) -> None:
    writer = MemoryWriter()
    with simulated_device():
        training = Training()
        board = fmapboard.watch(training.model, writer=writer, every=1)
        with board.step(0):
            training.step()
        with capture(), pytest.raises(ZeroDivisionError), board.step(1):
            1 / 0  # noqa: B018
        board.close()
    assert [step.step for step in writer.steps] == [0]
