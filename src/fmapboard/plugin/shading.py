"""Brightness of each layer at each step, for the overview's map: one byte per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fmapboard.formats.tab_records import Floats
from fmapboard.health.states import IS_LARGE, Codes

LEVELS = 24
"""Levels of brightness."""
UNKNOWN_LEVEL = 255
_TAIL = 0.02
"""Share of the values at each end that the scale leaves out, so that one outlier cannot rule it."""
_SAMPLE = 20_000
"""Cells that the scale is computed from, roughly."""
_DECADES = 1.0
"""Smallest extent of the scale, so that small differences do not look like large ones."""


@dataclass(frozen=True, slots=True)
class Shading:
    """Brightness of the cells on a logarithmic scale.

    Attributes:
        of: what it shows: the range of values of a layer (maximum - minimum), the change of its
            maps, or the change of its weights.
        lo: value of level 0, which smaller values have too; None if no value is known.
        hi: value of the highest level, which larger values have too; None if no value is known.
        levels: uint8 [steps, layers], 0 to `LEVELS` - 1, or `UNKNOWN_LEVEL`.
    """

    of: Literal["range", "maps", "weights"]
    lo: float | None
    hi: float | None
    levels: Codes


def shading_by_range(columns: Mapping[str, Floats], codes: Codes) -> Shading:
    """Brightness that shows the range of values of each layer at each step."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _shading("range", columns["maximum"] - columns["minimum"], codes)


def shading_by_change(columns: Mapping[str, Floats], codes: Codes) -> Shading:
    """Brightness that shows the change of the maps, or of the weights if that of no map is known.

    They have different units.
    """
    if np.isnan(columns["change"]).all():
        return _shading("weights", columns["weights_change"], codes)
    return _shading("maps", columns["change"], codes)


def _shading(of: Literal["range", "maps", "weights"], raw: Floats, codes: Codes) -> Shading:
    """The scale is that of cells without large values, which would leave the others no difference.

    A value of 0 or less has level 0.
    """
    every = max(1, raw.size // _SAMPLE)
    sample, states = raw.ravel()[::every], codes.ravel()[::every]
    known = sample[(states < IS_LARGE) & (sample > 0) & (sample < np.inf)]
    logs = np.sort(np.log10(known, dtype=np.float64))
    ends = [math.floor(share * (logs.size - 1) + 0.5) for share in (_TAIL, 1 - _TAIL)]
    low, high = logs[ends].tolist() if logs.size else (0.0, 0.0)
    missing = max(0.0, _DECADES - (high - low))
    low, high = low - missing / 2, high + missing / 2
    levels = np.full(raw.shape, UNKNOWN_LEVEL, np.uint8)
    with np.errstate(divide="ignore", invalid="ignore"):
        place = (np.log10(raw) - low) * ((LEVELS - 1) / (high - low)) + 0.5
        np.copyto(levels, np.clip(place, 0, LEVELS - 1).astype(np.uint8), where=raw > 0)
        levels[raw <= 0] = 0
    if not logs.size:
        return Shading(of, None, None, levels)
    return Shading(of, 10**low, 10**high, levels)
