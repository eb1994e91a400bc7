"""A quick scan of log directories for runs written by fmapboard; standard library only.

TensorBoard imports this when it starts (see `loader`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from fmapboard.runs.find import event_files, folders

_OURS = ".fmapboard"
"""Part of the names of event files that fmapboard writes itself."""

_MAX_ENTRIES = 50_000
_MAX_FILES_READ = 100
_BYTES = 2**20
"""Limits of a scan: directory entries listed, files read, and bytes read per file."""

_HEAD_BYTES = 256
"""Larger than a file without a record; that of a logged step has at least 1 KiB."""

_TRACE = re.compile(rb"feature_maps_|\n\x0cfeature_maps")
"""Matches a tag of our pictures, or the plugin's name in a summary's metadata."""


_NAMED = re.compile(r"([^:/\\]+):(?!//)(.*)")
"""A directory in ``--logdir_spec`` with the name before it."""


def given_logdirs(flags: Any) -> list[tuple[str, str]]:
    """The directories that TensorBoard reads, each after the name that its runs begin with.

    The directory of ``--logdir`` has no name; those of ``--logdir_spec`` may have one.
    """
    parts = (getattr(flags, "logdir_spec", "") or "").split(",")
    named = [match.groups() if (match := _NAMED.fullmatch(part)) else ("", part) for part in parts]
    given = [("", getattr(flags, "logdir", "") or ""), *named]
    return [(name, path) for name, path in given if path]


def has_only_foreign_runs(logdirs: Iterable[str]) -> bool:
    """True if there are event files, and the scan finds feature maps in none of them.

    Files that fmapboard wrote itself are recognized by name. Others may have been written through a
    SummaryWriter: the first MiB of each of the newest 100 is searched. A remote directory is not
    scanned; it counts as foreign.

    Args:
        logdirs: paths or URLs, as given to TensorBoard.
    """
    files: list[str] = []
    for logdir in logdirs:
        if "://" in logdir:
            return True
        for file in _event_files(os.path.expanduser(logdir)):
            if _OURS in os.path.basename(file):
                return False
            files.append(file)
    newest = sorted(files, key=_modified_and_size, reverse=True)[:_MAX_FILES_READ]
    return bool(files) and not any(map(_has_trace, newest))


def has_own_records(logdirs: Iterable[str]) -> bool:
    """True if a file that fmapboard wrote below a local directory holds more than its head."""
    return any(
        _OURS in os.path.basename(file) and _modified_and_size(file)[1] > _HEAD_BYTES
        for logdir in logdirs
        if "://" not in logdir
        for file in _event_files(os.path.expanduser(logdir))
    )


def _event_files(logdir: str) -> Iterator[str]:
    """Event files below a directory, as far as the limits go."""
    listed = 0
    for _, inside in folders(logdir):
        yield from event_files(inside)
        listed += len(inside)
        if listed > _MAX_ENTRIES:
            return


def _modified_and_size(file: str) -> tuple[float, int]:
    """When a file was written to, s, and its size, bytes; 0 if it is gone."""
    try:
        status = os.stat(file)
    except OSError:
        return 0.0, 0
    return status.st_mtime, status.st_size


def _has_trace(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            return _TRACE.search(opened.read(_BYTES)) is not None
    except OSError:
        return False
