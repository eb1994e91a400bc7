"""A frozen network whose input learns: the pass that leads to its gradients is logged."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from marked_passes import Marked, filled, marks
from torch import Tensor, nn

import fmapboard
from fmapboard.session.selection import learned_leaves
from fmapboard.writers.folder import MemoryWriter

STEPS = 3
MARKED = {"constant_images": False}  # marks are constant images
Optimizers = Callable[[list[Tensor]], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Optimizers] = {
    "adam": lambda learned: torch.optim.Adam(learned, lr=0.1),
    "lbfgs": lambda learned: torch.optim.LBFGS(learned, max_iter=3),
}


class Collecting(nn.Sequential):
    """A frozen network that keeps a loss of its own, as in PyTorch's tutorial on style transfer."""

    def __init__(self) -> None:
        layers = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(inplace=True)
        super().__init__()
        for name, layer in zip(("mark", "body", "relu"), layers, strict=True):
            self.add_module(name, layer)
        nn.init.ones_(self.mark.weight)
        nn.init.zeros_(self.mark.bias)
        self.loss = torch.zeros(())
        self.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.body(self.mark(x))
        self.loss = (maps - 1).square().mean()
        return self.relu(maps)


def whole(model: Collecting, image: Tensor) -> Tensor:
    return model(image).square().mean()


def its_own_loss(model: Collecting, image: Tensor) -> Tensor:
    model(image)
    return model.loss


def normalized(model: Collecting, image: Tensor) -> Tensor:
    return model(image * 1.0).square().mean()


def layer_by_layer(model: Collecting, image: Tensor) -> Tensor:
    for layer in model.children():
        image = layer(image)
    return image.square().mean()


def transfer(
    loss_of: Callable[[Collecting, Tensor], Tensor] = whole,
    *,
    optimizers: Optimizers = OPTIMIZERS["adam"],
    by_hand: bool = False,
    training: bool = False,
    watched: bool = True,
    **options: Any,
) -> tuple[Tensor, list[float], MemoryWriter]:
    """Optimize an image; returns it, its maximum at the start of each step, and what was logged."""
    torch.manual_seed(0)
    model, kept = Collecting().train(training), MemoryWriter()
    image = nn.Parameter(torch.rand(1, 1, 6, 6))
    optimizer = optimizers([image])
    board = None
    if watched:
        given = {} if by_hand else {"optimizer": optimizer}
        board = fmapboard.watch(model, writer=kept, every=1, checks=MARKED, **given, **options)
    if loss_of is not layer_by_layer:
        with torch.no_grad():
            model(filled(77))
        model(filled(78))  # also with gradients enabled

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, image)
        loss.backward()
        return loss

    before = []
    for step in range(STEPS):
        before.append(round(float(image.detach().max()), 3))
        if board is not None and by_hand:
            with board.step(step):
                optimizer.step(closure)
        else:
            optimizer.step(closure)
    if board is not None:
        board.close()
    return image.detach(), before, kept


@pytest.mark.each_once
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("loss_of", [whole, its_own_loss, normalized, layer_by_layer])
def test_the_pass_that_the_images_gradients_come_from_is_logged_without_a_warning(
    loss_of: Callable[[Collecting, Tensor], Tensor],
    by_hand: bool,
    training: bool,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "fmapboard"):
        _, before, kept = transfer(
            loss_of, optimizers=OPTIMIZERS[name], by_hand=by_hand, training=training
        )
    assert marks(kept.steps) == before
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_image_is_bitwise_the_same_as_without_fmapboard(name: str) -> None:
    bare, _, _ = transfer(optimizers=OPTIMIZERS[name], watched=False)
    options = {"activation_gradients": True, "inputs": True, "attribution": True}
    seen, _, kept = transfer(optimizers=OPTIMIZERS[name], probe=filled(5), **options)
    assert torch.equal(bare, seen)
    assert [step.step for step in kept.steps] == list(range(STEPS))
    tags = {picture.tag for picture in kept.steps[0].pictures}
    assert "feature_maps_4x1x3x3/body" in tags  # of the probe
    assert "gradients_of_maps_4x1x3x3/body" in tags


