"""The worker thread gives way to training, and to nothing where nothing trains."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest
from held_work import LIMIT, Clock

from fmapboard.errors import WarnOnce
from fmapboard.options import Options
from fmapboard.records import LoggedStep, StepData
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.pipeline import Pipeline
from fmapboard.writers.worker import Worker

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has a priority per thread"
)


def own_priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.parametrize("low_priority", [True, False])
def test_a_worker_has_the_lowest_priority_only_on_request(low_priority: bool) -> None:
    seen: SimpleQueue[int] = SimpleQueue()
    worker: Worker[None] = Worker(
        lambda _: seen.put(own_priority()), lambda error: None, low_priority=low_priority
    )
    worker.put(None, 1)
    assert seen.get(timeout=LIMIT) == (19 if low_priority else own_priority())
    worker.close()


def test_the_steps_of_a_training_run_are_written_with_the_lowest_priority() -> None:
    class Watching(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            seen.put(own_priority())

    seen: SimpleQueue[int] = SimpleQueue()
    pipeline = Pipeline(Watching(), Options(), WarnOnce())
    pipeline.put(lambda: StepData(0, 0.0), 1)
    assert seen.get(timeout=LIMIT) == 19
    pipeline.close()


class Noting:
    """Work in two parts that notes each part's priority, and stops in a part when it is told to."""

    def __init__(self) -> None:
        self.seen: SimpleQueue[tuple[int, str, int]] = SimpleQueue()
        self.held: dict[tuple[int, str], threading.Event] = {}
        self.clock = Clock()
        self.worker: Worker[int] = Worker(
            self.work, lambda error: None, low_priority=True, clock=self.clock
        )

    def work(self, item: int) -> Iterator[None]:
        self.note(item, "begins")
        yield
        self.note(item, "ends")

    def note(self, item: int, part: str) -> None:
        self.seen.put((item, part, own_priority()))
        if (item, part) in self.held:
            assert self.held[item, part].wait(LIMIT)

    def put(self, item: int, seconds: float) -> None:
        self.clock.now = seconds
        self.worker.put(item, 1)

    def next(self) -> tuple[int, str, int]:
        return self.seen.get(timeout=LIMIT)


@pytest.fixture
def noting() -> Iterator[Noting]:
    noting = Noting()
    yield noting
    for event in noting.held.values():
        event.set()
    noting.worker.close()


def test_at_the_bound_of_the_backlog_the_rest_of_an_item_is_processed_at_normal_priority(
    noting: Noting,
) -> None:
    go_on = noting.held[0, "begins"] = threading.Event()
    noting.put(0, 0.0)
    assert noting.next() == (0, "begins", 19)
    for item in range(1, 8):
        noting.put(item, item * 0.25)
    go_on.set()
    normal = own_priority()
    assert [noting.next() for _ in range(15)] == [
        (item, part, normal) for item in range(8) for part in ("begins", "ends")
    ][1:]


@pytest.mark.parametrize(("steps", "seconds"), [(7, 100.0), (8, 0.2), (300, 0.006)])
def test_below_the_bound_of_the_backlog_the_priority_stays_the_lowest(
    steps: int, seconds: float, noting: Noting
) -> None:
    go_on = noting.held[0, "begins"] = threading.Event()
    for item in range(steps):
        noting.put(item, item * seconds)
    go_on.set()
    assert {noting.next()[2] for _ in range(2 * steps)} == {19}


def test_the_priority_is_the_lowest_again_after_eight_steps_in_a_row_without_a_backlog(
    noting: Noting,
) -> None:
    go_on = noting.held[0, "begins"] = threading.Event()
    for item in range(8):
        noting.put(item, item)
    go_on.set()
    assert [noting.next() for _ in range(16)][-1] == (7, "ends", own_priority())
    found = []
    for item in range(8, 18):
        noting.put(item, item)
        found += [noting.next(), noting.next()]
    normal, low = own_priority(), 19
    assert [priority for _, _, priority in found] == [normal] * 14 + [low] * 6


@pytest.mark.parametrize("waiting", ["flush", "close"])
def test_the_priority_is_normal_while_a_caller_waits(waiting: str, noting: Noting) -> None:
    noting.held[0, "begins"] = threading.Event()
    noting.put(0, 0.0)
    assert noting.next() == (0, "begins", 19)
    noting.put(1, 0.0)
    start = noting.worker._start_normal

    def let_go() -> None:  # the lock is held until the caller waits
        start()
        noting.held[0, "begins"].set()

    noting.worker._start_normal = let_go  # type: ignore[method-assign]
    getattr(noting.worker, waiting)()
    assert {noting.next()[2] for _ in range(3)} == {own_priority()}
    if waiting == "flush":
        noting.put(2, 0.0)
        assert noting.next() == (2, "begins", 19)


def test_the_priority_stays_the_lowest_if_no_second_thread_can_start(
    noting: Noting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    noting.put(0, 0.0)
    assert noting.next() == (0, "begins", 19)
    monkeypatch.setattr(threading.Thread, "start", start)
    noting.put(1, 0.0)
    noting.worker.close()
    assert [noting.next() for _ in range(3)] == [
        (0, "ends", 19),
        (1, "begins", 19),
        (1, "ends", 19),
    ]


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
        worker = Worker(work, print, low_priority=True)
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
