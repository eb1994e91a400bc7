"""Random maps, the measurements that a `Reducer` makes of maps, and the planes among them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from reducers import reducer_of
from torch import Tensor, nn

from fmapboard.records import LayerCall, LayerMeasurement, Planes
from fmapboard.render.quantize import finite_extremes

CALL = LayerCall("conv", "Conv2d")
CONV = nn.Conv2d(1, 1, 1, device="meta")  # drawing weights would use random numbers at import


def random_maps(*shape: int, seed: int = 0) -> Tensor:
    """Normally distributed values, the same at each call."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def reduced(
    maps: Tensor, module: nn.Module = CONV, layer_call: LayerCall = CALL, **options: Any
) -> LayerMeasurement:
    """Measure maps as the output of ``module``."""
    return reducer_of(**options)(layer_call, "feature_maps", maps, module).to_host()


def planes_of(maps: Tensor, module: nn.Module = CONV, **options: Any) -> Planes:
    """The planes that are drawn of the output of ``module``."""
    planes = reduced(maps, module, **options).planes
    assert planes is not None
    return planes


def record_extremes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the planes that are read for their extremes from now on."""
    shapes: list[tuple[int, ...]] = []

    def recorded(planes: Any, axes: tuple[int, ...]) -> Any:
        shapes.append(planes.shape)
        return finite_extremes(planes, axes)

    monkeypatch.setattr("fmapboard.render.quantize.finite_extremes", recorded)
    return shapes
