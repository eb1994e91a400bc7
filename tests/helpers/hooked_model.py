"""An input for a small hooked model, and a sink that records what hooks report."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.records import LayerCall


class RecordingSink(CaptureListener):
    """Records the calls that hooks report."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str]] = []
        self.layer_calls: list[LayerCall] = []
        self.values: list[Any] = []
        self.begun = 0
        self.start_over = False
        self.of_training: nn.Module | None = None

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.begun += 1
        self.reported.clear()
        self.layer_calls.clear()

    def counts(self, received: Any) -> bool:
        return self.of_training is None or self.of_training.training

    def again(self) -> bool:
        return self.start_over

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        self.reported.append((side, layer_call.label))
        self.layer_calls.append(layer_call)
        self.values.append(value)

    @property
    def labels(self) -> list[str]:
        return [label for _, label in self.reported]


X = torch.ones(1, 1, 8, 8)
