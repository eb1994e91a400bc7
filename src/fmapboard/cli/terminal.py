"""Lines that the commands print besides their tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fmapboard.cli.models.load import LoadedModel
from fmapboard.cli.table import console
from fmapboard.errors import CaptureError, ForwardError


def say_model(loaded: LoadedModel, *, stderr: bool = False) -> None:
    """Print the model's name and its preprocessing."""
    line = f"{loaded.name}, preprocessing: {loaded.preprocessing}"
    console(stderr=stderr).print(line, markup=False, soft_wrap=True)


@contextmanager
def what_ran() -> Iterator[None]:
    """If the model raises, print what ran before: the message on the command line is one line."""
    try:
        yield
    except ForwardError as error:
        if error.ran:
            lines = "\n  ".join(["ran before the error:", *error.ran])
            console(stderr=True).print(lines, markup=False, soft_wrap=True)
        raise CaptureError(error.summary) from error
