"""`benchmarks/first_batch.py`: the loss of a loop's first step, for other outputs of the model."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def first_batch(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("first_batch")


def test_a_loss_function_of_torch_is_given_with_its_targets(first_batch: Any) -> None:
    model = nn.Linear(4, 3)
    images = torch.randn(8, 4)
    labels = torch.randint(0, 3, (8,))
    step = first_batch.FirstStep(model)
    loss = nn.CrossEntropyLoss()(model(images), labels)
    step.stop()
    function, targets = step.function_and_targets(loss)
    assert function is functional.cross_entropy
    assert targets is labels
    assert step.inputs() is images


def test_a_loss_of_several_calls_is_computed_again_for_other_outputs(first_batch: Any) -> None:
    model = nn.Linear(4, 1)
    near = torch.randn(8, 4)
    far = torch.randn(8, 4)
    step = first_batch.FirstStep(model)
    distance = (model(near) - model(far)).abs() + 0.5
    loss = distance.log().mean()
    step.stop()
    with torch.no_grad():
        model.weight.mul_(2)
    inputs = step.inputs()
    again = step.loss(loss, step.forward(model, inputs))
    expected = ((model(near) - model(far)).abs() + 0.5).log().mean()
    assert torch.equal(again, expected)
    assert not torch.equal(again, loss)
    assert again.requires_grad


def test_a_step_that_is_no_batch_and_loss_function_says_why(first_batch: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    step = first_batch.FirstStep(model)
    loss = model[0](torch.randn(2, 4)).sum()
    step.stop()
    with pytest.raises(first_batch.NotOneBatch, match="is not called itself, only parts of it"):
        step.inputs()
    with pytest.raises(first_batch.NotOneBatch, match="not computed from the output"):
        step.loss(loss, loss)
    step = first_batch.FirstStep(model)
    with pytest.raises(first_batch.NotOneBatch, match="called on its own output"):
        model(model(torch.randn(2, 4)))
    step.stop()
