"""Numbers of all layers of a step at once, for the run's overview.

The channels of all layers are concatenated and reduced together: a call of NumPy per layer and
number would take several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fmapboard.overview_format import Flags
from fmapboard.records import Floats, Statistics
from fmapboard.summary.channel_change import WEIGHTS, Changes

Counts = npt.NDArray[np.intp]
_NONFINITE = ("nan", "positive_infinity", "negative_infinity")
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive parts of a concatenated array.

    Attributes:
        sizes: length of each part, at least 1.
        starts: index of the first element of each part.
    """

    sizes: Counts
    starts: Counts

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Segments:
        """The parts of an array that is concatenated from arrays of these sizes."""
        lengths = np.array(sizes, np.intp)
        return cls(lengths, np.cumsum(lengths) - lengths)

    def shares(self, flags: Flags) -> Floats:
        """The share of flags in each part that are set."""
        if not self.sizes.size or not flags.any():
            return np.zeros(self.sizes.size)
        shares: Floats = np.add.reduceat(flags, self.starts, dtype=np.intp) / self.sizes
        return shares

    def sums(self, values: Floats) -> Floats:
        """The sum of each part."""
        sums: Floats = np.add.reduceat(values, self.starts)
        return sums

    def means(self, values: Floats) -> Floats:
        """The mean of the values of each part that are not NaN; NaN if all are."""
        sums = self.sums(values)
        if not np.isnan(sums).any():
            return sums / self.sizes
        known = ~np.isnan(values)
        count = np.add.reduceat(known, self.starts, dtype=np.intp)
        return self.sums(np.where(known, values, 0.0)) / count


def statistics_of_layers(
    every: Sequence[Statistics], channels: Segments, has_moments: Flags
) -> dict[str, Floats]:
    """Columns that follow from the statistics alone, each [layers].

    Args:
        every: the statistics of each layer; at least one layer, each of at least one channel.
        channels: the channels of each layer.
        has_moments: bool [layers], False where the mean and std of the channels are not known.
    """
    counts = [np.concatenate([getattr(each, name) for each in every]) for name in _NONFINITE]
    with np.errstate(all="ignore"):
        minimum = np.concatenate([each.minimum for each in every])
        maximum = np.concatenate([each.maximum for each in every])
        columns: dict[str, Floats] = {
            "minimum": np.fmin.reduceat(minimum, channels.starts),
            "maximum": np.fmax.reduceat(maximum, channels.starts),
            **_moments(every, has_moments),
        }
    is_finite = not any(values.any() for values in counts)
    none = np.zeros(len(every))
    for name, values in zip(_NONFINITE, counts, strict=True):
        columns[name] = none if is_finite else np.add.reduceat(values, channels.starts) * 1.0
    bad = counts[0] + counts[1] + counts[2] > 0 if not is_finite else None
    return {
        **columns,
        "nonfinite": none if bad is None else channels.shares(bad),
        "constant": channels.shares(np.concatenate([each.constant for each in every])),
        "counted": np.array([each.counted for each in every], np.float64),
    }


def _moments(every: Sequence[Statistics], is_known: Flags) -> dict[str, Floats]:
    """Mean and std over the channels of each layer, with equal weight, where they are known."""
    columns: dict[str, Floats] = {name: np.full(len(every), np.nan) for name in ("mean", "std")}
    known = [every[index] for index in np.flatnonzero(is_known).tolist()]
    if known:
        channels = Segments.of([each.mean.size for each in known])
        mean = np.concatenate([each.mean for each in known])
        std = np.concatenate([each.std for each in known])
        centre = channels.means(mean)
        second = channels.means(mean * mean + std * std)
        columns["mean"][is_known] = centre
        columns["std"][is_known] = np.sqrt(np.maximum(second - centre * centre, 0.0))
    return columns


def changes_of_layers(
    labels: Sequence[str], changes: Mapping[str, Changes], step: int
) -> dict[str, Floats]:
    """Columns with the mean change of each layer's maps and weights, and since how many steps.

    The mean is over the channels with a finite change, and NaN if there are none. That of weights
    is 0 only if the change of each channel is 0.
    """
    columns: dict[str, Floats] = {}
    for column, age, name in (
        ("change", "change_steps", "feature_maps"),
        ("weights_change", "weights_steps", WEIGHTS),
    ):
        known = [
            (index, changed.arrays[name], step - changed.since[name])
            for index, label in enumerate(labels)
            if (changed := changes.get(label)) is not None and name in changed.arrays
        ]
        if not known:
            continue
        columns[column], columns[age] = np.full((2, len(labels)), np.nan)
        where = [index for index, _, _ in known]
        columns[column][where] = _mean_changes(
            [array for _, array, _ in known], is_exact=name == WEIGHTS
        )
        columns[age][where] = [steps for _, _, steps in known]
    return columns


def _mean_changes(arrays: Sequence[Floats], *, is_exact: bool) -> Floats:
    """The mean of each array's finite values; if ``is_exact``, 0 only for an array of zeros."""
    parts = Segments.of([array.size for array in arrays])
    values = np.concatenate(arrays).astype(np.float64)
    finite = np.isfinite(values)
    with np.errstate(all="ignore"):
        if finite.all():
            means = parts.sums(values) / parts.sizes
        else:
            count = np.add.reduceat(finite, parts.starts, dtype=np.intp)
            means = parts.sums(np.where(finite, values, 0.0)) / count
            if is_exact:
                means[(means == 0) & (count < parts.sizes)] = np.nan
    means[(means > 0) & (means < _TINY)] = _TINY  # not stored as 0
    return means
