"""Weights that never move: no optimizer step, no gradient, BatchNorm that is never updated."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from recorded_facts import WAYS, Around, Net, Way, loss_of, trained, training_facts
from torch import Tensor, nn

import fmapboard
from fmapboard.checks import run_checks
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.read_runs import read_runs
from fmapboard.writers.folder import MemoryWriter

STEPS = 6


def run(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()


def without_step(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad()
            loss_of(model).backward()


def counts(found: dict[int, TrainingFacts]) -> list[int | None]:
    return [None if one.idle is None else one.idle.steps for one in found.values()]


MARKED = Way(1, is_marked=True)


def test_backward_passes_without_an_optimizer_step_are_counted() -> None:
    found = trained(without_step, MARKED)
    assert counts(found) == [None, 0, 1, 2, 3, 4]
    assert {(i.since, i.is_held, i.is_cleared) for f in found.values() if (i := f.idle)} == {
        (1, True, True)
    }


def test_an_optimizer_of_a_copy_is_told(caplog: pytest.LogCaptureFixture) -> None:
    model = Net()
    optimizer = torch.optim.SGD(copy.deepcopy(model).parameters(), lr=0.1)
    found = trained(run, Way(1), model, optimizer)
    assert counts(found) == [None, 0, 1, 2, 3, 4]
    assert {one.idle.is_held for one in found.values() if one.idle} == {False}
    assert "the one passed as optimizer= holds none of them" in caplog.text


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_training_loop_is_never_idle(way: Way) -> None:
    assert set(counts(trained(run, way))) == {None}


def test_weights_updated_by_hand_are_not_idle() -> None:
    def by_hand(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                model.zero_grad()
                loss_of(model).backward()
                for parameter in model.parameters():
                    parameter.data -= 0.1 * parameter.grad  # its version does not advance

    assert {n or 0 for n in counts(trained(by_hand, MARKED))} == {0}


def test_gradients_that_are_kept_are_told_from_those_that_are_thrown_away() -> None:
    def accumulated(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                loss_of(model).backward()

    found = trained(accumulated, MARKED)
    assert {one.idle.is_cleared for one in found.values() if one.idle} == {False}


def test_a_model_through_which_something_before_it_is_trained_is_not_idle() -> None:
    def image(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                model.zero_grad()
                model(torch.rand(4, 3, 10, 10, requires_grad=True)).sum().backward()

    assert set(counts(trained(image, MARKED))) == {None}


class Detached(Net):
    """``conv`` uses its bias, and a copy of its weight that gets no gradient."""

    def forward(self, x: Tensor) -> Tensor:
        maps = self.norm(self.stem(x)).relu()
        maps = nn.functional.conv2d(maps, self.conv.weight.detach(), self.conv.bias)
        logits: Tensor = self.head(maps.mean((2, 3)))
        return logits


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_weights_without_a_gradient_in_a_step_of_their_optimizer(way: Way) -> None:
    found = trained(run, way, Detached())
    assert {one.no_gradient for one in found.values()} == {("conv.weight",)}
    assert {one.no_gradient for one in trained(run, way).values()} == {()}


class Twice(Net):
    """``norm`` is called twice, and ``other`` never."""

    def __init__(self, calls_other: bool) -> None:
        super().__init__()
        self.other, self.calls_other = nn.BatchNorm2d(8), calls_other

    def forward(self, x: Tensor) -> Tensor:
        maps = self.norm(self.stem(x)).relu()
        if self.calls_other:
            self.other(maps)  # which the loss ignores
        logits: Tensor = self.head(self.norm(self.conv(maps)).mean((2, 3)))
        return logits


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_normalization_that_never_runs(way: Way) -> None:
    both = ("other.weight", "other.bias")
    assert {one.not_called for one in trained(run, way, Twice(False)).values()} == {both}
    found = trained(run, way, Twice(True))
    assert {one.no_gradient for one in found.values()} == {both}
    assert [one.not_called for one in found.values()][1:] == [()] * (len(found) - 1)


def test_a_moving_average_without_gradients_is_not_named() -> None:
    def averaged(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                optimizer.zero_grad()
                loss_of(model).backward()
                optimizer.step()
            model.get_parameter("conv.weight").data.mul_(0.99)

    found = trained(averaged, MARKED, Detached())
    assert [one.no_gradient for one in found.values()] == [("conv.weight",), *[()] * (STEPS - 1)]


@pytest.mark.parametrize(
    ("momentum", "is_pretrained", "expected"),
    [
        (0.0, False, True),
        (1e-4, False, True),
        (3e-4, False, False),
        (0.0, True, False),
    ],
)
def test_running_statistics_that_are_still_the_initial_ones(
    momentum: float, is_pretrained: bool, expected: bool
) -> None:
    model, kept = Net(), MemoryWriter()
    model.norm.momentum = momentum
    model.norm.num_batches_tracked.fill_(48)
    if is_pretrained:
        model.norm.running_var[0] = 0.3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        run(model, optimizer, lambda step: nullcontext())
    named = [one.initial_norms for one in training_facts(kept.steps).values()]
    assert named[0] == ()
    assert named[1:] == [("norm",) if expected else ()] * (STEPS - 1)


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_are_cleared_before_the_optimizer_steps_are_noted(
    to_none: bool, tmp_path: Path
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, tmp_path, optimizer=optimizer, every=1):
        for _ in range(5):
            model(torch.randn(2, 3, 8, 8)).square().mean().backward()
            optimizer.zero_grad(set_to_none=to_none)
            optimizer.step()
    (record,) = read_runs(tmp_path)[0].records
    said = run_checks(record).findings
    (found,) = [one for one in said if one.kind == "no_gradient"]
    assert found.class_ == "note"
    assert "no parameter has a gradient other than 0" in found.message
    assert not [one for one in said if one.class_ == "warning"]
