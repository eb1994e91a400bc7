"""Find run directories and their event files; standard library only."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path


def folders(
    path: Path | str, errors: list[OSError] | None = None, *, within: str = ""
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """The directories at or below a path, each with its entries, in any order.

    Follows symbolic links, as TensorBoard does. A directory that is reached several times is
    visited once, under the path with the fewest links. (``os.walk`` calls itself for each folder
    within another in Python before 3.12.)

    Args:
        path: where to look.
        errors: for each directory that cannot be listed, the error is appended.
        within: a directory without symbolic links in its path: those that lead out of it are not
            followed, and are among the errors. Empty to follow all.
    """
    reached = set()
    waiting = deque([str(path)])  # those behind links come last
    while waiting:
        folder = waiting.popleft()
        try:
            status = os.stat(folder)
            place = status.st_dev, status.st_ino  # the same for every path to a folder
            if place in reached:
                continue
            inside = entries(folder)
        except OSError as error:
            if errors is not None:
                errors.append(error)
            continue
        reached.add(place)
        yield folder, inside
        for entry in inside:
            if entry.is_dir(follow_symlinks=False):
                waiting.appendleft(entry.path)
            elif entry.is_symlink() and os.path.isdir(entry.path):
                if not within or is_inside(entry.path, within):
                    waiting.append(entry.path)
                elif errors is not None:
                    errors.append(outside(entry.path))


def is_inside(path: str, folder: str) -> bool:
    """True if a path, its symbolic links followed, is a directory without links or below it."""
    real = os.path.realpath(path)
    return real == folder or real.startswith(os.path.join(folder, ""))


def outside(path: str) -> OSError:
    """The error of a symbolic link that is not followed."""
    return PermissionError(errno.EACCES, "leads out of the directory that is read", path)


def entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """The entries of a directory, in any order.

    Raises:
        OSError: the directory cannot be listed.
    """
    with os.scandir(folder) as listed:
        return list(listed)


def event_files(inside: list[os.DirEntry[str]]) -> list[str]:
    """Paths of the event files among the entries of a directory, in the order of their names.

    That is the order in which they were begun. Only files count, and links to files: opening a pipe
    would wait for its writer.
    """
    paths = [entry.path for entry in inside if "tfevents" in entry.name]
    return sorted(path for path in paths if os.path.isfile(path))


def run_directories(path: Path, errors: list[OSError] | None = None) -> list[Path]:
    """The directories at or below a path that hold event files, sorted; see `folders`."""
    found = []
    for folder, inside in folders(path, errors):
        if event_files(inside):
            found.append(Path(folder))
    return sorted(found)
