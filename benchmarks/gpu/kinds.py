"""The two ways in which fmapboard reads a tensor on a GPU: plain operations and fused kernels."""

from __future__ import annotations

import inspect
from typing import Any

import fmapboard
from gpu.device import Device
from gpu.report import Skip

KINDS = ("plain", "fused")
HAS_FUSED = "fused" in inspect.signature(fmapboard.watch).parameters


def options_of(kind: str, device: Device) -> dict[str, Any]:
    """Options of ``watch`` that choose a kind.

    Raises:
        Skip: There is no such kind, or not on this device.
    """
    if kind == "fused":
        if not HAS_FUSED:
            raise Skip("not built")
        device.require_cuda()
    return {"fused": kind == "fused"} if HAS_FUSED else {}
