"""Which forward pass of a logged step is recorded, and the calls in it."""

from __future__ import annotations

from typing import Any

from fmapboard.capture.passes import CaptureListener, PassTracker


def tracker(*, accepted: bool = True, restarts: bool = False) -> PassTracker:
    class Listener(CaptureListener):
        def counts(self, received: Any) -> bool:
            return accepted

        def again(self) -> bool:
            return restarts

    return PassTracker(Listener())


def test_calls_are_numbered_per_layer_and_ordered_among_all_calls() -> None:
    passes = tracker()
    assert passes.root_begins()
    calls = [passes.call(layer, "output") for layer in ("a", "b", "a")]
    assert calls == [(1, 0), (1, 1), (2, 2)]


def test_input_and_output_of_a_call_share_one_position() -> None:
    passes = tracker()
    passes.root_begins()
    assert [passes.call("a", side) for side in ("input", "output")] == [(1, 0), (1, 0)]


def test_later_passes_are_not_recorded() -> None:
    passes = tracker()
    passes.root_begins()
    passes.root_ends()
    assert not passes.root_begins()
    assert passes.call("a", "output") is None


def test_a_restart_records_the_later_pass_from_its_first_call() -> None:
    passes = tracker(restarts=True)
    passes.root_begins()
    passes.call("a", "output")
    passes.root_ends()
    assert passes.root_begins()
    assert passes.call("a", "output") == (1, 0)


def test_an_aborted_pass_does_not_count() -> None:
    passes = tracker()
    passes.root_begins()
    passes.call("a", "output")
    assert passes.root_begins()  # without an end in between
    assert passes.call("a", "output") == (1, 0)


def test_if_the_root_is_bypassed_the_first_call_of_each_layer_is_recorded() -> None:
    passes = tracker()
    assert [passes.call(layer, "output") for layer in ("a", "a", "b")] == [(1, 0), None, (1, 1)]


def test_a_pass_that_is_not_accepted_records_nothing() -> None:
    passes = tracker(accepted=False)
    assert not passes.root_begins()
    assert passes.call("a", "output") is None
