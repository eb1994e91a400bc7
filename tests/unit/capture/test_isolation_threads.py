"""How many threads reduce a tensor on the CPU: one, or several as long as that pays."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch
from torch_threads import torch_threads

from fmapboard.capture import isolation
from fmapboard.capture.isolation import MANY_BYTES, ThreadPolicy, aside


class Clock:
    """Stands for ``time.perf_counter``; only ``readers`` moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


clock = Clock()


@pytest.fixture(autouse=True)
def _several_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(isolation, "thread_policy", ThreadPolicy())
    monkeypatch.setattr(time, "perf_counter", clock)
    with torch_threads(3):
        yield


def readers(nbytes: int, seconds: float = 0.0) -> int:
    """How many threads a reduction of ``nbytes`` bytes that takes ``seconds`` runs on."""
    with aside("cpu", nbytes):
        clock.seconds += seconds
        return torch.get_num_threads()


def test_a_large_output_is_read_by_all_torch_threads_and_a_small_one_by_one_thread() -> None:
    assert readers(MANY_BYTES) == 3
    assert readers(MANY_BYTES - 1) == 1
    assert torch.get_num_threads() == 3


def test_after_a_stalled_read_one_thread_reads_for_a_while() -> None:
    assert readers(MANY_BYTES, seconds=0.05) == 3
    assert [readers(MANY_BYTES) for _ in range(17)] == [1] * 16 + [3]


def test_each_further_stall_doubles_the_wait_up_to_a_bound() -> None:
    policy, waits = ThreadPolicy(), []
    for _ in range(12):
        assert policy.allows_several(MANY_BYTES)
        policy.record(1.0, MANY_BYTES)
        waits.append(policy.single_threaded)
        policy.single_threaded = 0
    assert waits == [min(16 * 2**n, 1 << 14) for n in range(12)]


def test_reads_without_a_stall_shorten_the_next_wait_down_to_the_first_one() -> None:
    policy, waits = ThreadPolicy(), []
    for good in (0, 0, 10, 100, 0):
        for _ in range(good):
            assert policy.allows_several(MANY_BYTES)
            policy.record(1e-4, MANY_BYTES)
        policy.record(1.0, MANY_BYTES)
        waits.append(policy.single_threaded)
        policy.single_threaded = 0
    assert waits == [16, 32, 64 - 10, 16, 32]


def test_a_long_read_of_many_bytes_is_not_a_stall() -> None:
    policy = ThreadPolicy()
    policy.record(0.1, 10**9)
    assert policy.single_threaded == 0
    policy.record(0.1, 10**7)
    assert policy.single_threaded > 0


def test_with_a_single_torch_thread_reads_are_not_timed() -> None:
    torch.set_num_threads(1)
    assert readers(MANY_BYTES, seconds=0.05) == 1
    assert isolation.thread_policy == ThreadPolicy()


def test_reads_too_small_for_several_threads_are_not_timed() -> None:
    assert readers(100, seconds=0.05) == 1
    assert isolation.thread_policy == ThreadPolicy()
