"""Measurements of one convolution, composed to a logged step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from fmapboard.measure.reducer import Reducer
from fmapboard.records import (
    Kernels,
    KernelShape,
    LoggedStep,
    Measured,
    Site,
    StepData,
)
from fmapboard.summary.build import Composer

CONV = nn.Conv2d(3, 64, 7)
SITE = Site("conv1", "Conv2d", KernelShape((64, 3, 7, 7)))


def measured(
    maps: torch.Tensor, site: Site = SITE, role: Any = "feature_maps", **options: Any
) -> Measured:
    return Reducer(**options)(site, role, maps, CONV).to_host()


def maps_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def compose(composer: Composer | None = None, step: int = 0, **content: Any) -> LoggedStep:
    return (composer or Composer())(StepData(step, 1000.0, **content))


def kernels_of(*shape: int, site: Site | None = None) -> Kernels:
    weight = np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape)
    return Kernels(site or Site("conv1", "Conv2d", KernelShape(shape)), weight)
