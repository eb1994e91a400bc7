"""Gradients are read once, just before the optimizer steps, as the optimizer will use them."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from gradient_reading import (
    assert_close,
    backward,
    found_by,
    norms_of,
    nothing,
    read_at_step,
    reader_of,
    reference_norms,
    small_network,
)
from guards import keeping_guard
from torch import Tensor, nn
from torch.optim import optimizer as torch_optimizer

from fmapboard.measure.sample import PendingSample

pytestmark = pytest.mark.usefixtures("_no_hook_stays")


def test_an_armed_reader_does_not_change_what_the_optimizer_step_does() -> None:
    model = small_network()
    twin = copy.deepcopy(model)
    for net in (model, twin):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        backward(net)
        if net is model:
            read_at_step(net, optimizer, ["0.weight"])
        else:
            optimizer.step()
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True)
    )


@pytest.mark.parametrize("how", ["by position", "by keyword"])
def test_with_a_closure_the_norm_is_that_of_its_first_evaluation(how: str) -> None:
    model = small_network()
    twin = copy.deepcopy(model)
    backward(twin)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)
    losses: list[Tensor] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        losses.append(backward(model))
        return losses[-1]

    reader = reader_of(model)
    reader.arm(nothing, nothing)
    given = optimizer.step(closure) if how == "by position" else optimizer.step(closure=closure)
    reader.disarm()
    assert_close(norms_of(found_by(reader)), reference_norms(twin))
    assert given is losses[0]
    assert len(losses) >= 2


def test_accumulated_gradients_are_read_once_as_their_sum() -> None:
    model = small_network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    reader = reader_of(model)
    reader.arm(nothing, nothing)
    for _ in range(3):
        backward(model, scale=1 / 3)
    expected = reference_norms(model)
    optimizer.step()
    optimizer.zero_grad()
    backward(model, scale=100.0)
    optimizer.step()  # a second optimizer step inside the logged step is not read
    reader.disarm()
    assert_close(norms_of(found_by(reader)), expected)


def test_clipped_gradients_are_read_after_clipping() -> None:
    model = small_network()
    backward(model)
    before = math.hypot(*reference_norms(model).values())
    assert before > 1.0
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    norms = norms_of(read_at_step(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    assert math.hypot(*norms.values()) == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("fused", [False, True])
def test_under_a_gradient_scaler_the_norm_is_that_of_the_unscaled_gradient(fused: bool) -> None:
    model = small_network()
    twin = copy.deepcopy(model)
    backward(twin)
    expected = reference_norms(twin)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    reader = reader_of(model, ["0.weight"])
    reader.arm(nothing, nothing)
    torch.manual_seed(1)
    scaler.scale(model(torch.rand(4, 3, 8, 8)).square().sum()).backward()
    scaled = reference_norms(model)["0.weight"]
    assert scaled == pytest.approx(1024 * expected["0.weight"], rel=1e-5)
    scaler.step(optimizer)
    reader.disarm()
    found = found_by(reader)
    assert {n: pytest.approx(v, rel=1e-5) for n, v in expected.items()} == norms_of(found)
    assert found[0].gradient is not None
    norm = float((found[0].gradient.values.astype("f8") ** 2).sum() ** 0.5)
    assert norm == pytest.approx(expected["0.weight"], rel=1e-5)


def test_gradients_of_two_models_with_two_optimizers_are_kept_apart() -> None:
    first, second = small_network(), small_network()
    readers = [reader_of(net) for net in (first, second)]
    for reader in readers:
        reader.arm(nothing, nothing)
    expected = []
    for net in (first, second):
        backward(net)
        expected.append(reference_norms(net))
    torch.optim.SGD(first.parameters(), lr=0.1).step()
    assert [reader.stepped for reader in readers] == [True, False]
    torch.optim.SGD(second.parameters(), lr=0.1).step()
    for reader, norms in zip(readers, expected, strict=True):
        reader.disarm()
        assert_close(norms_of(found_by(reader)), norms)


def test_the_gradients_of_each_optimizer_of_a_model_are_read_when_it_steps() -> None:
    model = small_network()
    reader, acted = reader_of(model), []
    reader.arm(lambda: acted.append("about to step"), nothing)
    backward(model)
    expected = reference_norms(model)
    torch.optim.SGD(model[3].parameters(), lr=0.1).step()
    torch.optim.Adam(model[0].parameters(), lr=0.1).step()
    reader.disarm()
    assert_close(norms_of(found_by(reader)), expected)
    assert acted == ["about to step"]


def test_our_errors_are_reported_and_never_reach_the_optimizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, errors = small_network(), []
    before = model[0].bias.detach().clone()
    backward(model)

    def fails(*args: Any) -> PendingSample:
        raise RuntimeError("no histogram")

    def kernels_fail() -> None:
        raise ValueError("no kernels")

    monkeypatch.setattr("fmapboard.gradients.reader.samples", fails)
    reader = reader_of(model, ["0.weight"], keeping_guard(errors))
    reader.arm(kernels_fail, nothing)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    reader.disarm()
    assert [str(error) for _, error in errors] == ["no kernels", "no histogram"]
    assert not torch.equal(model[0].bias, before)


def test_an_error_in_the_users_closure_propagates_and_is_not_reported_as_ours() -> None:
    model, errors = small_network(), []
    reader = reader_of(model, (), keeping_guard(errors))
    reader.arm(nothing, nothing)

    def closure() -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        torch.optim.SGD(model.parameters(), lr=0.1).step(closure)  # type: ignore[arg-type]
    reader.disarm()
    assert errors == []


def test_a_parameter_that_was_replaced_after_the_reader_was_made_is_read_under_its_name() -> None:
    model = small_network()
    reader = reader_of(model)
    reader.arm(nothing, nothing)
    reader.disarm()
    model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)
    reader.arm(nothing, nothing)
    backward(model)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    reader.disarm()
    assert list(norms_of(found_by(reader))) == ["0.weight", "0.bias", "3.weight", "3.bias"]


def test_after_disarming_nothing_is_read_and_no_hook_is_left() -> None:
    model = small_network()
    reader = reader_of(model, ["0.weight"])
    reader.arm(nothing, nothing)
    reader.disarm()
    assert not torch_optimizer._global_optimizer_pre_hooks
    backward(model)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert (reader.stepped, found_by(reader)) == (False, ())
