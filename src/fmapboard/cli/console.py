"""What the commands print around their tables, and where."""

from __future__ import annotations

import io
import sys

from rich import progress

from fmapboard.imaging.tables import WIDTH, PlainConsole


def console(*, stderr: bool = False) -> PlainConsole:
    """A console as wide as the terminal, or `WIDTH` columns if the output is not a terminal."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors != "backslashreplace":
        stream.reconfigure(errors="backslashreplace")  # the C locale cannot encode an é
    width = None if stream.isatty() else WIDTH
    return PlainConsole(stderr=stderr, width=width)


def note(text: str) -> None:
    """Print a message on stderr."""
    console(stderr=True).print(text, soft_wrap=True)


def progress_bar(
    doing: str, *more: progress.ProgressColumn, disable: bool = False
) -> progress.Progress:
    """A progress bar on stderr; ``more`` columns come before the time that remains."""
    begin = progress.TextColumn(doing), progress.BarColumn(), progress.MofNCompleteColumn()
    columns = *begin, *more, progress.TimeRemainingColumn()
    return progress.Progress(*columns, console=console(stderr=True), disable=disable)
