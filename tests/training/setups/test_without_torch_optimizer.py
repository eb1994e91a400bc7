"""Gradient norms of loops that update the parameters themselves: fastai, ``p -= lr * p.grad``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable

import pytest
import torch
from gradient_norms import logged_norms, loss_of
from networks import two_convolutions
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS = 3
Step = Callable[[nn.Module, Tensor], "dict[str, float] | None"]
"""Trains for one step; returns the norms that are expected."""


class OwnSGD:
    """An optimizer as fastai's: it has the methods of torch's, but is none of its class."""

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        self.parameters, self.lr = list(parameters), lr

    def step(self) -> None:
        for parameter in self.parameters:
            assert parameter.grad is not None
            parameter.data.add_(parameter.grad, alpha=-self.lr)

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad.detach_()
                parameter.grad.zero_()


def norms(model: nn.Module) -> dict[str, float]:
    """The norms of the gradients now."""
    own = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    found = {name: float(gradient.norm()) for name, gradient in own.items()}
    return {**found, "total": sum(norm**2 for norm in found.values()) ** 0.5}


def by_hand(model: nn.Module, x: Tensor) -> dict[str, float]:
    loss_of(model, x).backward()
    expected = norms(model)
    with torch.no_grad():
        for parameter in model.parameters():
            assert parameter.grad is not None
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    return expected


def own_optimizer(model: nn.Module, x: Tensor) -> dict[str, float]:
    optimizer = OwnSGD(model.parameters(), lr=0.1)
    loss_of(model, x).backward()
    expected = norms(model)
    optimizer.step()
    optimizer.zero_grad()
    return expected


def two_micro_batches(model: nn.Module, x: Tensor) -> dict[str, float]:
    loss_of(model, x).backward()
    return by_hand(model, x + 1)


def two_losses(model: nn.Module, x: Tensor) -> dict[str, float]:
    loss = loss_of(model, x)
    loss.backward(retain_graph=True)
    (2 * loss).backward()
    return norms(model)


def clipped_afterwards(model: nn.Module, x: Tensor) -> dict[str, float]:
    loss_of(model, x).backward()
    expected = norms(model)
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    return expected


def logged(
    model: nn.Module, step: Step, **options: object
) -> tuple[list[LoggedStep], list[dict[str, float]]]:
    """The logged steps, and the norms that are expected of each."""
    kept, expected = MemoryWriter(), []
    drawn = torch.Generator().manual_seed(0)
    with fmapboard.watch(model, writer=kept, every=1, **options) as board:
        for number in range(STEPS):
            with board.step(number):
                expected.append(step(model, torch.rand(2, 1, 8, 8, generator=drawn)) or {})
    return kept.steps, expected


@pytest.mark.parametrize(
    "step", [by_hand, own_optimizer, two_micro_batches, two_losses, clipped_afterwards]
)
def test_the_norms_are_those_after_the_last_backward_pass(
    step: Step, caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    steps, expected = logged(two_convolutions(), step, checks=False)
    for found, right in zip(steps, expected, strict=True):
        assert logged_norms(found) == pytest.approx(right, rel=1e-6)
        tags = {histogram.tag for histogram in found.histograms}
        assert {"weights/0.weight", "gradients/0.weight"} <= tags
    assert caplog.messages == []


def test_the_weights_are_those_of_an_unwatched_training() -> None:
    results = []
    for watched in (False, True):
        torch.manual_seed(0)
        model = two_convolutions()
        drawn = torch.Generator().manual_seed(0)
        if watched:
            logged(model, own_optimizer)
        else:
            for _ in range(STEPS):
                own_optimizer(model, torch.rand(2, 1, 8, 8, generator=drawn))
        results.append([parameter.detach() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_the_scale_of_a_grad_scaler_is_divided_out() -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def step(model: nn.Module, x: Tensor) -> dict[str, float]:
        scaler.scale(loss_of(model, x)).backward()
        return {name: norm / 1024 for name, norm in norms(model).items()}

    steps, expected = logged(two_convolutions(), step, scaler=scaler)
    for found, right in zip(steps, expected, strict=True):
        assert logged_norms(found) == pytest.approx(right, rel=1e-6)


def test_a_torch_optimizers_own_step_takes_precedence() -> None:
    model = two_convolutions()
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in (model[0], model[2])]

    def step(model: nn.Module, x: Tensor) -> dict[str, float]:
        expected = {}
        for factor, optimizer in enumerate(optimizers, 1):
            (factor * loss_of(model, x)).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            now = norms(model)
            names = ("0.weight", "0.bias") if factor == 1 else ("2.weight", "2.bias")
            expected |= {name: now[name] for name in names}
            optimizer.step()
            model.zero_grad()
        return {**expected, "total": sum(norm**2 for norm in expected.values()) ** 0.5}

    steps, expected = logged(model, step)
    for found, right in zip(steps, expected, strict=True):
        assert logged_norms(found) == pytest.approx(right, rel=1e-6)


def test_gradients_that_a_torch_optimizer_has_not_used_are_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = two_convolutions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: nn.Module, x: Tensor) -> None:
        loss_of(model, x).backward()  # accumulates

    steps, _ = logged(model, step, checks=False)
    assert [logged_norms(found) for found in steps] == [{}] * STEPS
    (said,) = caplog.messages
    assert "no optimizer stepped on the model's parameters, so there are no gradient norms" in said
    assert "put optimizer.step() inside the board.step() block" in said
    del optimizer


def test_a_step_that_the_grad_scaler_skips_has_no_norms(caplog: pytest.LogCaptureFixture) -> None:
    model = two_convolutions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def step(model: nn.Module, x: Tensor) -> None:
        scaler.scale(loss_of(model, x) * float("inf")).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    steps, _ = logged(model, step, scaler=scaler, checks=False)
    assert [logged_norms(found) for found in steps] == [{}] * STEPS
    assert [found.scalars["fmapboard/skipped_steps"] for found in steps] == [1, 2, 3]
    assert caplog.messages == []


def test_a_loop_that_goes_on_without_its_torch_optimizer_has_norms() -> None:
    model, optimizers = two_convolutions(), list[torch.optim.Optimizer]()
    optimizers.append(torch.optim.SGD(model.parameters(), lr=0.1))

    def step(model: nn.Module, x: Tensor) -> dict[str, float]:
        if not optimizers:
            return by_hand(model, x)
        loss_of(model, x).backward()
        optimizers[0].step()
        expected = norms(model)
        optimizers[0].zero_grad()
        optimizers.clear()
        gc.collect()
        return expected

    steps, expected = logged(model, step)
    for found, right in zip(steps, expected, strict=True):
        assert logged_norms(found) == pytest.approx(right, rel=1e-6)


def test_once_a_torch_optimizer_is_known_nothing_is_read_after_a_backward_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fmapboard.measure.norms import GradientNorms

    reads: list[None] = []
    original = GradientNorms.read
    monkeypatch.setattr(
        GradientNorms, "read", lambda *args: (reads.append(None), original(*args))[1]
    )
    model = two_convolutions()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model: nn.Module, x: Tensor) -> None:
        optimizer.zero_grad()
        loss_of(model, x).backward()
        optimizer.step()

    logged(model, step)
    assert len(reads) == STEPS + 1
