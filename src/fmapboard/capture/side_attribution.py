"""A pass of fmapboard's own in eval mode with gradients, whose attribution is collected."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.attribution import AttributionPass
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.input_images import PendingInputImage, input_images
from fmapboard.capture.passes import Side
from fmapboard.capture.side_pass import untouched
from fmapboard.records import LayerCall, Normalization


class AttributionListener:
    """A ``listener.CaptureListener`` that passes on what it receives.

    Args:
        own: collects the attribution.
        normalization: how the images were normalized, undone before they are drawn.

    Attributes:
        images: the input images of the pass.
    """

    def __init__(self, own: AttributionPass, normalization: Normalization | None = None) -> None:
        self.own, self._normalization = own, normalization
        self.images: list[PendingInputImage] = []

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """See ``CaptureListener``."""
        self.own.discard()
        self.images = input_images((args, kwargs), None, self._normalization, sequences=False)
        self.own.begin(self.images)

    def again(self) -> bool:
        """See ``CaptureListener``."""
        return False

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """See ``CaptureListener``."""
        self.own.captured(layer_call, value, module)


def floating_like(model: nn.Module, otherwise: Tensor) -> Tensor:
    """The model's first floating-point parameter, whose device and dtype its input should have."""
    return next((p for p in model.parameters() if p.is_floating_point()), otherwise)


@contextlib.contextmanager
def differentiable(
    model: nn.Module, hooked: Collection[str], seen: AttributionListener, device_type: str
) -> Iterator[None]:
    """Run a block in eval mode, with gradients and without autocast; the model is as before after.

    Args:
        model: the unwrapped model.
        hooked: names of the layers whose outputs ``seen`` gets.
        seen: receives the passes in the block.
        device_type: the type of device that the block computes on.
    """
    registry = HookRegistry(model, lambda name, _: name in hooked)
    with (
        registry.listening(seen),
        untouched(model, training=False),
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device_type, enabled=False, cache_enabled=False),
    ):
        yield
