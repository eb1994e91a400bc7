"""What to say of a file that does not exist, or is not what its name says."""

from __future__ import annotations

import re
from pathlib import Path

from fmapboard.errors import closest

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(?=.)")  # a Windows drive has one letter
_NUMBER = re.compile(r"[\d.]+,?")


def nearby(path: Path) -> str:
    """The end of an error message about a missing file.

    Returns:
        ``"; closest: cat.jpg"``, ``"; there is no folder 'photos'"``, ``"; there are: a.pt"``,
        or an empty string if nothing helps.
    """
    folder = path.parent
    if _NUMBER.fullmatch(str(path)):
        return "; write several numbers for one option with commas: --mean 0.485,0.456,0.406"
    if url_of(path):
        return "; URLs are not read: download the file first"
    if not folder.is_dir():
        return f"; there is no folder {str(folder)!r}"
    try:
        names = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    except OSError:  # not permitted
        return ""
    return closest(path.name, names)


def instead_of_data(path: Path) -> str:
    """What a file is that has taken the place of the data, and what to do; empty if unknown."""
    try:
        with path.open("rb") as file:
            start = file.read(512).lstrip().lower()
    except OSError:
        return ""
    if start.startswith(b"version https://git-lfs.github.com"):
        return "a Git LFS pointer, not the data; fetch that with: git lfs pull"
    if start.startswith((b"<!doctype html", b"<html")):
        return "a web page, not the data; download the file itself: the page may ask for a login"
    return ""


def url_of(path: Path) -> str:
    """The URL that a path was made of, which merges its slashes; empty if it is none."""
    return _URL.sub(r"\1://", str(path), count=1) if _URL.match(str(path)) else ""
