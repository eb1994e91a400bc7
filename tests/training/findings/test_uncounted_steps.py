"""Training in steps that the logger does not count is named within a minute, or at ``close``."""

from __future__ import annotations

import gc
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from networks import NestedNet
from torch import nn
from watched_training import batch, numbers, sgd, train_step

import fmapboard
from fmapboard.writers.folder import MemoryWriter

LIMIT = 20.0  # s


class Minutes:
    """The queue by which the thread that explains waits: a minute passes when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self._go = queue.SimpleQueue[float](), queue.SimpleQueue[bool]()
        used = SimpleNamespace(Empty=queue.Empty, SimpleQueue={None: lambda: self})
        monkeypatch.setattr("fmapboard.session.usage.queue", used)

    def get(self, timeout: float) -> None:
        self.asked.put(timeout)
        if self._go.get():
            raise queue.Empty

    def put(self, item: None) -> None:
        """Do nothing: ``end`` ends the thread."""

    def pass_one(self) -> None:
        """Returns when the thread has looked, and waits again or has ended."""
        threads = [t for t in threading.enumerate() if t.name == "fmapboard-usage"]
        assert self.asked.get(timeout=LIMIT) == 60.0
        self._go.put(True)
        while self.asked.empty() and any(thread.is_alive() for thread in threads):
            threads[0].join(0.01)

    def end(self) -> None:
        self._go.put(False)


@pytest.fixture
def minutes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Minutes]:
    found = Minutes(monkeypatch)
    yield found
    found.end()


class Sharpness(torch.optim.Optimizer):
    """A wrapper whose own ``step`` is never called, as in sharpness-aware minimization."""

    def __init__(self, parameters: Any, **options: Any) -> None:
        super().__init__(parameters, options)
        self.base_optimizer = torch.optim.SGD(self.param_groups, **options)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self) -> None:
        self._all = [p for group in self.param_groups for p in group["params"]]
        self._before = [p.detach().clone() for p in self._all]
        for p in self._all:
            p.add_(p.grad, alpha=1e-3)

    def second_step(self) -> None:
        for p, before in zip(self._all, self._before, strict=True):
            p.data = before
        self.base_optimizer.step()


def train_with_sharpness(model: nn.Module, optimizer: Sharpness, steps: int) -> None:
    for _ in range(steps):
        for step in (optimizer.first_step, optimizer.second_step):
            optimizer.zero_grad()
            model(batch()[0]).sum().backward()
            step()


STOPPED = (
    "fmapboard: nothing {} logged from step 3 on: the optimizer passed to watch() (SGD) stopped "
    "stepping, while Adam trains the model; pass the other one as optimizer= to a new watch() with "
    "start_step=3, or wrap each training step in: with board.step():"
)


@pytest.mark.parametrize("every", [1, 2, 100])
def test_an_optimizer_that_stops_stepping_while_another_trains_is_named_at_close(
    every: int, said: Callable[[], list[str]]
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    first, second = sgd(model), torch.optim.Adam(model.parameters())
    with fmapboard.watch(model, writer=kept, optimizer=first, every=every):
        for optimizer in [first] * 3 + [second] * 6:
            train_step(model, optimizer)
    assert numbers(kept.steps) == [n for n in range(3) if n % every == 0]
    assert said() == [STOPPED.format("was")]


def test_an_optimizer_that_was_replaced_and_freed_is_named(said: Callable[[], list[str]]) -> None:
    model = NestedNet()
    optimizer: torch.optim.Optimizer = sgd(model)
    board = fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=2)
    for _ in range(6):
        train_step(model, optimizer)
    optimizer = torch.optim.Adam(model.parameters())
    gc.collect()
    for _ in range(6):
        train_step(model, optimizer)
    board.close()
    (text,) = said()
    assert "from step 6 on: the optimizer passed to watch() stopped stepping, while Adam" in text


def test_it_is_named_within_a_minute_and_once(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model = NestedNet()
    first, second = sgd(model), torch.optim.Adam(model.parameters())
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=first, every=100):
        for _ in range(3):
            train_step(model, first)
        minutes.pass_one()
        assert said() == []
        for _ in range(6):
            train_step(model, second)
        minutes.pass_one()
        assert said() == [STOPPED.format("is")]
    assert len(said()) == 1


def test_a_wrapper_that_steps_through_another_optimizer_is_named(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model = NestedNet()
    optimizer = Sharpness(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer):
        train_with_sharpness(model, optimizer, steps=6)
        minutes.pass_one()
    assert said() == [
        "fmapboard: nothing is logged: the optimizer passed to watch() never stepped; Sharpness "
        "steps through the SGD in its attribute base_optimizer: pass that one"
    ]


def test_the_optimizer_inside_that_wrapper_counts_its_steps(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = Sharpness(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer.base_optimizer, every=5):
        train_with_sharpness(model, optimizer, steps=6)
        minutes.pass_one()
    assert numbers(kept.steps) == [0, 5]
    assert not any("logged" in text for text in said())


def test_an_optimizer_of_another_model_is_named(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model = NestedNet()
    right, wrong = sgd(model), torch.optim.Adam(NestedNet().parameters())
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=wrong):
        for _ in range(6):
            train_step(model, right)
        minutes.pass_one()
    assert said() == [
        "fmapboard: nothing is logged: the optimizer passed to watch() never stepped; Adam holds "
        "none of the model's parameters, and is not the one that trains it: pass SGD"
    ]


def test_neither_an_optimizer_nor_a_marked_step_is_named_within_a_minute(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model = NestedNet()
    board = fmapboard.watch(model, writer=MemoryWriter())
    minutes.pass_one()
    assert said() == []
    for _ in range(6):
        train_step(model, sgd(model))
    minutes.pass_one()
    (text,) = said()
    assert text.startswith("fmapboard: nothing is logged: no step was marked; pass optimizer=")
    board.close()
    assert len(said()) == 1


def test_marked_steps_are_not_watched_any_more(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model = NestedNet()
    with fmapboard.watch(model, writer=MemoryWriter()) as board:
        with board.step(0):
            train_step(model, sgd(model))
        for _ in range(6):
            train_step(model, sgd(model))
        minutes.pass_one()
        assert not any(t.name == "fmapboard-usage" for t in threading.enumerate())
    assert said() == []


def test_another_optimizer_that_steps_several_times_per_counted_step_is_no_fault(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    critic, generator = NestedNet(), nn.Linear(1, 1)
    inner, counted = sgd(critic), torch.optim.SGD(generator.parameters(), lr=0.1)
    with fmapboard.watch(critic, writer=MemoryWriter(), optimizer=counted, every=2):
        for round_ in range(3):
            for _ in range(5):
                train_step(critic, inner)
            if round_ < 2:
                minutes.pass_one() if round_ else None
                generator(torch.rand(1, 1)).sum().backward()
                counted.step()
    assert not any("logged from step" in text for text in said())


def test_changes_without_an_optimizer_are_no_training(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model = NestedNet()
    optimizer, average = sgd(model), NestedNet().state_dict()
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=100):
        model.load_state_dict(average)
        minutes.pass_one()
        train_step(model, optimizer)
        for _ in range(30):  # weights exchanged for an evaluation
            model.load_state_dict(average)
        minutes.pass_one()
    assert said() == []


def test_the_first_step_of_lbfgs_may_take_longer_than_a_minute(
    minutes: Minutes, said: Callable[[], list[str]]
) -> None:
    model, evaluated = NestedNet(), 0
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=9)

    def closure() -> torch.Tensor:
        nonlocal evaluated
        evaluated += 1
        if evaluated == 8:
            minutes.pass_one()
        optimizer.zero_grad()
        loss = model(batch()[0]).square().sum()
        loss.backward()
        return loss

    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer):
        optimizer.step(closure)
    assert evaluated >= 8
    assert said() == []


def test_the_thread_keeps_neither_logger_nor_model_and_ends_with_them() -> None:
    before = set(threading.enumerate())
    model = NestedNet()
    board = fmapboard.watch(model, writer=MemoryWriter())
    (thread,) = set(threading.enumerate()) - before
    gone = weakref.ref(model), weakref.ref(board)
    del model, board
    gc.collect()
    thread.join(LIMIT)
    assert [reference() for reference in gone] == [None, None]
    assert not thread.is_alive()
    board = fmapboard.watch(NestedNet(), writer=MemoryWriter())
    (thread,) = set(threading.enumerate()) - before
    board.close()
    thread.join(LIMIT)
    assert not thread.is_alive()
