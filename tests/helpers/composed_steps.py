"""Measurements of one convolution, built into a logged step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from reducers import reducer_of
from torch import Tensor, nn

from fmapboard.records import (
    Kernels,
    KernelShape,
    LayerCall,
    LayerMeasurement,
    LoggedStep,
    StepData,
)
from fmapboard.summary.build import SummaryBuilder

CONV = nn.Conv2d(3, 64, 7, device="meta")  # drawing weights would use random numbers at import
CALL = LayerCall("conv1", "Conv2d", KernelShape((64, 3, 7, 7)))


def measured(
    maps: Tensor, layer_call: LayerCall = CALL, kind: Any = "feature_maps", **options: Any
) -> LayerMeasurement:
    """Measure maps as the output of a convolution."""
    return reducer_of(**options)(layer_call, kind, maps, CONV).to_host()


def compose(composer: SummaryBuilder | None = None, step: int = 0, **content: Any) -> LoggedStep:
    """Build a logged step from measurements."""
    return (composer or SummaryBuilder())(StepData(step, 1000.0, **content))


def kernels_of(*shape: int, layer_call: LayerCall | None = None) -> Kernels:
    """Kernels of a given shape with values from -1 to 1."""
    weight = np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape)
    return Kernels(layer_call or LayerCall("conv1", "Conv2d", KernelShape(shape)), weight)
