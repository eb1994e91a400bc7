"""Trainings with constant or identical images, or weights that do not change: it is recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from recorded_facts import (
    WAYS,
    Around,
    Net,
    Way,
    batch,
    faults,
    trained,
)
from torch import Tensor, nn
from torch.nn import functional

STEPS = 10
Optimizer = torch.optim.Optimizer


def step_once(model: nn.Module, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def plain(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            step_once(model, optimizer, *batch())


def on_images(change: Callable[[Tensor], Tensor]) -> Any:
    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                x, y = batch()
                step_once(model, optimizer, change(x), y)

    return loop


def with_colour(x: Tensor) -> Tensor:
    x[1] = torch.tensor([0.1, 0.5, 0.9])[:, None, None]
    x[3] = 0
    return x


def repeated(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


def two_alike(x: Tensor) -> Tensor:
    return torch.stack([x[0], x[1], x[0], x[3]])


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_constant_images_are_recorded(way: Way) -> None:
    found = trained(on_images(with_colour), way)
    assert {frozenset(faults(one)) for one in found.values()} == {frozenset({"constant_images"})}
    assert {(one.batch, one.constant_images) for one in found.values()} == {(4, (1, 3))}


class CallsItself(Net):
    """Runs on its input, and on a smaller copy, by calling itself."""

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.first = first

    def forward(self, x: Tensor, inner: bool = False) -> Tensor:
        if inner:
            return super().forward(x)
        smaller = functional.avg_pool2d(x, 2).repeat_interleave(2, 2).repeat_interleave(2, 3)
        noise = torch.rand_like(smaller)
        parts = (noise, x) if self.first else (x, noise)
        return sum(self(part, inner=True) for part in parts)  # type: ignore[return-value]


@pytest.mark.parametrize("first", [False, True], ids=["images first", "images last"])
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_constant_images_of_a_model_that_calls_itself_are_recorded(way: Way, first: bool) -> None:
    found = trained(on_images(with_colour), way, CallsItself(first=first))
    assert {one.constant_images for one in found.values()} == {(1, 3)}


@pytest.mark.parametrize(
    ("change", "pairs"),
    [(repeated, ((0, 1), (0, 2), (0, 3))), (two_alike, ((0, 2),))],
    ids=["one image", "two alike"],
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_identical_images_are_recorded(
    way: Way, change: Callable[[Tensor], Tensor], pairs: tuple[tuple[int, int], ...]
) -> None:
    found = trained(on_images(change), way)
    assert {frozenset(faults(one)) for one in found.values()} == {frozenset({"identical_images"})}
    assert {one.identical_images for one in found.values()} == {pairs}


def test_images_are_compared_with_a_probe_too() -> None:
    probe = torch.rand(1, 3, 10, 10)
    found = trained(on_images(two_alike), Way(1), probe=probe)
    assert {one.identical_images for one in found.values()} == {((0, 2),)}


def test_a_batch_of_one_image_is_not_compared() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 10), nn.Flatten())

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        step_once(model, optimizer, torch.zeros(1, 3, 10, 10), torch.tensor([1]))

    found = trained(loop, Way(1), model)[0]
    assert (found.batch, found.constant_images, found.identical_images) == (1, None, None)


class Idle(torch.optim.SGD):
    """Its steps change nothing."""

    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # takes no closure
        return


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_weights_that_do_not_change_are_recorded(way: Way) -> None:
    model = Net()
    found = trained(plain, way, model, Idle(model.parameters(), lr=0.1))
    for number, one in enumerate(found.values()):
        # A bias before BatchNorm has no gradient but rounding errors.
        expected = {"conv.weight", "conv.bias", "stem.weight"} if number else set()
        assert one.unchanged.keys() == expected
        assert {(u.steps, u.since) for u in one.unchanged.values()} <= {(number, 0)}
    assert found[max(found)].unchanged


def test_a_layer_that_is_restored_after_each_step_is_recorded() -> None:
    model = Net()
    kept = {name: value.clone() for name, value in model.stem.state_dict().items()}

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for _ in range(STEPS):
            step_once(model, optimizer, *batch())
            model.get_submodule("stem").load_state_dict(kept)

    found = trained(loop, Way(1), model)
    last = found[STEPS - 1]
    assert last.unchanged.keys() == {"stem.weight"}
    assert last.unchanged["stem.weight"].steps == STEPS - 1


def test_weights_in_bfloat16_that_swallow_each_update_are_recorded() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(256, 4)).bfloat16()
    nn.init.constant_(model[0].weight, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for _ in range(STEPS):
            x, y = batch()
            step_once(model, optimizer, x.bfloat16(), y)

    found = trained(loop, Way(1), model, optimizer)
    assert "0.weight" in found[STEPS - 1].unchanged
