"""Gradients that an optimizer step has used and nobody clears, step by step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from fmapboard.gradients.touched import UnclearedGradients

Act = Callable[[], None]


class Scene:
    """A layer, its optimizer, and what is found in its logged steps."""

    def __init__(self) -> None:
        self.layer = nn.Linear(3, 2, bias=False)
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1)
        self.found = UnclearedGradients()

    def open(self, *, just_used: bool = False) -> None:
        used = {id(self.layer.weight)} if just_used else set()
        self.found.opens({"weight": self.layer.weight}, used)

    def backward(self) -> None:
        self.found.backward_begins()
        self.layer(torch.ones(1, 3)).sum().backward()
        self.found.backward_ends()

    def clear(self, *, set_to_none: bool = False) -> None:
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        self.found.stepping(["weight"])
        self.optimizer.step()

    def unseen(self, *acts: Act) -> None:
        """A step that is not logged."""
        self.layer(torch.ones(1, 3)).sum().backward()
        self.optimizer.step()
        for act in acts:
            act()


def used(scene: Scene) -> None:
    """A logged step 0, after which the gradient is there."""
    scene.open()
    scene.backward()
    scene.step()
    assert scene.found.closes(0) == ()


def test_a_gradient_that_was_just_used_and_not_cleared_is_found() -> None:
    scene = Scene()
    scene.unseen()
    scene.open(just_used=True)
    scene.backward()
    scene.step()
    assert scene.found.closes(7) == ("weight",)


def test_a_gradient_from_before_is_not_judged_if_its_step_was_not_seen() -> None:
    scene = Scene()
    scene.unseen()
    scene.open()
    scene.backward()
    scene.step()
    assert scene.found.closes(7) is None


def test_clearing_before_the_first_backward_pass_is_healthy() -> None:
    for set_to_none in (True, False):
        scene = Scene()
        scene.unseen()
        scene.open(just_used=True)
        scene.clear(set_to_none=set_to_none)
        scene.backward()
        scene.backward()
        scene.step()
        assert scene.found.closes(7) == ()


def test_clearing_between_two_backward_passes_is_healthy() -> None:
    for set_to_none in (True, False):
        scene = Scene()
        scene.unseen()
        scene.open(just_used=True)
        scene.backward()
        scene.clear(set_to_none=set_to_none)
        scene.backward()
        scene.step()
        assert scene.found.closes(7) == ()


def test_clearing_inside_or_after_the_step_is_healthy() -> None:
    scene = Scene()
    scene.unseen()
    scene.open(just_used=True)
    scene.backward()
    scene.step()
    scene.clear()
    assert scene.found.closes(7) is None or scene.found.closes(7) == ()


def test_gradients_that_no_optimizer_has_used_yet_are_accumulated() -> None:
    scene = Scene()
    for number in range(3):
        scene.open()
        scene.backward()
        assert scene.found.closes(number) is None
    scene.open()
    scene.backward()
    scene.step()
    assert scene.found.closes(3) is None


def test_the_next_logged_step_finds_it_without_being_told() -> None:
    scene = Scene()
    used(scene)
    scene.open()
    scene.backward()
    scene.step()
    assert scene.found.closes(1) == ("weight",)


def test_steps_in_between_that_clear_nothing_are_recognized_by_the_version() -> None:
    scene = Scene()
    used(scene)
    for _ in range(9):
        scene.unseen()
    scene.open()
    scene.backward()
    scene.step()
    assert scene.found.closes(10) == ("weight",)


def test_steps_in_between_that_clear_in_place_are_healthy() -> None:
    scene = Scene()
    used(scene)
    scene.clear()
    for _ in range(9):
        scene.unseen(scene.clear)
    scene.open()
    scene.backward()
    scene.step()
    assert not scene.found.closes(10)


def test_steps_in_between_that_drop_the_gradient_are_healthy() -> None:
    scene = Scene()
    used(scene)
    for _ in range(9):
        scene.clear(set_to_none=True)
        scene.unseen()
    scene.open()
    scene.backward()
    scene.step()
    assert not scene.found.closes(10)


def test_a_gradient_that_is_scaled_on_purpose_is_healthy() -> None:
    scene = Scene()
    scene.unseen()
    scene.open(just_used=True)
    assert scene.layer.weight.grad is not None
    scene.layer.weight.grad.mul_(0.9)
    scene.backward()
    scene.step()
    assert scene.found.closes(7) == ()


def test_without_a_backward_pass_or_a_step_nothing_is_known() -> None:
    scene = Scene()
    scene.open()
    scene.step()
    assert scene.found.closes(0) is None
    scene.open()
    scene.backward()
    assert scene.found.closes(1) is None
