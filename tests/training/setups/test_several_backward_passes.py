"""Gradients of outputs and attribution are of all backward passes, as the optimizer uses them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from logged_step import measurement, pictures
from torch import Tensor, nn

import fmapboard
from fmapboard.capture import gradient_sums
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

Loop = Callable[[nn.Module, Tensor, "torch.optim.Optimizer"], None]
LAYER, ACTIVATION = "0", "1"


def network() -> nn.Sequential:
    """Images [N, 3, 8, 8] -> two numbers [N, 2], whose gradients differ by a factor of 100."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def losses(found: Tensor) -> tuple[Tensor, Tensor]:
    return found[:, 0].square().sum(), 100 * found[:, 1].square().sum()


def one_of_the_sum(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer) -> None:
    first, second = losses(model(x))
    (first + second).backward()


def one_after_the_other(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer) -> None:
    first, second = losses(model(x))
    first.backward(retain_graph=True)
    second.backward()


def in_three_parts(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer) -> None:
    first, second = losses(model(x))
    (0.25 * second).backward(retain_graph=True)
    first.backward(retain_graph=True)
    (0.75 * second).backward()


def another_one_was_cleared(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer) -> None:
    first, second = losses(model(x))
    (7 * second).backward(retain_graph=True)
    optimizer.zero_grad()
    (first + second).backward()


def a_gradient_penalty_before(
    model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer
) -> None:
    first, second = losses(model(x))
    torch.autograd.grad(second, x, create_graph=True)
    (first + second).backward()


def norms_of_gradients_between(
    model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer
) -> None:
    first, second = losses(model(x))
    first.backward(retain_graph=True)
    torch.autograd.grad(second, list(model.parameters()), retain_graph=True)
    second.backward()


def another_one_after_the_step(
    model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer
) -> None:
    first, second = losses(model(x))
    (first + second).backward(retain_graph=True)
    # A changed version counter would make the second pass fail, if the update reached the trunk.
    with contextlib.ExitStack() as kept:
        for parameter in model.parameters():
            kept.enter_context(torch.autograd._unsafe_preserve_version_counter(parameter))
        optimizer.step()
    second.backward()


LOOPS = [
    one_after_the_other,
    in_three_parts,
    another_one_was_cleared,
    a_gradient_penalty_before,
    norms_of_gradients_between,
    another_one_after_the_step,
]


def train(model: nn.Module, loop: Loop) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    loop(model, x.requires_grad_(), optimizer)
    if loop is not another_one_after_the_step:
        optimizer.step()


def logged(loop: Loop, model: nn.Module | None = None) -> LoggedStep:
    """The only step of a training, logged with gradients and attribution."""
    model, kept = model or network(), MemoryWriter()
    options = {"activation_gradients": True, "attribution": True, "samples": 2}
    with fmapboard.watch(model, writer=kept, **options) as board, board.step(0):
        train(model, loop)
    (step,) = kept.steps
    return step


def gradients(step: LoggedStep) -> tuple[np.ndarray, ...]:
    """Extremes per channel of the layer's gradient; heat and norms of the attribution."""
    found = measurement(step, LAYER, "gradients_of_maps").statistics
    assert found is not None
    shown = [one for one in step.attributions if one.layer_call.label == ACTIVATION]
    assert len(shown) == 2
    return (
        found.minimum,
        found.maximum,
        np.stack([one.heat for one in shown]),
        np.array([one.gradient for one in shown]),
    )


def texts(step: LoggedStep) -> list[str | None]:
    """The descriptions of the two pictures."""
    return [
        pictures(step, tag).description
        for tag in ("gradients_of_maps_4x3x3x3/0", "attribution/1/sample_0")
    ]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_gradients_of_outputs_and_attribution_are_those_that_the_optimizer_uses(loop: Loop) -> None:
    found, expected = logged(loop), logged(one_of_the_sum)
    for own, right in zip(gradients(found), gradients(expected), strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-5, atol=1e-6)
    assert "backward pass" not in " ".join(map(str, texts(found)))


