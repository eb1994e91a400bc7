"""``CallTrace``: which modules a pass called inside which, and the shapes that went in and out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.model.tensors import tensors
from fmapboard.records import LayerCall

TensorType = tuple[torch.dtype, tuple[int, ...]]
"""Dtype and shape of a tensor."""


@dataclass(slots=True, eq=False)
class TracedCall:
    """A call of a module, or a tensor named by ``tap``.

    Attributes:
        layer_call: Which call of which layer.
        outer: The call that it happened in; None for the outermost.
        received: The tensors among its arguments; None for a tensor named by ``tap``.
        returned: The tensors that it returned; None if it did not return.
        inner: The calls of modules that happened in it.
    """

    layer_call: LayerCall
    outer: TracedCall | None = None
    received: tuple[TensorType, ...] | None = None
    returned: tuple[TensorType, ...] | None = None
    inner: list[TracedCall] = field(default_factory=list)


class CallTrace(CaptureListener):
    """A ``CaptureListener`` that keeps the calls of modules; it needs their inputs and outputs.

    Attributes:
        calls: In the order in which they began.
        running: Those that have not ended, from the outermost on.
    """

    def __init__(self) -> None:
        self.calls: list[TracedCall] = []
        self.running: list[TracedCall] = []

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Drop what an earlier pass left."""
        self.calls.clear()
        self.running.clear()

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Keep the beginning or the end of a call."""
        found = tensor_types(value)
        names = [call.layer_call.layer for call in self.running]
        if side == "output" and layer_call.layer in names:
            # A call that raised, and whose error was caught, has no end.
            while (call := self.running.pop()).layer_call.layer != layer_call.layer:
                pass
            call.returned = found
            return
        call = TracedCall(layer_call, self.running[-1] if self.running else None)
        self.calls.append(call)
        if side == "output":  # a tensor named by tap
            call.returned = found
            return
        call.received = found
        if call.outer is not None:
            call.outer.inner.append(call)
        self.running.append(call)


def tensor_types(value: Any) -> tuple[TensorType, ...]:
    """Dtypes and shapes of the tensors in a nested value."""
    return tuple((tensor.dtype, tuple(tensor.shape)) for tensor in tensors(value))


def in_words(found: tuple[TensorType, ...]) -> str:
    """Dtypes and shapes of tensors, such as ``float32 [1, 3, 8, 8]``."""
    listed = [f"{str(dtype).removeprefix('torch.')} {list(shape)}" for dtype, shape in found]
    return ", ".join(listed) or "no tensor"
