"""What is printed: tables of layers, patches and differences; lines and bars around them."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import progress
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fmapboard.errors import escaped
from fmapboard.records import LoggedStep

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


def layer_table(
    step: LoggedStep, files: Mapping[str, list[Path]], unloaded: Mapping[str, str]
) -> Table:
    """One row per layer call: kernel shape, map size, range, counts of bad channels, file.

    Args:
        step: the recorded step of one image.
        files: label of a layer call -> the files its maps were written to.
        unloaded: name of a layer -> which of its weights are not from the checkpoint, such as
            ``"random"``; there is a column for them if any.
    """
    table = new_table()
    weights = ["weights"] if unloaded else []
    for heading in ("layer", "kernel shape", *weights, "map size"):
        table.add_column(heading, no_wrap=True)
    table.add_column("range", no_wrap=True, justify="right")
    for heading in ("constant", "dead channels", "non-finite"):
        table.add_column(heading, justify="right")
    table.add_column("file", overflow="fold")
    for measured in sorted(step.statistics, key=lambda measured: measured.layer_call.position):
        call, statistics = measured.layer_call, measured.statistics
        assert statistics is not None  # image passes always measure statistics
        finite = statistics.minimum[np.isfinite(statistics.minimum)]
        span = "no finite value"
        if finite.size:
            span = f"{finite.min():.3g} … {np.nanmax(statistics.maximum):.3g}"
        add_row(
            table,
            call.label,
            call.group,
            *([unloaded.get(call.layer, "")] if unloaded else []),
            "×".join(map(str, measured.shape[1:] or measured.shape)),  # without the batch axis
            span,
            _of(statistics.constant),
            "–" if statistics.dead is None else _of(statistics.dead),
            _of(statistics.nonfinite),
            next(iter(files.get(call.label, ())), "–"),
        )
    return table


def _of(flags: npt.NDArray[np.bool_]) -> str:
    count = int(flags.sum())
    return f"{count} of {flags.size}" if count else "0"


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
