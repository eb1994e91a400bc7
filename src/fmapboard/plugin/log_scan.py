"""Whether a log directory is that of other people's runs: a short look, standard library only.

TensorBoard imports this when it starts (see `loader`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_OURS = ".fmapboard"
"""Stands in the names of event files that fmapboard writes itself."""

_MOST_ENTRIES = 50_000
_MOST_READ = 100
_BYTES = 2**20
"""Limits of a scan: files listed, files read, and bytes read per file."""

_TRACE = re.compile(rb"feature_maps_|\n\x0cfeature_maps")
"""A tag of our pictures, or the plugin's name in a summary's metadata."""


def has_only_foreign_runs(logdirs: Iterable[str]) -> bool:
    """True if there are event files, and none that was looked at holds feature maps.

    Event files that were written through a SummaryWriter are known by their first MiB, the newest
    files first. A remote directory is not looked at: it counts as foreign.

    Args:
        logdirs: paths or URLs, as TensorBoard was given them.
    """
    files: list[str] = []
    for logdir in logdirs:
        if "://" in logdir:
            return True
        for file in _event_files(os.path.expanduser(logdir)):
            if _OURS in os.path.basename(file):
                return False
            files.append(file)
    newest = sorted(files, key=_modified, reverse=True)[:_MOST_READ]
    return bool(files) and not any(map(_has_trace, newest))


def _event_files(logdir: str) -> Iterator[str]:
    """Event files below a directory, as TensorBoard finds them: through links, too."""
    seen: set[tuple[int, int]] = set()
    listed = 0
    for folder, folders, files in os.walk(logdir, followlinks=True):
        status = Path(folder).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()  # a link to a folder above
            continue
        seen.add((status.st_dev, status.st_ino))
        yield from (os.path.join(folder, name) for name in files if "tfevents" in name)
        listed += len(files) + len(folders)
        if listed > _MOST_ENTRIES:
            return


def _modified(file: str) -> float:
    try:
        return os.path.getmtime(file)
    except OSError:
        return 0.0


def _has_trace(file: str) -> bool:
    try:
        with open(file, "rb") as opened:
            return _TRACE.search(opened.read(_BYTES)) is not None
    except OSError:
        return False
