"""Join the tensors of many measurements, so that a step is copied to the host in few pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.measure.reducer import PendingMeasurement
from fmapboard.measure.statistics import PendingStatistics, reduced_over_samples
from fmapboard.model.tensors import Packed, packed

LARGE = 2**17
"""Tensors of at least this many bytes are not joined, which would take their memory twice."""


def reduce_together(pending: list[PendingMeasurement], first: int = 0) -> None:
    """Reduce what was read of each plane to channels, for all measurements in few launches.

    Args:
        pending: Measurements on any devices; those that change are replaced.
        first: Position of the first one that may have to be reduced.
    """
    positions = list[int]()
    waiting = list[PendingStatistics]()
    for position in range(first, len(pending)):
        numbers = pending[position].statistics
        if isinstance(numbers, PendingStatistics) and numbers.has_planes():
            positions.append(position)
            waiting.append(numbers)
    for position, reduced in zip(positions, reduced_over_samples(waiting), strict=True):
        pending[position] = pending[position]._replace(statistics=reduced)


class Outlines:
    """Measurements without their tensors: a search for tensors does not look into this object.

    Attributes:
        measurements: The measurements.
        parts: Per measurement, the number of tensors of its statistics.
        shapes: The shapes of all tensors, in the order in which they were taken out.
        is_alone: Per tensor, True if it was not joined with others.
    """

    __slots__ = ("is_alone", "measurements", "parts", "shapes")

    def __init__(self) -> None:
        self.measurements = list[PendingMeasurement]()
        self.parts = list[int]()
        self.shapes = list[torch.Size]()
        self.is_alone = list[bool]()


class PackedMeasurements(NamedTuple):
    """Measurements whose tensors are joined: one piece per device and dtype, and large ones.

    Attributes:
        joined: The small tensors, flattened.
        alone: The others.
        outlines: What is left of the measurements.
    """

    joined: Packed
    alone: tuple[Tensor, ...]
    outlines: Outlines

    def unpack(self) -> tuple[PendingMeasurement, ...]:
        """The measurements; their tensors may be views of the pieces."""
        outlines = self.outlines
        joined = iter(self.joined.split())
        alone = iter(self.alone)
        tensors = [
            next(alone) if is_alone else next(joined).view(shape)
            for shape, is_alone in zip(outlines.shapes, outlines.is_alone, strict=True)
        ]
        left = iter(tensors)
        both = zip(outlines.measurements, outlines.parts, strict=True)
        return tuple([_filled(measurement, parts, left) for measurement, parts in both])


def pack(pending: Sequence[PendingMeasurement]) -> PackedMeasurements:
    """Join the tensors of measurements; their memory is freed once nothing else refers to them."""
    outlines = Outlines()
    tensors = list[Tensor]()
    for measurement in pending:
        before = len(tensors)
        numbers = measurement.statistics
        if isinstance(numbers, PendingStatistics):
            tensors += numbers.parts
            measurement = measurement._replace(statistics=numbers._replace(parts=()))
        outlines.parts.append(len(tensors) - before)
        sampled = measurement.sample
        if sampled is not None:
            tensors.append(sampled.values)
            measurement = measurement._replace(sample=sampled._replace(values=_TAKEN))
        drawn = measurement.drawn
        if drawn is not None:
            tensors.append(drawn.maps)
            drawn = drawn._replace(maps=_TAKEN)
            if drawn.extremes is not None:
                tensors += drawn.extremes
                drawn = drawn._replace(extremes=(_TAKEN, _TAKEN))
            measurement = measurement._replace(drawn=drawn)
        outlines.measurements.append(measurement)
    outlines.shapes = [tensor.shape for tensor in tensors]
    outlines.is_alone = [tensor.nbytes >= LARGE for tensor in tensors]
    both = list(zip(tensors, outlines.is_alone, strict=True))
    joined = packed([tensor.reshape(-1) for tensor, is_alone in both if not is_alone])
    alone = tuple([tensor for tensor, is_alone in both if is_alone])
    return PackedMeasurements(joined, alone, outlines)


_TAKEN = torch.empty(0, device="cpu")
"""Stands for a tensor that was taken out of a measurement."""


def _filled(
    measurement: PendingMeasurement, parts: int, tensors: Iterator[Tensor]
) -> PendingMeasurement:
    """A measurement with the next tensors in their places."""
    numbers = measurement.statistics
    if isinstance(numbers, PendingStatistics):
        own = tuple([next(tensors) for _ in range(parts)])
        measurement = measurement._replace(statistics=numbers._replace(parts=own))
    sampled = measurement.sample
    if sampled is not None:
        measurement = measurement._replace(sample=sampled._replace(values=next(tensors)))
    drawn = measurement.drawn
    if drawn is not None:
        drawn = drawn._replace(maps=next(tensors))
        if drawn.extremes is not None:
            drawn = drawn._replace(extremes=(next(tensors), next(tensors)))
        measurement = measurement._replace(drawn=drawn)
    return measurement
