"""Tokens in the colours of three components whose meaning is fixed, and their norms."""

from __future__ import annotations

import numpy as np
import pytest

from fmapboard.records import Floats, LayerCall, LayerMeasurement, LayerPart, StepData
from fmapboard.summary.tokens import Projection, Projections, token_pictures, token_scalars

PART = LayerPart("Block 6", "feature", 6)
BLOCK = LayerCall("blocks.0", "Block", part=PART)
DIRECTIONS = np.array([[0, 0, 3, 4, 0, 0], [0, -1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]) / [
    [5],
    [1],
    [1],
]


def tokens_of(weights: Floats, features: int = 6) -> Floats:
    """Tokens [2, 4, features] along three known directions: of weights [8, 3]."""
    directions = np.zeros((3, features))
    directions[:, :6] = DIRECTIONS
    return (weights @ directions + 7).reshape(2, 4, features)


WEIGHTS = np.array(
    [[a, b, c] for a in (-9.0, 9.0) for b in (-3.0, 3.0) for c in (-1.0, 1.0)]
)  # [8, 3]; uncorrelated


def drawn(before: Projections, step: int, tokens: Floats) -> tuple[Projections, Floats, str]:
    part = LayerMeasurement(BLOCK, "feature_maps", tokens=tokens)
    after, (tagged,) = token_pictures(before, StepData(step, 0.0, (part,)), "net.")
    assert tagged.tag == "net.tokens_as_colours_Block 6/blocks.0"
    return after, tagged.samples[0].pixels, tagged.description


@pytest.mark.parametrize("features", [6, 20], ids=["more tokens", "more features"])
def test_the_components_are_the_known_directions_in_order_of_variance(features: int) -> None:
    found = Projection.of(3, tokens_of(WEIGHTS, features))
    assert found is not None
    expected = [[0, 0, 0.6, 0.8, 0, 0], [0, 1, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]  # signs too
    assert found.axes[:, :6] == pytest.approx(np.array(expected), abs=1e-12)
    assert found.variances == pytest.approx(np.array([81, 9, 1]) / 91)
    assert found.low == pytest.approx([-18, -6, -2])  # a range of 18, and half of it
    assert found.high == pytest.approx([18, 6, 2])


def test_each_token_has_the_colour_of_its_components() -> None:
    _, pixels, said = drawn({}, 0, tokens_of(WEIGHTS))
    expected = np.where(WEIGHTS > 0, 191, 64)  # at a quarter and at three quarters of 255
    expected[:, 1] = 255 - expected[:, 1]  # the direction is turned round
    assert pixels.reshape(8, 3).tolist() == expected.tolist()
    assert "of the tokens at step 0 (89%, 10%, 1% of the variance)" in said


def test_later_steps_are_drawn_by_the_components_and_the_range_of_the_first() -> None:
    known, first, _ = drawn({}, 5, tokens_of(WEIGHTS))
    after, same, said = drawn(known, 6, tokens_of(WEIGHTS) + 100)  # a shift of all tokens
    assert same.tolist() == first.tolist()
    assert after["blocks.0"] is known["blocks.0"]
    assert "at step 5" in said
    _, grown, _ = drawn(known, 6, tokens_of(WEIGHTS) * 50)  # as norms grow in training
    assert grown.tolist() == first.tolist()
    _, swapped, _ = drawn(known, 7, tokens_of(WEIGHTS[:, ::-1]))  # red has a range of 1 now
    assert set(swapped[..., 0].ravel()) == {120, 135}
    assert set(swapped[..., 2].ravel()) == {0, 255}  # out of range


def test_a_step_with_tokens_that_are_not_finite_fixes_nothing() -> None:
    tokens = tokens_of(WEIGHTS)
    tokens[0, 1, 2] = np.inf
    part = LayerMeasurement(BLOCK, "feature_maps", tokens=tokens)
    assert token_pictures({}, StepData(0, 0.0, (part,)), "") == ({}, [])
    known, first, _ = drawn({}, 1, tokens_of(WEIGHTS))
    _, pixels, _ = drawn(known, 2, tokens)
    assert pixels[0, 1].tolist() == [255, 0, 255]
    assert np.abs(pixels[1].astype(int) - first[1]).max() < 20


def test_components_without_variance_are_grey_and_equal_tokens_have_no_picture() -> None:
    _, pixels, _ = drawn({}, 0, tokens_of(WEIGHTS * [1, 0, 0]))
    assert set(pixels[..., 0].ravel()) == {64, 191}
    assert set(pixels[..., 1:].ravel()) == {128}
    part = LayerMeasurement(BLOCK, "feature_maps", tokens=np.ones((2, 4, 6)))
    assert token_pictures({}, StepData(0, 0.0, (part,)), "") == ({}, [])


def test_a_layer_with_another_number_of_features_gets_new_components() -> None:
    known, _, _ = drawn({}, 0, tokens_of(WEIGHTS))
    after, _, said = drawn(known, 4, tokens_of(WEIGHTS, 20))
    assert after["blocks.0"].step == 4
    assert "at step 4" in said


def test_norms_and_the_share_of_a_branch_in_its_block_are_scalars() -> None:
    def measured(name: str, *norms: float) -> LayerMeasurement:
        call = LayerCall(name, "Module", part=PART)
        return LayerMeasurement(call, "feature_maps", token_norms=np.array(norms))

    parts = [
        measured("blocks", 9.0, 9.0, 40.0),
        measured("blocks.1.attn", 3.0, 1.0, 5.0),
        measured("blocks.1", 8.0, 2.0, 20.0),
        measured("blocks.10.attn", 3.0, 1.0, 5.0),
        measured("head", float("inf"), 1.0, 1.0),
    ]
    assert token_scalars(parts) == {
        "token_norm_max/blocks.1.attn": 3.0,
        "token_norm_median/blocks.1.attn": 1.0,
        "token_norm_max/blocks.1": 8.0,
        "token_norm_median/blocks.1": 2.0,
        "token_norm_max/blocks.10.attn": 3.0,
        "token_norm_median/blocks.10.attn": 1.0,
        "token_norm_max/blocks": 9.0,
        "token_norm_median/blocks": 9.0,
        "token_norm_median/head": 1.0,
        "branch_share/blocks.1.attn": 0.25,
        "branch_share/blocks.1": 0.5,
        "branch_share/blocks.10.attn": 0.125,
    }
