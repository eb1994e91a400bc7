"""Read what the checks need from a run's event files, as a stream and without a server.

TensorBoard's own loaders verify checksums in pure Python, at 3 MB/s, and its accumulators keep
every picture in memory or drop records; so the frames of the files are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from google.protobuf.message import DecodeError
from tensorboard.compat.proto import event_pb2
from tensorboard.util import tensor_util

from fmapboard import tags
from fmapboard.checks.record_builder import GROUPS, RecordBuilder, is_read, split_tag
from fmapboard.checks.run_record import RunRecord
from fmapboard.errors import FmapboardError
from fmapboard.writers import checksum

_HEADER, _FOOTER = struct.Struct("<QI"), struct.Struct("<I")
_MAX_EVENT = 2**31
"""Maximum size in bytes of an event; protocol buffers have no larger messages."""
_MASK = 0xA282EAD8


class UnreadableRun(FmapboardError):
    """A run directory that does not exist, or holds nothing that fmapboard wrote."""

    exit_code = 2


@dataclass(slots=True)
class RunFiles:
    """What was read of one run directory.

    Attributes:
        path: the directory.
        records: one record per watched model.
        problems: what could not be read, in words.
    """

    path: Path
    records: list[RunRecord]
    problems: list[str] = field(default_factory=list)


def read_runs(path: Path) -> list[RunFiles]:
    """Read all runs at or below a path; other tools' runs among them are left out.

    Raises:
        UnreadableRun: there is none.
        OSError: a file cannot be opened.
    """
    directories = _run_directories(path)
    runs, unreadable = [], []
    for directory in directories:
        try:
            runs.append(read_run(directory))
        except UnreadableRun as error:
            unreadable.append(error)
    if not runs:
        raise unreadable[0]
    return runs


def _run_directories(path: Path) -> list[Path]:
    """The run directories at or below a path: those that hold event files, sorted."""
    if not path.exists():
        raise UnreadableRun(f"{path}: no such directory")
    if not path.is_dir():
        raise UnreadableRun(f"{path}: expected the directory that holds the event files")
    found = sorted({file.parent for file in path.rglob("*tfevents*") if file.is_file()})
    if not found:
        raise UnreadableRun(f"{path}: no event files in it or below it")
    return found


def read_run(path: Path) -> RunFiles:
    """Read the event files of a run directory, in the order in which they were begun.

    A file may end in the middle of a record, as that of a run that goes on does: everything before
    it is read. A resumed run replaces the steps from its first one on.

    Raises:
        UnreadableRun: no file holds anything that fmapboard wrote.
        OSError: a file cannot be opened.
    """
    builders: dict[str, RecordBuilder] = {}
    problems: list[str] = []
    for file in sorted(one for one in path.iterdir() if "tfevents" in one.name and one.is_file()):
        with file.open("rb") as opened:
            for event in _events(opened, file.name, problems):
                _add(builders, event, str(path))
    for builder in builders.values():
        if builder.errors:
            step, why = next(iter(builder.errors.items()))
            problems.append(f"{len(builder.errors)} records, the first at step {step}: {why}")
    records = [builder.record() for _, builder in sorted(builders.items())]
    if not records:
        why = f" ({problems[0]})" if problems else ""
        raise UnreadableRun(f"{path}: nothing in it was logged by fmapboard{why}")
    return RunFiles(path, records, problems)


def _events(opened: BinaryIO, name: str, problems: list[str]) -> Iterator[Any]:
    """The events of a file up to its end, or to where it is cut off or damaged."""
    while header := opened.read(_HEADER.size):
        size, _ = _HEADER.unpack(header) if len(header) == _HEADER.size else (0, 0)
        if len(header) < _HEADER.size:
            problems.append(f"{name} ends within a record: still being written, or cut off")
            return
        if size > _MAX_EVENT or _masked(header[:8]) != header[8:]:
            problems.append(f"{name} is damaged at byte {opened.tell() - len(header)}")
            return
        content = opened.read(size)
        footer = opened.read(_FOOTER.size)
        if len(content) < size or len(footer) < _FOOTER.size:
            problems.append(f"{name} ends within a record: still being written, or cut off")
            return
        try:
            if _masked(content) != footer:
                raise DecodeError("wrong checksum")
            yield event_pb2.Event.FromString(content)
        except DecodeError as error:
            problems.append(f"{name}: a record of {size} bytes is damaged ({error})")


def _masked(data: bytes) -> bytes:
    """The checksum of a record, as it is stored."""
    crc = checksum.value(data)
    return _FOOTER.pack(((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def _add(builders: dict[str, RecordBuilder], event: Any, run: str) -> None:
    if event.session_log.status == event_pb2.SessionLog.START:
        for builder in builders.values():
            builder.purge(event.step)
    for value in event.summary.value:
        if is_read(value.tag) and event.step >= 0:
            name, tag = split_tag(value.tag)
            builder = builders.setdefault(name, RecordBuilder(run, name))
            _add_value(builder, event.step, tag, value)


def _add_value(builder: RecordBuilder, step: int, tag: str, value: Any) -> None:
    if tag.partition("/")[0] in GROUPS:
        number = _number(value)
        if number is not None:
            builder.add_scalar(step, tag, number)
    elif tag == tags.FIRST_NONFINITE:
        text = value.tensor.string_val
        if text:
            builder.add_text(step, text[0].decode(errors="replace"))
    else:
        builder.add_blobs(step, tag, list(value.tensor.string_val))


def _number(value: Any) -> float | None:
    """The number of a scalar, in either of TensorBoard's formats; None if it is none."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if not value.HasField("tensor"):
        return None
    try:
        array = np.asarray(tensor_util.make_ndarray(value.tensor), np.float64)
    except (TypeError, ValueError):
        return None
    return float(array.reshape(-1)[0]) if array.size == 1 else None
