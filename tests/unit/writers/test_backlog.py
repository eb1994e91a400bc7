"""How many steps may wait to be written: 8, or those of the last 2 s of training."""

from __future__ import annotations

import pytest

from fmapboard.writers.backlog import Backlog


def filled(count: int, seconds: float, *, in_steps: bool = True) -> tuple[Backlog[int], list[bool]]:
    """A backlog of steps added ``seconds`` apart, and whether each addition reached the bound."""
    backlog: Backlog[int] = Backlog(10**9, in_steps=in_steps)
    return backlog, [backlog.add(item, 1, item * seconds) for item in range(count)]


@pytest.mark.parametrize(
    ("seconds", "bound"), [(60.0, 8), (1.0, 8), (0.25, 8), (0.125, 16), (0.0625, 32)]
)
def test_the_bound_is_eight_steps_or_the_steps_of_two_seconds(seconds: float, bound: int) -> None:
    backlog, reached = filled(bound - 1, seconds)
    assert not backlog.is_full(1, (bound - 1) * seconds)
    assert not any(reached)
    assert backlog.add(bound - 1, 1, (bound - 1) * seconds)
    assert backlog.is_full(1, bound * seconds)


def test_the_step_that_is_being_written_counts() -> None:
    backlog, _ = filled(8, 1.0)
    assert backlog.take() == 0
    assert len(backlog) == 8
    assert backlog.is_full(1, 8.0)
    backlog.done()
    assert len(backlog) == 7
    assert not backlog.is_full(1, 8.0)


def test_steps_that_were_written_do_not_count() -> None:
    backlog, reached = filled(1, 0.0)
    for item in range(1, 100):
        backlog.take()
        backlog.done()
        assert not backlog.is_full(1, item * 1.0)
        reached.append(backlog.add(item, 1, item * 1.0))
    assert not any(reached)


def test_a_first_burst_does_not_reach_the_bound() -> None:
    backlog, reached = filled(200, 0.005)
    assert not any(reached)
    assert not backlog.is_full(1, 1.0)


def test_without_a_bound_in_steps_only_bytes_count() -> None:
    backlog: Backlog[int] = Backlog(100, in_steps=False)
    assert not any(backlog.add(item, 1, item * 9.0) for item in range(99))
    assert not backlog.is_full(1, 900.0)
    assert backlog.is_full(2, 900.0)
    backlog.drop_oldest()
    assert not backlog.is_full(2, 900.0)
    assert backlog.take() == 1
    assert backlog.nbytes == 97


def test_a_cleared_backlog_is_empty() -> None:
    backlog, _ = filled(8, 1.0)
    backlog.take()
    backlog.clear()
    assert (len(backlog), backlog.nbytes, backlog.is_queued) == (0, 0, False)
    assert not backlog.is_full(1, 8.0)
