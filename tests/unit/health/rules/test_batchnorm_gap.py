"""Running statistics that do not fit the batches."""

from __future__ import annotations

from check_records import LAST, record

from fmapboard.checks import Finding
from fmapboard.health.rules import BatchnormGapCheck

LONG = tuple(range(0, 160, 20))


SHORT = tuple(range(0, 48, 6))


def gap(values: list[float], *more: list[float], steps: tuple[int, ...] = LONG) -> list[Finding]:
    scalars = {f"batchnorm_gap/bn{i}": each for i, each in enumerate((values, *more))}
    return list(BatchnormGapCheck()(record(steps=steps, scalars=scalars)))


def test_a_batchnorm_gap_that_lasts() -> None:
    (found,) = gap([1.0] * LAST)
    assert (found.class_, found.layer, found.value, found.since_step) == ("note", "bn0", 1.0, 80)
    assert gap([0.99] * LAST) == []
    assert gap([5.0] * 6 + [0.1] * 2) == []


def test_running_statistics_that_still_approach_the_batches_are_silent() -> None:
    assert gap([9.0] * LAST, steps=SHORT) == []
    assert gap([9.0] * 7) == []
    assert gap([3.0] * 6 + [2.69] * 2) == []
    assert len(gap([3.0] * 6 + [2.71] * 2)) == 1


def test_the_median_over_the_layers_decides() -> None:
    assert gap([9.0] * LAST, [0.1] * LAST, [0.1] * LAST) == []


def test_hostile_gaps_give_no_error() -> None:
    assert gap([float("inf")] * LAST) == []
    (found,) = gap([1e300] * LAST)
    assert found.value == 1e300
