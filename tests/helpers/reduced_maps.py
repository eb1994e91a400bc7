"""Maps of one convolution through a `Reducer`, and the planes that come out."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fmapboard.measure.reducer import Reducer
from fmapboard.records import LayerCall, LayerMeasurement, Planes

CALL = LayerCall("conv", "Conv2d")
CONV = nn.Conv2d(1, 1, 1)


def reduced(
    maps: Tensor, module: nn.Module = CONV, layer_call: LayerCall = CALL, **options: Any
) -> LayerMeasurement:
    return Reducer(**options)(layer_call, "feature_maps", maps, module).to_host()


def planes_of(maps: Tensor, module: nn.Module = CONV, **options: Any) -> Planes:
    planes = reduced(maps, module, **options).planes
    assert planes is not None
    return planes
