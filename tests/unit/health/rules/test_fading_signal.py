"""Activations that fade from layer to layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from check_records import LAST, gradients, layer, record, statistics

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health.rules import FadingSignalCheck

FADES = (1.0, 0.1, 0.00099)


def faded(*stds: float, losses: Sequence[float | None] = (2.3,) * 8, **known: Any) -> list[Finding]:
    layers = [layer(i, **(known if i == 1 else {})) for i in range(6)]
    first = {f"conv{i}": statistics(*[(-1.0, 1.0, 0.0, std)] * 4) for i, std in enumerate(stds)}
    spread = 1e-4 if None in losses else 1.0
    out = OutputFacts("", (8, 10), spread=spread, low=0.0, high=1.0)
    facts = [TrainingFacts(outputs=(replace(out, loss=each),)) for each in losses]
    given = record(layers, first=first, facts=facts, scalars=gradients(1.0))
    return list(FadingSignalCheck()(given))


def test_a_signal_that_fades_through_the_layers_and_a_network_that_stays_as_it_is() -> None:
    (found,) = faded(1.0, 0.1, 0.00099)
    assert (found.class_, found.layer, found.since_step) == ("note", "conv2", 0)
    assert "falls 1,000-fold from `conv0` to `conv2` at step 0" in found.message
    assert faded(1.0, 0.1, 0.0011) == faded(1.0, 1e-5) == faded(1.0, 0.01, 0.0) == []
    assert faded(1.0, 0.1, 0.001, followed_by=("BatchNorm2d",)) == []
    assert faded(1.0, 0.1, 1e-9, losses=[2.3, *[1.0] * 7]) == []
    assert len(faded(1.0, 0.1, 0.001, losses=[None] * 8)) == 1  # the output is constant
    assert faded(1.0, 0.1, 1e-9, losses=[]) == []  # it is not known


@pytest.mark.parametrize(
    ("first", "is_found"), [(3e-4, True), (3.1e-4, False), (0.0, False), (None, False)]
)
def test_an_output_that_hardly_depends_on_the_input_from_the_start(
    first: float | None, is_found: bool
) -> None:
    def found(later: float) -> list[Finding]:
        every = [OutputFacts("", (8, 10), spread=of, low=0.0, high=1.0) for of in (first, later)]
        facts = [TrainingFacts(outputs=(of,)) for of in (every[0], *every[1:] * (LAST - 1))]
        return list(FadingSignalCheck()(record(facts=facts, scalars=gradients(1.0))))

    said = [(one.class_, one.layer, one.since_step, one.message) for one in found(later=1e-3)]
    text = "the output varies from input to input by 0.0003 of its magnitude at step 0"
    assert said == [("note", None, 0, text)] * is_found
    assert found(later=0.1) == []  # it learns


def test_the_first_layer_that_does_not_vary_is_named() -> None:
    out = OutputFacts("", (8, 10), spread=1e-6, low=0.0, high=1.0)
    facts = [TrainingFacts(outputs=(out,))] * LAST
    first = {"conv0": statistics(*[(-1.0, 1.0, 0.0, 0.5)] * 4)}
    first["conv1"] = statistics(*[(0.2, 0.2, 0.2, 1e-5)] * 4)
    given = record(facts=facts, first=first, scalars=gradients(1.0))
    (found,) = FadingSignalCheck()(given)
    assert found.layer == "conv1"
    assert "`conv1` is the first layer whose channels hardly vary at step 0" in found.message
