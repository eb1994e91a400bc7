"""Layers that are used and get no gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check_records import LAST, layer, record
from loop_facts import ALONE, LATER, STEPPED, findings_at

from fmapboard.health.rules import CutOffLayersCheck


def test_gradients_of_exactly_0_of_most_weights_count_as_none() -> None:
    norms = {f"gradient_norm/conv{i}.weight": [0.0 if i < 4 else 1.0] * LAST for i in range(7)}
    layers = [layer(i, kernel_shape=None, type="Quantized") for i in range(7)]
    facts = [STEPPED] * LAST
    (found,) = CutOffLayersCheck()(record(layers, facts=facts, scalars=norms))
    assert found.parameters == tuple(f"conv{i}.weight" for i in range(4))
    del norms["gradient_norm/conv0.weight"]  # half of them
    assert CutOffLayersCheck()(record(layers, facts=facts, scalars=norms)) == []


def test_a_first_layer_that_runs_and_never_gets_a_gradient_for_its_weight() -> None:
    (found,) = findings_at(CutOffLayersCheck(), *[ALONE] * 4, **LATER)
    assert (found.class_, found.parameter, found.value) == ("note", "conv1.weight", 1)
    assert "1 trainable weight is without a gradient at each of 4 logged steps" in found.message
    assert findings_at(CutOffLayersCheck(), *[ALONE] * 3, **LATER) == []
    assert findings_at(CutOffLayersCheck(), *[ALONE] * 7, STEPPED, **LATER) == []


@pytest.mark.parametrize("name", ["aside.weight", "conv1.bias", "mask_weight"])
def test_parameters_of_layers_that_do_not_run_and_biases_are_silent(name: str) -> None:
    assert (
        findings_at(CutOffLayersCheck(), *[replace(STEPPED, no_gradient=(name,))] * LAST, **LATER)
        == []
    )


def test_a_layer_behind_others_with_gradients_may_be_ignored_by_the_loss() -> None:
    norms = {**LATER, "gradient_norm/conv0.weight": [1.0] * LAST}
    assert findings_at(CutOffLayersCheck(), *[ALONE] * LAST, **norms) == []
    two = replace(ALONE, no_gradient=("conv1.weight", "conv2.weight", "conv2.bias"))
    del norms["gradient_norm/conv2.weight"]
    (found,) = findings_at(CutOffLayersCheck(), *[two] * LAST, **norms)  # of six layers
    assert found.parameters == ("conv1.weight", "conv2.weight")
    conv0 = {"gradient_norm/conv0.weight": [1.0] * LAST}  # one of two
    few = record([layer(0), layer(1)], facts=[ALONE] * LAST, scalars=conv0)
    assert CutOffLayersCheck()(few) == []
    lost = replace(two, no_gradient=("conv1.weight", "aside.weight"))
    assert findings_at(CutOffLayersCheck(), *[lost] * LAST, **norms) == []


def test_a_layer_that_runs_at_some_of_the_steps_only_is_silent() -> None:
    nan = {"minimum": {1: [0.0] * 7 + [float("nan")]}}
    assert not CutOffLayersCheck()(record(facts=[ALONE] * LAST, columns=nan, scalars=LATER))


def test_a_sibling_with_a_gradient_shows_that_the_layer_is_used() -> None:
    copied = replace(STEPPED, no_gradient=("aside.weight",))
    (found,) = findings_at(
        CutOffLayersCheck(), *[copied] * LAST, **{"gradient_norm/aside.bias": [1.0] * LAST}
    )
    assert found.parameter == "aside.weight"
