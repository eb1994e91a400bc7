"""When attribution is drawn, and when it is grey."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmapboard.formats.tab_records import unpack
from fmapboard.records import Attribution, InputImage, LayerCall, StepData
from fmapboard.render import png
from fmapboard.summary.attributions import AttributionState, attributions, negligible

IMAGE = InputImage(0, np.zeros((1, 8, 8), np.float32))


def found(
    total: float, *, layer: str = "a", batch: int = 10, tokens: bool = False, score: str = ""
) -> Attribution:
    heat = np.full((2, 2), total / 4, np.float32)
    return Attribution(LayerCall(layer, "ReLU"), 0, heat, 0.5, batch, IMAGE, tokens, score)


def step(number: int, *attributed: Attribution) -> StepData:
    return StepData(number, 0.0, (), attributions=attributed)


@pytest.mark.parametrize(
    ("total", "batch", "expected"),
    [
        (1e-3, 10, False),
        (2e-6, 10, False),  # 2e-5 of the loss per sample
        (5e-7, 10, True),
        (5e-7, 1000, False),
        (0.0, 10, True),
        (-1.0, 10, True),
        (float("nan"), 10, True),
        (float("inf"), 10, True),
    ],
)
def test_a_map_below_the_rounding_of_the_loss_is_negligible(
    total: float, batch: int, expected: bool
) -> None:
    assert negligible([found(total, batch=batch)]) == [expected]


def test_a_layer_without_influence_beside_the_others_is_negligible() -> None:
    layers = [found(1e3), found(1e-4, layer="b"), found(1.0, layer="c")]
    assert negligible(layers) == [False, True, False]


def test_a_gradient_that_is_not_finite_is_negligible_though_the_map_is() -> None:
    one = found(1.0)
    broken = Attribution(one.layer_call, 0, one.heat, float("inf"), 10, IMAGE)
    assert negligible([broken]) == [True]


def test_the_text_names_the_score_of_a_class() -> None:
    of = [found(1.0, score="class 3")]
    _, (tagged,), norms, _ = attributions(AttributionState(), step(0, *of), "net.")
    assert tagged.tag == "net.attribution/a/sample_0"
    assert "a larger activation raises the score of class 3 here" in tagged.description
    assert norms == {"net.attribution_gradient/a/sample_0": 0.5}


def test_the_score_is_recorded_at_each_step_once_per_sample() -> None:
    of = [replace(found(1.0, layer=name, score="class 3"), value=2.5) for name in "ab"]
    state, _, _, first = attributions(AttributionState(), step(0, *of), "net.")
    assert [record.tag for record in first][2:] == ["net.fmapboard_attribution_score/sample_0"]
    _, _, _, (record,) = attributions(state, step(1, *of), "net.")
    header, _ = unpack(record.blobs)
    assert (header["name"], header["value"]) == ("class 3", 2.5)


def test_the_first_picture_of_a_series_is_stored_again() -> None:
    state, (tagged,), _, (record,) = attributions(AttributionState(), step(10, found(1.0)), "net.")
    assert record.tag == "net.fmapboard_first_attribution/a/sample_0"
    header, _ = unpack(record.blobs)
    assert (header["step"], header["of"], header["gradient"]) == (10, "loss", 0.5)
    assert record.blobs[2] == png.encode(tagged.samples[0])
    assert attributions(state, step(20, found(1.0)), "net.")[3] == []