@pytest.mark.parametrize("in_place", [False, True])
def test_a_generators_last_layer_shows_the_gradient_of_its_own_update(in_place: bool) -> None:
    """Its images are not detached in the discriminator's update, and then used again."""
    torch.manual_seed(0)
    generator, critic, kept = nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3), MemoryWriter()
    layers = nn.Sequential(generator, *([nn.ReLU(inplace=True)] if in_place else []))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    board = fmapboard.watch(
        layers, writer=kept, optimizer=optimizer, every=1, activation_gradients=True, layers="0"
    )
    with board:
        images = layers(torch.rand(2, 1, 8, 8))
        (1000 * critic(images).sum()).backward(retain_graph=True)
        optimizer.zero_grad()
        critic(images).sum().backward()
        expected = torch.autograd.grad(critic(twin := images.detach().requires_grad_()).sum(), twin)
        optimizer.step()
    found = measurement(kept.steps[0], "0", "gradients_of_maps").statistics
    assert found is not None
    assert max(abs(found.minimum[0]), abs(found.maximum[0])) == pytest.approx(
        float(expected[0].abs().max()), rel=1e-5
    )


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_gradients_and_weights_are_those_of_an_unwatched_training(loop: Loop) -> None:
    plain, watched = network(), network()
    train(plain, loop)
    logged(loop, watched)
    for one, other in zip(plain.parameters(), watched.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad)


@pytest.mark.parametrize("fault", ["unknown", "memory", "memory for the sum", "device memory"])
def test_where_the_first_gradient_was_not_kept_the_pictures_say_so(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_alone(model: nn.Module, x: Tensor, optimizer: torch.optim.Optimizer) -> None:
        losses(model(x))[0].backward()

    expected = logged(first_alone)

    def no_memory(*args: Any, **kwargs: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    if fault == "unknown":
        monkeypatch.delattr(torch._C._autograd, "_get_current_graph_task_keep_graph")
    elif fault == "memory":
        monkeypatch.setattr(gradient_sums, "aside", no_memory)
    elif fault == "memory for the sum":
        asides = iter([gradient_sums.aside] * 2)  # for the two copies
        monkeypatch.setattr(gradient_sums, "aside", lambda *args: next(asides, no_memory)(*args))
    else:
        monkeypatch.setattr(gradient_sums.GradientSums, "copy", lambda self, gradient: None)
    found = logged(one_after_the_other)
    for own, right in zip(gradients(found), gradients(expected), strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-5)
    for text in texts(found):
        assert text is not None
        assert "first of 2 backward passes" in text
    assert measurement(found, LAYER, "gradients_of_maps").view == "first of 2 backward passes"


def peak(*, watched: bool, retain_graph: bool) -> float:
    """Largest memory of a step with one backward pass, in units of one layer's output."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Conv2d(8, 8, 3, padding=1) for _ in range(8)])
    x = torch.rand(4, 8, 64, 64)
    with contextlib.ExitStack() as stack:
        if watched:
            board = fmapboard.watch(
                model, writer=MemoryWriter(), every=1, activation_gradients=True, checks=False
            )
            stack.enter_context(board)
            stack.enter_context(board.step(0))
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profile:
            model(x).square().sum().backward(retain_graph=retain_graph)
    events = profile.profiler.kineto_results.events()  # type: ignore[union-attr]  # was started
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    return float(np.cumsum([nbytes for _, nbytes in changes]).max() / x.nbytes)


def test_gradients_are_kept_only_if_the_backward_pass_keeps_its_graph() -> None:
    plain = peak(watched=False, retain_graph=False)
    assert peak(watched=True, retain_graph=False) < plain + 5
    assert peak(watched=True, retain_graph=True) > plain + 10  # the test can see copies


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_copy_on_a_gpu_takes_nothing_that_training_has_needed_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = {"memory_reserved": 600, "max_memory_allocated": 500, "mem_get_info": (28, 1000)}
    for name, value in reads.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)

    class OnGpu:
        """Stands for a tensor of 64 bytes."""

        device, nbytes, copies = torch.device("cuda", 0), 64, 0

        def detach(self) -> OnGpu:
            return self

        def clone(self) -> OnGpu:
            OnGpu.copies += 1
            return self

    sums = gradient_sums.GradientSums(None)  # type: ignore[arg-type]  # nothing fails here
    monkeypatch.setattr(gradient_sums, "aside", lambda *_: contextlib.nullcontext())
    copied = [sums.copy(OnGpu()) is not None for _ in range(3)]  # type: ignore[arg-type]  # fake
    assert copied == [True, True, False]
    assert OnGpu.copies == 2
