"""Join the tensors of many measurements, so that a step is copied to the host in few pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from fmapboard.measure.reducer import PendingMeasurement
from fmapboard.measure.sample import PendingSample
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


_NOTHING = Packed((), (), ())


class Outlines:
    """Measurements without their tensors: a search for tensors does not look into this object.

    Attributes:
        joined: How the small tensors were joined, without the pieces.
        measurements: The measurements.
        parts: Per measurement, the number of tensors of its statistics.
        shapes: The shapes of all tensors, in the order in which they were taken out.
        is_alone: Per tensor, True if it was not joined with others.
    """

    __slots__ = ("is_alone", "joined", "measurements", "parts", "shapes")

    def __init__(self) -> None:
        self.joined = _NOTHING
        self.measurements = list[PendingMeasurement]()
        self.parts = list[int]()
        self.shapes = list[torch.Size]()
        self.is_alone = list[bool]()


class PackedMeasurements(NamedTuple):
    """Measurements whose tensors are joined: one piece per device and dtype, and large ones.

    Attributes:
        pieces: The small tensors, flattened and joined.
        alone: The others.
        outlines: What is left of the measurements.
    """

    pieces: tuple[Tensor, ...]
    alone: tuple[Tensor, ...]
    outlines: Outlines

    def unpack(self) -> tuple[PendingMeasurement, ...]:
        """The measurements; their tensors may be views of the pieces."""
        outlines = self.outlines
        packed_tensors = outlines.joined._replace(pieces=self.pieces)
        joined = iter(packed_tensors.split())
        alone = iter(self.alone)
        tensors = list[Tensor]()
        for shape, is_alone in zip(outlines.shapes, outlines.is_alone, strict=True):
            tensor = next(alone) if is_alone else next(joined).view(shape)
            tensors.append(tensor)
        left = iter(tensors)
        filled = list[PendingMeasurement]()
        for measurement, parts in zip(outlines.measurements, outlines.parts, strict=True):
            filled.append(_filled(measurement, parts, left))
        return tuple(filled)


def pack(pending: Sequence[PendingMeasurement]) -> PackedMeasurements:
    """Join the tensors of measurements; their memory is freed once nothing else refers to them."""
    outlines = Outlines()
    tensors = list[Tensor]()
    for measurement in pending:
        numbers = measurement.statistics
        parts = numbers.parts if isinstance(numbers, PendingStatistics) else ()
        outlines.parts.append(len(parts))
        outlines.measurements.append(_emptied(measurement, tensors))
    small = list[Tensor]()
    alone = list[Tensor]()
    for tensor in tensors:
        is_alone = tensor.nbytes >= LARGE
        if is_alone:
            alone.append(tensor)
        else:
            small.append(tensor.reshape(-1))
        outlines.shapes.append(tensor.shape)
        outlines.is_alone.append(is_alone)
    joined = packed(small)
    outlines.joined = joined._replace(pieces=())
    return PackedMeasurements(joined.pieces, tuple(alone), outlines)


_TAKEN = torch.empty(0, device="cpu")
"""Stands for a tensor that was taken out of a measurement."""


def _emptied(measurement: PendingMeasurement, tensors: list[Tensor]) -> PendingMeasurement:
    """A measurement without its tensors, which are appended to ``tensors`` in their order."""
    numbers = measurement.statistics
    if isinstance(numbers, PendingStatistics):
        tensors += numbers.parts
        measurement = measurement._replace(statistics=numbers._replace(parts=()))
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
    if measurement.heads is not None:
        tensors.append(measurement.heads)
        measurement = measurement._replace(heads=_TAKEN)
    if measurement.tokens is not None:
        tensors.append(measurement.tokens)
        measurement = measurement._replace(tokens=_TAKEN)
    if measurement.token_norms is not None:
        tensors.append(measurement.token_norms)
        measurement = measurement._replace(token_norms=_TAKEN)
    return measurement


def _filled(
    measurement: PendingMeasurement, parts: int, tensors: Iterator[Tensor]
) -> PendingMeasurement:
    """A measurement with the next tensors in their places."""
    numbers = measurement.statistics
    if isinstance(numbers, PendingStatistics):
        own = tuple(islice(tensors, parts))
        numbers = numbers._replace(parts=own)
        measurement = measurement._replace(statistics=numbers)
    sampled = measurement.sample
    if sampled is not None:
        sampled = sampled._replace(values=next(tensors))
        measurement = measurement._replace(sample=sampled)
    drawn = measurement.drawn
    if drawn is not None:
        drawn = drawn._replace(maps=next(tensors))
        if drawn.extremes is not None:
            lo = next(tensors)
            hi = next(tensors)
            drawn = drawn._replace(extremes=(lo, hi))
        measurement = measurement._replace(drawn=drawn)
    if measurement.heads is not None:
        measurement = measurement._replace(heads=next(tensors))
    if measurement.tokens is not None:
        measurement = measurement._replace(tokens=next(tensors))
    if measurement.token_norms is not None:
        measurement = measurement._replace(token_norms=next(tensors))
    return measurement


_Samples = tuple[PendingSample, PendingSample | None]
SamplesByName = Mapping[str, _Samples]
"""By parameter name: the samples of the weight and of its gradient, None if it has none."""


class SampleOutlines:
    """Samples without their values: a search for tensors does not look into this object.

    Attributes:
        joined: How the values were joined, without the pieces.
        samples: The samples.
    """

    __slots__ = ("joined", "samples")

    def __init__(self, joined: Packed, samples: SamplesByName) -> None:
        self.joined = joined
        self.samples = samples


class PackedSamples(NamedTuple):
    """Samples of parameters and gradients whose values are joined.

    Attributes:
        pieces: The values.
        outlines: What is left of the samples.
    """

    pieces: tuple[Tensor, ...]
    outlines: SampleOutlines

    def unpack(self) -> SamplesByName:
        """The samples, whose values are views of the pieces."""
        packed_values = self.outlines.joined._replace(pieces=self.pieces)
        values = iter(packed_values.split())
        found = dict[str, _Samples]()
        for name, (weight, gradient) in self.outlines.samples.items():
            own = weight._replace(values=next(values))
            if gradient is not None:
                gradient = gradient._replace(values=next(values))
            found[name] = (own, gradient)
        return found


def pack_samples(samples: SamplesByName) -> PackedSamples:
    """Join the values of the samples of parameters and gradients."""
    values = list[Tensor]()
    emptied = dict[str, _Samples]()
    for name, (weight, gradient) in samples.items():
        values.append(weight.values)
        weight = weight._replace(values=_TAKEN)
        if gradient is not None:
            values.append(gradient.values)
            gradient = gradient._replace(values=_TAKEN)
        emptied[name] = (weight, gradient)
    joined = packed(values)
    outlines = SampleOutlines(joined._replace(pieces=()), emptied)
    return PackedSamples(joined.pieces, outlines)
