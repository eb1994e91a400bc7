"""A learning rate that falls too soon."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from check_records import STEPS, record

from fmapboard.checks import Finding, NotRecorded
from fmapboard.health.rules import RateVanishedCheck


def vanished(*rates: list[float], steps: Sequence[int] = STEPS) -> list[Finding]:
    scalars = {f"learning_rate/{n}": one for n, one in enumerate(rates)}
    return list(RateVanishedCheck()(record(steps=steps, scalars=scalars)))


def test_a_rate_far_below_its_maximum_for_more_than_a_tenth_of_the_run() -> None:
    (found,) = vanished([0.01, 0.1, 0.1, 0.1, 1e-6, 1e-6, 1e-6, 1e-6])
    assert (found.class_, found.since_step, found.value) == ("note", 40, pytest.approx(1e-5))
    assert found.message == (
        "the learning rate has been below 1e-04 times its maximum of 0.1 since step 40, for 43 % "
        "of the run; it is 1.0e-06"
    )
    assert vanished([0.1] * 5 + [1e-6] * 3) == []
    assert vanished([0.1] * 4 + [1e-6] * 3 + [0.1]) == []
    assert vanished([0.1] * 4 + [0.999999e-5] * 4) == []  # four divisions by 10, rounded
    late = [*range(0, 400, 100), 400, 401, 402, 403]
    assert vanished([0.1] * 4 + [1e-6] * 4, steps=late) == []
    with pytest.raises(NotRecorded, match="learning_rate"):
        RateVanishedCheck()(record())
    (found,) = vanished([0.1] * 2 + [4.9e-4] * 6)  # three divisions by 10, for most of the run
    assert "below 5e-03 times its maximum of 0.1 since step 20, for 71 %" in found.message
    assert vanished([0.1] * 3 + [4.9e-4] * 5) == vanished([0.1] * 2 + [5e-4] * 6) == []


def test_a_warm_up_a_group_at_rate_0_and_one_that_still_learns_are_silent() -> None:
    assert vanished([1e-7] * 6 + [0.1] * 2) == []
    gone = [0.1] * 2 + [1e-6] * 6
    assert vanished(gone, [0.1] * 8) == []
    assert len(vanished(gone, [0.0] * 8)) == 1
    assert vanished([0.0] * 8) == []
