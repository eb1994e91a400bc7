"""Runs of a small network trained on striped images; one layer's name is HTML markup."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import fmapboard

HOSTILE = "<img src=x onerror=top['hacked']=1>"
STEPS = list(range(0, 60, 5))


class StripesNet(nn.Module):
    """Two blocks and a layer whose name is HTML markup; channel 3 of the first layer is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.block = nn.Sequential(
            nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU()
        )
        self.add_module(HOSTILE, nn.Conv2d(24, 8, 1))
        self.head = nn.Linear(8, 4)
        first = self.stem[0]
        assert isinstance(first, nn.Conv2d)
        with torch.no_grad():
            first.weight[3], first.bias[3] = 0.0, -1.0  # type: ignore[index]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(getattr(self, HOSTILE)(self.block(self.stem(x))).mean((2, 3)))


def stripes(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images [N, 3, 32, 32] with stripes in one of four directions, and the direction [N]."""
    which = torch.arange(count) % 4
    y, x = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    waves = torch.stack([x, y, x + y, x - y])[which]
    images = (waves * 0.6).sin()[:, None].repeat(1, 3, 1, 1) * 0.5 + 0.5
    return (images + 0.1 * torch.randn_like(images)).clamp(0, 1), which


def train(run: Path, steps: list[int], learning_rate: float = 0.05, poison: int = -1) -> None:
    """Train and log; at step ``poison`` the middle layer's weight becomes NaN."""
    torch.manual_seed(0)
    model = StripesNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    with fmapboard.watch(
        model, run, every=1, samples=2, inputs=True, activation_gradients=True, start_step=steps[0],
    ) as board:  # fmt: skip
        for step in steps:
            images, which = stripes(16)
            with board.step(step):
                optimizer.zero_grad()
                if step == poison:
                    nn.init.constant_(model.block[0].weight[1:2], float("nan"))  # type: ignore[index,arg-type]
                nn.functional.cross_entropy(model(images), which).backward()
                optimizer.step()


@pytest.fixture(scope="session")
def striped_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    train(root / "good", STEPS)
    train(root / "bad", STEPS, poison=30)
    train(root / HOSTILE, STEPS[:3])
    return root
