"""Numbers of a whole layer from those of the drawn channels in a record."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from fmapboard.formats.tab_records import Floats


def layer_wide(arrays: Mapping[str, Floats]) -> dict[str, float]:
    """Minimum, maximum, mean and std over all channels, equally weighted; NaN if none is finite.

    Args:
        arrays: `stored_record.statistics` of at least one channel.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # if no channel is finite
        spread = np.nanmean(arrays["std"] ** 2) + np.nanvar(arrays["mean"])
        return {
            "minimum": float(np.nanmin(arrays["minimum"])),
            "maximum": float(np.nanmax(arrays["maximum"])),
            "mean": float(np.nanmean(arrays["mean"])),
            "std": float(np.sqrt(spread)),
        }


def mean_change(values: Floats) -> float:
    """The mean change of the channels with a finite one; NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")
