"""Gradients that fade on their way to the first layers."""

from __future__ import annotations

import pytest
from check_records import LAST, from_step, gradients, layer, record

from fmapboard.checks import NotRecorded
from fmapboard.health.rules import VanishingCheck


def test_gradients_that_vanish_towards_the_input() -> None:
    (found,) = VanishingCheck()(record(scalars=gradients(9e-5)))
    assert (found.kind, found.class_, found.layer) == ("vanishing", "note", "conv0")
    assert found.value == pytest.approx(9e-5)
    assert found.since_step == 0
    assert VanishingCheck()(record(scalars=gradients(1.1e-4))) == []


def test_gradients_of_exactly_0_are_said_to_be_cut_off() -> None:
    (found,) = VanishingCheck()(record(scalars=gradients(0.0)))
    assert "from `conv0` on, are exactly 0 since step 0" in found.message
    assert found.meaning.startswith("No gradient reaches the first layers")
    (found,) = VanishingCheck()(record(scalars=gradients([1e-9] + [0.0] * (LAST - 1))))
    assert found.meaning.startswith("The first layers hardly learn")


def test_one_of_the_first_two_layers_may_have_small_gradients() -> None:
    scalars = {**gradients(1e-6), "gradient_norm/conv1.weight": [0.1] * LAST}
    assert VanishingCheck()(record(scalars=scalars)) == []


def test_gradients_per_weight_are_compared() -> None:
    wide = [layer(i, kernel_shape=(64, 64, 3, 3) if i < 2 else (2, 20, 1, 1)) for i in range(6)]
    root = (64 * 64 * 9 / 40) ** 0.5
    (found,) = VanishingCheck()(record(wide, scalars=gradients(9e-5 * root)))
    assert found.value == pytest.approx(9e-5)
    assert VanishingCheck()(record(wide, scalars=gradients(1.1e-4 * root))) == []


def test_norms_of_linear_layers_are_compared_where_there_are_no_others() -> None:
    linear = [layer(i, kernel_shape=None, type="Linear") for i in range(6)]
    two = gradients(9e-5)  # they may be queries and keys, whose gradients are small at first
    assert VanishingCheck()(record(linear, scalars=two)) == []
    three = {**two, "gradient_norm/conv2.weight": [9e-5] * LAST}
    (found,) = VanishingCheck()(record(linear, scalars=three))
    assert found.value == pytest.approx(9e-5)
    mixed = [layer(9), *linear]
    assert VanishingCheck()(record(mixed, scalars=three)) == []


def test_gradients_that_are_small_at_the_end_only_are_silent() -> None:
    assert VanishingCheck()(record(scalars=gradients(from_step(1, 1e-7, 1.0)))) == []


def test_gradients_may_recover_after_most_of_the_first_half_of_the_run() -> None:
    late = [1e-7, 1e-7, 1e-7, *[1.0] * (LAST - 3)]
    assert len(VanishingCheck()(record(scalars=gradients(late)))) == 1
    assert VanishingCheck()(record(scalars=gradients([1e-7, *[1.0] * (LAST - 1)]))) == []


def test_few_layers_and_few_steps_are_silent() -> None:
    three = [layer(i) for i in range(3)]
    assert VanishingCheck()(record(three, scalars=gradients(1e-7, 3))) == []
    (found,) = VanishingCheck()(record(three, scalars=gradients(0.0, 3)))  # exactly 0 is another
    assert found.message.startswith(
        "gradients per weight of the first layers, from `conv0` on, are"
    )
    (found,) = VanishingCheck()(record(three[1:], scalars=gradients(0.0, 3)))
    assert found.layer == "conv1"
    assert VanishingCheck()(record(three[2:], scalars=gradients(0.0, 3))) == []
    short = {tag: values[:2] for tag, values in gradients(1e-7).items()}
    assert VanishingCheck()(record(scalars=short)) == []
    with pytest.raises(NotRecorded, match="gradient_norm"):
        VanishingCheck()(record())


def test_nonfinite_and_zero_norms_do_not_matter() -> None:
    nan = gradients([float("nan"), 0.5, float("inf"), *[0.5] * (LAST - 3)])
    assert VanishingCheck()(record(scalars=nan)) == []
    assert VanishingCheck()(record(scalars=dict.fromkeys(gradients(1), [0.0] * LAST))) == []
