"""`CaptureListener`: what receives a recorded forward pass."""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn

from fmapboard.capture.passes import Side
from fmapboard.records import LayerCall


class CaptureListener(Protocol):
    """Receives what a registry's hooks see. Called inside the user's forward pass.

    ``value`` and ``args`` are the live objects, which the very next operation may overwrite: copy
    what is needed before returning. Must not raise, change them or draw random numbers.
    """

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The recorded forward pass of the root begins; forget what an earlier one delivered."""

    def again(self) -> bool:
        """A later forward pass of the root begins; True records it instead of the first one."""

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """A layer is about to run on (``"input"``: (args, kwargs)) or has returned ``value``."""
