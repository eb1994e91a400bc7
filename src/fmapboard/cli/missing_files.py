"""What to say of a file that does not exist: which files were probably meant."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

_CLOSE = 0.7
"""Least similarity of the names without their suffixes."""
_NUMBER = re.compile(r"[\d.]+,?")
_LISTED = 6
"""Number of files in a folder up to which all are listed."""


def nearby(path: Path) -> str:
    """The end of an error message about a missing file.

    Returns:
        ``"; closest: cat.jpg"``, ``"; there is no folder 'photos'"``, ``"; 'photos' holds: a.pt"``,
        or an empty string if nothing helps.
    """
    folder = path.parent
    if _NUMBER.fullmatch(str(path)):
        return "; write several numbers for one option with commas: --mean 0.485,0.456,0.406"
    if not folder.is_dir():
        return f"; there is no folder {str(folder)!r}"
    try:
        names = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    except OSError:  # not permitted
        return ""
    stem = path.stem.lower()
    ratios = {name: _similarity(stem, Path(name).stem.lower()) for name in names}
    near = sorted((n for n in names if ratios[n] >= _CLOSE), key=lambda n: -ratios[n])
    if near:
        return f"; closest: {', '.join(near[:3])}"
    if 0 < len(names) <= _LISTED:
        where = "the current folder" if folder == Path() else repr(str(folder))
        return f"; {where} holds: {', '.join(names)}"
    return ""


def _similarity(a: str, b: str) -> float:
    same_letters = len(a) == len(b) <= 4 and sorted(a) == sorted(b)
    return 1.0 if same_letters else difflib.SequenceMatcher(None, a, b).ratio()
