"""Options without what cannot be read of parameters that FSDP1 has flattened."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import nn

from fmapboard.errors import WarnOnce
from fmapboard.model.distributed import not_flattened
from fmapboard.options import Options
from fmapboard.session.session import options_for


def flattened() -> nn.Module:
    """A network of which FSDP1 has flattened the first layer; the mark is torch's own."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    for parameter in model[0].parameters():
        parameter._fsdp_flattened = True  # type: ignore[attr-defined]
    return model


def test_options_stay_as_they_are_without_flattened_parameters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = Options(probe=torch.zeros(1, 3, 8, 8))
    assert options_for(nn.Conv2d(3, 4, 3), options, WarnOnce()) is options
    assert not caplog.messages


def test_nothing_that_needs_whole_weights_or_a_pass_of_its_own_is_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = Options(probe=torch.zeros(1, 3, 8, 8), attribution=True, inputs=True)
    with caplog.at_level(logging.WARNING, "fmapboard"):
        found = options_for(flattened(), given, WarnOnce())
    assert found.probe is None
    assert found.kernels_every == 0
    assert not found.update_ratios
    assert found.attribution is True  # that of the training step needs no pass of its own
    assert found.inputs
    (message,) = caplog.messages
    assert "FullyShardedDataParallel (FSDP1)" in message
    assert "the images of probe=, kernels, gradient norms" in message


def test_the_attribution_of_a_probe_does_not_become_that_of_the_step() -> None:
    given = Options(
        probe=torch.zeros(1, 3, 8, 8), attribution=True, attribution_loss=lambda output: output
    )
    found = options_for(flattened(), given, WarnOnce())
    assert found.step_attribution is False
    assert found.attribution_loss is None


def test_flattened_parameters_are_left_out() -> None:
    own = dict(flattened().named_parameters())
    assert list(not_flattened(own)) == ["1.weight", "1.bias"]
