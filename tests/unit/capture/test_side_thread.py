"""A function that is run beside the training thread."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable
from functools import partial

import pytest
import torch
from own_threads import own_threads

from fmapboard.capture.side_thread import SideThread


def this_thread() -> str:
    return threading.current_thread().name


def test_a_function_runs_on_the_helper_without_gradients() -> None:
    helper, begun = SideThread(), threading.Event()

    def act() -> tuple[str, bool]:
        begun.set()
        return this_thread(), torch.is_grad_enabled()

    result = helper.start(act)
    assert begun.wait(10)
    name, has_gradients = result()
    assert name.startswith("fmapboard-side")
    assert not has_gradients
    assert torch.is_grad_enabled()


def test_a_function_that_has_not_begun_runs_on_the_caller_s_thread() -> None:
    helper, free = SideThread(), threading.Event()
    first = helper.start(lambda: free.wait(10))
    assert helper.start(this_thread)() == this_thread()
    free.set()
    assert first()


@pytest.mark.parametrize("is_busy", [False, True])
def test_the_caller_gets_the_error(is_busy: bool) -> None:
    def fails() -> None:
        raise ValueError("not readable")

    helper, free = SideThread(), threading.Event()
    if is_busy:
        helper.start(lambda: free.wait(10))
    result = helper.start(fails)
    with pytest.raises(ValueError, match="not readable"):
        result()
    free.set()


def test_a_process_that_may_start_no_thread_does_it_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert SideThread().start(this_thread)() == this_thread()


def test_the_thread_ends_with_its_owner() -> None:
    before = set(own_threads())
    helper = SideThread()
    helper.start(lambda: 3)
    (thread,) = set(own_threads()) - before
    del helper
    gc.collect()
    thread.join(10)
    assert set(own_threads()) <= before


def test_ending_waits_for_what_is_running() -> None:
    helper, begun, free = SideThread(), threading.Event(), threading.Event()
    ended: list[bool] = []

    def act() -> None:
        begun.set()
        ended.append(free.wait(10))

    helper.start(act)
    assert begun.wait(10)
    threading.Timer(0.05, free.set).start()
    helper.end()
    assert ended == [True]
    assert helper.start(this_thread)()


def test_nothing_is_kept_of_what_has_run() -> None:
    class Held:
        pass

    helper, held, gone = SideThread(), Held(), threading.Event()
    weakref.finalize(held, gone.set)
    helper.start(partial(id, held))()
    del held
    assert gone.wait(10)  # while the thread waits for the next function


def test_nothing_is_kept_of_what_has_failed() -> None:
    class Held:
        pass

    side, held = SideThread(), Held()
    reference = weakref.ref(held)

    def fails(own: Held) -> None:
        raise ValueError(id(own))

    gc.disable()
    try:
        with contextlib.suppress(ValueError):
            side.start(partial(fails, held))()
        side.end()
        del held
        assert reference() is None
    finally:
        gc.enable()


def test_it_may_be_ended_on_its_own_thread() -> None:
    side = SideThread()
    begun = threading.Event()

    def act() -> bool:
        begun.set()
        side.end()
        return True

    result = side.start(act)
    assert begun.wait(10)
    assert result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_starts_a_thread_of_its_own() -> None:
    helper = SideThread()
    running = threading.Event()
    wait: Callable[[], object] = helper.start(running.set)
    assert running.wait(10)
    wait()
    child = os.fork()
    if not child:
        begun = threading.Event()
        helper.start(begun.set)
        os._exit(0 if begun.wait(10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_what_was_running_at_a_fork_runs_in_the_child_too() -> None:
    helper, running, free = SideThread(), threading.Event(), threading.Event()
    parent = os.getpid()

    def act() -> int:
        if os.getpid() == parent:
            running.set()
            assert free.wait(10)
        return os.getpid()

    result = helper.start(act)
    assert running.wait(10)
    child = os.fork()
    if not child:
        signal.alarm(10)  # ends the child if it waits for ever
        os._exit(0 if result() == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    free.set()
    assert result() == parent
