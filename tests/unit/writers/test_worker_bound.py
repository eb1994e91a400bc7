"""What `put` does when the backlog has reached its bound in steps."""

from __future__ import annotations

from held_work import Clock, Desk


def test_at_the_bound_in_steps_put_waits_and_returns_the_seconds_waited(desk: Desk) -> None:
    clock = Clock(tick=0.5)
    worker = desk.worker(clock=clock)
    desk.hold_at_first(worker)
    assert [worker.put(item, 1) for item in range(7)] == [0.0] * 7
    clock.at_reading[1] = desk.let_go  # only a `put` that waits reads the clock, before and after
    assert worker.put("ninth", 1) == 0.5
    worker.close()
    assert desk.done == ["first", *range(7), "ninth"]


def test_at_the_bound_in_steps_the_oldest_queued_step_is_dropped(desk: Desk) -> None:
    worker = desk.worker(when_full="drop_oldest", clock=Clock(tick=0.5))
    desk.hold_at_first(worker)
    assert [worker.put(item, 1) for item in range(9)] == [0.0] * 9
    assert worker.dropped == 2
    desk.let_go()
    worker.close()
    assert desk.done == ["first", *range(2, 9)]
