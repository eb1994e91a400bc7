"""Parse events: which values they hold, and where in an event each of these is stored.

Of TensorFlow's ``event.proto``, ``summary.proto`` and ``tensor.proto``, only the fields that the
readers need. (Protobuf's own parser copies every picture, and does not tell where it is stored.)
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

SCALARS = "scalars"
"""The plugin of a number that is stored without a tensor."""

Span = tuple[int, int]
"""Where something begins and ends in some bytes."""

_VARINT = 0
_DELIMITED = 2
_FIXED = {1: 8, 5: 4}
"""Wire type -> bytes."""

# Event
_WALL_TIME = 1
_STEP = 2
_SUMMARY = 5
_SESSION_LOG = 7
# SessionLog
_STATUS = 1
_START = 1
# Summary, Summary.Value
_VALUE = 1
_TAG = 1
_SIMPLE_VALUE = 2
_TENSOR = 8
_METADATA = 9
_TAG_KEY = _TAG << 3 | _DELIMITED
_SIMPLE_VALUE_KEY = _SIMPLE_VALUE << 3 | 5
_ONE_BYTE = 128
"""A larger size takes several bytes."""
_FLOAT = struct.Struct("<f")
# SummaryMetadata, PluginData
_PLUGIN_DATA = 1
_PLUGIN_NAME = 1
# TensorProto
_DTYPE = 1
_SHAPE = 2
_CONTENT = 4
_STRING = 8
# TensorShapeProto, TensorShapeProto.Dim
_DIM = 2
_SIZE = 1

_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 9: "<i8"}
"""TensorFlow's number of a type -> NumPy's name."""
_MOST_DIMENSIONS = 32
"""As many as an array may have."""


@dataclass(slots=True)
class Event:
    """An event.

    Attributes:
        wall_time: s.
        step: number of the step.
        is_start: True if a run begins or is resumed: it replaces the steps from this one on.
        values: where its values are.
    """

    wall_time: float = 0.0
    step: int = 0
    is_start: bool = False
    values: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class Value:
    """A value of an event.

    Attributes:
        plugin: name of the plugin that it belongs to; "" if that is not stored with this value.
        number: the value of a scalar; None for all others.
        tensor: where its tensor is; empty if it has none.
    """

    plugin: str = ""
    number: float | None = None
    tensor: Span = (0, 0)


def parse(data: bytes, event: Event | None = None) -> Event:
    """The event that some bytes are.

    Args:
        data: the bytes.
        event: is filled as far as they can be parsed; None for a new one.

    Raises:
        ValueError: they are none.
    """
    event = event or Event()
    for number, start, end in _fields(data, 0, len(data)):
        if number == _WALL_TIME:
            event.wall_time = _double(data, start, end)
        elif number == _STEP:
            event.step = _whole(data, start)
        elif number == _SUMMARY:
            event.values += _inside(data, (start, end), _VALUE)
        elif number == _SESSION_LOG:
            states = [_whole(data, at) for at, _ in _inside(data, (start, end), _STATUS)]
            event.is_start = states[-1:] == [_START]
    return event


STAMP = 20
"""Bytes at the beginning of an event that have its time and step."""


def stamp(beginning: bytes) -> tuple[float, int]:
    """Wall time, s, and step of an event, of which the first `STAMP` bytes or more are given."""
    event = Event()
    with contextlib.suppress(ValueError):  # what follows them is cut off
        parse(beginning, event)
    return event.wall_time, event.step


def tag_of(data: bytes, value: Span) -> bytes:
    """The tag of a value, in UTF-8."""
    start, end = value
    first = start + 2
    # Nearly always: the first field, whose key and size are one byte each.
    if first < end and data[start] == _TAG_KEY and data[start + 1] < _ONE_BYTE:
        after = first + data[start + 1]
        if after <= end:
            return data[first:after]
    for number, start, end in _fields(data, *value):
        if number == _TAG:
            return data[start:end]
    return b""


def scalar_of(data: bytes, value: Span, tag: bytes) -> float | None:
    """The number of a value that is its tag and a number; None for all others.

    Most values are such, and `read_value` takes several times as long.
    """
    start, end = value
    place = start + 2 + len(tag)
    if place + 5 != end or data[place] != _SIMPLE_VALUE_KEY or data[start] != _TAG_KEY:
        return None
    (number,) = _FLOAT.unpack_from(data, place + 1)
    return float(number)


def read_value(data: bytes, value: Span) -> Value:
    """Everything else of a value.

    Raises:
        ValueError: the value is damaged.
    """
    found = Value()
    for number, start, end in _fields(data, *value):
        if number == _SIMPLE_VALUE and end - start == 4:
            (found.number,) = struct.unpack_from("<f", data, start)
            found.plugin = SCALARS
        elif number == _TENSOR:
            found.tensor = start, end
        elif number == _METADATA:
            for plugin in _inside(data, (start, end), _PLUGIN_DATA):
                for at, to in _inside(data, plugin, _PLUGIN_NAME):
                    found.plugin = data[at:to].decode()
    return found


def strings(data: bytes, tensor: Span) -> list[Span]:
    """Where the strings of a tensor are.

    Raises:
        ValueError: the tensor is damaged.
    """
    return _inside(data, tensor, _STRING)


def array(tensor: bytes) -> npt.NDArray[Any] | None:
    """A serialized tensor whose numbers are stored as bytes; None if they are not.

    Raises:
        ValueError: it is damaged, or has fewer or more numbers than its shape.
    """
    dtype = ""
    shape: list[int] = []
    content: Span | None = None
    for number, start, end in _fields(tensor, 0, len(tensor)):
        if number == _DTYPE:
            dtype = _DTYPES.get(_whole(tensor, start), "")
        elif number == _SHAPE:
            shape += _sides(tensor, (start, end))
        elif number == _CONTENT:
            content = start, end
    if not dtype or content is None or content[0] == content[1]:
        return None
    start, end = content
    numbers = np.frombuffer(tensor[start:end], dtype)
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0:
        raise ValueError(f"no array: its shape is {shape}")
    return numbers.reshape(shape)


def _sides(data: bytes, shape: Span) -> list[int]:
    """The sides of a TensorShapeProto."""
    sides = []
    for dim in _inside(data, shape, _DIM):
        sizes = [_whole(data, at) for at, _ in _inside(data, dim, _SIZE)]
        sides.append(sizes[-1] if sizes else 0)
    return sides


def _inside(data: bytes, message: Span, number: int) -> list[Span]:
    """Where the fields of this number are in a message."""
    return [(start, end) for n, start, end in _fields(data, *message) if n == number]


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number of each field of a message, and where its content begins and ends.

    Raises:
        ValueError: the bytes are no message.
    """
    while at < end:
        key = data[at]
        at += 1
        if key >= 128:
            key, at = _varint(data, at - 1)
        kind = key & 7
        if kind == _DELIMITED:
            size = data[at] if at < end else 128
            at += 1
            if size >= 128:  # most are less, and a function call per field would take half the time
                size, at = _varint(data, at - 1)
        elif kind == _VARINT:
            size = _varint(data, at)[1] - at
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise ValueError(f"no event: wire type {kind}")
        start = at
        at += size
        if at > end:
            raise ValueError("no event: a field is longer than its message")
        yield key >> 3, start, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A base-128 varint, and where it ends."""
    number = 0
    shift = 0
    for byte in data[at : at + 10]:
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
    raise ValueError("no event: a number is cut off")


def _whole(data: bytes, at: int) -> int:
    """An integer of 64 bits, which may be negative."""
    number, _ = _varint(data, at)
    return number - (number >> 63 << 64)


def _double(data: bytes, start: int, end: int) -> float:
    if end - start != 8:
        raise ValueError(f"no event: a number of {end - start} bytes")
    (number,) = struct.unpack_from("<d", data, start)
    return float(number)