def test_of_several_images_in_one_step_the_first_that_contributes_is_logged() -> None:
    model, kept = Collecting().eval(), MemoryWriter()
    first, second = (nn.Parameter(filled(number)) for number in (1, 2))
    optimizer = torch.optim.SGD([first, second], lr=0.0)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, checks=MARKED):
        for _ in range(STEPS):
            model(first + 10).mean().backward()  # its gradients are discarded
            optimizer.zero_grad()
            model(second).mean().backward()
            model(first).mean().backward()
            optimizer.step()
    assert marks(kept.steps) == [2.0] * STEPS


def test_an_image_without_an_optimizer_is_followed_and_does_not_outlive_its_step(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = Collecting().eval(), MemoryWriter()
    board = fmapboard.watch(model, writer=kept, every=1, checks=MARKED)
    with caplog.at_level(logging.WARNING, "fmapboard"):
        for step in range(STEPS):
            image = filled(step).requires_grad_()
            held = weakref.ref(image)
            with board.step(step):
                model(filled(77))  # without a gradient
                (gradient,) = torch.autograd.grad(model(image).mean(), image)
            assert gradient.shape == image.shape
            model.loss = torch.zeros(())  # it holds the graph
            del image, gradient
            gc.collect()
            assert held() is None
    board.close()
    assert marks(kept.steps) == [float(step) for step in range(STEPS)]
    assert [record.message for record in caplog.records] == []


def test_a_perceptual_loss_shows_the_pass_on_what_the_network_in_front_generates() -> None:
    model, generator, kept = Collecting(), Marked(), MemoryWriter()
    generator.head.weight.data.zero_()
    generator.head.bias.data.fill_(3.0)
    optimizer = torch.optim.SGD(generator.parameters(), lr=0.0)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, checks=MARKED):
        for _ in range(STEPS):
            expected = model(filled(9))
            (model(generator(filled(0))) - expected).square().mean().backward()
            optimizer.step()
    assert marks(kept.steps) == [3.0] * STEPS


def test_a_network_that_is_frozen_after_watch_is_followed_from_the_next_logged_step_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = Collecting().eval().requires_grad_(True), MemoryWriter()
    image = nn.Parameter(filled(1))
    optimizer = torch.optim.SGD([image], lr=0.0)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, checks=MARKED),
    ):
        model.requires_grad_(False)
        for _ in range(STEPS):
            model(image).mean().backward()
            optimizer.step()
    assert [step.step for step in kept.steps] == [1, 2]
    (said,) = [record.message for record in caplog.records]
    assert "since fmapboard.watch() was called; freeze first" in said


@pytest.mark.parametrize(
    ("training", "by_hand", "logged", "text"),
    [
        (False, False, 0, "in eval mode only passes whose input requires a gradient count"),
        (True, False, STEPS, "so there are no gradient norms"),
        (False, True, STEPS, "so there are no gradient norms"),
    ],
)
def test_a_frozen_network_whose_input_does_not_learn_is_explained_once(
    training: bool, by_hand: bool, logged: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, head, kept = Collecting().train(training), nn.Conv2d(4, 1, 1), MemoryWriter()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    given = {} if by_hand else {"optimizer": optimizer}
    with caplog.at_level(logging.WARNING, "fmapboard"):
        board = fmapboard.watch(model, writer=kept, every=1, checks=MARKED, **given)
        for step in range(STEPS):
            if by_hand:
                with board.step(step):
                    head(model(filled(step))).mean().backward()
                    optimizer.step()
            else:
                head(model(filled(step))).mean().backward()
                optimizer.step()
        board.close()
    assert marks(kept.steps) == [float(step) for step in range(logged)]
    (said,) = [record.message for record in caplog.records]
    assert "all parameters of the model are frozen (requires_grad=False)" in said
    assert text in said


def test_the_search_for_what_learns_ends_in_a_deep_network() -> None:
    deep, leaf = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    for _ in range(1000):
        deep = deep + 1
    assert [id(found) for found in learned_leaves({"x": [deep + leaf, torch.zeros(1)]})] == [
        id(leaf)
    ]
