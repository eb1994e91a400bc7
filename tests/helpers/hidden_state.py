"""Small networks whose ``forward`` keeps state, each of another kind, and trains on with it."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn


class Stateless(nn.Module):
    """A convolution, whose output ``change`` multiplies in the other networks."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        maps = self.conv(x).relu()
        scores: Tensor = self.head((maps * self.change(maps)).mean((2, 3)))
        return scores

    def change(self, maps: Tensor) -> float | Tensor:
        return 1.0


class InBuffer(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.ones(()))

    def change(self, maps: Tensor) -> Tensor:
        self.mean += maps.detach().mean()
        return self.mean.clone()


class InGlobalRandomStates(Stateless):
    def change(self, maps: Tensor) -> Tensor:
        return torch.rand(()) + random.random() + np.random.rand()


class InNumber(Stateless):
    calls = 0

    def change(self, maps: Tensor) -> float:
        self.calls += 1
        return 1 / self.calls


class InTorchGenerator(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.own = torch.Generator().manual_seed(1)

    def change(self, maps: Tensor) -> Tensor:
        return torch.rand((), generator=self.own)


class InNumpyGenerator(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.own = np.random.default_rng(1)

    def change(self, maps: Tensor) -> float:
        return float(self.own.random())


class InPythonGenerator(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.own = random.Random(1)

    def change(self, maps: Tensor) -> float:
        return self.own.random()


class InListOfTensors(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.queue = [torch.ones(4), torch.ones(4)]

    def change(self, maps: Tensor) -> Tensor:
        self.queue[0].mul_(0.9).add_(maps.detach().mean((0, 2, 3)))
        return self.queue[0].clone()[:, None, None]


class InNestedList(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.memory = {"seen": [1.0]}

    def change(self, maps: Tensor) -> float:
        self.memory["seen"].append(float(maps.detach().mean()))
        return sum(self.memory["seen"])


class InNamespace(Stateless):
    def __init__(self) -> None:
        super().__init__()
        self.schedule = SimpleNamespace(scale=1.0)

    def change(self, maps: Tensor) -> float:
        self.schedule.scale *= 0.9
        return float(self.schedule.scale)


KINDS = (
    Stateless, InBuffer, InGlobalRandomStates, InNumber, InTorchGenerator, InNumpyGenerator,
    InPythonGenerator, InListOfTensors, InNestedList, InNamespace,
)  # fmt: skip
