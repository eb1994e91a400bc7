"""A worker thread that ends with an error or cannot start is reported and blocks no caller."""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import threading
import weakref

import pytest
import torch
from held_work import LIMIT, Clock, Desk, Item, at_once
from interruptions import Interruption, ctrl_c
from own_threads import own_threads
from torch import nn

import fmapboard
from fmapboard.errors import WorkerEnded
from fmapboard.interrupts import OwnThread
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.worker import Worker


class Ends(BaseException):
    """Ends a thread like SystemExit, which `threading` would ignore silently."""


def test_a_thread_that_ends_is_reported_once_and_later_items_are_discarded(desk: Desk) -> None:
    def work(item: object) -> None:
        desk.work(item)
        raise Ends("for good")

    before = set(own_threads())
    worker: Worker[object] = Worker(at_once(work), desk.failures.append)
    for item in range(5):
        worker.put(item, 1)
    worker.flush()
    assert worker.put("later", 10**12) == 0.0
    worker.close()
    assert desk.done == [0]
    (failure,) = desk.failures
    assert isinstance(failure, WorkerEnded)
    assert str(failure) == "the worker thread ended (Ends: for good)"
    assert set(own_threads()) <= before


def test_a_caller_waiting_for_space_continues_when_the_thread_ends(desk: Desk) -> None:
    def work(item: object) -> None:
        desk.work(item)
        raise Ends

    clock = Clock()
    worker: Worker[object] = Worker(at_once(work), desk.failures.append, max_bytes=100, clock=clock)
    desk.hold_at_first(worker)
    worker.put("fills", 100)
    clock.at_reading[1] = desk.let_go
    worker.put("waits", 100)
    worker.flush()
    worker.close()
    assert desk.done == ["first"]


def test_a_failing_error_report_blocks_no_caller() -> None:
    def failed(error: Exception) -> None:
        raise ValueError("cannot report")

    def work(item: object) -> None:
        raise OSError("disk")

    worker: Worker[object] = Worker(at_once(work), failed)
    items = [Item(), Item()]
    gone = [weakref.ref(item) for item in items]
    while items:
        worker.put(items.pop(), 1)
    worker.close()
    assert [one() for one in gone] == [None, None]


def test_a_thread_that_cannot_start_is_reported_once_and_training_continues(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: OwnThread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(OwnThread, "start", start)
    worker, lost = desk.worker(), Item()
    for _ in range(3):
        worker.put(lost, 1)
    worker.flush()
    worker.close()
    assert [str(failure) for failure in desk.failures] == [
        "the worker thread cannot start (RuntimeError: can't start new thread)"
    ]
    gone = weakref.ref(lost)
    del lost
    assert gone() is None  # the queue does not keep it


def test_ctrl_c_while_waiting_for_the_queue_reaches_the_caller_and_leaves_the_worker_usable(
    desk: Desk,
) -> None:
    worker = desk.worker(clock=(clock := Clock()))
    desk.hold_at_first(worker)
    worker.put("fills", 100)
    clock.at_reading[1] = lambda: signal.setitimer(signal.ITIMER_REAL, 1e-3)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            worker.put("lost", 100)
    finally:
        signal.signal(signal.SIGALRM, before)
    desk.let_go()
    worker.flush()
    worker.put("kept", 100)
    worker.close()
    assert desk.done == ["first", "fills", "kept"]
    assert not worker._callers


@pytest.mark.parametrize("fills", [True, False])
def test_an_interrupt_at_any_point_of_put_leaves_a_worker_that_goes_on(fills: bool) -> None:
    for number in itertools.count():
        desk = Desk()
        worker = desk.worker()
        desk.hold_at_first(worker)
        if fills:
            for item in range(7):
                worker.put(item, 1)
            threading.Timer(0.01, desk.let_go).start()
        interruption = Interruption(number, ctrl_c)
        with contextlib.suppress(KeyboardInterrupt), interruption:
            worker.put("interrupted", 1)
        desk.let_go()
        worker.put("after it", 1)
        assert worker.flush(LIMIT), interruption.at
        assert worker.close(LIMIT)
        interrupted = [item for item in desk.done if item == "interrupted"]
        assert desk.done == ["first", *range(7 * fills), *interrupted, "after it"]
        if not interruption.at:
            assert interrupted
            break


def test_a_writer_that_exits_is_reported_once_and_training_continues(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exits(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            raise SystemExit(3)

    monkeypatch.delenv("FMAPBOARD_ON_ERROR", raising=False)
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=Exits(), every=1)
    with caplog.at_level(logging.WARNING, logger="fmapboard"):
        for number in range(40):
            with board.step(number):
                optimizer.zero_grad()
                model(torch.rand(1, 3, 8, 8)).sum().backward()
                optimizer.step()
        board.close()
    messages = [record.getMessage() for record in caplog.records]
    (message,) = [message for message in messages if "writing" in message]
    assert message.endswith(
        "writing: WorkerEnded: the worker thread ended (SystemExit: 3); all later steps are lost; "
        "training continues"
    )
    assert board.logged_steps == 40
