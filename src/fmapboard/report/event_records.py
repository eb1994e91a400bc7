"""Find event files, and read their records as a stream, with fast checksums."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

from fmapboard.formats import framing

_MOST_REPEATED = 2**16
"""Values of a tensor that may be stored as one that is repeated."""


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event, and where its serialized form is in a file, bytes."""

    event: Any
    file: Path
    offset: int
    length: int


def run_directories(path: Path, errors: list[OSError] | None = None) -> list[Path]:
    """The directories at or below a path that hold event files, sorted.

    Follows symbolic links, as TensorBoard does. A directory that is reached several times is listed
    once, under the path with the fewest links. (``os.walk`` calls itself for each folder within
    another in Python before 3.12.)

    Args:
        path: where to look.
        errors: for each directory that cannot be listed, the error is appended.
    """
    found, reached = [], set()
    waiting = deque([str(path)])  # those behind links come last
    while waiting:
        folder = waiting.popleft()
        try:
            status = os.stat(folder)
            place = status.st_dev, status.st_ino  # the same for every path to a folder
            if place in reached:
                continue
            with os.scandir(folder) as entries:
                inside = list(entries)
        except OSError as error:
            if errors is not None:
                errors.append(error)
            continue
        reached.add(place)
        if any("tfevents" in entry.name and os.path.isfile(entry) for entry in inside):
            found.append(Path(folder))
        for entry in filter(_is_folder, inside):
            if entry.is_symlink():
                waiting.append(entry.path)
            else:
                waiting.appendleft(entry.path)
    return sorted(found)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def stored_events(run: Path, problems: list[str]) -> Iterator[StoredEvent]:
    """The events of a run's files, in the order in which these were begun.

    A file is read up to its end, or to where it is cut off or damaged.

    Args:
        run: the directory.
        problems: what could not be read is appended, in words.

    Raises:
        OSError: the directory cannot be listed.
    """
    for file in sorted(one for one in run.iterdir() if "tfevents" in one.name and one.is_file()):
        try:
            with file.open("rb") as opened:
                yield from _events_of(opened, file, problems)
        except OSError as error:
            problems.append(f"{file.name} cannot be read: {error.strerror or error}")


def _events_of(opened: BinaryIO, file: Path, problems: list[str]) -> Iterator[StoredEvent]:
    try:
        for offset, size in framing.records(opened):
            content = opened.read(size)
            try:
                if framing.checksum(content) != opened.read(framing.FOOTER_BYTES):
                    raise DecodeError("wrong checksum")
                yield StoredEvent(event_pb2.Event.FromString(content), file, offset, size)
            except DecodeError as error:
                problems.append(f"{file.name}: a record of {size} bytes is damaged ({error})")
    except framing.Damaged as error:
        problems.append(f"{file.name} {error}")


def array_of(tensor: Any) -> Any:
    """The array of a stored tensor.

    Raises:
        TypeError: its type is unknown.
        ValueError: its values do not fit its shape, or its shape claims far more values than are
            stored, which would be repeated until memory runs out.
    """
    size = math.prod(dim.size for dim in tensor.tensor_shape.dim)
    if size > max(_MOST_REPEATED, tensor.ByteSize()):
        raise ValueError(f"{size} values are claimed, but {tensor.ByteSize()} bytes are stored")
    return tensor_util.make_ndarray(tensor)
