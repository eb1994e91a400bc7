"""Small trainings whose facts are recorded, and what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.formats import tags
from fmapboard.formats.training_facts import TrainingFacts, unpack_training_facts
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

Around = Callable[[int], AbstractContextManager[Any]]
"""Marks a step, given its number; does nothing if the steps are counted from the optimizer."""
Loop = Callable[[nn.Module, torch.optim.Optimizer, Around], None]


class Net(nn.Module):
    """Two convolutions with BatchNorm, dropout and a linear head.

    Images [N, 3, H, W] -> logits [N, 4].
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.conv = nn.Conv2d(8, 8, 3)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        maps = functional.leaky_relu(self.norm(self.stem(x)))
        maps = functional.leaky_relu(self.conv(maps))
        return self.head(self.drop(maps).mean((2, 3)))


def batch() -> tuple[Tensor, Tensor]:
    return torch.rand(4, 3, 10, 10), torch.randint(0, 4, (4,))


def loss_of(model: nn.Module) -> Tensor:
    """The loss on a random batch."""
    x, y = batch()
    return functional.cross_entropy(model(x), y)


def training_facts(steps: Iterable[LoggedStep], name: str = "") -> dict[int, TrainingFacts]:
    """Step -> what was recorded."""
    tag = tags.prefix(name) + tags.TRAINING_FACTS
    records = [(step.step, r) for step in steps for r in step.records if r.tag == tag]
    return {number: unpack_training_facts(record.blobs) for number, record in records}


@dataclass(frozen=True)
class Way:
    """How steps are logged: every n-th, counted from the optimizer or marked by hand."""

    every: int
    is_marked: bool = False

    def __str__(self) -> str:
        return f"{'marked' if self.is_marked else 'counted'}, every={self.every}"


WAYS = [
    *(Way(1), Way(3, is_marked=True)),
    *(pytest.param(way, marks=pytest.mark.sweep) for way in (Way(3), Way(1, is_marked=True))),
]
"""CI has each number of steps and each kind of marking once; the sweep has all four."""


def trained(
    loop: Loop,
    way: Way,
    model: nn.Module | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    **options: Any,
) -> dict[int, TrainingFacts]:
    """Run a training loop; step -> what was recorded."""
    torch.manual_seed(0)
    network, kept = model or Net(), MemoryWriter()
    used = optimizer or torch.optim.SGD(network.parameters(), lr=0.05)
    counted = None if way.is_marked else used
    with fmapboard.watch(
        network, writer=kept, optimizer=counted, every=way.every, **options
    ) as board:
        loop(network, used, board.step if way.is_marked else lambda step: nullcontext())
    found = training_facts(kept.steps)
    assert len(found) == len(kept.steps) > 0
    return found


def faults(found: TrainingFacts) -> set[str]:
    """Which of the facts in a record are faults."""
    named = {
        "not_in_optimizer": found.not_in_optimizer,
        "not_cleared": found.not_cleared,
        "eval_mode": found.eval_mode,
        "constant_images": found.constant_images,
        "identical_images": found.identical_images,
        "unchanged": found.unchanged,
    }
    return {name for name, value in named.items() if value}
