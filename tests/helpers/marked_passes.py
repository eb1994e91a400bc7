"""A network and batches filled with one number, which identifies the recorded pass."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fmapboard.records import LoggedStep


class Marked(nn.Module):
    """``mark`` returns its input, so its maximum is the number that fills the recorded batch."""

    def __init__(self) -> None:
        super().__init__()
        self.mark = nn.Conv2d(1, 1, 1)
        nn.init.ones_(self.mark.weight)
        nn.init.zeros_(self.mark.bias)
        self.mark.requires_grad_(False)
        self.body = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Conv2d(4, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.mark(x)).sigmoid())


def filled(number: float) -> Tensor:
    """A batch [2, 1, 6, 6] filled with one number."""
    return torch.full((2, 1, 6, 6), float(number))


def marks(steps: list[LoggedStep]) -> list[float | None]:
    """For each logged step, the number that fills the recorded batch; None without a pass."""
    found: list[float | None] = []
    for step in steps:
        layers = [m for m in step.statistics if m.layer_call.label == "mark"]
        found.append(round(float(layers[0].statistics.maximum[0]), 3) if layers else None)
    return found
