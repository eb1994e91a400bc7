"""Per-channel statistics of maps, compared with NumPy's in float64."""

from __future__ import annotations

import numpy as np
import pytest
from torch import Tensor

from fmapboard.measure.statistics import statistics
from fmapboard.records import Statistics


def measure(maps: Tensor, floor: float | None = None) -> Statistics:
    return statistics(maps, floor).to_host()


def assert_right(maps: Tensor, *, relative: float = 2e-6) -> Statistics:
    """Compare with NumPy in float64: extremes and counts exactly, moments within a tolerance."""
    found = measure(maps)
    planes = maps.double().numpy().reshape(maps.shape[0], maps.shape[1], -1).swapaxes(0, 1)
    for channel, values in enumerate(planes.reshape(maps.shape[1], -1)):
        finite = values[np.isfinite(values)]
        assert found.nan[channel] == np.isnan(values).sum()
        assert found.positive_infinity[channel] == np.isposinf(values).sum()
        assert found.negative_infinity[channel] == np.isneginf(values).sum()
        if not finite.size:
            empty = (found.minimum, found.maximum, found.mean, found.std)
            assert all(np.isnan(row[channel]) for row in empty)
            continue
        assert found.minimum[channel] == finite.min()
        assert found.maximum[channel] == finite.max()
        size = np.abs(finite).max()
        assert abs(found.mean[channel] - finite.mean()) <= relative * size
        assert found.std[channel] == pytest.approx(finite.std(), rel=relative * 10, abs=0.0)
    return found
