"""The record of a step's findings, and which weights count as unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmapboard.formats.training_facts import (
    Idle,
    Nonfinite,
    TrainingFacts,
    Unchanged,
    unpack_training_facts,
)
from fmapboard.records import Parameter, RecordedFacts, Sample, StepData
from fmapboard.summary.build import SummaryBuilder

WEIGHT = np.linspace(-0.1, 0.1, 50, dtype=np.float32)
GRADIENT = np.linspace(0.01, 0.02, 50, dtype=np.float32)


def parameter(
    weight: np.ndarray = WEIGHT, gradient: np.ndarray | None = GRADIENT, **changes: object
) -> Parameter:
    of_gradient = None if gradient is None else Sample(gradient, gradient.size)
    return Parameter("w", Sample(weight, weight.size), of_gradient, 1.0, **changes)


def step(number: int, of: Parameter, rate: float | None = 0.1) -> StepData:
    rates = {} if rate is None else {"w": rate}
    return StepData(
        number, 0.0, parameters=(of,), facts=RecordedFacts(TrainingFacts(batch=2), rates)
    )


def recorded(data: StepData, build: SummaryBuilder | None = None) -> TrainingFacts:
    records = (build or SummaryBuilder(name="net"))(data).records
    (record,) = [each for each in records if each.tag == "net.fmapboard_findings"]
    return unpack_training_facts(record.blobs)


def unchanged(build: SummaryBuilder, data: StepData) -> dict[str, Unchanged]:
    found = recorded(data, build)
    assert found.batch == 2
    return dict(found.unchanged)


def last_of(steps: list[StepData]) -> dict[str, Unchanged]:
    build = SummaryBuilder(name="net")
    return [unchanged(build, data) for data in steps][-1]


def test_steps_without_a_change_are_counted_from_the_first_logged_one() -> None:
    build = SummaryBuilder(name="net")
    counted = [unchanged(build, step(number, parameter())) for number in (0, 10, 20, 30)]
    assert counted[0] == {}
    assert counted[1:] == [{"w": Unchanged(n, 0)} for n in (1, 2, 3)]


def test_a_change_of_one_value_starts_again() -> None:
    moved = WEIGHT.copy()
    moved[7] = np.nextafter(moved[7], np.float32(1))
    build = SummaryBuilder(name="net")
    for number in (0, 10):
        unchanged(build, step(number, parameter()))
    assert unchanged(build, step(20, parameter(moved))) == {}
    assert unchanged(build, step(30, parameter(moved))) == {"w": Unchanged(1, 20)}


@pytest.mark.parametrize(
    ("of", "rate"),
    [
        (parameter(), 0.0),
        (parameter(), None),
        (parameter(), 1e-12),
        (parameter(gradient=None), 0.1),
        (parameter(gradient=np.zeros_like(GRADIENT)), 0.1),
        (parameter(gradient=GRADIENT * 1e-12), 0.1),
        (parameter(gradient=GRADIENT[:10]), 0.1),
        (parameter(gradient=np.full_like(GRADIENT, np.inf)), 0.1),
        (parameter(nonfinite=Nonfinite(nan=1)), 0.1),
        (parameter(np.ones_like(WEIGHT)), 1e-7),
    ],
    ids=[
        *("rate 0", "no rate", "tiny rate", "no gradient", "zero gradient", "tiny gradient"),
        *("sparse gradient", "infinite gradient", "NaN", "tiny rate of Adam"),
    ],
)
def test_a_step_that_need_not_change_the_weight_does_not_count(
    of: Parameter, rate: float | None
) -> None:
    assert last_of([step(n, of, rate) for n in range(5)]) == {}


def test_only_steps_that_had_to_change_the_weight_count() -> None:
    rates = [0.0, 0.1, 0.0, 0.1, 0.0]
    steps = [step(n, parameter(), rate) for n, rate in enumerate(rates)]
    assert last_of(steps) == {"w": Unchanged(2, 0)}


def test_a_parameter_without_a_sample_and_a_step_without_facts_are_left_out() -> None:
    assert last_of([step(n, replace(parameter(), weight=None)) for n in range(3)]) == {}
    assert SummaryBuilder()(StepData(0, 0.0, parameters=(parameter(),))).records == ()


def test_steps_without_an_optimizer_step_are_counted_while_the_weights_are_the_same() -> None:
    build, found = SummaryBuilder(name="net"), []
    for number, weights in ((0, b"a"), (10, b"a"), (20, b"a"), (30, b"b"), (40, None), (50, b"b")):
        idle = None if weights is None else Idle(0, number, is_held=True, is_cleared=True)
        facts = RecordedFacts(TrainingFacts(batch=2, idle=idle), weights=weights)
        found.append(recorded(StepData(number, 0.0, facts=facts), build).idle)
    assert [None if idle is None else (idle.steps, idle.since) for idle in found] == [
        (0, 0), (1, 0), (2, 0), (0, 30), None, (0, 50),
    ]  # fmt: skip


def test_weights_that_are_not_finite_are_listed() -> None:
    def listed(*weights: np.ndarray) -> tuple[str, ...] | None:
        of = [replace(parameter(weight), name=f"w{n}") for n, weight in enumerate(weights)]
        data = replace(step(0, parameter()), parameters=tuple(of))
        return recorded(data).nonfinite_weights

    for value in (np.nan, np.inf, -np.inf):
        bad = WEIGHT.copy()
        bad[7] = value
        assert listed(WEIGHT, bad) == ("w1",)
    assert listed(WEIGHT) == ()
    assert listed() is None
