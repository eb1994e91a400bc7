"""Weights after one optimizer step, compared with those before the next one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from fmapboard.gradients.outside_changes import OutsideChanges


def compared(opened: dict[str, Tensor], change: float, dtype: torch.dtype) -> dict[str, float]:
    """What is found if all values of some parameters, given by name, are multiplied."""
    reader = OutsideChanges()
    parameters = {name: nn.Parameter(value.to(dtype)) for name, value in opened.items()}
    reader.opens(parameters, is_marked=False)
    for parameter in parameters.values():
        parameter.data.mul_(1 + change)
    reader.before(parameters)
    (pending,) = reader.closes()
    return {name: change.ratio for name, change in pending.found().items()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_ratio_is_that_of_the_whole_parameter(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    maps = torch.rand(8, 4, 3, 3).to(memory_format=torch.channels_last)
    found = compared({"a": torch.rand(300, 7), "b": torch.rand(3), "c": maps}, 0.5, dtype)
    assert found == pytest.approx({"a": 0.5, "b": 0.5, "c": 0.5}, rel=0.01)


def test_weights_that_stay_that_are_0_or_move_by_rounding_are_none() -> None:
    assert compared({"a": torch.rand(9)}, 0.0, torch.float32) == {}
    assert compared({"a": torch.zeros(9)}, 0.5, torch.float32) == {}
    assert compared({"a": torch.rand(9)}, 1e-6, torch.float32) == {}


def test_a_marked_step_also_compares_what_its_optimizer_has_left_with_the_end() -> None:
    weight = nn.Parameter(torch.ones(4))
    other = nn.Parameter(torch.ones(2))
    reader = OutsideChanges()
    reader.opens({"weight": weight, "other": other}, is_marked=True)
    for name, parameter in {"weight": weight, "other": other}.items():
        reader.before({name: parameter})
        parameter.data.mul_(2)
        reader.after({name: parameter})
    weight.data.mul_(1.5)
    other.data.mul_(3)
    ratios = [
        {name: change.ratio for name, change in pending.found().items()}
        for pending in reader.closes()
    ]
    assert ratios == [{}, {}, {"weight": 0.5}, {"other": 2.0}]


def test_a_second_step_of_the_optimizer_is_no_other_code() -> None:
    weight = nn.Parameter(torch.ones(4))
    reader = OutsideChanges()
    reader.opens({"weight": weight}, is_marked=True)
    reader.after({"weight": weight})
    reader.updated_again(["weight", "unknown"])
    weight.data.mul_(2)
    assert reader.closes() == ()


def test_a_parameter_of_another_size_or_on_another_device_is_left_out() -> None:
    weight = nn.Parameter(torch.ones(4))
    reader = OutsideChanges()
    meta = nn.Parameter(torch.ones(2, device="meta"))
    reader.opens({"meta": meta, "weight": weight}, is_marked=True)
    weight.data = torch.ones(6)
    reader.before({"weight": weight, "meta": meta, "unknown": torch.ones(3)})
    assert [pending.found() for pending in reader.closes()] == [{}]
    reader.opens({}, is_marked=True)
    reader.before({"weight": weight})
    reader.after({"weight": weight})
    assert reader.closes() == ()


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        (lambda values: values.clamp(-0.5, 0.5), 0.5),
        (lambda values: values.clamp(min=-0.25), 0.25),
        (lambda values: values.clamp(min=0), 0.0),
        (lambda values: values.lerp(torch.zeros(8), 0.01), None),  # an average
        (lambda values: torch.where(values.abs() > 0.5, 0.9 * values, values), None),
    ],
    ids=["both ends", "one end", "negative values", "an average", "large values"],
)
def test_values_that_are_now_at_the_ends_of_a_range_were_clamped(
    change: Callable[[Tensor], Tensor], limit: float | None
) -> None:
    weight = nn.Parameter(torch.linspace(-1, 1, 8))
    reader = OutsideChanges()
    reader.opens({"weight": weight}, is_marked=False)
    weight.data = change(weight.data)
    reader.before({"weight": weight})
    (pending,) = reader.closes()
    assert pending.found()["weight"].limit == limit
