"""What the commands print around their tables, and where."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich import progress

from fmapboard.cli.run_dirs import to_paste
from fmapboard.errors import CaptureError, ForwardError
from fmapboard.imaging.models.request import LoadedModel
from fmapboard.imaging.tables import WIDTH, PlainConsole
from fmapboard.writers.remote import RemoteDirectory


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


def say_model(loaded: LoadedModel, *, stderr: bool = False) -> None:
    """Print the model's name and its preprocessing."""
    line = f"{loaded.name}, preprocessing: {loaded.preprocessing}"
    console(stderr=stderr).print(line, soft_wrap=True)


@contextmanager
def what_ran() -> Iterator[None]:
    """If the model raises, print what ran before: the message on the command line is one line."""
    try:
        yield
    except ForwardError as error:
        if error.ran:
            note("\n  ".join(["ran before the error:", *error.ran]))
        raise CaptureError(error.summary) from error


def say_where(
    logdir: Path | RemoteDirectory | None, folder: Path | None, *, images: int = 1
) -> None:
    """Print where PNG files were written, and the command that shows the run in TensorBoard."""
    out = console()
    if folder is not None:
        out.print(f"\nPNG files: {folder}", soft_wrap=True)
    if logdir is not None:
        each = " (one step per image)" if images > 1 else ""
        out.print(f"\nTensorBoard{each}:\n  {to_paste('serve', logdir)}", soft_wrap=True)
