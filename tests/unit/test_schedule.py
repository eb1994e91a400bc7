"""When a step is logged."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from fmapboard.errors import ConfigurationError
from fmapboard.schedule import Every, as_schedule, never, next_due


def test_multiples_of_the_interval_are_logged_including_step_0() -> None:
    assert [step for step in range(31) if Every(10)(step)] == [0, 10, 20, 30]
    assert all(Every(1)(step) for step in range(5))


@pytest.mark.parametrize("every", [0, -1, 2.5, True, "10", None])
def test_anything_but_a_whole_number_above_0_is_refused(every: Any) -> None:
    with pytest.raises(ConfigurationError) as error:
        Every(every)
    assert str(error.value) == (
        f"every={every!r}: expected a whole number of steps, at least 1, or a function from step "
        "number to bool"
    )


def test_a_number_or_a_function_is_a_schedule() -> None:
    def powers(step: int) -> bool:
        return step & (step - 1) == 0

    assert as_schedule(100) == Every(100)
    assert as_schedule(powers) is powers
    assert as_schedule(Every(3)) == Every(3)
    with pytest.raises(ConfigurationError, match="every=0"):
        as_schedule(0)


def test_the_next_due_step_is_known_for_a_number_and_not_for_a_function() -> None:
    assert [next_due(Every(10), step) for step in (0, 1, 9, 10, 25)] == [10, 10, 10, 20, 30]
    assert next_due(Every(1), 7) == 8
    assert next_due(lambda step: step == 500, 3) == 4
    assert next_due(never, 3) == sys.maxsize
    assert not never(0)
