"""Which forward pass is recorded by default, and the numbers of the calls in it."""

from __future__ import annotations

from fmapboard.capture.passes import CallNumbers, Decision, FirstPass, Moment, PassEvent

BEGINS, RETURNS = PassEvent(Moment.BEGINS), PassEvent(Moment.RETURNS)
PART, LAYER = PassEvent(Moment.PART_BEGINS), PassEvent(Moment.LAYER_RUNS)


def test_calls_are_numbered_per_layer_and_ordered_among_all_calls() -> None:
    numbers = CallNumbers()
    assert [numbers.next(layer, "output") for layer in ("a", "b", "a")] == [(1, 0), (1, 1), (2, 2)]
    assert numbers.has_run("b", "output")
    assert not numbers.has_run("b", "input")


def test_input_and_output_of_a_call_share_one_position() -> None:
    numbers = CallNumbers()
    assert [numbers.next("a", side) for side in ("input", "output")] == [(1, 0), (1, 0)]


def test_a_later_pass_is_numbered_from_its_first_call() -> None:
    numbers = CallNumbers()
    numbers.next("a", "output")
    numbers.start_over()
    assert not numbers.has_run("a", "output")
    assert numbers.next("a", "output") == (1, 0)


def test_later_passes_are_not_recorded() -> None:
    policy = FirstPass()
    assert policy.decide(BEGINS) is Decision.RECORD
    policy.decide(RETURNS)
    for event in (BEGINS, PART, LAYER):
        assert policy.decide(event) is Decision.IGNORE


def test_a_pass_that_raised_does_not_count() -> None:
    policy = FirstPass()
    policy.decide(BEGINS)
    assert policy.decide(BEGINS) is Decision.RECORD  # nothing returned in between


def test_parts_and_layers_are_recorded_while_the_root_is_not_called() -> None:
    policy = FirstPass()
    assert [policy.decide(event) for event in (PART, LAYER)] == [Decision.RECORD] * 2


def test_nothing_is_taken_over_from_another_thread() -> None:
    elsewhere = PassEvent(Moment.BEGINS, is_elsewhere=True)
    assert FirstPass().decide(elsewhere) is Decision.IGNORE
