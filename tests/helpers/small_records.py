"""Header and arrays of a valid record of a layer with two channels, to be varied."""

from __future__ import annotations

from typing import Any

import numpy as np

HEADER: dict[str, Any] = {
    "layer": "a", "type": "Conv2d", "kernel_shape": [2, 1, 1, 1], "call": 1, "position": 0,
    "step": 0, "steps_written": 1, "training_thread_ms": 1.0,
    "pictures": [{"role": "feature_maps", "tag": "feature_maps_2x1x1x1/a", "shape": [1, 2, 4, 4],
                  "channels": 2, "drawn": 2, "samples": 1, "tile": [4, 4], "columns": 1,
                  "padding": 2, "block": 1, "view": "", "palette": "grey", "scale": "channel"}],
}  # fmt: skip
ARRAYS = {
    "feature_maps.lo": np.zeros((1, 2)), "feature_maps.hi": np.ones((1, 2)),
    **{f"feature_maps.{name}": np.ones(2) for name in ("minimum", "maximum", "mean", "std")},
}  # fmt: skip
