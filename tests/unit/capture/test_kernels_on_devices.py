"""Kernels read on an accelerator: few launches, the CPU's numbers."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
import torch
from device_trace import Tracer
from simulated_device import move, simulated_device
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn.utils.parametrizations import weight_norm

from fmapboard.capture.kernels import read_kernels


def convolutions() -> nn.ModuleDict:
    torch.manual_seed(0)
    return nn.ModuleDict(
        {
            "first": nn.Conv2d(3, 70, 7),
            "wide": nn.Conv2d(70, 80, 3),
            "as wide": nn.Conv2d(90, 66, 3),
            "small": nn.Conv2d(8, 5, 3),
            "depthwise": nn.Conv2d(8, 8, 3, groups=8),
            "no convolution": nn.Linear(3, 3),
            "bf16": nn.Conv2d(8, 5, 3, dtype=torch.bfloat16),
            "wide bf16": nn.Conv2d(70, 80, 3, dtype=torch.bfloat16),
            "computed": weight_norm(nn.Conv2d(4, 4, 3)),
            "transposed": nn.ConvTranspose2d(70, 9, 2),
            "volume": nn.Conv3d(70, 80, 3),
            "another volume": nn.Conv3d(4, 8, 3),
            "transposed volume": nn.ConvTranspose3d(70, 80, 2),
            "line": nn.Conv1d(70, 8, 5),
        }
    )


@pytest.mark.parametrize("most", [None, 64, 2])
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("kind", ["cuda", "mps"])
def test_kernels_are_those_of_the_cpu(kind: str, is_last: bool, most: int | None) -> None:
    model = convolutions()
    if is_last:
        for module in model.values():
            volumes = isinstance(module, nn.Conv3d | nn.ConvTranspose3d)
            module.to(memory_format=torch.channels_last_3d if volumes else torch.channels_last)
    expected = [one.to_host() for one in read_kernels(dict(model.items()), most)]
    assert len(expected) == 13
    with simulated_device() as machine:
        move(model, kind)
        found = read_kernels(dict(model.items()), most)
        assert machine.waits == []
        received = [one._replace(weight=one.weight.cpu()).to_host() for one in found]
    for own, other in zip(received, expected, strict=True):
        assert own.layer_call == other.layer_call
        assert (own.view, own.inputs, own.layout) == (other.view, other.inputs, other.layout)
        np.testing.assert_array_equal(own.weight, other.weight, err_msg=own.layer_call.layer)


def test_a_copy_does_not_follow_the_weights() -> None:
    model = convolutions()
    with simulated_device():
        move(model, "cuda")
        (found,) = read_kernels({"wide": model["wide"]}, 64)
        before = found.weight.cpu()
        with torch.no_grad():
            model["wide"].weight.mul_(2)  # type: ignore[operator, union-attr]
        assert torch.equal(found.weight.cpu(), before)


def in_last_format(layer: nn.Module) -> nn.Module:
    layer.weight = nn.Parameter(layer.weight.to(memory_format=torch.channels_last))  # type: ignore[operator, union-attr]
    return layer


@pytest.mark.parametrize(
    ("makes", "launches"),
    [
        ([lambda: nn.Conv2d(70, 80, 3)], 2),
        ([lambda: nn.Conv2d(3, 8, 3)], 1),
        ([lambda: nn.Conv3d(70, 80, 3)], 2),
        ([lambda: nn.Conv2d(70, 80, 3, dtype=torch.bfloat16)], 2 + 1),
        ([lambda: nn.Conv2d(9, 9, 3), lambda: nn.Conv2d(9, 9, 3, dtype=torch.bfloat16)], 1 + 2),
        ([lambda: in_last_format(nn.Conv2d(70, 80, 3))], 2 + 1),
    ],
    ids=["cut", "whole", "volumes", "bf16", "two dtypes", "channels_last"],
)
def test_the_kernels_of_32_convolutions_take_a_few_launches(
    makes: list[Callable[[], nn.Module]], launches: int
) -> None:
    with FakeTensorMode(), torch.device("cuda"):
        layers = {str(number): makes[number % len(makes)]() for number in range(32)}
        # Saving the random state of a device needs a real one.
        with mock.patch.object(torch, "get_device_module"), Tracer() as tracer:
            found = read_kernels(layers, 64)
    assert tracer.trace.launches == launches
    assert all(one.weight.is_contiguous() for one in found)  # so packing copies none of them again
