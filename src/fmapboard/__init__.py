"""fmapboard logs the feature maps of a PyTorch model to TensorBoard while it trains.

Importing the package is fast: torch is imported when a name below is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmapboard.capture.class_attribution import attribution
    from fmapboard.capture.hooks import HookRegistry
    from fmapboard.errors import (
        CaptureError,
        CheckpointError,
        ConfigurationError,
        FmapboardError,
        ImageError,
        LayerNotFound,
        MissingExtra,
        NoConvolution,
        WriteError,
    )
    from fmapboard.extraction import LayerGradients, extract, extract_gradients
    from fmapboard.logger import FeatureMapLogger, watch
    from fmapboard.model.layers import kernel_groups
    from fmapboard.notebook import draw
    from fmapboard.records import KernelShape

__version__ = "0.1.0"

_NAMES_IN = {
    "notebook": ("draw",),
    "errors": (
        "CaptureError", "CheckpointError", "ConfigurationError", "FmapboardError", "ImageError",
        "LayerNotFound", "MissingExtra", "NoConvolution", "WriteError",
    ),
    "extraction": ("LayerGradients", "extract", "extract_gradients"),
    "model.layers": ("kernel_groups",),
    "logger": ("FeatureMapLogger", "watch"),
    "records": ("KernelShape",),
    "capture.hooks": ("HookRegistry",),
    "capture.class_attribution": ("attribution",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}

__all__ = [
    "CaptureError",
    "CheckpointError",
    "ConfigurationError",
    "FeatureMapLogger",
    "FmapboardError",
    "HookRegistry",
    "ImageError",
    "KernelShape",
    "LayerGradients",
    "LayerNotFound",
    "MissingExtra",
    "NoConvolution",
    "WriteError",
    "attribution",
    "draw",
    "extract",
    "extract_gradients",
    "kernel_groups",
    "watch",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'fmapboard' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fmapboard.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
