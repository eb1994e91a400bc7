"""Calls to the data server of TensorBoard, one after the other or at once."""

from __future__ import annotations

import threading

import pytest

from fmapboard.plugin.source import AtOnce, Calls, in_turn


@pytest.mark.parametrize("calls", [in_turn, AtOnce()])
def test_results_come_in_the_order_of_the_calls(calls: Calls) -> None:
    assert calls([lambda i=i: i * i for i in range(50)], int) == [i * i for i in range(50)]


@pytest.mark.parametrize("calls", [in_turn, AtOnce()])
def test_an_error_of_a_call_reaches_the_caller(calls: Calls) -> None:
    with pytest.raises(ZeroDivisionError):
        calls([int, lambda: 1 // 0], int)


def test_a_call_that_waits_for_another_packet_is_nudged() -> None:
    nudged = threading.Event()

    def stuck() -> bool:
        return nudged.wait(20)

    assert AtOnce()([stuck, stuck], nudged.set) == [True, True]


def test_a_nudge_that_fails_does_no_harm() -> None:
    started = threading.Semaphore(0)

    def nudge() -> None:
        started.release()
        raise RuntimeError

    assert AtOnce()([lambda: started.acquire(timeout=20)], nudge) == [True]
