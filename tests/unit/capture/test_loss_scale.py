"""Steps that a GradScaler skips are noticed, and counted once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from fmapboard.capture.loss_scale import LossScale


class Scaler:
    """A gradient scaler with the scale that the test sets."""

    scale = 8.0

    def get_scale(self) -> float:
        return self.scale


def stepped(found_inf: float | None) -> Any:
    return (
        SimpleNamespace()
        if found_inf is None
        else SimpleNamespace(found_inf=torch.tensor(found_inf))
    )


def test_without_a_scaler_nothing_is_scaled_skipped_or_written() -> None:
    loss_scale = LossScale()
    loss_scale.pass_begins()
    assert (loss_scale.at_forward, loss_scale.was_skipped()) == (None, False)
    assert loss_scale.scalars() == {}


def test_a_scale_that_halved_since_the_forward_pass_is_a_skipped_step() -> None:
    scaler = Scaler()
    loss_scale = LossScale(scaler)
    loss_scale.step_opens()
    loss_scale.pass_begins()
    assert (loss_scale.at_forward, loss_scale.was_skipped()) == (8.0, False)
    scaler.scale = 4.0
    assert loss_scale.was_skipped()
    assert loss_scale.scalars() == {"fmapboard/skipped_steps": 1.0}


def test_a_fused_optimizer_that_found_infinities_has_skipped_one_step() -> None:
    loss_scale = LossScale(Scaler())
    loss_scale.step_opens()
    loss_scale.pass_begins()
    assert not loss_scale.skips(stepped(0.0))
    assert not loss_scale.skips(stepped(None))
    assert loss_scale.skips(stepped(1.0))
    assert [loss_scale.was_skipped(), loss_scale.was_skipped()] == [True, False]
    assert loss_scale.scalars() == {"fmapboard/skipped_steps": 1.0}


def test_a_new_step_starts_without_the_state_of_the_previous_one() -> None:
    loss_scale = LossScale(Scaler())
    loss_scale.pass_begins()
    loss_scale.skips(stepped(1.0))
    loss_scale.step_opens()
    assert (loss_scale.at_forward, loss_scale.was_skipped()) == (None, False)
