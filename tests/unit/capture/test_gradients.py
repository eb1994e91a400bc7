"""Gradient norms against float64 references, read when the optimizer is about to step."""

from __future__ import annotations

import copy
import gc
import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from guards import keeping_guard, strict_guard
from torch import Tensor, nn
from torch.optim.optimizer import _global_optimizer_pre_hooks

from fmapboard.capture import gradients
from fmapboard.capture.gradients import GradientReader
from fmapboard.measure.subsample import PendingSample
from fmapboard.records import Parameter

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_hook_stays() -> Iterator[None]:
    yield
    gc.collect()
    assert not _global_optimizer_pre_hooks


def _reader(model: nn.Module, names: Any = ()) -> GradientReader:
    return GradientReader(model, names, strict_guard())


def _found(reader: GradientReader) -> tuple[Parameter, ...]:
    return reader.pending().to_host()


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 4))


def _backward(model: nn.Module, scale: float = 1.0) -> Tensor:
    torch.manual_seed(1)
    x = torch.rand(4, 3, 8, 8).to(next(model.parameters()).dtype)
    loss: Tensor = model(x).float().square().sum() * scale
    loss.backward()
    return loss


def _references(model: nn.Module) -> dict[str, float]:
    """2-norms in float64, from the gradients as they stand now."""
    return {
        name: (p.grad.to_dense() if p.grad.is_sparse else p.grad).double().norm().item()
        for name, p in model.named_parameters()
        if p.grad is not None
    }


def _norms(parameters: tuple[Parameter, ...]) -> dict[str, float]:
    return {p.name: p.norm for p in parameters if p.norm is not None}


def _assert_close(found: dict[str, float], expected: dict[str, float]) -> None:
    assert list(found) == list(expected)
    for name, norm in expected.items():
        assert found[name] == pytest.approx(norm, rel=1e-6), name


def _read(model: nn.Module, optimizer: Any, names: Any = ()) -> tuple[Parameter, ...]:
    """One optimizer step while armed."""
    reader = _reader(model, names)
    reader.arm()
    optimizer.step()
    assert reader.stepped
    reader.disarm()
    return _found(reader)


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
    model = _model()
    optimizer = kind(model.parameters(), **options)
    for _ in range(2):
        optimizer.zero_grad()
        _backward(model)
        expected = _references(model)
        found = _norms(_read(model, optimizer))
        _assert_close(found, expected)
    assert list(found) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_a_step_while_armed_changes_the_parameters_as_one_that_is_not() -> None:
    model = _model()
    twin = copy.deepcopy(model)
    for net in (model, twin):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        _backward(net)
        if net is model:
            _read(net, optimizer, ["0.weight"])
        else:
            optimizer.step()
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )


@pytest.mark.parametrize("how", ["by position", "by keyword"])
def test_with_a_closure_the_norm_is_that_of_its_first_evaluation(how: str) -> None:
    model = _model()
    twin = copy.deepcopy(model)
    _backward(twin)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)
    losses: list[Tensor] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        losses.append(_backward(model))
        return losses[-1]

    reader = _reader(model)
    reader.arm()
    given = optimizer.step(closure) if how == "by position" else optimizer.step(closure=closure)
    reader.disarm()
    _assert_close(_norms(_found(reader)), _references(twin))
    assert given is losses[0]
    assert len(losses) >= 2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_norms_of_other_types_are_summed_wide(dtype: torch.dtype) -> None:
    parameter = nn.Parameter(torch.zeros(100, 100, dtype=dtype))
    model = nn.ParameterDict({"weight": parameter})
    parameter.grad = (torch.randn(100, 100) * 300).to(dtype)  # fp16 squares would overflow
    expected = parameter.grad.double().norm().item()
    found = _read(model, torch.optim.SGD(model.parameters(), lr=0.0), ["weight"])
    assert found[0].norm == pytest.approx(expected, rel=1e-6)
    assert found[0].gradient is not None
    assert found[0].gradient.values.size == 10_000


@pytest.mark.parametrize("numel", [1000, 10_000])
@pytest.mark.parametrize("size", [1e-30, 1e25, 3e38])
def test_norms_of_very_small_and_very_large_gradients_are_right(size: float, numel: int) -> None:
    parameter = nn.Parameter(torch.zeros(numel))
    parameter.grad = torch.full((numel,), size)
    model = nn.ParameterDict({"weight": parameter})
    found = _read(model, torch.optim.SGD(model.parameters(), lr=0.0))
    assert found[0].norm == pytest.approx(size * math.sqrt(numel), rel=1e-6)


