"""No pass of fmapboard's own changes the training, whatever kind of state ``forward`` keeps."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hidden_state import KINDS, Stateless
from torch import Tensor, nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter

IMAGES = torch.linspace(0, 1, 4 * 3 * 8 * 8).view(4, 3, 8, 8)
Between = Callable[[nn.Module], object]


def nothing(model: nn.Module) -> None:
    """Run no pass."""


def trained(
    kind: type[Stateless],
    *,
    options: dict[str, Any] | None = None,
    compiles: bool = False,
    between: Between = nothing,
) -> tuple[list[Tensor], list[int]]:
    """Weights after six steps, and the number of pictures of each logged step."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = kind()
    called = torch.compile(model, backend="eager") if compiles else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kept = MemoryWriter()
    board = None
    if options is not None:
        board = fmapboard.watch(called, writer=kept, optimizer=optimizer, every=2, **options)
    for _ in range(6):
        between(model)
        optimizer.zero_grad()
        called(IMAGES).square().mean().backward()
        optimizer.step()
    if board is not None:
        board.close()
    left = [tensor.detach().clone() for tensor in model.state_dict().values()]
    return left, [len(step.pictures) for step in kept.steps]


@functools.cache
def untouched(kind: type[Stateless]) -> list[Tensor]:
    """The weights after a training beside which nothing of ours runs."""
    return trained(kind)[0]


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert len(one) == len(other)
    assert all(map(torch.equal, one, other))


@pytest.mark.parametrize("kind", KINDS)
def test_beside_a_training(kind: type[Stateless]) -> None:
    seen, pictures = trained(kind, options={})
    assert_same(seen, untouched(kind))
    assert pictures[0] == 3
    assert min(pictures) >= 2  # and the kernels where they have changed by 5 %


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_probe_and_its_attribution(kind: type[Stateless]) -> None:
    options = {
        "probe": IMAGES[:2],
        "attribution": True,
        "attribution_loss": lambda scores: scores.square().mean(),
    }
    seen, pictures = trained(kind, options=options)
    assert_same(seen, untouched(kind))
    assert min(pictures) > 1


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, after a graph break
@pytest.mark.parametrize("kind", KINDS)
def test_beside_a_compiled_training(kind: type[Stateless]) -> None:
    bare, _ = trained(kind, compiles=True)
    seen, pictures = trained(kind, options={}, compiles=True)
    assert_same(seen, bare)
    assert pictures[0] == 3
    assert min(pictures) >= 2  # and the kernels where they have changed by 5 %


CALLS: dict[str, Between] = {
    "extract": lambda model: fmapboard.extract(model, IMAGES),
    "keep_graph": lambda model: fmapboard.extract(model, IMAGES, keep_graph=True),
    "extract_gradients": lambda model: fmapboard.extract_gradients(
        model, IMAGES, lambda scores: scores.sum()
    ),
    "attribution": lambda model: fmapboard.attribution(model, IMAGES, target=1),
    "graph": lambda model: fmapboard.graph(model, IMAGES),
}


@pytest.mark.each_once
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_around_a_call(call: str, kind: type[Stateless]) -> None:
    run = CALLS[call]
    seen, _ = trained(kind, between=run)
    assert_same(seen, untouched(kind))
