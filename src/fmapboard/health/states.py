"""The states of layers: their codes and words, and how they follow from the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from fmapboard.formats.overview import Flags, LayerFacts
from fmapboard.formats.tab_records import Floats
from fmapboard.health import thresholds

Codes = npt.NDArray[np.uint8]
CODES = (
    "unknown", "fine", "off", "unchanged", "constant", "dead", "mostly constant", "mostly dead",
    "large", "large and dead", "nonfinite",
)  # fmt: skip
"""States by code, ascending in severity: the worst of several is the largest.

A layer that is large and mostly dead has a state of its own, so that both are said of it. A channel
that is 0 for one image is off, which is no fault.
"""
UNKNOWN = CODES.index("unknown")
FINE = CODES.index("fine")
OFF = CODES.index("off")
UNCHANGED = CODES.index("unchanged")
CONSTANT = CODES.index("constant")
DEAD = CODES.index("dead")
MOSTLY_CONSTANT = CODES.index("mostly constant")
MOSTLY_DEAD = CODES.index("mostly dead")
IS_LARGE = CODES.index("large")
LARGE_AND_DEAD = CODES.index("large and dead")
NONFINITE = CODES.index("nonfinite")


def states(
    numbers: Mapping[str, Floats], is_activation: Flags, *, is_of_images: bool = False
) -> dict[str, Codes]:
    """Which layers are in which of the `formats.overview.KINDS`; a layer may be in several.

    Args:
        numbers: name of one of `formats.overview.COLUMNS` -> [..., layers], NaN where not known; a
            missing column is not known.
        is_activation: bool [layers], True for activations, see `is_activation`.
        is_of_images: each step is another image, so that dead channels are only off.

    Returns:
        Kind -> uint8 [..., layers], the code of its state, 0 where the layer is not in it; a kind
        whose columns are missing is missing.
    """
    found: dict[str, Codes] = {}
    with np.errstate(invalid="ignore"):
        if "nonfinite" in numbers:
            found["nonfinite"] = _coded(numbers["nonfinite"] > 0, NONFINITE)
        if "minimum" in numbers and "maximum" in numbers:
            large = thresholds.LARGE.value
            is_large = (numbers["minimum"] <= -large) | (numbers["maximum"] >= large)
            found["large"] = _coded(is_large, IS_LARGE)
        if "dead" in numbers:
            minor, major = (OFF, OFF) if is_of_images else (DEAD, MOSTLY_DEAD)
            found["dead"] = _of_share(numbers["dead"], minor, major)
        if "constant" in numbers:
            dead = numbers.get("dead", np.full((), np.nan))
            # A dead channel of an activation is constant too, which is no state of its own.
            alone = numbers["constant"] - np.where(is_activation, dead, 0.0)
            found["constant"] = _of_share(alone, CONSTANT, MOSTLY_CONSTANT)
        if "weights_change" in numbers:
            found["unchanged"] = _coded(numbers["weights_change"] == 0, UNCHANGED)
    return found


def worst_states(
    numbers: Mapping[str, Floats],
    is_activation: Flags,
    shape: tuple[int, ...],
    *,
    is_of_images: bool = False,
) -> Codes:
    """The code of the most severe state of each layer, [..., layers].

    Args:
        numbers: as for `states`.
        is_activation: as for `states`.
        shape: that of each column.
        is_of_images: as for `states`.
    """
    codes = np.full(shape, UNKNOWN, np.uint8)
    with np.errstate(invalid="ignore"):
        for is_known in ("nonfinite", "minimum"):
            if is_known in numbers:
                codes[~np.isnan(numbers[is_known])] = FINE
    every = states(numbers, is_activation, is_of_images=is_of_images)
    for found in every.values():
        np.maximum(codes, found, out=codes)
    if "dead" in every:
        codes[(codes == IS_LARGE) & (every["dead"] == MOSTLY_DEAD)] = LARGE_AND_DEAD
    return codes


def is_activation(layers: Sequence[LayerFacts], dead: Floats) -> Flags:
    """bool [layers]: the layer's ``dead`` channels are its own, not those of the next layer.

    Args:
        layers: the layers.
        dead: the column ``dead``, [..., layers].
    """
    steps = tuple(range(dead.ndim - 1))
    is_known = ~np.isnan(dead).any(axis=steps)  # [layers]
    is_last = np.array([layer.activation is None for layer in layers], bool)
    return is_known & is_last


def dead_heads(entropy: Floats, logit: Floats, row_minimum: Floats, row_maximum: Floats) -> Flags:
    """bool [heads]: attention is the same for all keys, or of one key only.

    A head of one key is merely sharp unless its logits are beyond the range of softmax. One that
    hides keys from a row that is drawn does not count as uniform.

    Args:
        entropy: see `records.HeadNumbers`, [heads].
        logit: likewise.
        row_minimum: the smallest weight in the rows that are drawn, [heads].
        row_maximum: likewise, the largest.
    """
    is_even = row_maximum - row_minimum <= thresholds.UNIFORM_ROW.value * row_maximum
    is_uniform = is_even & (entropy >= thresholds.UNIFORM_HEAD.value)
    is_one_hot = entropy <= thresholds.ONE_HOT_HEAD.value
    is_out_of_range = logit >= thresholds.SOFTMAX_RANGE.value
    flags: Flags = is_uniform | (is_one_hot & is_out_of_range)
    return flags


def _coded(flags: npt.NDArray[np.bool_], code: int) -> Codes:
    codes: Codes = flags * np.uint8(code)
    return codes


def _of_share(share: Floats, minor: int, major: int) -> Codes:
    rounding = thresholds.SHARE_ROUNDING.value
    is_minor = share >= thresholds.MINOR_SHARE.value - rounding
    is_major = share >= thresholds.MAJOR_SHARE.value - rounding
    return np.where(is_major, np.uint8(major), _coded(is_minor, minor))
