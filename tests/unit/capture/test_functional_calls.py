"""Convolutions that ``forward`` calls as functions are counted once, and nothing else is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

import fmapboard
from fmapboard.capture.functional_calls import FunctionalCalls, functional_calls
from fmapboard.writers.folder import MemoryWriter

X = torch.rand(4, 3, 12, 12)


class Functional(nn.Module):
    """A convolution that is a layer, and one that is a function of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.kernel = nn.Parameter(torch.randn(4, 8, 3, 3))

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(self.stem(x), self.kernel)


class Sobel(nn.Module):
    """A fixed kernel, applied in two directions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 1, 3)
        self.register_buffer("sobel", torch.tensor([[[[1.0, 0, -1], [2, 0, -2], [1, 0, -1]]]]))

    def forward(self, x: Tensor) -> Tensor:
        edges = functional.conv2d(self.stem(x), self.sobel)
        return functional.conv2d(edges, self.sobel.mT)


class Borrowed(nn.Module):
    """Uses the weight of a layer that is not called."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(self.stem(x), self.second.weight)


class Generated(nn.Module):
    """A kernel that a linear layer makes of another tensor; the transposed convolution of it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.code = nn.Conv2d(3, 2, 3), nn.Parameter(torch.rand(5))
        self.make = nn.Linear(5, 2 * 3 * 9)

    def forward(self, x: Tensor) -> Tensor:
        kernel = self.make(self.code).view(2, 3, 3, 3)
        return functional.conv_transpose2d(self.stem(x), kernel)


class Tapped(Functional):
    """Names the result."""

    def forward(self, x: Tensor) -> Tensor:
        return fmapboard.tap("maps", functional.conv2d(self.stem(x), self.kernel))


class Scaled(nn.Conv2d):
    """A layer that calls the function itself, with a weight that is computed."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight / self.weight.norm(), self.bias)


class Listed(nn.Module):
    """Holds a layer in a list, so that it is not registered."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.others = [nn.Conv2d(8, 8, 3)]

    def forward(self, x: Tensor) -> Tensor:
        return self.others[0](self.stem(x))  # type: ignore[no-any-return]


def frozen(*more: nn.Module) -> nn.Module:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 3, 3), *more)
    model[1].requires_grad_(False)
    return model


def train(model: nn.Module, x: Tensor = X, *, steps: int = 1, layers: str | None = None) -> None:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 0.01)
    writer = MemoryWriter()
    with fmapboard.watch(model, layers=layers, writer=writer, every=1, checks=False) as board:
        for number in range(steps):
            with board.step(number):
                model(x).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()


END = (
    ", since only what modules return is; to draw it, name it in forward: "
    "y = fmapboard.tap('name', y)"
)


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (Functional, "1 functional call of a convolution (kernel)"),
        (Sobel, "2 functional calls of a convolution"),
        (Borrowed, "1 functional call of a convolution (second.weight)"),
        (lambda: frozen(Functional()), "1 functional call of a convolution (2.kernel)"),
        (lambda: frozen(Sobel()), "2 functional calls of a convolution"),
        (Generated, "1 functional call of a convolution (make.bias)"),
    ],
)
def test_convolutions_called_as_functions_are_counted_once(
    build: Callable[[], nn.Module], what: str, said: Callable[[], list[str]]
) -> None:
    train(build(), steps=3)
    assert said() == [f"fmapboard: step 0: not drawn: {what}{END}"]


def test_only_the_first_logged_step_looks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[FunctionalCalls] = []

    def search(*given: Any) -> FunctionalCalls:
        searched.append(functional_calls(*given))
        return searched[-1]

    monkeypatch.setattr("fmapboard.session.selection.functional_calls", search)
    train(Functional(), steps=4)
    assert searched == [FunctionalCalls(1, ("kernel",))]


@pytest.mark.parametrize(
    "build",
    [
        Tapped,
        Listed,
        frozen,
        lambda: nn.Sequential(nn.DataParallel(Functional())),
        lambda: nn.Sequential(Scaled(3, 8, 3), nn.Conv2d(8, 4, 3)),
        lambda: nn.Sequential(spectral_norm(nn.Conv2d(3, 8, 3)), nn.ConvTranspose2d(8, 4, 3)),
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, groups=4), nn.ReLU()),
    ],
)
def test_layers_and_named_results_are_no_such_calls(
    build: Callable[[], nn.Module], said: Callable[[], list[str]]
) -> None:
    train(build())
    assert [text for text in said() if "functional" in text] == []


def test_nothing_is_said_of_layers_that_the_user_chose(said: Callable[[], list[str]]) -> None:
    train(Functional(), layers="stem")
    assert said() == []


def test_the_network_in_front_of_the_model_is_not_counted(said: Callable[[], list[str]]) -> None:
    generator = Sobel()
    discriminator = nn.Sequential(nn.Conv2d(1, 4, 3))
    train(discriminator, generator(X))
    assert said() == []


def test_the_training_is_bitwise_the_same() -> None:
    watched = Functional()
    control = copy.deepcopy(watched)
    train(watched, steps=3)
    optimizer = torch.optim.SGD(control.parameters(), 0.01)
    for _ in range(3):
        control(X).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    for own, other in zip(watched.parameters(), control.parameters(), strict=True):
        assert torch.equal(own, other)
