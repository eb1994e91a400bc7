"""Read stored records, and validate the types and shapes that the routes rely on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fmapboard.formats.tab_records import Floats, FormatError, read_json, reading, typed, unpack
from fmapboard.health.states import worst_states
from fmapboard.plugin.layer_series import Series
from fmapboard.runs.provider import Point, Provider

T = TypeVar("T")
MAPS_ROLES = ("feature_maps", "gradients_of_maps", "inputs")
ROLES = ("feature_maps", "inputs", "gradients_of_maps", "kernels")
FLOORED = {
    "ReLU", "ReLU6", "Hardtanh", "Threshold", "Hardsigmoid", "Hardswish", "ELU", "CELU", "SELU",
}  # fmt: skip
"""Types of activation modules whose channels can be dead (see `activations.floor_of`)."""
NONFINITE = ("nan", "positive_infinity", "negative_infinity")
WEIGHTS = "weights"
_STATISTICS = ("minimum", "maximum", "mean", "std", "constant", *NONFINITE)
_PLANES = ("lo", "hi", "flat")
_PICTURE_OF = {"activation": ROLES[0], WEIGHTS: ROLES[0]}
"""Role of the picture with the channels of further arrays."""


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """An entry of a header's list of pictures.

    Attributes:
        role: one of `ROLES`.
        tag: tag of the picture's Images series.
        samples: number of samples, each drawn as a grid of its own.
        channels: number of the layer's channels; None for kernels.
        drawn: number of channels that were drawn; None for kernels.
        counted: False if the counts of non-finite values are lower bounds.
        step: at which it was drawn; None for the step of the record.
        peak_now: largest magnitude of the kernels at the step of the record, if ``step`` is not.
        slices: further depth slices, which are in the record itself.
    """

    role: str
    tag: str
    samples: int = 1
    channels: int | None = None
    drawn: int | None = None
    counted: bool = True
    step: int | None = None
    peak_now: float | None = None
    slices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Activation:
    """The activation that directly follows a layer."""

    label: str


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a record; `formats.tab_records` describes its fields.

    Attributes:
        change_since: name of each array of changes, without ".change" -> the step compared with.
        estimated_updates: own parameters of the layer whose update ratio is an estimate.
        kernels: an earlier picture of the layer's kernels, which still shows them.
        shape: of a part of a block; empty for others.
        unit: what its channels are.
        tokens: per sample, the names of the tokens that rows of attention are over.
        tokens_of: label of the layer whose record of the same step has them.
    """

    layer: str
    type: str
    kernel_shape: tuple[int, ...] | None
    call: int
    position: int
    steps_written: int
    pictures: tuple[PictureFacts, ...]
    activation: Activation | None = None
    change_since: Mapping[str, int] = field(default_factory=dict)
    estimated_updates: tuple[str, ...] = ()
    kernels: PictureFacts | None = None
    shape: str = ""
    unit: str = "channel"
    tokens: tuple[tuple[str, ...], ...] = ()
    tokens_of: str = ""

    @property
    def maps(self) -> PictureFacts | None:
        """The picture of the feature maps, else the first picture that has channels, else None."""
        with_channels = [picture for picture in self.pictures if picture.drawn is not None]
        for picture in with_channels:
            if picture.role == ROLES[0]:
                return picture
        return with_channels[0] if with_channels else None

    @property
    def knows_dead(self) -> bool:
        """True if the record can tell whether a channel is dead."""
        return self.activation is not None or self.type in FLOORED or self.unit == "expert"


class Record(NamedTuple):
    """A header, also as it is stored, and its arrays, which are read-only."""

    header: Header
    raw: dict[str, Any]
    arrays: Mapping[str, Floats]

    def with_kernels(self, *, are_drawn: bool) -> Record:
        """The record with a picture of the layer's kernels, if it has none of its own.

        Args:
            are_drawn: True for the picture of this step, which was drawn when the run ended; False
                for the earlier one.
        """
        facts = self.header
        if facts.kernels is None:
            return self
        kernels = facts.kernels
        entry = self.raw["kernels"]
        if are_drawn:
            kernels = replace(kernels, step=None)
            entry = {**entry, "peak": kernels.peak_now}
            del entry["step"], entry["peak_now"]
        header = replace(facts, pictures=(*facts.pictures, kernels))
        raw = {**self.raw, "pictures": [*self.raw["pictures"], entry]}
        return self._replace(header=header, raw=raw)


@dataclass(frozen=True, slots=True)
class LayerAt:
    """A layer, and its record at one step."""

    series: Series
    point: Point
    record: Record


def read_header(blob: bytes | None) -> Header:
    """Parse blob 0 of a record.

    Raises:
        FormatError: the blob is None, damaged, or of a newer format; the tab shows the message.
    """
    with reading("the record is"):
        return _typed(read_json(blob))


