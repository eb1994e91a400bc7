"""A small model to hook, its number of hooks, and a sink that records what hooks report."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fmapboard.records import LayerCall


class RecordingSink:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.layer_calls: list[LayerCall] = []
        self.values: list[Any] = []
        self.begun = 0
        self.start_over = False

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.begun += 1
        self.told.clear()
        self.layer_calls.clear()

    def again(self) -> bool:
        return self.start_over

    def captured(self, layer_call: LayerCall, side: str, value: Any, module: nn.Module) -> None:
        self.told.append((side, layer_call.label))
        self.layer_calls.append(layer_call)
        self.values.append(value)

    @property
    def labels(self) -> list[str]:
        return [label for _, label in self.told]


def hook_count(model: nn.Module) -> int:
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
        + len(m._forward_hooks_with_kwargs) + len(m._forward_pre_hooks_with_kwargs)
        for m in model.modules()
    )  # fmt: skip


def two_convolutions() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Conv2d(2, 2, 3))


X = torch.ones(1, 1, 8, 8)
