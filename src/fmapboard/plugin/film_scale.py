"""Which steps of a channel the locked scale of a film leaves out, so that the others differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fmapboard.formats.overview import Flags
from fmapboard.formats.tab_records import Floats
from fmapboard.health.states import DEAD, IS_LARGE, LARGE_AND_DEAD, MOSTLY_DEAD, NONFINITE

LARGE_STEP = 1
NONFINITE_STEP = 2
DEAD_STEP = 3
FAR_STEP = 4
"""Why a step is left out: its values are large, not finite, dead, or far beyond the others."""
_REASONS = (
    ((IS_LARGE, LARGE_AND_DEAD), LARGE_STEP),
    ((NONFINITE,), NONFINITE_STEP),
    ((DEAD, MOSTLY_DEAD), DEAD_STEP),
)
"""States of a channel for which steps are left out."""
_FACTOR = 10
"""Steps whose magnitude exceeds that of all others by this factor are far beyond them."""
_FEW = 0.25
"""Share of the steps that may be far beyond the others: more are not exceptions."""


def left_out(lo: Floats, hi: Floats, codes: Floats, *, is_of_layer: bool) -> Floats:
    """Why each step is left out of the scale, 0 if it is not.

    Steps are left out only as long as most of a channel's steps remain.

    Args:
        lo: smallest drawn values, [steps, drawn], NaN where not known; 0, as ``hi``, of a map
            without a finite value.
        hi: likewise, the largest.
        codes: of the channels' states, see `health.states`, likewise.
        is_of_layer: all channels have one scale.
    """
    has_no_value = (codes == NONFINITE) & (lo == 0) & (hi == 0)
    is_known = (lo <= hi) & ~has_no_value
    reasons = np.zeros(lo.shape, np.float32)
    for states, reason in _REASONS:
        reasons[np.isin(codes, states)] = reason
    if is_of_layer:
        is_large = np.isin(codes, (IS_LARGE, LARGE_AND_DEAD))
        reasons[is_large.any(axis=1)] = LARGE_STEP
    reasons[is_known & ~_leaves_most(reasons > 0, is_known)] = 0
    reasons[:, ~is_known.any(axis=0)] = 0
    magnitudes = np.fmax(np.abs(lo), np.abs(hi))
    magnitudes[(reasons > 0) | ~np.isfinite(magnitudes)] = 0
    if is_of_layer:
        magnitudes[:] = magnitudes.max(axis=1, initial=0, keepdims=True)
    is_far = are_far(magnitudes) & (reasons == 0)
    reasons[is_far & _leaves_most(is_far | (reasons > 0), is_known)] = FAR_STEP
    return reasons


def _leaves_most(flags: Flags, is_known: Flags) -> Flags:
    """For each channel, whether most of its known steps are not flagged."""
    is_kept = is_known & ~flags
    found: Flags = 2 * is_kept.sum(axis=0) > is_known.sum(axis=0)
    return found


def are_far(magnitudes: Floats) -> Flags:
    """True where a magnitude is far beyond the others of its column; 0 is not known.

    Values that grow steadily, without a gap, are so from `_FACTOR` times the median on, if they
    reach its square.

    Args:
        magnitudes: [steps, columns].
    """
    steps = len(magnitudes)
    falling = -np.sort(-magnitudes, axis=0)
    known = np.count_nonzero(magnitudes, axis=0)
    columns = np.arange(magnitudes.shape[1])
    median = falling[np.maximum(known - 1, 0) // 2, columns]
    least = np.full(magnitudes.shape[1], np.inf)
    for few in range(1, max(1, int(steps * _FEW)) + 1):
        if few >= steps:
            break
        is_few = few <= np.maximum(1, (known * _FEW).astype(int))
        has_gap = falling[few - 1] >= _FACTOR * falling[few]
        least = np.where(is_few & has_gap, falling[few - 1], least)
    is_steady = falling[0] >= _FACTOR**2 * median
    least = np.where(is_steady, _FACTOR * median, least)
    flags: npt.NDArray[np.bool_] = (known > 2) & (magnitudes >= least)
    return flags
