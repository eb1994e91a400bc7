"""Version counters of a model's parameters, read without a trace."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from fmapboard.session.usage import ParameterVersions, most_changes


def test_the_parameter_that_changed_most_often_counts() -> None:
    layer = nn.Linear(2, 2)
    versions = ParameterVersions(layer)
    before = versions.read()
    with torch.no_grad():
        layer.weight.add_(1)
        layer.bias.add_(1).add_(1)
    assert most_changes(before, versions.read()) == 2
    assert most_changes(before, before) == 0


def test_at_most_16_parameters_are_read_and_frozen_ones_only_if_all_are() -> None:
    model = nn.Sequential(*(nn.Linear(1, 1) for _ in range(40)))
    model[:30].requires_grad_(False)
    assert len(ParameterVersions(model).read()) == 16
    trainable = {id(p) for p in model[30:].parameters()}
    assert ParameterVersions(model).ids() <= trainable
    assert len(ParameterVersions(model.requires_grad_(False)).ids() & trainable) < 16
    assert ParameterVersions(nn.ReLU()).read() == ()


def test_the_parameters_are_not_kept_alive() -> None:
    layer = nn.Linear(2, 2)
    gone, versions = weakref.ref(layer.weight), ParameterVersions(layer)
    before = versions.read()
    layer.weight = nn.Parameter(torch.zeros(2, 2))
    gc.collect()
    assert gone() is None
    assert versions.read() == (None, before[1])
    assert most_changes(before, versions.read()) == 0


def test_a_mode_of_the_user_does_not_see_the_reading() -> None:
    class Seen(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
            self.calls += 1
            return func(*args, **(kwargs or {}))

    layer = nn.Linear(2, 2)
    versions = ParameterVersions(layer)
    expected = layer.weight._version, layer.bias._version
    with Seen() as seen:
        assert versions.read() == expected
    assert seen.calls == 0


def test_inference_tensors_have_no_version_and_are_left_out() -> None:
    with torch.inference_mode():
        layer = nn.Linear(2, 2)
    assert ParameterVersions(layer).read() == ()
