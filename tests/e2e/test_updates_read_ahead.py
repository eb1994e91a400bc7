"""Updates of large models, whose parameters are read on another thread before the optimizer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count
from typing import Any

import pytest
import torch
from exact_updates import update_ratios
from large_network import RIGHT, Change, network, nothing, train
from own_threads import own_threads
from torch import Tensor, nn
from torch_threads import torch_threads

import fmapboard
from fmapboard.capture import update_ratios as read
from fmapboard.capture.side_thread import _Task
from fmapboard.writers.memory import MemoryWriter


def wait_until(happened: Callable[[], bool]) -> bool:
    """False if it has not happened after ten seconds."""
    end = time.monotonic() + 10
    while not happened() and time.monotonic() < end:
        time.sleep(0.001)
    return happened()


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    with torch_threads(2):
        yield


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Thread that reads rows, and of how many parameters, in order."""
    found, real = [], read.row_copies

    def copies(parameters: dict[str, Tensor], memory: Any) -> Any:
        copied = real(parameters, memory)
        found.append((threading.current_thread().name.partition("_")[0], len(parameters)))
        return copied

    monkeypatch.setattr(read, "row_copies", copies)
    at_once = _Task.result

    def result(task: _Task[Any]) -> Any:
        """Without reading on the training thread for a helper that comes late."""
        assert wait_until(task._begun.locked)
        return at_once(task)

    monkeypatch.setattr(_Task, "result", result)
    return found


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


HELPER, TRAINING = "fmapboard-side", "MainThread"


def test_parameters_are_read_beside_the_backward_pass(readers: list[tuple[str, int]]) -> None:
    model = network()
    assert train(model, [sgd(model)], nothing) < RIGHT
    assert readers == [(TRAINING, 6), (HELPER, 6), (HELPER, 6)]


def test_the_helper_ends_with_the_logger() -> None:
    model, before = network(), set(own_threads())
    optimizer = sgd(model)
    board = fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1)
    for _ in range(2):
        model(torch.randn(2, 3, 7, 7)).square().mean().backward()
        optimizer.step()
    (helper,) = [one for one in set(own_threads()) - before if one.name.startswith(HELPER)]
    board.close()
    helper.join(10)
    assert not helper.is_alive()


def test_a_small_model_is_read_on_the_training_thread(readers: list[tuple[str, int]]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    assert train(model, [sgd(model)], nothing) < RIGHT
    assert readers == [(TRAINING, 2)] * 3


def test_a_process_of_one_thread_is_left_one(readers: list[tuple[str, int]]) -> None:
    torch.set_num_threads(1)
    model = network()
    train(model, [sgd(model)], nothing)
    assert readers == [(TRAINING, 6)] * 3


def in_place(model: nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)


def other_memory(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.data = 3 * parameter.data


@pytest.mark.parametrize("change", [in_place, other_memory])
def test_what_changes_before_the_update_is_read_again(
    change: Change, readers: list[tuple[str, int]]
) -> None:
    def late(model: nn.Module) -> None:
        """Change the model when the helper has read it, which it does from the second step on."""
        before = 2 * next(step)
        assert wait_until(lambda: len(readers) >= before)
        change(model)

    model, step = network(), count()
    assert train(model, [sgd(model)], late) < RIGHT
    assert readers == [(TRAINING, 6), (HELPER, 6), (TRAINING, 6), (HELPER, 6), (TRAINING, 6)]


def test_a_parameter_may_lose_its_gradient(readers: list[tuple[str, int]]) -> None:
    model, kept = network(), MemoryWriter()
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(3):
            with board.step(number):
                optimizer.zero_grad()
                model(torch.randn(2, 3, 7, 7)).square().mean().backward()
                if number:
                    model[0].bias.grad = None
                optimizer.step()
    assert [len(update_ratios(step)) for step in kept.steps] == [6, 5, 5]
    assert readers == [(TRAINING, 6), (HELPER, 6), (TRAINING, 5), (HELPER, 5)]


def test_each_optimizer_is_read_ahead(readers: list[tuple[str, int]]) -> None:
    model = nn.Sequential(*network(), nn.ReLU(), *network()[:1])
    model[6] = nn.Conv2d(64, 18_000, 1)
    parts = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (model[:5], model[6:])]
    assert train(model, parts, nothing) < RIGHT
    assert readers == [(TRAINING, 6), (TRAINING, 2), *2 * [(HELPER, 6), (HELPER, 2)]]


def test_later_steps_of_an_optimizer_in_a_logged_step_change_nothing(
    readers: list[tuple[str, int]],
) -> None:
    model = network()
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=MemoryWriter(), every=1) as board:
        for number in range(3):
            with board.step(number):
                for _ in range(2):
                    model(torch.randn(2, 3, 7, 7)).square().mean().backward()
                    optimizer.step()
    assert readers == [(TRAINING, 6), (HELPER, 6), (HELPER, 6)]


def test_an_optimizer_that_is_used_no_more_is_not_read(readers: list[tuple[str, int]]) -> None:
    model = network()
    first, second = sgd(model), sgd(model)
    with fmapboard.watch(model, writer=MemoryWriter(), every=1) as board:
        for number in range(4):
            with board.step(number):
                model(torch.randn(2, 3, 7, 7)).square().mean().backward()
                (second if number else first).step()
    assert readers == [(TRAINING, 6), (HELPER, 6), (TRAINING, 6), (HELPER, 6), (HELPER, 6)]


def test_a_parameter_may_be_removed_between_steps() -> None:
    model, kept = network(), MemoryWriter()
    optimizer = sgd(model)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(3):
            with board.step(number):
                model(torch.randn(2, 3, 7, 7)).square().mean().backward()
                optimizer.step()
            model[4].bias = None
    assert [len(update_ratios(step)) for step in kept.steps] == [6, 5, 5]


@pytest.mark.parametrize("name", ["sgd", "adamw", "lbfgs"])
def test_training_is_bitwise_the_same(name: str, readers: list[tuple[str, int]]) -> None:
    def weights(watched: bool) -> list[Tensor]:
        model, images = network(), torch.linspace(-1, 1, 2 * 3 * 49).reshape(2, 3, 7, 7)
        optimizer: torch.optim.Optimizer = {
            "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
            "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
            "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=2),
        }[name](model.parameters())

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = model(images).square().mean()
            loss.backward()
            return loss

        with (
            fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1)
            if watched
            else nullcontext()
        ):
            for _ in range(4):
                optimizer.step(closure)
        return [*model.parameters()]

    bare = weights(watched=False)
    assert all(map(torch.equal, bare, weights(watched=True)))
    assert readers == [(TRAINING, 6), *[(HELPER, 6)] * 3]
