"""``CaptureListener``: receives a recorded forward pass."""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn

from fmapboard.capture.passes import Side
from fmapboard.records import LayerCall


class CaptureListener(Protocol):
    """Receives what a registry's hooks observe.

    Every method is called inside the user's forward pass, on the thread that runs it. ``args``,
    ``kwargs`` and ``value`` are the live objects, and the next operation may overwrite them: copy
    what is needed before returning. An implementation must not raise, modify these objects or draw
    random numbers.
    """

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Called when the recorded forward pass of the root module begins.

        Discard what an earlier pass delivered.
        """

    def again(self) -> bool:
        """Called when a later pass of the root begins; return True to record it instead."""

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a watched layer of the recorded pass is about to run, or has returned.

        Args:
            layer_call: which layer, and which of its calls.
            side: ``"input"`` before the layer runs, ``"output"`` after it returned.
            value: ``(args, kwargs)`` for ``"input"``, the layer's output for ``"output"``.
            module: the layer.
        """
