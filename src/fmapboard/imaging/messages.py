"""Parts of messages: short errors and lists of names, and what a file is instead of data."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any


def one_line(error: BaseException, *, most: int = 160) -> str:
    """An error's type and text on one line, cut at a word boundary before ``most`` characters."""
    text = " ".join(str(error).split())
    short = text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"
    return f"{type(error).__name__}: {short}" if short else type(error).__name__


def few(names: Collection[Any], most: int = 3) -> str:
    """The first ``most`` names, and the number of the others."""
    shown = ", ".join(str(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


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