def read_record(header: bytes | None, arrays: bytes | None) -> Record:
    """Parse blobs 0 and 1 of a record.

    Raises:
        FormatError: as for `read_header`, or the arrays are missing or do not match the header.
    """
    if header is None:
        raise FormatError("the record can no longer be read")
    if arrays is None:
        raise FormatError("the record has no arrays, only a header")
    with reading("the record is"):
        raw, numbers = unpack((header, arrays))
        facts = _typed(raw)
        _check_shapes(facts, numbers)
    return Record(facts, raw, numbers)


def _typed(raw: dict[str, Any]) -> Header:
    json.dumps(raw, allow_nan=False)  # refuses what cannot be sent
    header: Header = typed(Header, raw)
    for picture in header.pictures:
        if picture.drawn is None and picture.role != "kernels":
            raise TypeError("a picture of channels does not tell how many are drawn")
    return header


def records_at(provider: Provider, points: Sequence[Point]) -> list[Record | FormatError]:
    """The record of each point, or why it cannot be read."""
    blobs = iter(provider.blobs([(point, i) for point in points for i in (0, 1)]))
    found = []
    for _ in points:
        header = next(blobs)
        arrays = next(blobs)
        found.append(attempted(read_record, header, arrays))
    return found


def headers_at(provider: Provider, points: Sequence[Point]) -> list[Header | FormatError]:
    """The header of the record of each point, or why it cannot be read."""
    blobs = provider.blobs([(point, 0) for point in points])
    return [attempted(read_header, blob) for blob in blobs]


def attempted(parse: Callable[..., T], *arguments: Any) -> T | FormatError:
    """What a function returns, or the error that it raises."""
    try:
        return parse(*arguments)
    except FormatError as error:
        return error


def statistics(record: Record, role: str) -> dict[str, Floats]:
    """The statistics of a role, each float64 [drawn]; empty if the record has none.

    Flags and counts that are not stored are 0. ``nonfinite`` is the number of NaN and infinite
    values. ``dead`` describes the activation that follows the layer if its flags are stored,
    otherwise the layer itself; the key is missing if the record cannot tell.
    """
    stored = record.arrays
    mean = stored.get(f"{role}.mean")
    if mean is None:
        return {}
    nothing = np.zeros(len(mean))

    def array(name: str) -> Floats:
        return np.asarray(stored.get(name, nothing), np.float64)

    found = {name: array(f"{role}.{name}") for name in _STATISTICS}
    found["nonfinite"] = found["nan"] + found["positive_infinity"] + found["negative_infinity"]
    if role != "feature_maps":
        return found
    if "activation.dead" in stored:
        found["dead"] = array("activation.dead")
    elif record.header.knows_dead or "feature_maps.dead" in stored:
        found["dead"] = array("feature_maps.dead")
    return found


def channel_codes(numbers: Mapping[str, Floats], *, is_of_images: bool) -> Floats:
    """The code of each channel's state, of `health.states`, from its `statistics`; [drawn].

    Args:
        numbers: the statistics.
        is_of_images: each step is another image: what is 0 for one is off, and not constant.
    """
    shape = numbers["minimum"].shape
    is_dead = numbers.get("dead", np.zeros(shape)) > 0
    is_activation = is_dead & is_of_images
    codes = worst_states(numbers, is_activation, shape, is_of_images=is_of_images)
    return codes.astype(np.float64)


def change(record: Record, name: str) -> Floats | None:
    """How much each channel changed since ``record.header.change_since[name]``, float64.

    Args:
        record: the record.
        name: a role, for the change of its maps [drawn], or ``WEIGHTS``, for that of the layer's
            weight, [drawn] or, for the whole layer, [1].

    Returns:
        None if the change was not recorded.
    """
    stored = record.arrays.get(f"{name}.change")
    if stored is None or name not in record.header.change_since:
        return None
    if stored.ndim != 1 or not stored.size:
        return None
    return np.asarray(stored, np.float64)


def _check_shapes(header: Header, arrays: Mapping[str, Floats]) -> None:
    """Check that per-sample arrays are [samples, drawn] and all others [drawn].

    The change of weights may also be [1]. Statistics of a tensor without a picture, whose shapes
    nothing tells, are refused.
    """
    pictures = {picture.role: picture for picture in header.pictures}
    for name, array in arrays.items():
        role, _, what = name.partition(".")
        picture = pictures.get(_PICTURE_OF.get(role, role))
        if role == "slices":
            maps = pictures.get(ROLES[0])
            count = 0 if maps is None else len(maps.slices) * maps.samples
            if maps is None or array.shape != (count, maps.drawn):
                raise FormatError(f"the record's {name} has shape {array.shape}")
            continue
        if picture is None:
            if role in ROLES and what != "change":  # `change` checks its own
                raise FormatError(f"the record has {name} without a picture of it")
            continue
        expected: tuple[int | None, ...] = (picture.drawn,)
        if what in _PLANES:
            expected = (picture.samples, picture.drawn)
        is_of_layer = role == WEIGHTS and array.shape == (1,)
        if array.shape != expected and not is_of_layer:
            raise FormatError(f"the record's {name} has shape {array.shape}, not {expected}")