@pytest.mark.parametrize("numel", [1, 4096, 10_000_001])
def test_the_norm_of_a_parameter_of_any_size_is_exact(numel: int) -> None:
    parameter = nn.Parameter(torch.zeros(numel))
    parameter.grad = torch.rand(numel)
    model = nn.ParameterDict({"weight": parameter})
    expected = parameter.grad.double().norm().item()
    found = _read(model, torch.optim.SGD(model.parameters(), lr=0.0))
    assert found[0].norm == pytest.approx(expected, rel=1e-6)


def test_a_gradient_with_nan_has_a_norm_of_nan() -> None:
    model = _model()
    _backward(model)
    assert model[3].bias.grad is not None
    model[3].bias.grad[1] = torch.nan
    norms = _norms(_read(model, torch.optim.SGD(model.parameters(), lr=0.0)))
    assert math.isnan(norms["3.bias"])
    assert not math.isnan(norms["3.weight"])


def test_sparse_gradients_are_summed_by_row_before_the_norm() -> None:
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True))
    model(torch.tensor([1, 1, 7])).square().sum().backward()
    expected = _references(model)
    found = _read(model, torch.optim.SparseAdam(model.parameters()), ["0.weight"])
    _assert_close(_norms(found), expected)
    assert found[0].gradient is not None
    assert found[0].gradient.total == 8  # two rows that have a gradient


def test_complex_parameters_have_a_norm_and_histograms_of_absolute_values() -> None:
    parameter = nn.Parameter(torch.tensor([3 + 4j, 0j]))
    parameter.grad = torch.tensor([0j, 6 - 8j])
    model = nn.ParameterDict({"weight": parameter})
    found = _read(model, torch.optim.SGD(model.parameters(), lr=0.0), ["weight"])[0]
    assert found.norm == pytest.approx(10.0)
    assert found.weight is not None
    assert found.weight.values.tolist() == [5.0, 0.0]
    assert found.gradient is not None
    assert found.gradient.values.tolist() == [0.0, 10.0]


def test_frozen_and_unused_parameters_have_no_norm_but_a_histogram_of_their_weight() -> None:
    model = _model()
    model[0].requires_grad_(False)
    model.unused = nn.Linear(2, 2)
    _backward(nn.Sequential(*list(model)[:4]))
    names = [name for name, _ in model.named_parameters()]
    found = _read(model, torch.optim.SGD(model.parameters(), lr=0.1), names)
    assert [p.name for p in found] == names
    assert list(_norms(found)) == ["3.weight", "3.bias"]
    assert [p.gradient is None for p in found] == [True, True, False, False, True, True]
    assert all(p.weight is not None for p in found)


def test_weights_are_those_before_the_step() -> None:
    model = _model()
    before = model[0].weight.detach().flatten().tolist()
    _backward(model)
    found = _read(model, torch.optim.SGD(model.parameters(), lr=1.0), ["0.weight"])
    assert found[0].weight is not None
    assert found[0].weight.values.tolist() == before
    assert model[0].weight.detach().flatten().tolist() != before


def test_accumulated_gradients_are_read_once_as_their_sum() -> None:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reader = _reader(model)
    reader.arm()
    for _ in range(3):
        _backward(model, scale=1 / 3)
    expected = _references(model)
    optimizer.step()
    optimizer.zero_grad()
    _backward(model, scale=100.0)
    optimizer.step()  # a second step inside the window is not read
    reader.disarm()
    _assert_close(_norms(_found(reader)), expected)


