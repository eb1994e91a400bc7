"""What is known about a report that was written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written.

    Attributes:
        path: the HTML file.
        size: of the file, or of all files of a site, bytes.
        embedded: bytes that are embedded in them, compressed and before base64.
        runs: names of the runs.
        steps: for each run, the steps of its pictures.
        privacy: which images it contains, in words.
        left_out: what the runs have and the report does not, in words.
        problems: what of the event files could not be read, or a size above the limit, in words.
    """

    path: Path
    size: int
    embedded: int
    runs: tuple[str, ...]
    steps: tuple[tuple[int, ...], ...]
    privacy: str
    left_out: tuple[str, ...]
    problems: tuple[str, ...]
