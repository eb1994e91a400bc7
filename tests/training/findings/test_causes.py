"""What cannot be logged is reported with its own cause, not that of a more frequent mistake."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from networks import NestedNet, two_convolutions
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from watched_training import numbers, sgd

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

both_ways = pytest.mark.parametrize("by_hand", [False, True], ids=["counted", "marked"])


def steps_of(
    model: nn.Module, optimizer: torch.optim.Optimizer, *, by_hand: bool
) -> tuple[Callable[[int], AbstractContextManager[None]], Callable[[], list[LoggedStep]]]:
    """Watch a model, with the optimizer or with marked steps.

    Returns:
        What surrounds a step, and a function that ends the logger and returns what it logged.
    """
    given, kept = None if by_hand else optimizer, MemoryWriter()
    board = fmapboard.watch(model, writer=kept, optimizer=given, every=1)

    def logged() -> list[LoggedStep]:
        board.close()
        return kept.steps

    return board.step if by_hand else lambda _: nullcontext(), logged


@both_ways
def test_per_sample_gradients_of_functional_call(
    by_hand: bool, said: Callable[[], list[str]]
) -> None:
    model = two_convolutions()
    optimizer = sgd(model)
    step, _ = steps_of(model, optimizer, by_hand=by_hand)

    def loss(weights: dict[str, Tensor], image: Tensor) -> Tensor:
        value: Tensor = functional_call(model, weights, (image[None],)).square().mean()
        return value

    for number in range(2):
        with step(number):
            weights = {name: p.detach() for name, p in model.named_parameters()}
            found = vmap(grad(loss), in_dims=(None, 0))(weights, torch.rand(3, 1, 8, 8))
            for name, parameter in model.named_parameters():
                parameter.grad = found[name].mean(0)
            optimizer.step()
    assert said() == [
        "fmapboard: step 0: no watched layer ran in a training pass; it ran only inside a "
        "transformation of torch.func (vmap, grad), where tensors have no values yet; to see its "
        "layers, also call the model itself on the batch"
    ]


@both_ways
def test_a_call_of_the_model_beside_per_sample_gradients_is_logged(
    by_hand: bool, said: Callable[[], list[str]]
) -> None:
    model = two_convolutions()
    optimizer, images = sgd(model), torch.rand(3, 1, 8, 8)
    step, logged = steps_of(model, optimizer, by_hand=by_hand)
    with step(0):
        loss = vmap(lambda image: model(image[None]).mean())(images).sum()
        model(images)
        loss.backward()
        optimizer.step()
    assert len(logged()[0].statistics) == 3
    assert not any("torch.func" in text for text in said())


@both_ways
def test_style_transfer_with_a_network_that_is_not_frozen(
    by_hand: bool, said: Callable[[], list[str]]
) -> None:
    network = two_convolutions().eval()
    image = torch.rand(1, 1, 12, 12, requires_grad=True)
    optimizer = torch.optim.Adam([image], lr=0.003)
    step, logged = steps_of(network, optimizer, by_hand=by_hand)
    for number in range(3):
        with step(number):
            target, content = network((image - 0.5) / 0.2), network(torch.rand(1, 1, 12, 12))
            optimizer.zero_grad()
            (target - content).square().mean().backward()
            optimizer.step()
    assert numbers(logged()) == [0, 1, 2]
    assert said() == [
        "fmapboard: step 0: an optimizer updates what the model receives, as in style transfer, "
        "and none updates the model; freeze it before fmapboard.watch(), so that no gradients of "
        "its parameters are computed: model.requires_grad_(False)"
    ]


def test_the_optimizer_of_a_generator_does_not_make_its_discriminator_one_to_freeze(
    said: Callable[[], list[str]],
) -> None:
    generator, critic = nn.Conv2d(1, 1, 1), two_convolutions()
    first, second = sgd(generator), sgd(critic)
    with fmapboard.watch(critic, writer=MemoryWriter(), optimizer=first, every=1):
        critic(generator(torch.rand(2, 1, 8, 8))).mean().backward()
        first.step()
    (text,) = said()
    assert "the one passed as optimizer= holds none of them. Pass the one that trains" in text
    assert second


class Unregistered(nn.Module):
    """Keeps its layers where torch does not find them."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.blocks = held


@pytest.mark.parametrize("options", [{}, {"layers": "blocks.0"}, {"layers": nn.Conv2d}])
def test_layers_in_a_list_of_python(options: dict[str, Any]) -> None:
    model = Unregistered([nn.Linear(2, 2), nn.Conv2d(1, 1, 1)])
    with pytest.raises(ConfigurationError) as raised:
        fmapboard.watch(model, writer=MemoryWriter(), **options)
    assert str(raised.value).endswith(
        "; the list Unregistered.blocks holds modules (Conv2d, Linear) that torch does not "
        "register, so parameters() and to() omit them too; use nn.ModuleList"
    )
    assert options or "Select some" not in str(raised.value)


def test_layers_in_a_dictionary_of_python_or_registered_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match=r"the dict Unregistered\.blocks .*nn\.ModuleDict"):
        fmapboard.watch(Unregistered({"a": nn.Linear(2, 2)}), writer=MemoryWriter())
    model = NestedNet()
    model.listed = [model.stem]  # type: ignore[assignment]
    with pytest.raises(ConfigurationError) as raised:
        fmapboard.watch(model, writer=MemoryWriter(), layers="absent")
    assert "ModuleList" not in str(raised.value)