def test_clipped_gradients_are_read_after_clipping() -> None:
    model = _model()
    _backward(model)
    before = math.hypot(*_references(model).values())
    assert before > 1.0
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    norms = _norms(_read(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    assert math.hypot(*norms.values()) == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_under_a_gradient_scaler_the_norm_is_of_the_unscaled_gradient(fused: bool) -> None:
    model = _model()
    twin = copy.deepcopy(model)
    _backward(twin)
    expected = _references(twin)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    reader = _reader(model, ["0.weight"])
    reader.arm()
    torch.manual_seed(1)
    scaler.scale(model(torch.rand(4, 3, 8, 8)).square().sum()).backward()
    scaled = _references(model)["0.weight"]
    assert scaled == pytest.approx(1024 * expected["0.weight"], rel=1e-5)
    scaler.step(optimizer)
    reader.disarm()
    found = _found(reader)
    assert {n: pytest.approx(v, rel=1e-5) for n, v in expected.items()} == _norms(found)
    assert found[0].gradient is not None
    norm = float((found[0].gradient.values.astype("f8") ** 2).sum() ** 0.5)
    assert norm == pytest.approx(expected["0.weight"], rel=1e-5)


def test_half_precision_gradients_of_a_fused_optimizer_are_unscaled_in_float32() -> None:
    parameter = nn.Parameter(torch.zeros(2, dtype=torch.float16))
    parameter.grad = torch.tensor([1e-4, 2e-4], dtype=torch.float16)
    model = nn.ParameterDict({"weight": parameter})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, fused=True)
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(65536.0), torch.tensor(0.0)
    found = _read(model, optimizer, ["weight"])[0]
    assert found.gradient is not None
    assert found.gradient.values.tolist() == pytest.approx([1e-4 / 65536, 2e-4 / 65536], rel=1e-3)
    assert found.norm == pytest.approx(5**0.5 * 1e-4 / 65536, rel=1e-3)


def test_two_models_with_two_optimizers_stay_apart() -> None:
    first, second = _model(), _model()
    readers = [_reader(net) for net in (first, second)]
    for reader in readers:
        reader.arm()
    expected = []
    for net in (first, second):
        _backward(net)
        expected.append(_references(net))
    torch.optim.SGD(first.parameters(), lr=0.1).step()
    assert [reader.stepped for reader in readers] == [True, False]
    torch.optim.SGD(second.parameters(), lr=0.1).step()
    for reader, norms in zip(readers, expected, strict=True):
        reader.disarm()
        _assert_close(_norms(_found(reader)), norms)


def test_two_optimizers_of_one_model_are_each_read_when_they_step() -> None:
    model = _model()
    reader, acted = _reader(model), []
    reader.arm(lambda: acted.append("about to step"))
    _backward(model)
    expected = _references(model)
    torch.optim.SGD(model[3].parameters(), lr=0.1).step()
    torch.optim.Adam(model[0].parameters(), lr=0.1).step()
    reader.disarm()
    _assert_close(_norms(_found(reader)), expected)
    assert acted == ["about to step"]


def test_an_error_inside_is_told_and_never_reaches_the_optimizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, errors = _model(), []
    before = model[0].bias.detach().clone()
    _backward(model)

    def broken(*args: Any) -> PendingSample:
        raise RuntimeError("no histogram for you")

    def refuses() -> None:
        raise ValueError("no kernels for you")

    monkeypatch.setattr("fmapboard.capture.gradients.sample", broken)
    reader = GradientReader(model, ["0.weight"], keeping_guard(errors))
    reader.arm(refuses)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    reader.disarm()
    assert [str(error) for _, error in errors] == ["no kernels for you", "no histogram for you"]
    assert not torch.equal(model[0].bias, before)


def test_an_error_in_the_users_closure_stays_the_users() -> None:
    model, errors = _model(), []
    reader = GradientReader(model, (), keeping_guard(errors))
    reader.arm()

    def closure() -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        torch.optim.SGD(model.parameters(), lr=0.1).step(closure)  # type: ignore[arg-type]
    reader.disarm()
    assert errors == []


def test_a_parameter_that_was_replaced_after_the_reader_was_made_is_read_under_its_name() -> None:
    model = _model()
    reader = _reader(model)
    reader.arm()
    reader.disarm()
    model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)
    reader.arm()
    _backward(model)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    reader.disarm()
    assert list(_norms(_found(reader))) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_after_disarming_nothing_is_read_and_no_hook_is_left() -> None:
    model = _model()
    reader = _reader(model, ["0.weight"])
    reader.arm()
    reader.disarm()
    assert not _global_optimizer_pre_hooks
    _backward(model)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert (reader.stepped, _found(reader)) == (False, ())


def test_a_reader_that_is_collected_while_armed_takes_its_hook_with_it() -> None:
    reader = _reader(_model())
    reader.arm()
    assert len(_global_optimizer_pre_hooks) == 1
    del reader
    gc.collect()
    assert not _global_optimizer_pre_hooks


def test_names_are_clean_of_wrappers() -> None:
    model = _model()
    wrapped = torch.compile(model)
    _backward(model)
    norms = _norms(_read(wrapped, torch.optim.SGD(wrapped.parameters(), lr=0.1)))  # type: ignore[arg-type]
    assert list(norms) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_how_much_is_read_is_told_so_that_several_threads_may_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = []
    real = gradients.aside
    monkeypatch.setattr(gradients, "aside", lambda *args: told.append(args) or real(*args))
    model = _model()
    _backward(model)
    _read(model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert told == [("cpu", sum(parameter.nbytes for parameter in model.parameters()))]
