"""An input for a small hooked model, and a sink that records what hooks report."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fmapboard.capture.passes import (
    CaptureListener,
    Decision,
    FirstPass,
    Moment,
    PassEvent,
    Progress,
    Side,
)
from fmapboard.records import LayerCall


class RecordingSink(CaptureListener):
    """Records the calls that hooks report."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str]] = []
        self.layer_calls: list[LayerCall] = []
        self.values: list[Any] = []
        self.begun = 0

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.begun += 1
        self.reported.clear()
        self.layer_calls.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        self.reported.append((side, layer_call.label))
        self.layer_calls.append(layer_call)
        self.values.append(value)

    @property
    def labels(self) -> list[str]:
        return [label for _, label in self.reported]


class Choosing(FirstPass):
    """Records the first pass, or each one, of those in training mode.

    Attributes:
        start_over: each pass is recorded.
        of_training: a model whose passes in eval mode are ignored.
    """

    def __init__(self, *, start_over: bool = False, of_training: nn.Module | None = None) -> None:
        super().__init__()
        self.start_over = start_over
        self.of_training = of_training

    def decide(self, event: PassEvent) -> Decision:
        begins = event.moment is Moment.BEGINS
        if begins and self.of_training is not None and not self.of_training.training:
            if self.progress is Progress.RECORDING:  # that pass raised
                self.progress = Progress.WAITING
            return Decision.IGNORE
        if begins and self.start_over:
            self.progress = Progress.WAITING
        return super().decide(event)


X = torch.ones(1, 1, 8, 8)
