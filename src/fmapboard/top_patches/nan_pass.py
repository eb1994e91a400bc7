"""Run the model on images with NaN, and note which positions of its layers' outputs are NaN."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.isolation import aside
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import run_side_pass
from fmapboard.records import LayerCall
from fmapboard.top_patches.nan_flow import NanFlow
from fmapboard.top_patches.positions import maps_of

Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Seen:
    """What one pass showed.

    Attributes:
        grids: Label -> axes of the positions.
        hits: Label -> bool [N, P], True where a channel is NaN.
        lost: Label -> the operation that lost NaN before the layer returned.
    """

    grids: dict[str, tuple[int, ...]] = field(default_factory=dict)
    hits: dict[str, Bools] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)


class Runner:
    """Runs the model, and counts the images that it runs on."""

    def __init__(self, registry: HookRegistry) -> None:
        self._registry = registry
        self.images = 0

    def __call__(self, images: Tensor, flow: NanFlow | None = None) -> Seen:
        """What a pass on images [N, C, H, W] shows; with ``flow``, also what lost NaN."""
        seen = Seen()
        self.images += len(images)
        # Other algorithms for convolutions compute with pixels outside the kernel, times 0.
        with (
            torch.backends.cudnn.flags(enabled=False),
            torch.backends.nnpack.flags(enabled=False),
            self._registry.listening(_Listener(seen, len(images), flow)),
        ):
            run_side_pass(self._registry.model, images)
        return seen


class _Listener(CaptureListener):
    """A ``CaptureListener`` that notes where outputs are NaN."""

    def __init__(self, seen: Seen, images: int, flow: NanFlow | None) -> None:
        self._seen, self._images, self._flow = seen, images, flow

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        maps = maps_of(value, module, self._images)
        if maps is None:
            return
        with aside(maps.values.device.type, maps.values.nbytes):
            hit = torch.isnan(maps.values).any(1).cpu().numpy()  # [N, P]
        label = layer_call.label
        self._seen.grids[label], self._seen.hits[label] = maps.grid, hit
        if self._flow is not None and self._flow.lost_at is not None:
            self._seen.lost[label] = self._flow.lost_at


def watched(runner: Runner, images: Tensor) -> Seen | None:
    """What a pass showed while it was watched for operations that lose NaN; None if it failed."""
    try:
        with NanFlow() as flow:
            return runner(images, flow)
    except Exception:  # of any type: the model was not made for NaN
        return None
