"""How many threads reduce a tensor on the CPU: one, or several as long as that pays."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from fmapboard.capture import isolation
from fmapboard.capture.cpu_threads import MANY_BYTES, ThreadPolicy
from fmapboard.capture.isolation import aside

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _several_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(isolation, "thread_policy", ThreadPolicy())
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(1)


def readers(nbytes: int, seconds: float = 0.0) -> int:
    """How many threads a reduction of ``nbytes`` bytes that takes ``seconds`` runs on."""
    with aside("cpu", nbytes):
        time.sleep(seconds)
        return torch.get_num_threads()


def test_a_large_output_is_read_by_as_many_threads_as_torch_has_and_a_small_one_by_one() -> None:
    assert readers(MANY_BYTES) == 3
    assert readers(MANY_BYTES - 1) == 1
    assert torch.get_num_threads() == 3


def test_after_a_read_that_stalled_one_thread_reads_for_a_while() -> None:
    assert readers(MANY_BYTES, seconds=0.05) == 3
    assert [readers(MANY_BYTES) for _ in range(17)] == [1] * 16 + [3]


def test_every_further_stall_takes_longer_to_forget_up_to_a_bound() -> None:
    policy, waits = ThreadPolicy(), []
    for _ in range(12):
        assert policy.allows_several(MANY_BYTES)
        policy.record(1.0, MANY_BYTES)
        waits.append(policy.single_threaded)
        policy.single_threaded = 0
    assert waits == [min(16 * 2**n, 1 << 14) for n in range(12)]


def test_reads_that_do_not_stall_let_the_stalls_be_forgotten_and_no_more_than_these() -> None:
    policy, waits = ThreadPolicy(), []
    for good in (0, 0, 10, 100, 0):
        for _ in range(good):
            assert policy.allows_several(MANY_BYTES)
            policy.record(1e-4, MANY_BYTES)
        policy.record(1.0, MANY_BYTES)
        waits.append(policy.single_threaded)
        policy.single_threaded = 0
    assert waits == [16, 32, 64 - 10, 16, 32]


def test_much_memory_may_take_its_time() -> None:
    policy = ThreadPolicy()
    policy.record(0.1, 10**9)
    assert policy.single_threaded == 0
    policy.record(0.1, 10**7)
    assert policy.single_threaded > 0


def test_where_torch_has_one_thread_nothing_is_decided() -> None:
    torch.set_num_threads(1)
    assert readers(MANY_BYTES, seconds=0.05) == 1
    assert isolation.thread_policy == ThreadPolicy()


def test_reads_of_one_thread_are_not_timed() -> None:
    assert readers(100, seconds=0.05) == 1
    assert isolation.thread_policy == ThreadPolicy()
