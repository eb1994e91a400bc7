"""Activations inside the network that are at their ends."""

from __future__ import annotations

import pytest
from check_records import from_step, layer, record

from fmapboard.checks import Finding
from fmapboard.health.rules import SaturatedCheck


def saturated(
    deviation: list[float],
    followed_by: tuple[str, ...] = ("Tanh",),
    at: int = 1,
    **more: list[float],
) -> list[Finding]:
    layers = [layer(i) for i in range(6)]
    layers[at] = layer(at, followed_by=followed_by)
    columns = {"std": {at: deviation}, **{name: {at: of} for name, of in more.items()}}
    return list(SaturatedCheck()(record(layers, columns=columns)))


def test_tanh_outputs_at_their_ends() -> None:
    (found,) = saturated([4.0] * 8)
    assert (found.class_, found.layer, found.since_step) == ("note", "conv1", 0)
    assert found.value == pytest.approx(0.508, abs=1e-3)
    assert found.message == (
        "about 51 % of the outputs of the Tanh behind `conv1` are beyond ±0.99 since step 0"
    )
    assert saturated([3.9] * 8) == []
    (found,) = saturated(from_step(4, 9.0, 1.0))
    assert found.since_step == 40
    assert saturated(from_step(5, 9.0, 1.0)) == []
    assert len(saturated([1.0] * 8, mean=[2.7] * 8)) == 1
    assert len(saturated([0.0] * 8, mean=[-2.7] * 8)) == 1


def test_a_normalized_layer_and_the_answer_are_not_saturated() -> None:
    assert saturated([9.0] * 8, ("BatchNorm2d", "Tanh")) == []
    assert saturated([9.0] * 8, at=5) == []
    assert saturated([9.0] * 8, ()) == []
    assert saturated([float("nan")] * 8) == []


def test_sigmoids_that_saturate_later_may_be_gates() -> None:
    (found,) = saturated([9.0] * 8, ("Sigmoid",))
    assert "of the Sigmoid behind `conv1` are beyond 0.01 and 0.99" in found.message
    assert saturated([6.7] * 8, ("Sigmoid",)) == []
    assert saturated(from_step(1, 9.0, 1.0), ("Sigmoid",)) == []
