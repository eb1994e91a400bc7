"""Models of torchvision and timm: a dozen of those in `tests/accuracy/model_sweep.py`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

ACCURACY = Path(__file__).parents[2] / "accuracy"

CHOSEN = {
    "alexnet": ("classification", 5, 5),
    "squeezenet1_1": ("classification", 26, 26),
    "densenet121": ("classification", 120, 120),
    "googlenet": ("classification", 59, 59),
    "mobilenet_v3_small": ("classification", 52, 52),
    "efficientnet_b0": ("classification", 81, 81),
    "shufflenet_v2_x0_5": ("classification", 56, 56),
    "swin_t": ("classification", 1, 1),
    "lraspp_mobilenet_v3_large": ("segmentation", 66, 66),
    "retinanet_resnet50_fpn": ("detection", 71, 111),
    "convnext_atto": ("timm", 40, 40),
    "regnetx_002": ("timm", 44, 44),
    "ghostnet_050": ("timm", 95, 95),
    "vit_tiny_patch16_224": ("timm", 1, 1),
}
"""Name -> task, number of convolutions that run, number of their calls."""


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ACCURACY)
    return importlib.import_module("model_checks")


@pytest.mark.parametrize("name", CHOSEN)
def test_a_library_model_is_recorded_as_it_ran_and_trains_as_if_unwatched(
    checks: Any, name: str
) -> None:
    task, convolutions, calls = CHOSEN[name]

    outcome = checks.sweep(checks.Case(name, task))

    assert outcome.wrong == []
    assert (outcome.convolutions, outcome.calls) == (convolutions, calls)
    assert outcome.records == calls
    assert outcome.pictures == outcome.drawable == calls
    assert outcome.same is True


class Bypass(nn.Module):
    """Calls `forward` of a convolution directly, so that no hook runs."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.unseen = nn.Conv2d(3, 2, 1), nn.Conv2d(2, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.unseen.forward(self.seen(x))


@pytest.mark.parametrize("training", [True, False])
def test_the_check_itself_reports_a_convolution_that_has_no_record(
    checks: Any, training: bool
) -> None:
    outcome, args = checks.Outcome(), (torch.rand(2, 3, 4, 4),)
    model = Bypass().train(training)

    checks.check_extract(model, args, outcome)
    checks.check_training(model, args, outcome)

    assert (outcome.calls, outcome.records, outcome.pictures, outcome.drawable) == (2, 1, 1, 2)
    assert outcome.same is True
    assert outcome.wrong == [
        "unseen ran and has no record",
        "unseen ran and has no picture of its maps or inputs",
        "unseen has no histogram",
        "unseen has no numbers",
    ]
