"""The worker thread has the lowest priority during training, and otherwise normal priority."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest
from held_work import LIMIT
from own_threads import own_priority

from fmapboard.errors import WarnOnce
from fmapboard.interrupts import OwnThread
from fmapboard.options import Options
from fmapboard.records import LoggedStep, StepData
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.pipeline import Pipeline
from fmapboard.writers.worker import Worker

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a priority per thread"
)


def test_the_steps_of_a_training_run_are_written_with_the_lowest_priority() -> None:
    class Watching(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            seen.put(own_priority())

    seen: SimpleQueue[int] = SimpleQueue()
    pipeline = Pipeline(Watching(), Options(), WarnOnce())
    pipeline.put(lambda: StepData(0, 0.0), 1)
    assert seen.get(timeout=LIMIT) == 19
    pipeline.close()


class PriorityRecorder:
    """Work in two parts that records the priority of each part and can be held in either."""

    def __init__(self) -> None:
        self.seen: SimpleQueue[tuple[int, str, int]] = SimpleQueue()
        self.held: dict[tuple[int, str], threading.Event] = {}
        self.worker: Worker[int] = Worker(self.work, lambda error: None)

    def work(self, item: int) -> Iterator[None]:
        self.record(item, "begins")
        yield
        self.record(item, "ends")

    def record(self, item: int, part: str) -> None:
        self.seen.put((item, part, own_priority()))
        if (item, part) in self.held:
            assert self.held[item, part].wait(LIMIT)

    def put(self, item: int) -> None:
        self.worker.put(item, 1)

    def next(self) -> tuple[int, str, int]:
        return self.seen.get(timeout=LIMIT)


@pytest.fixture
def recorder() -> Iterator[PriorityRecorder]:
    recorder = PriorityRecorder()
    yield recorder
    for event in recorder.held.values():
        event.set()
    recorder.worker.close()


def test_at_the_bound_of_the_backlog_the_rest_of_an_item_is_processed_at_normal_priority(
    recorder: PriorityRecorder,
) -> None:
    go_on = recorder.held[0, "begins"] = threading.Event()
    recorder.put(0)
    assert recorder.next() == (0, "begins", 19)
    for item in range(1, 8):
        recorder.put(item)
    go_on.set()
    normal = own_priority()
    assert [recorder.next() for _ in range(15)] == [
        (item, part, normal) for item in range(8) for part in ("begins", "ends")
    ][1:]


def test_below_the_bound_of_the_backlog_the_priority_stays_the_lowest(
    recorder: PriorityRecorder,
) -> None:
    go_on = recorder.held[0, "begins"] = threading.Event()
    for item in range(7):
        recorder.put(item)
    go_on.set()
    assert {recorder.next()[2] for _ in range(14)} == {19}


def test_the_priority_is_the_lowest_again_after_eight_steps_in_a_row_without_a_backlog(
    recorder: PriorityRecorder,
) -> None:
    go_on = recorder.held[0, "begins"] = threading.Event()
    for item in range(8):
        recorder.put(item)
    go_on.set()
    assert [recorder.next() for _ in range(16)][-1] == (7, "ends", own_priority())
    found = []
    for item in range(8, 18):
        recorder.put(item)
        found += [recorder.next(), recorder.next()]
    normal, low = own_priority(), 19
    assert [priority for _, _, priority in found] == [normal] * 14 + [low] * 6


@pytest.mark.parametrize("waiting", ["flush", "close"])
def test_the_priority_is_normal_while_a_caller_waits(
    waiting: str, recorder: PriorityRecorder
) -> None:
    recorder.held[0, "begins"] = threading.Event()
    recorder.put(0)
    assert recorder.next() == (0, "begins", 19)
    recorder.put(1)
    start = recorder.worker._start_normal

    def let_go() -> None:  # the lock is held until the caller waits
        start()
        recorder.held[0, "begins"].set()

    recorder.worker._start_normal = let_go  # type: ignore[method-assign]
    getattr(recorder.worker, waiting)()
    assert {recorder.next()[2] for _ in range(3)} == {own_priority()}
    if waiting == "flush":
        recorder.put(2)
        assert recorder.next() == (2, "begins", 19)


def test_the_priority_stays_the_lowest_if_no_second_thread_can_start(
    recorder: PriorityRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: OwnThread) -> None:
        raise RuntimeError("can't start new thread")

    recorder.put(0)
    assert recorder.next() == (0, "begins", 19)
    monkeypatch.setattr(OwnThread, "start", start)
    recorder.put(1)
    recorder.worker.close()
    assert [recorder.next() for _ in range(3)] == [
        (0, "ends", 19),
        (1, "begins", 19),
        (1, "ends", 19),
    ]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="gives up being root")
def test_a_user_without_privileges_gets_the_same_priorities() -> None:
    code = """if 1:
        import os, sys, threading
        sys.path[:0] = sys.argv[1:]
        from fmapboard.writers.worker import Worker
        os.setgroups([]), os.setgid(65534), os.setuid(65534)

        def work(item):
            priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
            print(item, priority - own)
            first.set()
            flushes.wait(20)
            yield
            print(item, os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) - own)

        own = os.getpriority(os.PRIO_PROCESS, 0)
        first, flushes = threading.Event(), threading.Event()
        worker = Worker(work, print)
        worker.put("step", 1)
        first.wait(20)
        start = worker._start_normal
        worker._start_normal = lambda: (start(), flushes.set())
        worker.close()
    """
    done = subprocess.run(
        [sys.executable, "-c", code, *sys.path], capture_output=True, text=True, timeout=100
    )
    assert done.stdout.splitlines() == [f"step {19 - own_priority()}", "step 0"], done.stderr
