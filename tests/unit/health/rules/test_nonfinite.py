"""The first non-finite value: its place, and a cause that follows from what is recorded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from check_records import STEPS, from_step, record

from fmapboard.checks import Finding, NotRecorded, RunRecord
from fmapboard.formats.training_facts import FirstNonfinite, Nonfinite, Place, TrainingFacts
from fmapboard.health.rules import NonfiniteCheck

AT = 3  # index of the step with the first non-finite value: step 30


def test_the_first_layer_with_nonfinite_values_is_named() -> None:
    (found,) = NonfiniteCheck()(record(columns={"nonfinite": {1: from_step(3, 0.5, 0.0)}}))
    assert (found.class_, found.layer, found.since_step, found.value) == (
        "warning",
        "conv1",
        30,
        0.5,
    )
    assert found.text.startswith("non-finite values since step 30, first in `conv1`. ")
    assert (
        "Picture: `feature_maps_64x64x3x3/conv1`. See `fmapboard docs checks#nonfinite`"
        in found.text
    )
    assert NonfiniteCheck()(record()) == []


def told(found: Nonfinite, owner: str, place: Place = "feature_maps") -> FirstNonfinite:
    return FirstNonfinite(STEPS[AT], place, owner, "Conv2d", 1, found, 1000)


def weights(names: Sequence[str] | None, before: Sequence[str] | None = ()) -> list[TrainingFacts]:
    """Facts in which these weights are not finite from step 30 on."""
    first, later = (TrainingFacts(nonfinite_weights=n and tuple(n)) for n in (before, names))
    return [first] * AT + [later] * (len(STEPS) - AT)


def lost(layer: int) -> dict[str, dict[int, list[float]]]:
    """Columns of a run in which a layer is not finite from step 30 on."""
    return {"nonfinite": {layer: from_step(AT, 1.0, 0.0)}}


def only(of: RunRecord) -> Finding:
    (found,) = NonfiniteCheck()(of)
    return found


def test_a_weight_that_is_not_finite_is_the_cause_and_no_overflow() -> None:
    first = told(Nonfinite(12), "conv1")
    found = only(record(columns=lost(1), told=first, facts=weights(["conv1.weight"])))
    assert (
        found.message == "NaN since step 30, first in `conv1`, whose `conv1.weight` is not finite"
    )
    assert found.meaning.startswith(
        "The fault is in the weights: `conv1.weight` is not finite, so the output is lost. "
        "At step 20, the logged step before, the recorded ones were finite: a gradient since then "
        "was not finite, a step too large"
    )
    assert "error_if_nonfinite=True" in found.advice
    assert "log each step from 20" in found.advice
    assert "overflow" not in found.text


def test_the_rate_the_largest_update_and_the_number_format_of_lost_weights_are_said() -> None:
    facts = [
        replace(known, rates=(0.1, 4.0), optimizers=("SGD",), dtypes=("bfloat16",))
        for known in weights(["conv1.weight"])
    ]
    scalars = {"update_ratio/conv2.weight": [0.1, 0.2, 3.5]}
    found = only(record(columns=lost(1), scalars=scalars, facts=facts))
    assert found.meaning.endswith(
        "or other code did it. At step 20 SGD had a learning rate of 4, the largest update moved "
        "`conv2.weight` by 3.5 times its norm, the weights are in bfloat16"
    )


def test_weights_that_were_lost_before_the_first_logged_step() -> None:
    every = ["conv0.weight", "conv0.bias", "conv1.weight", "conv2.weight"]
    columns = {"nonfinite": {0: [1.0] * len(STEPS)}}
    found = only(record(columns=columns, facts=weights(every, every)))
    assert found.message.endswith("`conv0`, whose `conv0.weight`, `conv0.bias` are not finite")
    assert "`conv0.weight`, `conv0.bias` are not finite, and 2 further parameters" in found.meaning
    assert found.meaning.endswith("It was so at the first logged step")
    assert "checkpoint" in found.advice


def test_weights_of_a_layer_with_a_longer_name_are_not_its_own() -> None:
    facts = weights(["conv10.weight"])
    found = only(record(columns=lost(1), told=told(Nonfinite(1), "conv1"), facts=facts))
    assert found.meaning.startswith("The layer's recorded weights are finite. ")


UNKNOWN = "It is not recorded whether the layer's weights were finite: if not, they are the cause. "


def test_weights_that_were_not_read_are_said_to_be_unknown_and_a_possible_cause() -> None:
    first = told(Nonfinite(1), "conv1")
    for facts in ((), weights(None, None)):
        found = only(record(columns=lost(1), told=first, facts=facts))
        assert found.meaning.startswith(f"{UNKNOWN}What was called before it returned finite")
        assert "they arise in this layer or its weights, in code between `conv0`" in found.meaning
        assert found.advice.startswith("Check torch.isfinite(parameter).all() for the parameters")
    received = told(Nonfinite(1), "conv1", "inputs")
    assert "weights" not in only(record(columns=lost(1), told=received)).text
    lost_images = record(columns=lost(0), inputs={"nonfinite": 2.0})
    assert only(lost_images).meaning.startswith("The network's input is not finite")
    assert only(lost_images).message == (
        "non-finite values since step 30 in the network's input; of the layers first in `conv0`"
    )


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"nonfinite": 2.0}, "The network's input is not finite: 2 values of the drawn images are"),
        ({"nonfinite": 1.0}, "1 value of the drawn images is NaN or infinite"),
        ({"nonfinite": 0.0, "minimum": 0.0}, "(the drawn ones are finite)"),
        ({"minimum": 0.0}, "the inputs of the batch (they are not recorded)"),
    ],
)
def test_the_first_layer_points_to_the_images(inputs: dict[str, float], expected: str) -> None:
    found = only(record(columns=lost(0), facts=weights(()), inputs=inputs))
    assert found.meaning.startswith("The layer's recorded weights are finite. ")
    assert expected in found.meaning
    assert "normalized" in found.advice


def test_a_layer_behind_finite_ones_is_where_they_arise() -> None:
    found = only(record(columns=lost(3), told=told(Nonfinite(5), "conv3")))
    assert found.meaning == (
        f"{UNKNOWN}What was called before it returned finite values, so they arise in this "
        "layer or its weights, in code between `conv2` and this layer, or in another input of the "
        "network; NaN without an infinity comes from 0 / 0, or a logarithm or square root of a "
        "negative number: no finite value exceeds 1"
    )
    received = told(Nonfinite(5), "conv1", "inputs")
    found = only(record(columns=lost(1), told=received, facts=weights(["conv1.weight"])))
    assert found.meaning.startswith(
        "What was called before it returned finite values, so they arise in code between `conv0` "
        "and this layer, or in another input of the network; "
    )


def test_only_large_magnitudes_are_called_an_overflow() -> None:
    first = told(Nonfinite(0, 5), "conv2")
    found = only(record(columns=lost(2), told=first))
    assert "too large for the number format (65,504 in float16)" in found.meaning
    large = {**lost(2), "maximum": {1: [1.0, 1.0, 1.0, 6e4, 1.0, 1.0, 1.0, 1.0]}}
    found = only(record(columns=large, told=first))
    assert found.meaning.startswith(
        f"The values have overflowed: finite magnitudes reach 6e+04 in `conv1`. {UNKNOWN}What was "
    )
    assert "0 / 0" not in found.meaning
    assert found.advice.startswith("Lower the learning rate or clip the gradients")
    grown = {**lost(0), "maximum": {0: [6e4] * len(STEPS)}}
    found = only(record(columns=grown, told=told(Nonfinite(5), "conv0")))
    assert found.meaning.startswith("The values have overflowed, as in infinity − infinity: finite")
    found = only(record(columns=grown, inputs={"nonfinite": 1.0}))
    assert "overflow" not in found.text  # the images are the cause


@pytest.mark.parametrize(
    ("norms", "expected"),
    [
        ([math.nan] * 3, "the gradients of all 3 parameters are not: the loss itself is NaN"),
        ([1.0, math.nan, 1.0], "the gradients of 1 of 3 parameters are not: such values arise in"),
        ([], "finite: the values arise in the loss or in the backward pass"),
    ],
)
def test_gradients_of_a_finite_forward_pass(norms: list[float], expected: str) -> None:
    place = told(Nonfinite(3), "conv1.weight", "gradients")
    names = [f"gradient_norm/{name}" for name in ("conv0.weight", "conv1.weight", "conv2.bias")]
    scalars = {
        name: [1.0] * AT + [norm] * (len(STEPS) - AT)
        for name, norm in zip(names, norms, strict=False)
    }
    scalars |= {"gradient_norm/total": [math.nan] * len(STEPS)}
    found = only(record(told=place, scalars=scalars))
    assert found.message == (
        "NaN at step 30, in the gradient of parameter `conv1.weight` (of such parameters the first "
        "in the model's order)"
    )
    assert (found.layer, found.parameter) == (None, "conv1.weight")
    assert found.meaning.startswith("All activations of the step are finite")
    assert expected in found.meaning
    assert "set_detect_anomaly" in found.advice


def test_a_gradient_of_activations_is_of_the_way_back() -> None:
    place = told(Nonfinite(3), "conv4", "gradients_of_maps")
    unused = weights(["conv4.weight"])
    used = [replace(facts, no_gradient=()) for facts in unused]
    found = only(record(told=place, facts=used))
    assert found.layer == "conv4"
    assert NonfiniteCheck()(record(told=place, facts=unused)) == []  # by no optimizer
    assert found.meaning.endswith("arise on the way back, in the loss or behind this layer")


def test_a_record_without_overview_is_not_recorded() -> None:
    with pytest.raises(NotRecorded, match="fmapboard_overview"):
        NonfiniteCheck()(RunRecord())
