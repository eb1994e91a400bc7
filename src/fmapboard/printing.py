"""Tables, lines and progress bars for people, whose cells are never read as markup."""

from __future__ import annotations

import io
import random
import sys
from typing import Any

from fmapboard.errors import escaped

_state = random.getstate()
from rich import progress  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import track  # noqa: E402
from rich.table import Table  # noqa: E402
from rich.text import Text  # noqa: E402

random.setstate(_state)  # rich draws a random number when it is imported
__all__ = ["Table", "track"]  # what others of this package use of rich

WIDTH = 160
"""Columns of a table that is not printed to a terminal."""


class PlainConsole(Console):
    """Prints text as it is, brackets included, with control characters escaped.

    Names of files, layers and tensors come from anywhere: `rich` would read ``[…]`` in them as
    markup, and ``:name:`` as an emoji.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """The text of a line or of a table's cell."""
        return super().render_str(escaped(text), **options)

    def out(self, *objects: Any, **options: Any) -> None:
        """Print without wrapping lines."""
        super().out(*map(escaped, objects), **options)


def add_row(table: Table, *cells: object, style: str | None = None) -> None:
    """Add a row of a table; every cell is one line of text."""
    table.add_row(*(escaped(cell, keep="") for cell in cells), style=style)


def new_table() -> Table:
    """A table without lines between its cells."""
    return Table(box=None, header_style="bold", pad_edge=False)


def as_text(table: Table) -> str:
    """A table as it is printed where there is no terminal."""
    text = io.StringIO()
    PlainConsole(file=text, width=WIDTH).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


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
    return progress.Progress(
        progress.TextColumn(doing),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        *more,
        progress.TimeRemainingColumn(),
        console=console(stderr=True),
        disable=disable,
    )
