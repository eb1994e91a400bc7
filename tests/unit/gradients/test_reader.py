"""Gradient norms and histograms of every parameter type, against float64 references."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from gradient_reading import (
    assert_close,
    backward,
    norms_of,
    read_at_step,
    reference_norms,
    small_network,
)
from torch import nn

from fmapboard.gradients import reader as gradients

pytestmark = pytest.mark.usefixtures("_no_hook_stays")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "foreach": True}),
        (torch.optim.SGD, {"lr": 0.1, "fused": True}),
        (torch.optim.Adam, {"lr": 0.1}),
        (torch.optim.AdamW, {"lr": 0.1, "fused": True}),
    ],
    ids=["nesterov", "fused SGD", "Adam", "fused AdamW"],
)
def test_norms_are_those_of_the_gradients_that_the_optimizer_uses(
    kind: Any, options: dict[str, Any]
) -> None:
    model = small_network()
    optimizer = kind(model.parameters(), **options)
    for _ in range(2):
        optimizer.zero_grad()
        backward(model)
        expected = reference_norms(model)
        found = norms_of(read_at_step(model, optimizer))
        assert_close(found, expected)
    assert list(found) == ["0.weight", "0.bias", "3.weight", "3.bias"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_of_other_dtypes_are_accumulated_without_overflow(dtype: torch.dtype) -> None:
    parameter = nn.Parameter(torch.zeros(100, 100, dtype=dtype))
    model = nn.ParameterDict({"weight": parameter})
    parameter.grad = (torch.randn(100, 100) * 300).to(dtype)  # fp16 squares would overflow
    expected = parameter.grad.double().norm().item()
    found = read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.0), ["weight"])
    assert found[0].norm == pytest.approx(expected, rel=1e-6)
    assert found[0].gradient is not None
    assert found[0].gradient.values.size == 10_000


@pytest.mark.parametrize("numel", [1000, 10_000])
@pytest.mark.parametrize("size", [1e-30, 1e25, 3e38])
def test_norms_of_very_small_and_very_large_gradients_are_right(size: float, numel: int) -> None:
    parameter = nn.Parameter(torch.zeros(numel))
    parameter.grad = torch.full((numel,), size)
    model = nn.ParameterDict({"weight": parameter})
    found = read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.0))
    assert found[0].norm == pytest.approx(size * math.sqrt(numel), rel=1e-6)


@pytest.mark.parametrize("numel", [1, 4096, 10_000_001])
def test_the_norm_of_a_parameter_of_any_size_is_exact(numel: int) -> None:
    parameter = nn.Parameter(torch.zeros(numel))
    parameter.grad = torch.rand(numel)
    model = nn.ParameterDict({"weight": parameter})
    expected = parameter.grad.double().norm().item()
    found = read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.0))
    assert found[0].norm == pytest.approx(expected, rel=1e-6)


def test_a_gradient_with_nan_has_a_nan_norm() -> None:
    model = small_network()
    backward(model)
    assert model[3].bias.grad is not None
    model[3].bias.grad[1] = torch.nan
    norms = norms_of(read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.0)))
    assert math.isnan(norms["3.bias"])
    assert not math.isnan(norms["3.weight"])


def test_sparse_gradients_are_summed_by_row_before_the_norm() -> None:
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True))
    model(torch.tensor([1, 1, 7])).square().sum().backward()
    expected = reference_norms(model)
    found = read_at_step(model, torch.optim.SparseAdam(model.parameters()), ["0.weight"])
    assert_close(norms_of(found), expected)
    assert found[0].gradient is not None
    assert found[0].gradient.total == 8  # two rows that have a gradient


def test_complex_parameters_have_a_norm_and_histograms_of_absolute_values() -> None:
    parameter = nn.Parameter(torch.tensor([3 + 4j, 0j]))
    parameter.grad = torch.tensor([0j, 6 - 8j])
    model = nn.ParameterDict({"weight": parameter})
    found = read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.0), ["weight"])[0]
    assert found.norm == pytest.approx(10.0)
    assert found.weight is not None
    assert found.weight.values.tolist() == [5.0, 0.0]
    assert found.gradient is not None
    assert found.gradient.values.tolist() == [0.0, 10.0]


def test_frozen_and_unused_parameters_have_no_norm_but_a_histogram_of_their_weights() -> None:
    model = small_network()
    model[0].requires_grad_(False)
    model.unused = nn.Linear(2, 2)
    backward(nn.Sequential(*list(model)[:4]))
    names = [name for name, _ in model.named_parameters()]
    found = read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.1), names)
    assert [p.name for p in found] == names
    assert list(norms_of(found)) == ["3.weight", "3.bias"]
    assert [p.gradient is None for p in found] == [True, True, False, False, True, True]
    assert all(p.weight is not None for p in found)


def test_weights_are_those_before_the_step() -> None:
    model = small_network()
    before = model[0].weight.detach().flatten().tolist()
    backward(model)
    found = read_at_step(model, torch.optim.SGD(model.parameters(), lr=1.0), ["0.weight"])
    assert found[0].weight is not None
    assert found[0].weight.values.tolist() == before
    assert model[0].weight.detach().flatten().tolist() != before


def test_half_precision_gradients_of_a_fused_optimizer_are_unscaled_in_float32() -> None:
    parameter = nn.Parameter(torch.zeros(2, dtype=torch.float16))
    parameter.grad = torch.tensor([1e-4, 2e-4], dtype=torch.float16)
    model = nn.ParameterDict({"weight": parameter})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, fused=True)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(65536.0), torch.tensor(0.0)
    found = read_at_step(model, optimizer, ["weight"])[0]
    assert found.gradient is not None
    assert found.gradient.values.tolist() == pytest.approx([1e-4 / 65536, 2e-4 / 65536], rel=1e-3)
    assert found.norm == pytest.approx(5**0.5 * 1e-4 / 65536, rel=1e-3)


@pytest.mark.slow
def test_parameter_names_contain_no_wrapper_prefixes() -> None:
    model = small_network()
    wrapped = torch.compile(model)
    backward(model)
    norms = norms_of(read_at_step(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1)))  # type: ignore[arg-type]
    assert list(norms) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_the_number_of_bytes_is_passed_on_so_that_several_threads_may_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[object, ...]] = []
    real = gradients.aside
    monkeypatch.setattr(gradients, "aside", lambda *args: calls.append(args) or real(*args))
    model = small_network()
    backward(model)
    read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert calls == [("cpu", sum(parameter.nbytes for parameter in model.parameters()))]
