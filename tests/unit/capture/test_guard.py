"""Our errors are reported under a name and never reach the user's code."""

from __future__ import annotations

import pytest
from guards import keeping_guard

from fmapboard.capture.guard import ERRORS_UNTIL_DISABLED


def test_an_error_inside_a_guard_is_reported_under_its_name_and_suppressed() -> None:
    errors: list[tuple[str, Exception]] = []
    guard = keeping_guard(errors)
    with guard("conv1"):
        raise ValueError("no")
    assert [(about, str(error)) for about, error in errors] == [("conv1", "no")]
    assert guard.has_failed


def test_a_keyboard_interrupt_propagates() -> None:
    errors: list[tuple[str, Exception]] = []
    with pytest.raises(KeyboardInterrupt), keeping_guard(errors)("conv1"):
        raise KeyboardInterrupt
    assert errors == []


def test_repeated_failures_disable_only_their_own_name() -> None:
    guard = keeping_guard([])
    for number in range(ERRORS_UNTIL_DISABLED):
        assert not guard.is_disabled("conv1"), number
        guard.failed("conv1", ValueError())
    assert guard.is_disabled("conv1")
    assert not guard.is_disabled("conv2")
