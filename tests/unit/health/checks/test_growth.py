"""Vanishing and exploding signals: on both sides of each threshold."""

from __future__ import annotations

import pytest
from check_records import STEPS, from_step, layer, record

from fmapboard.checks import NotRecorded, RunRecord
from fmapboard.health.checks.growth import ExplodingCheck, VanishingCheck

LAST = len(STEPS)


def gradients(first: float | list[float], layers: int = 6) -> dict[str, list[float]]:
    """Gradient norms of 1 in all layers but the first two."""
    values = first if isinstance(first, list) else [first] * LAST
    norms = {f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, layers)}
    return {**norms, **{f"gradient_norm/conv{i}.weight": values for i in range(2)}}


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


def test_gradients_that_are_small_at_the_end_only_are_silent() -> None:
    assert VanishingCheck()(record(scalars=gradients(from_step(3, 1e-7, 1.0)))) == []


def test_few_layers_and_few_steps_are_silent() -> None:
    three = [layer(i) for i in range(3)]
    assert VanishingCheck()(record(three, scalars=gradients(1e-7, 3))) == []
    short = {tag: values[:2] for tag, values in gradients(1e-7).items()}
    assert VanishingCheck()(record(scalars=short)) == []
    with pytest.raises(NotRecorded, match="gradient_norm"):
        VanishingCheck()(record())


def test_nonfinite_and_zero_norms_do_not_matter() -> None:
    nan = gradients([float("nan"), 0.5, float("inf"), *[0.5] * (LAST - 3)])
    assert VanishingCheck()(record(scalars=nan)) == []
    assert VanishingCheck()(record(scalars=dict.fromkeys(gradients(1), [0.0] * LAST))) == []


def test_magnitudes_that_grow_over_the_steps() -> None:
    (found,) = ExplodingCheck()(record(columns={"maximum": {2: from_step(4, 1000.0, 1.0)}}))
    assert (found.layer, found.since_step, found.value) == ("conv2", 40, 1000.0)
    grown = {"maximum": {2: from_step(4, 999.0, 1.0)}}
    assert ExplodingCheck()(record(columns=grown)) == []


def test_a_layer_that_starts_near_zero_may_grow_to_the_magnitudes_of_the_others() -> None:
    tiny = {2: [1e-3] * LAST}
    columns = {"maximum": {2: from_step(4, 6.5, 4e-4)}, "minimum": tiny}
    assert ExplodingCheck()(record(columns=columns)) == []
    columns = {"maximum": {2: from_step(4, 1000.0, 4e-4)}, "minimum": tiny}
    (found,) = ExplodingCheck()(record(columns=columns))
    assert found.value == pytest.approx(1000.0)


def test_growth_from_almost_zero_to_small_values_is_silent() -> None:
    tiny = {2: from_step(1, 0.9, 1e-9)}
    columns = {"maximum": tiny, "minimum": {2: [0.0] * LAST}}
    assert ExplodingCheck()(record(columns=columns)) == []
    zero = {"maximum": {2: from_step(1, 50.0, 0.0)}, "minimum": {2: [0.0] * LAST}}
    assert ExplodingCheck()(record(columns=zero)) == []


def test_a_signal_that_grows_through_the_layers_at_the_first_step() -> None:
    (found,) = ExplodingCheck()(record(columns={"std": {5: [15.0] * LAST}}))
    assert (found.layer, found.since_step, found.value) == ("conv5", 0, 15.0)
    assert ExplodingCheck()(record(columns={"std": {5: [14.9] * LAST}})) == []
    assert ExplodingCheck()(record(columns={"std": {5: from_step(1, 99.0, 1.0)}})) == []


def test_only_layers_without_a_normalization_between_them_are_compared() -> None:
    layers = [layer(i) for i in range(6)]
    columns = {"std": {0: [0.05] * LAST, 1: [0.05] * LAST}}
    (found,) = ExplodingCheck()(record(layers, columns=columns))
    assert found.value == pytest.approx(20.0)
    for place in range(2, 5):
        parts = list(layers)
        parts[place] = layer(place, followed_by=("BatchNorm2d",))
        assert len(ExplodingCheck()(record(parts, columns=columns))) == 1
    # The scale behind it is that of the normalization.
    parts = [*layers[:1], layer(1, followed_by=("Tanh", "LayerNorm2d")), *layers[2:]]
    assert ExplodingCheck()(record(parts, columns=columns)) == []
    later = {"std": {2: [0.05] * LAST, 5: [1.0] * LAST}}
    parts = [*layers[:1], layer(1, followed_by=("GroupNorm",)), *layers[2:]]
    (found,) = ExplodingCheck()(record(parts, columns=later))
    assert "from `conv2` to `conv5`" in found.message


def test_images_of_little_contrast_are_no_fault_of_the_initial_weights() -> None:
    columns = {"std": {0: [0.01] * LAST}}
    images = {"minimum": 0.0, "maximum": 0.5, "mean": 0.1, "std": 0.1}
    assert ExplodingCheck()(record(columns=columns, inputs=images)) == []
    (found,) = ExplodingCheck()(record(columns=columns, inputs={**images, "std": 0.2}))
    assert found.value == pytest.approx(20.0)
    assert len(ExplodingCheck()(record(columns=columns, inputs={**images, "std": 3.0}))) == 1


def test_gradients_that_grow_towards_the_input() -> None:
    (found,) = ExplodingCheck()(record(scalars=gradients(1.1e4)))
    assert (found.layer, found.since_step) == ("conv0", 0)
    assert ExplodingCheck()(record(scalars=gradients(9e3))) == []


def test_without_layers_it_is_not_recorded() -> None:
    with pytest.raises(NotRecorded):
        ExplodingCheck()(RunRecord())
