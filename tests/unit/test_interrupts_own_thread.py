"""A thread that can be started where an exception of a signal handler may occur at any point."""

from __future__ import annotations

import threading
import weakref

import pytest
from own_threads import own_threads

from fmapboard.interrupts import OwnThread


def test_the_thread_has_its_name_and_is_a_daemon() -> None:
    seen: list[threading.Thread] = []
    thread = OwnThread(lambda: seen.extend(own_threads()), "fmapboard-1")
    thread.start()
    thread.join()
    thread.join()
    assert [(one.name, one.daemon) for one in seen] == [("fmapboard-1", True)]
    assert own_threads() == []


def test_no_callback_of_the_thread_runs_in_the_thread_that_starts_it() -> None:
    ran: list[int] = []
    seen: list[weakref.ref[threading.Thread]] = []

    def body() -> None:
        thread = threading.current_thread()
        seen.append(weakref.ref(thread, lambda _: ran.append(threading.get_ident())))

    for _ in range(50):
        thread = OwnThread(body, "fmapboard")
        thread.start()
        thread.join()
    assert len(seen) == len(ran) == 50
    assert threading.get_ident() not in ran


def test_the_body_runs_in_the_helper_thread_if_there_can_be_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ran: list[int] = []
    monkeypatch.setattr(threading.Thread, "start", start)
    thread = OwnThread(lambda: ran.append(threading.get_ident()), "fmapboard")
    thread.start()
    thread.join()
    assert len(ran) == 1
    assert threading.get_ident() not in ran
