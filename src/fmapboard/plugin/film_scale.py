"""Which steps of a channel the locked scale of a film leaves out, so that the others differ."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fmapboard.formats.overview import Flags
from fmapboard.formats.tab_records import Floats
from fmapboard.health.states import DEAD, IS_LARGE, MOSTLY_DEAD, NONFINITE

LARGE = 1
FAULTY = 2
FAR = 3
"""Why a step is left out: its values are large; dead or not finite; or far beyond the others."""
_FACTOR = 10
"""Steps whose magnitude exceeds that of all others by this factor are far beyond them."""
_FEW = 0.25
"""Share of the steps that may be far beyond the others: more are not exceptions."""


def left_out(lo: Floats, hi: Floats, codes: Floats, *, is_of_layer: bool) -> Floats:
    """Why each step is left out of the scale, 0 if it is not.

    A channel that is large, or dead or not finite, at all of its steps keeps them.

    Args:
        lo: smallest drawn values, [steps, drawn], NaN where not known.
        hi: likewise, the largest.
        codes: of the channels' states, see `health.states`, likewise.
        is_of_layer: all channels have one scale.
    """
    is_known = lo <= hi
    is_large = codes == IS_LARGE
    if is_of_layer:
        is_large[:] = is_large.any(axis=1, keepdims=True)
    is_large &= (is_known & ~is_large).any(axis=0)
    is_faulty = np.isin(codes, (DEAD, MOSTLY_DEAD, NONFINITE)) & ~is_large
    is_faulty &= (is_known & ~is_large & ~is_faulty).any(axis=0)
    magnitudes = np.fmax(np.abs(lo), np.abs(hi))
    magnitudes[is_large | is_faulty | ~np.isfinite(magnitudes)] = 0
    if is_of_layer:
        magnitudes[:] = magnitudes.max(axis=1, initial=0, keepdims=True)
    reasons = np.zeros(lo.shape, np.float32)
    reasons[is_large] = LARGE
    reasons[is_faulty] = FAULTY
    reasons[are_far(magnitudes) & (reasons == 0)] = FAR
    return reasons


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
