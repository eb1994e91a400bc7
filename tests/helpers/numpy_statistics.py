"""Per-channel statistics of maps, compared with numpy's in float64."""

from __future__ import annotations

import numpy as np
import pytest
from torch import Tensor

from fmapboard.measure.channel_stats import statistics
from fmapboard.records import Statistics


def measure(maps: Tensor, floor: float | None = None) -> Statistics:
    return statistics(maps, floor).to_host()


def assert_right(maps: Tensor, *, relative: float = 2e-6) -> Statistics:
    """Extremes and counts exact; mean and spread near numpy's in float64, on the spread's scale."""
    found = measure(maps)
    planes = maps.double().numpy().reshape(maps.shape[0], maps.shape[1], -1).swapaxes(0, 1)
    for channel, values in enumerate(planes.reshape(maps.shape[1], -1)):
        known = values[np.isfinite(values)]
        assert found.nan[channel] == np.isnan(values).sum()
        assert found.positive_infinity[channel] == np.isposinf(values).sum()
        assert found.negative_infinity[channel] == np.isneginf(values).sum()
        if not known.size:
            lone = (found.minimum, found.maximum, found.mean, found.std)
            assert all(np.isnan(row[channel]) for row in lone)
            continue
        assert found.minimum[channel] == known.min()
        assert found.maximum[channel] == known.max()
        size = np.abs(known).max()
        assert abs(found.mean[channel] - known.mean()) <= relative * size
        assert found.std[channel] == pytest.approx(known.std(), rel=relative * 10, abs=0.0)
    return found
