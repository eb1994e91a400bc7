"""The worker: items in order, a bounded queue, flush and close, nothing kept alive."""

from __future__ import annotations

import gc
import threading
import weakref

from held_work import LIMIT, Desk, Item, at_once
from own_threads import own_threads

from fmapboard.writers.worker import Worker


def test_items_are_processed_in_order_in_a_separate_thread(desk: Desk) -> None:
    seen: list[tuple[int, str]] = []
    worker: Worker[int] = Worker(
        at_once(lambda item: seen.append((item, threading.current_thread().name))),
        desk.failures.append,
    )
    for item in range(200):
        worker.put(item, 1)
    worker.flush()
    assert seen == [(item, "fmapboard") for item in range(200)]
    worker.close()


def test_no_thread_is_started_before_the_first_item() -> None:
    before = len(own_threads())
    worker: Worker[int] = Worker(at_once(lambda item: None), lambda error: None)
    worker.flush()
    worker.close()
    assert len(own_threads()) == before


def test_flush_returns_only_after_everything_is_processed(desk: Desk) -> None:
    worker = desk.worker()
    desk.hold_at_first(worker)

    def flush() -> None:
        worker.flush()
        desk.done.append("flushed")

    caller = threading.Thread(target=flush)
    caller.start()
    caller.join(0.05)  # long enough for a flush that fails to wait
    desk.let_go()
    caller.join(LIMIT)
    assert desk.done == ["first", "flushed"]
    worker.close()


def test_a_full_queue_makes_the_caller_wait_and_loses_nothing(desk: Desk) -> None:
    worker = desk.worker(max_bytes=100)
    desk.hold_at_first(worker)
    worker.put("second", 60)
    entered = threading.Event()

    def put_third() -> None:
        worker.put("third", 60)
        entered.set()

    caller = threading.Thread(target=put_third)
    caller.start()
    worker.put("fits too", 40)
    assert not entered.is_set()
    assert worker.nbytes == 100
    desk.let_go()
    assert entered.wait(LIMIT)
    caller.join(LIMIT)
    worker.close()
    assert sorted(map(str, desk.done)) == ["first", "fits too", "second", "third"]
    assert worker.dropped == 0


def test_a_full_queue_drops_the_oldest_waiting_items_and_counts_them(desk: Desk) -> None:
    worker = desk.worker(max_bytes=100, when_full="drop_oldest")
    desk.hold_at_first(worker)
    for name in ("a", "b", "c"):
        worker.put(name, 40)
    assert worker.dropped == 1
    desk.let_go()
    worker.close()
    assert desk.done == ["first", "b", "c"]


def test_a_large_item_drops_only_as_many_items_as_it_needs_space_for(desk: Desk) -> None:
    worker = desk.worker(max_bytes=100, when_full="drop_oldest")
    desk.hold_at_first(worker)
    for name in ("a", "b", "c"):
        worker.put(name, 30)
    worker.put("large", 70)
    desk.let_go()
    worker.close()
    assert worker.dropped == 2
    assert desk.done == ["first", "c", "large"]


def test_an_item_larger_than_the_bound_is_accepted_alone(desk: Desk) -> None:
    worker = desk.worker(max_bytes=10)
    worker.put("huge", 1000)
    worker.flush()
    assert desk.done == ["huge"]
    worker.close()


def test_the_bytes_of_processed_items_are_released(desk: Desk) -> None:
    worker = desk.worker(max_bytes=100, when_full="drop_oldest")
    for _ in range(50):
        worker.put("item", 100)
        worker.flush()
    worker.close()
    assert len(desk.done) == 50
    assert worker.dropped == 0


def test_a_failure_is_reported_and_the_work_continues(desk: Desk) -> None:
    worker = desk.worker()
    error = ValueError("no space")
    for item in ("a", error, "b"):
        worker.put(item, 1)
    worker.close()
    assert desk.done == ["a", "b"]
    assert desk.failures == [error]


def test_close_processes_queued_items_and_may_be_called_twice(desk: Desk) -> None:
    worker = desk.worker()
    before = len(own_threads())
    for item in range(20):
        worker.put(item, 1)
    worker.close()
    assert desk.done == list(range(20))
    assert len(own_threads()) == before
    worker.close()
    worker.flush()


def test_items_put_after_close_are_ignored(desk: Desk) -> None:
    worker, late = desk.worker(), Item()
    worker.put("a", 1)
    worker.close()
    worker.put(late, 1)
    worker.flush()
    assert desk.done == ["a"]
    gone = weakref.ref(late)
    del late
    assert gone() is None  # the worker does not keep it


def test_the_threads_end_when_its_worker_is_garbage_collected(desk: Desk) -> None:
    before = set(own_threads())
    worker = desk.worker()
    worker.put("a", 1)
    worker.flush()
    threads, gone = set(own_threads()) - before, weakref.ref(worker)
    del worker
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(LIMIT)
    assert threads
    assert not any(thread.is_alive() for thread in threads)


def test_an_item_is_not_kept_once_it_is_processed(desk: Desk) -> None:
    worker: Worker[Item] = Worker(at_once(lambda item: None), desk.failures.append)
    item = Item()
    gone = weakref.ref(item)
    worker.put(item, 1)
    del item
    worker.close()
    assert gone() is None


def test_closing_from_inside_the_work_neither_hangs_nor_loses_queued_items(desk: Desk) -> None:
    closed, before = threading.Event(), set(own_threads())

    def work(item: str) -> None:
        desk.work(item)
        if item == "closes":
            worker.flush()
            worker.close()
            closed.set()

    worker: Worker[str] = Worker(at_once(work), desk.failures.append)
    desk.hold_at_first(worker)  # type: ignore[arg-type]
    worker.put("closes", 1)
    worker.put("last", 1)
    desk.let_go()
    assert closed.wait(LIMIT)
    for thread in set(own_threads()) - before:
        thread.join(LIMIT)
    assert desk.done == ["first", "closes", "last"]
    assert desk.failures == []
