"""Notes on weights that never change: on both sides of each rule, and what is intended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import STEPS, record

from fmapboard.checks import Finding
from fmapboard.checks.unchanged_weights import UnchangedWeightsCheck
from fmapboard.formats.training_facts import Findings, Idle, Unchanged

LAST = len(STEPS)
STEPPED = Findings(batch=4, rates=(0.1, 0.1), no_gradient=())
ALONE = replace(STEPPED, no_gradient=("conv1.weight",))
LATER = {f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, 6)}


def said(*facts: Findings, **more: list[float]) -> list[Finding]:
    return list(UnchangedWeightsCheck()(record(facts=facts, scalars=more)))


def idle(count: int, **changes: bool | None) -> list[Findings]:
    """Logged steps in a row without an optimizer step, over which the weights are the same."""
    first = Idle(0, 0, is_held=True, is_cleared=True)
    return [
        Findings(batch=4, idle=replace(first, steps=n, **changes))  # type: ignore[arg-type]  # flags
        for n in range(count)
    ]


def test_backward_passes_without_an_optimizer_step() -> None:
    (found,) = said(*idle(4))
    assert (found.class_, found.kind, found.since_step) == ("note", "unchanged_weights", 0)
    assert "no optimizer stepped on the model at the last 4 logged steps" in found.message
    assert "An optimizer holds them" in found.meaning
    (found,) = said(*idle(4, is_held=False))
    assert "No optimizer holds a parameter of this model" in found.meaning
    assert said(*idle(3)) == []
    assert said(*idle(7), STEPPED) == []


def test_gradients_that_are_being_accumulated_are_intended() -> None:
    kept = idle(8, is_cleared=False)
    assert said(*kept) == []
    assert said(*idle(1), *kept[1:]) == []
    assert len(said(*idle(8, is_cleared=False, is_held=False))) == 1
    assert said(*idle(8, is_held=None)) == []


def test_a_rate_of_zero_at_every_logged_step() -> None:
    zero = replace(STEPPED, rates=(0.0, 0.0))
    (found,) = said(*[zero] * 8)
    assert found.class_ == "note"
    assert found.message == "the learning rate is 0 at each of 8 logged steps"
    assert said(*[zero] * 7) == []
    assert said(*[zero] * 7, STEPPED) == []


def test_optimizer_steps_without_any_gradient() -> None:
    (found,) = said(*[ALONE] * 4)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 4)
    assert "no parameter has a gradient other than 0 at any of 4 logged steps" in found.message
    zero = {name: [0.0] * LAST for name in LATER}
    assert len(said(*[STEPPED] * LAST, **zero)) == 1
    assert said(*[ALONE] * 3) == []
    assert said(*[STEPPED] * LAST) == []
    for other in (1e-30, float("nan")):
        once = {"gradient_norm/conv2.weight": [0.0] * (LAST - 1) + [other]}
        assert said(*[STEPPED] * LAST, **zero | once) == []


def test_a_first_layer_that_runs_and_never_gets_a_gradient_for_its_weight() -> None:
    (found,) = said(*[ALONE] * 4, **LATER)
    assert (found.class_, found.parameter, found.value) == ("note", "conv1.weight", 1)
    assert "1 trainable weight is without a gradient at each of 4 logged steps" in found.message
    assert said(*[ALONE] * 3, **LATER) == []
    assert said(*[ALONE] * 7, STEPPED, **LATER) == []


@pytest.mark.parametrize("name", ["aside.weight", "conv1.bias", "mask_weight"])
def test_parameters_of_layers_that_do_not_run_and_biases_are_silent(name: str) -> None:
    assert said(*[replace(STEPPED, no_gradient=(name,))] * LAST, **LATER) == []


def test_a_layer_behind_others_with_gradients_may_be_ignored_by_the_loss() -> None:
    assert said(*[ALONE] * LAST, **LATER, **{"gradient_norm/conv0.weight": [1.0] * LAST}) == []


def test_a_layer_that_runs_at_some_of_the_steps_only_is_silent() -> None:
    nan = {"minimum": {1: [0.0] * 7 + [float("nan")]}}
    assert not UnchangedWeightsCheck()(record(facts=[ALONE] * LAST, columns=nan, scalars=LATER))


def test_a_sibling_with_a_gradient_shows_that_the_layer_is_used() -> None:
    copied = replace(STEPPED, no_gradient=("aside.weight",))
    (found,) = said(*[copied] * LAST, **{"gradient_norm/aside.bias": [1.0] * LAST})
    assert found.parameter == "aside.weight"


def test_a_warning_comes_first() -> None:
    both = replace(ALONE, unchanged={"conv2.weight": Unchanged(3, 0)})
    assert [one.class_ for one in said(*[both] * LAST)] == ["warning"]
