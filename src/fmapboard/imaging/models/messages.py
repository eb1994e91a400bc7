"""Shorten errors and lists of names for messages."""

from __future__ import annotations

from collections.abc import Collection
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
