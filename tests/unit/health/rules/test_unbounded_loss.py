"""A loss without a least value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from output_facts import OUTPUT, findings_of

from fmapboard.health.rules import UnboundedLossCheck


def test_a_loss_that_falls_faster_and_faster_is_a_note() -> None:
    losses = [0.1, -10.0, -200.0, -5e3]
    (one,) = findings_of(UnboundedLossCheck(), *[replace(OUTPUT, loss=loss) for loss in losses])
    assert (one.class_, one.since_step, one.value) == ("note", 10, -5e3)
    assert one.message == (
        "the loss of the output falls faster and faster, from 0.1 at step 0 to -5e+03 at step 30"
    )


@pytest.mark.parametrize(
    "losses",
    [
        [0.1, -10.0, -200.0, -999.0],  # a log-likelihood may be there
        [0.1, -4e3, -4.8e3, -5e3],  # it slows down
        [-200.0, -5e3],
        [2.3, 2.0, 1.0, 0.1],
    ],
)
def test_a_fall_that_slows_down_or_is_small_is_silent(losses: list[float]) -> None:
    outputs = [replace(OUTPUT, loss=loss) for loss in losses]
    assert findings_of(UnboundedLossCheck(), *outputs) == []
