"""Find event files, and read their records as a stream, with fast checksums."""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

from fmapboard.formats import checksum

_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")
_MAX_EVENT = 2**31
"""Maximum size in bytes of an event; protocol buffers have no larger messages."""
_MOST_REPEATED = 2**16
"""Values of a tensor that may be stored as one that is repeated."""
_HEAD = re.compile(rb"\x09.{8}(?:\x10([\x80-\xff]*[\x00-\x7f]))?(\x2a|\x3a)", re.DOTALL)
"""The beginning of a serialized event: wall time, step (a varint; absent if 0), and the tag of the
field with the contents, which is a summary or a session log."""
_HEAD_BYTES = 32


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
    once, under the path with the fewest links.

    Args:
        path: where to look.
        errors: for each directory that cannot be listed, the error is appended.
    """
    note = None if errors is None else errors.append
    found: list[Path] = []
    reached: set[object] = set()
    starts = [str(path)]
    while starts:
        links: list[str] = []
        for folder, folders, files in (entry for start in starts for entry in _walk(start, note)):
            place = _place(folder)
            if place in reached:
                folders.clear()
                continue
            reached.add(place)
            links += (
                inner for name in folders if os.path.islink(inner := os.path.join(folder, name))
            )
            if any(
                "tfevents" in name and os.path.isfile(os.path.join(folder, name)) for name in files
            ):
                found.append(Path(folder))
        starts = links
    return sorted(found)


def shown_steps(files: Iterable[Path]) -> set[int]:
    """The steps of a run that its readers show: a resumed run replaces those from its start on.

    Reads a few bytes per record, unverified, up to where a file is cut off or damaged.

    Args:
        files: the run's event files, in the order in which they were written.

    Raises:
        OSError: a file cannot be read.
    """
    steps: set[int] = set()
    for file in files:
        with file.open("rb") as opened:
            end = os.fstat(opened.fileno()).st_size
            while len(header := opened.read(_HEADER.size)) == _HEADER.size:
                size, _ = _HEADER.unpack(header)
                offset = opened.tell()
                if _checksum(header[:8]) != header[8:] or offset + size + _FOOTER.size > end:
                    break
                found = _HEAD.match(opened.read(min(size, _HEAD_BYTES)))
                if found is not None:
                    step = sum((b & 0x7F) << 7 * i for i, b in enumerate(found[1] or b""))
                    if found[2] == b"\x3a":
                        steps = {each for each in steps if each < step}
                    else:
                        steps.add(step)
                opened.seek(offset + size + _FOOTER.size)
    return steps


def _walk(
    start: str, note: Callable[[OSError], None] | None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """As ``os.walk``, which calls itself for each folder within another in Python before 3.12."""
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                is_folder = {entry.name: _is_folder(entry) for entry in entries}
        except OSError as error:
            if note is not None:
                note(error)
            continue
        folders = [name for name in is_folder if is_folder[name]]
        yield folder, folders, [name for name in is_folder if not is_folder[name]]
        inner = (os.path.join(folder, name) for name in folders)
        waiting += (path for path in inner if not os.path.islink(path))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _place(folder: str) -> object:
    """The same for every path to a folder; unlike a real path, found in one call."""
    try:
        status = os.stat(folder)
    except OSError:  # it has just been removed, or its path is too long
        return folder
    return status.st_dev, status.st_ino


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
    name = file.name
    while header := opened.read(_HEADER.size):
        size, _ = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        if len(header) < _HEADER.size:
            problems.append(f"{name} ends within a record: still being written, or cut off")
            return
        if size > _MAX_EVENT or _checksum(header[:8]) != header[8:]:
            problems.append(f"{name} is damaged at byte {opened.tell() - len(header)}")
            return
        offset = opened.tell()
        content = opened.read(size)
        footer = opened.read(_FOOTER.size)
        if len(content) < size or len(footer) < _FOOTER.size:
            problems.append(f"{name} ends within a record: still being written, or cut off")
            return
        try:
            if _checksum(content) != footer:
                raise DecodeError("wrong checksum")
            yield StoredEvent(event_pb2.Event.FromString(content), file, offset, size)
        except DecodeError as error:
            problems.append(f"{name}: a record of {size} bytes is damaged ({error})")


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


def _checksum(data: bytes) -> bytes:
    """The checksum of a record or of its length, as it is stored."""
    return checksum.masked(checksum.value(data))
