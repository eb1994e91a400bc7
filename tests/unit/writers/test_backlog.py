"""How many steps may wait to be written: 8, the one that is being written included."""

from __future__ import annotations

from fmapboard.writers.worker import Backlog


def filled(count: int, *, in_steps: bool = True) -> Backlog[int]:
    """A backlog of items of one byte each, none of which is being worked on."""
    backlog: Backlog[int] = Backlog(100, in_steps=in_steps)
    for item in range(count):
        assert not backlog.is_full(1), item
        backlog.add(item, 1)
    return backlog


def test_the_bound_is_eight_steps() -> None:
    backlog = filled(7)
    assert not backlog.is_at_bound
    backlog.add(7, 1)
    assert backlog.is_at_bound
    assert backlog.is_full(1)


def test_the_step_that_is_being_written_counts() -> None:
    backlog = filled(8)
    assert backlog.take() == (0, 1)
    assert len(backlog) == 8
    assert backlog.is_full(1)
    backlog.done()
    assert len(backlog) == 7
    assert not backlog.is_full(1)


def test_steps_that_were_written_do_not_count() -> None:
    backlog = filled(0)
    for item in range(100):
        backlog.add(item, 1)
        assert backlog.take() == (item, 1)
        assert not backlog.is_full(1)
        backlog.done()
    assert backlog.take() is None
    assert len(backlog) == 0


def test_without_a_bound_in_steps_only_bytes_count() -> None:
    backlog = filled(99, in_steps=False)
    assert not backlog.is_full(1)
    assert backlog.is_full(2)
    assert backlog.drop_oldest()
    assert not backlog.is_full(2)
    assert backlog.take() == (1, 1)
    assert backlog.nbytes == 97


def test_a_cleared_backlog_is_empty() -> None:
    backlog = filled(8)
    backlog.take()
    backlog.clear()
    assert (len(backlog), backlog.nbytes, backlog.is_queued) == (0, 0, False)
    assert not backlog.is_full(1)
    assert not backlog.drop_oldest()
