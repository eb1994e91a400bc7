"""A batch is divided into what a network gets and its label."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from fmapboard.rehearsal.task import Task

X = torch.rand(4, 3)
OTHER = torch.rand(4, 2)
NOISE = torch.rand(4, 1)
LABEL = torch.arange(4)


def of_two(x: Tensor, t: Tensor) -> None: ...


def of_text(input_ids: Tensor, attention_mask: Any = None, labels: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("forward", "batch", "names"),
    [
        (of_two, {"x": X, "t": OTHER, "y": LABEL}, {"x": "x", "t": "t"}),
        (of_two, {"x_t": X, "t": OTHER, "noise": NOISE}, {"x": "x_t", "t": "t"}),
        (of_two, {"y": LABEL, "x": X, "adjacency": OTHER}, {"x": "x", "t": "adjacency"}),
        (
            of_text,
            {"input_ids": X, "labels": LABEL},
            {"input_ids": "input_ids", "labels": "labels"},
        ),
    ],
)
def test_arguments_of_other_names_are_taken_in_their_order(
    forward: Any, batch: dict[str, Tensor], names: dict[str, str]
) -> None:
    task = Task(tuple(inspect.signature(forward).parameters.values()))
    parts = task.parts(batch)
    assert parts.args == ()
    assert {
        name: value is batch[names[name]] for name, value in parts.kwargs.items()
    } == dict.fromkeys(names, True)
