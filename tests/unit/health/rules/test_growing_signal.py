"""Activations that grow from layer to layer."""

from __future__ import annotations

import pytest
from check_records import LAST, from_step, layer, record

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import GrowingSignalCheck


def test_a_signal_that_grows_through_the_layers_at_the_first_step() -> None:
    (found,) = GrowingSignalCheck()(record(columns={"std": {5: [50.0] * LAST}}))
    assert (found.layer, found.since_step, found.value) == ("conv5", 0, 50.0)
    assert GrowingSignalCheck()(record(columns={"std": {5: [49.9] * LAST}})) == []
    assert GrowingSignalCheck()(record(columns={"std": {5: from_step(1, 99.0, 1.0)}})) == []
    for kind, count in (("Linear", 1), ("ReLU", 0)):
        layers = [layer(i, kernel_shape=None, type=kind) for i in range(6)]
        grown = record(layers, columns={"std": {5: [50.0] * LAST}})
        assert len(GrowingSignalCheck()(grown)) == count


def test_a_signal_that_grows_through_the_layers_does_not_count_if_the_network_learns() -> None:
    def found(*losses: float) -> list[Finding]:
        facts = [TrainingFacts(outputs=(OutputFacts("", (8, 10), loss=each),)) for each in losses]
        return list(GrowingSignalCheck()(record(columns={"std": {5: [50.0] * LAST}}, facts=facts)))

    assert found(9.9, 8.0, 7.5, 7.4) == []
    assert len(found(9.9, 8.0, 7.5, 7.93)) == 1


def test_only_layers_without_a_normalization_between_them_are_compared() -> None:
    layers = [layer(i) for i in range(6)]
    columns = {"std": {0: [0.01] * LAST, 1: [0.01] * LAST}}
    (found,) = GrowingSignalCheck()(record(layers, columns=columns))
    assert found.value == pytest.approx(100.0)
    for place in range(2, 5):
        parts = list(layers)
        parts[place] = layer(place, followed_by=("BatchNorm2d",))
        assert len(GrowingSignalCheck()(record(parts, columns=columns))) == 1
    # The scale behind it is that of the normalization.
    parts = [*layers[:1], layer(1, followed_by=("Tanh", "LayerNorm2d")), *layers[2:]]
    assert GrowingSignalCheck()(record(parts, columns=columns)) == []
    later = {"std": {2: [0.01] * LAST, 5: [1.0] * LAST}}
    parts = [*layers[:1], layer(1, followed_by=("GroupNorm",)), *layers[2:]]
    (found,) = GrowingSignalCheck()(record(parts, columns=later))
    assert "from `conv2` to `conv5`" in found.message


def test_images_of_little_contrast_are_no_fault_of_the_initial_weights() -> None:
    columns = {"std": {0: [0.0025] * LAST}}
    images = {"minimum": 0.0, "maximum": 0.5, "mean": 0.1, "std": 0.1}
    assert GrowingSignalCheck()(record(columns=columns, inputs=images)) == []
    (found,) = GrowingSignalCheck()(record(columns=columns, inputs={**images, "std": 0.2}))
    assert found.value == pytest.approx(80.0)
    assert len(GrowingSignalCheck()(record(columns=columns, inputs={**images, "std": 3.0}))) == 1
    parts = [layer(i, followed_by=("BatchNorm2d",) if i == 0 else ()) for i in range(6)]
    later = {"std": {1: [0.01] * LAST}}  # behind a normalization, contrast is no excuse
    assert len(GrowingSignalCheck()(record(parts, columns=later, inputs=images))) == 1
