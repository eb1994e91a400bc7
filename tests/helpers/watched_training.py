"""A small network with its training step, and readers of what `fmapboard.watch` logged of it."""

from __future__ import annotations

from pathlib import Path

import torch
from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.records import LoggedStep


class Net(nn.Module):
    """Convolutions at two depths, an in-place ReLU behind one, BatchNorm and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, padding=2)
        self.relu = nn.ReLU(inplace=True)
        self.inner = nn.Sequential(nn.Sequential(nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16)))
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.inner(self.relu(self.stem(x)))
        return self.head(functional.relu(maps).mean((2, 3)))


def batch(size: int = 4) -> tuple[Tensor, Tensor]:
    return torch.randn(size, 3, 12, 12), torch.randint(0, 4, (size,))


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    x, y = batch()
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def numbers(steps: list[LoggedStep]) -> list[int]:
    return [step.step for step in steps]


def tags(step: LoggedStep) -> set[str]:
    series = [*step.pictures, *step.histograms, *step.records]
    return {item.tag for item in series} | set(step.scalars)


def hooks(model: nn.Module) -> int:
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
        for m in model.modules()
    )


def read(run: Path) -> EventAccumulator:
    """What TensorBoard's Python loader makes of a run, every record kept."""
    accumulator = EventAccumulator(
        str(run),
        size_guidance={"tensors": 0},
        tensor_size_guidance=dict.fromkeys(("images", "histograms", "scalars"), 0),
    )
    accumulator.Reload()
    return accumulator


def steps_of(accumulator: EventAccumulator, tag: str) -> list[int]:
    return [event.step for event in accumulator.Tensors(tag)]
