"""Directories given on the command line, new run directories, and commands to paste."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from fmapboard.errors import ConfigurationError, for_shell

if TYPE_CHECKING:
    from fmapboard.writers.remote import RemoteDirectory


class Directory(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """A click type for a local directory or, if allowed, a URL such as ``s3://bucket/runs``.

    Args:
        remote: accept URLs; otherwise a URL is a usage error.
    """

    name = "path"

    def __init__(self, *, remote: bool) -> None:
        self._remote = remote

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | RemoteDirectory:
        """The directory for the typed text; a usage error if it is invalid."""
        from fmapboard.writers.remote import local_directory, log_directory

        if not isinstance(value, str):
            return value  # type: ignore[return-value]  # a default
        try:
            found = log_directory(value) if self._remote else local_directory(value, "this")
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)
        above = [found, *found.parents] if isinstance(found, Path) else []
        existing = next((path for path in above if os.path.lexists(path)), Path())
        if existing.is_file():
            events = "tfevents" in existing.name
            fix = f"its directory is {str(existing.parent)!r}" if events else "expected a directory"
            self.fail(f"{str(existing)!r} is a file; {fix}", param, ctx)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Directories, completed by the shell."""
        return [CompletionItem(incomplete, type="dir")]


def to_paste(*words: str | Path | RemoteDirectory) -> str:
    """An ``fmapboard`` command line, quoted for the shell, that runs this installation."""
    return for_shell(*_program(), *map(str, words))


def _program() -> list[str]:
    """The command of this installation: ``python -m fmapboard``, ``fmapboard`` or its path."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        return [sys.executable, "-m", "fmapboard"]
    beside = typed.with_name("fmapboard")
    if not beside.exists():
        return ["fmapboard"]
    found = shutil.which("fmapboard")
    is_found = found is not None and beside.samefile(found)
    return ["fmapboard" if is_found else str(beside)]
