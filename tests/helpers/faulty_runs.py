"""A run with large values, dead channels, and +Inf in a layer without pictures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

import fmapboard

STEPS = list(range(0, 30, 3))
LARGE_FROM, INFINITE_AT = 6, 12


class FaultyNet(nn.Module):
    """``big`` has 2 of 6 dead channels, ``many`` 60 of 80; ``act`` is called twice per pass."""

    def __init__(self) -> None:
        super().__init__()
        self.big, self.act = nn.Conv2d(3, 6, 3), nn.ReLU()
        self.many, self.last = nn.Conv2d(6, 80, 1), nn.ReLU()
        self.factor = 1.0
        with torch.no_grad():
            self.big.weight.fill_(0.002)
            self.many.weight *= 1e-8
            for conv, dead in ((self.big, 2), (self.many, 60)):
                assert conv.bias is not None
                conv.bias.copy_(torch.where(torch.arange(len(conv.bias)) < dead, -1.0, 1.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mapped = self.act(self.big(x))
        self.act(mapped.mean((2, 3)) * self.factor)
        return self.last(self.many(mapped))


@pytest.fixture(scope="session")
def faulty_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``faulty``: large values from step 6, +Inf in the second call of ``act`` from step 12."""
    root = tmp_path_factory.mktemp("faulty")
    torch.manual_seed(0)
    model = FaultyNet()
    images = torch.rand(2, 3, 12, 12)
    with fmapboard.watch(model, root / "faulty", every=1, probe=images[:1]) as board:
        for step in STEPS:
            with torch.no_grad():
                if step == LARGE_FROM:
                    model.big.weight *= 1e7
                    model.big.bias[:2] = -1e9  # type: ignore[index]
            model.factor = math.inf if step >= INFINITE_AT else 1.0
            with board.step(step), torch.no_grad():
                model(images)
    return root
