"""Immutable dataclasses exchanged between packages; their NumPy arrays alias nothing of the model.

``StepData`` goes from the training thread to the worker, ``LoggedStep`` from there to the writer::

    step = SummaryBuilder()(data)            # StepData -> LoggedStep
    step.pictures[0].samples[0].pixels       # u8 [H, W]

Axis letters in shapes: N samples, C channels, H height, W width, L sequence length, S values of a
flattened tensor, K histogram buckets.
"""

from __future__ import annotations

from fmapboard.records.attribution import Attribution
from fmapboard.records.input_image import InputImage
from fmapboard.records.layer_call import (
    COLOURS,
    ONE_PASS,
    Bytes8,
    Floats,
    KernelShape,
    LayerCall,
    Layout,
    Normalization,
    PassCount,
    PixelMark,
    Scale,
    TensorKind,
    TransposedShape,
)
from fmapboard.records.measurements import (
    NONE,
    Kernels,
    LayerMeasurement,
    Nonfinite,
    Parameter,
    Planes,
    Sample,
    Statistics,
    StepData,
)
from fmapboard.records.model_graph import GraphNode, ModelGraph
from fmapboard.records.patches import Crop, LayerPatches
from fmapboard.records.step_summary import (
    Histogram,
    LoggedStep,
    Picture,
    TabRecord,
    TaggedPictures,
)
from fmapboard.records.training_facts import TrainingFacts

__all__ = [
    "COLOURS",
    "NONE",
    "ONE_PASS",
    "Attribution",
    "Bytes8",
    "Crop",
    "Floats",
    "GraphNode",
    "Histogram",
    "InputImage",
    "KernelShape",
    "Kernels",
    "LayerCall",
    "LayerMeasurement",
    "LayerPatches",
    "Layout",
    "LoggedStep",
    "ModelGraph",
    "Nonfinite",
    "Normalization",
    "Parameter",
    "PassCount",
    "Picture",
    "PixelMark",
    "Planes",
    "Sample",
    "Scale",
    "Statistics",
    "StepData",
    "TabRecord",
    "TaggedPictures",
    "TensorKind",
    "TrainingFacts",
    "TransposedShape",
]
