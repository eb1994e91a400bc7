"""Lines that the commands print besides their tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fmapboard.cli.all_images import overwritten
from fmapboard.cli.models.load import LoadedModel
from fmapboard.cli.report import is_temporary
from fmapboard.cli.run_dirs import to_paste
from fmapboard.cli.table import console
from fmapboard.errors import CaptureError, ForwardError
from fmapboard.writers.remote import RemoteDirectory


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
            lines = "\n  ".join(["ran before the error:", *error.ran])
            console(stderr=True).print(lines, soft_wrap=True)
        raise CaptureError(error.summary) from error


def say_overwritten(replaced: int, folder: Path | None) -> None:
    """Say on stderr if PNG files from before were overwritten."""
    text = overwritten(replaced, folder)
    if text:
        console(stderr=True).print(text, soft_wrap=True)


def say_where(
    logdir: Path | RemoteDirectory | None, folder: Path | None, *, images: int = 1
) -> None:
    """Print where PNG files were written, and the command that shows the run in TensorBoard."""
    out = console()
    if folder is not None:
        out.print(f"\nPNG files: {folder}", soft_wrap=True)
    if logdir is not None and not is_temporary(logdir):
        each = " (one step per image)" if images > 1 else ""
        out.print(f"\nTensorBoard{each}:\n  {to_paste('serve', logdir)}", soft_wrap=True)
