"""Find event files, and read their records as a stream, with fast checksums."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2

from fmapboard.writers import checksum

_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")
_MAX_EVENT = 2**31
"""Maximum size in bytes of an event; protocol buffers have no larger messages."""
_MASK = 0xA282EAD8


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event, and where its serialized form is in the file, bytes."""

    event: Any
    offset: int
    length: int


def run_directories(path: Path) -> list[Path]:
    """The directories at or below a path that hold event files, sorted.

    Follows symbolic links, as TensorBoard does. A directory that is reached several times is listed
    once, under the path with the fewest links.
    """
    found: list[Path] = []
    reached: set[str] = set()
    starts = [str(path)]
    while starts:
        links: list[str] = []
        for folder, folders, files in (entry for start in starts for entry in os.walk(start)):
            place = os.path.realpath(folder)
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


def stored_events(opened: BinaryIO, name: str, problems: list[str]) -> Iterator[StoredEvent]:
    """The events of a file up to its end, or to where it is cut off or damaged.

    Args:
        opened: the file, at its beginning.
        name: of the file, for messages.
        problems: what could not be read is appended, in words.
    """
    while header := opened.read(_HEADER.size):
        size, _ = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        if len(header) < _HEADER.size:
            problems.append(f"{name} ends within a record: still being written, or cut off")
            return
        if size > _MAX_EVENT or _masked(header[:8]) != header[8:]:
            problems.append(f"{name} is damaged at byte {opened.tell() - len(header)}")
            return
        offset = opened.tell()
        content = opened.read(size)
        footer = opened.read(_FOOTER.size)
        if len(content) < size or len(footer) < _FOOTER.size:
            problems.append(f"{name} ends within a record: still being written, or cut off")
            return
        try:
            if _masked(content) != footer:
                raise DecodeError("wrong checksum")
            yield StoredEvent(event_pb2.Event.FromString(content), offset, size)
        except DecodeError as error:
            problems.append(f"{name}: a record of {size} bytes is damaged ({error})")


def _masked(data: bytes) -> bytes:
    """The checksum of a record, as it is stored."""
    crc = checksum.value(data)
    return _FOOTER.pack(((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)
