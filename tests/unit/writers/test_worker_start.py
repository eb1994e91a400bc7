"""A worker in a forked child, and a worker whose thread is interrupted while it starts."""

from __future__ import annotations

import os
import threading

import pytest
from held_work import LIMIT, Desk
from own_threads import own_threads

from fmapboard.interrupts import OwnThread


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_neither_hangs_nor_processes_its_parents_items(desk: Desk) -> None:
    worker = desk.worker(max_bytes=10)
    worker.put("parent's", 5)
    worker.flush()
    child = os.fork()
    if child == 0:
        threading.Timer(LIMIT, os._exit, (1,)).start()
        for _ in range(3):
            worker.put("child's", 10)
        worker.flush()
        worker.close()
        os._exit(0 if desk.done == ["parent's"] else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    worker.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_worker_first_used_in_a_forked_child_processes_its_items_there(desk: Desk) -> None:
    worker = desk.worker()
    child = os.fork()
    if child == 0:
        threading.Timer(LIMIT, os._exit, (1,)).start()
        for item in range(50):
            worker.put(item, 1)
        worker.close()
        os._exit(0 if desk.done == list(range(50)) else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("runs", [True, False])
def test_ctrl_c_while_the_thread_starts_leaves_a_worker_that_can_be_used_and_closed(
    desk: Desk, runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, started, before = OwnThread.start, list[OwnThread](), set(own_threads())

    def interrupted(thread: OwnThread) -> None:
        started.append(thread)
        if runs:
            real(thread)
        raise KeyboardInterrupt

    worker = desk.worker()
    monkeypatch.setattr(OwnThread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker.put("lost", 1)
    monkeypatch.undo()
    worker.put("kept", 1)
    worker.flush()
    used = set(own_threads()) - before
    worker.close()
    assert desk.done == ["kept"]
    if runs:
        started[0].join()
    assert not any(thread.is_alive() for thread in used)
    assert set(own_threads()) <= before


def test_after_ctrl_c_kept_the_thread_from_starting_flush_and_close_do_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(thread: OwnThread) -> None:
        raise KeyboardInterrupt

    worker = desk.worker()
    monkeypatch.setattr(OwnThread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker.put("lost", 1)
    worker.flush()
    worker.close()
    assert desk.done == []
