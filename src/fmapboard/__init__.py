"""fmapboard logs the feature maps of a PyTorch model to TensorBoard while it trains.

Importing the package is fast: torch is imported when a name below is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmapboard.capture.hooks import HookRegistry as HookRegistry
    from fmapboard.capture.taps import tap as tap
    from fmapboard.errors import CaptureError as CaptureError
    from fmapboard.errors import CheckpointError as CheckpointError
    from fmapboard.errors import ConfigurationError as ConfigurationError
    from fmapboard.errors import FmapboardError as FmapboardError
    from fmapboard.errors import ForwardError as ForwardError
    from fmapboard.errors import ImageError as ImageError
    from fmapboard.errors import LayerNotFound as LayerNotFound
    from fmapboard.errors import MissingExtra as MissingExtra
    from fmapboard.errors import NoConvolution as NoConvolution
    from fmapboard.errors import WriteError as WriteError
    from fmapboard.extraction.class_attribution import attribution as attribution
    from fmapboard.extraction.layer_table import layers as layers
    from fmapboard.extraction.model_graph import graph as graph
    from fmapboard.extraction.of_batches import extract_batches as extract_batches
    from fmapboard.extraction.of_batches import extract_to_folder as extract_to_folder
    from fmapboard.extraction.of_outputs import LayerGradients as LayerGradients
    from fmapboard.extraction.of_outputs import extract as extract
    from fmapboard.extraction.of_outputs import extract_gradients as extract_gradients
    from fmapboard.imaging.patches import patches as patches
    from fmapboard.imaging.visualize import visualize as visualize
    from fmapboard.interventions.context import add as add
    from fmapboard.interventions.context import intervene as intervene
    from fmapboard.interventions.context import replace as replace
    from fmapboard.interventions.context import scale as scale
    from fmapboard.interventions.context import silence as silence
    from fmapboard.logger import FeatureMapLogger as FeatureMapLogger
    from fmapboard.logger import watch as watch
    from fmapboard.model.layers import kernel_groups as kernel_groups
    from fmapboard.model_comparison.differences import LayerDifference as LayerDifference
    from fmapboard.model_comparison.differences import ModelDifference as ModelDifference
    from fmapboard.model_comparison.two_models import diff as diff
    from fmapboard.notebook import draw as draw
    from fmapboard.records import KernelShape as KernelShape
    from fmapboard.rehearsal.result import Rehearsal as Rehearsal
    from fmapboard.rehearsal.result import RehearsalFault as RehearsalFault
    from fmapboard.rehearsal.run import rehearse as rehearse
    from fmapboard.report.inline import show as show

__version__ = "0.1.0"

_NAMES_IN = {
    "notebook": ("draw",),
    "errors": (
        "CaptureError", "CheckpointError", "ConfigurationError", "FmapboardError", "ForwardError",
        "ImageError", "LayerNotFound", "MissingExtra", "NoConvolution", "WriteError",
    ),
    "extraction.of_batches": ("extract_batches", "extract_to_folder"),
    "extraction.of_outputs": ("LayerGradients", "extract", "extract_gradients"),
    "extraction.layer_table": ("layers",),
    "extraction.model_graph": ("graph",),
    "extraction.class_attribution": ("attribution",),
    "model.layers": ("kernel_groups",),
    "model_comparison.two_models": ("diff",),
    "model_comparison.differences": ("LayerDifference", "ModelDifference"),
    "interventions.context": ("add", "intervene", "replace", "scale", "silence"),
    "logger": ("FeatureMapLogger", "watch"),
    "records": ("KernelShape",),
    "rehearsal.run": ("rehearse",),
    "rehearsal.result": ("Rehearsal", "RehearsalFault"),
    "report.inline": ("show",),
    "imaging.visualize": ("visualize",),
    "imaging.patches": ("patches",),
    "capture.hooks": ("HookRegistry",),
    "capture.taps": ("tap",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name == "writers":
        return importlib.import_module("fmapboard.writers")
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'fmapboard' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"fmapboard.{module}"), name)
    globals()[name] = found  # `tap` is called in every forward pass
    return found


def __dir__() -> list[str]:
    return __all__
