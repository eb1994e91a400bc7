"""What `put` does when the backlog has reached its bound in steps."""

from __future__ import annotations

from held_work import Clock, Desk


def test_at_the_bound_in_steps_put_waits_and_returns_the_seconds_waited(desk: Desk) -> None:
    clock = Clock(tick=0.5)
    worker = desk.worker(low_priority=True, clock=clock)
    desk.hold_at_first(worker)
    assert [worker.put(item, 1) for item in range(7)] == [0.0] * 7
    # A `put` that waits reads the clock three times: when called, before and after waiting.
    clock.at_reading[10] = desk.let_go
    assert worker.put("ninth", 1) == 0.5
    worker.close()
    assert desk.done == ["first", *range(7), "ninth"]


def test_time_spent_waiting_does_not_count_as_training(desk: Desk) -> None:
    clock = Clock()
    worker = desk.worker(low_priority=True, clock=clock)
    desk.hold_at_first(worker)
    for number in range(1, 16):
        clock.now = number / 8
        worker.put(number, 1)
    clock.now = 2.0
    clock.at_reading[18] = desk.go_on.release  # only "first" continues
    clock.at_reading[19] = lambda: setattr(clock, "now", 62.0)
    assert worker.put("waits", 1) == 60.0
    clock.at_reading[21] = desk.let_go
    worker.put("17 in 2 s", 1)
    assert clock.readings == 20
    desk.let_go()
    worker.close()


def test_at_the_bound_in_steps_the_oldest_queued_step_is_dropped(desk: Desk) -> None:
    worker = desk.worker(when_full="drop_oldest", low_priority=True, clock=Clock(tick=0.5))
    desk.hold_at_first(worker)
    assert [worker.put(item, 1) for item in range(9)] == [0.0] * 9
    assert worker.dropped == 2
    desk.let_go()
    worker.close()
    assert desk.done == ["first", *range(2, 9)]


def test_without_low_priority_there_is_no_bound_in_steps(desk: Desk) -> None:
    worker = desk.worker(clock=Clock(tick=0.5))
    desk.hold_at_first(worker)
    assert [worker.put(item, 1) for item in range(50)] == [0.0] * 50
    desk.let_go()
    worker.close()
    assert len(desk.done) == 51
