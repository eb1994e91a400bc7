"""Directories on the command line: new ones, remote ones, and commands to paste."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmapboard.errors import ConfigurationError, WriteError

if TYPE_CHECKING:
    from fmapboard.writers.remote import RemoteDirectory


class Directory(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """A directory as it is typed; a URL where the command can use one.

    Args:
        remote: ``s3://…`` and the like are understood, else refused.
    """

    name = "path"

    def __init__(self, *, remote: bool) -> None:
        self._remote = remote

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | RemoteDirectory:
        """The directory that was typed, or a usage error."""
        from fmapboard.writers.log_dirs import local_directory, log_directory

        if not isinstance(value, str):
            return value  # type: ignore[return-value]  # a default
        try:
            return log_directory(value) if self._remote else local_directory(value, "this")
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


def new_directory(wanted: Path) -> Path:
    """Make ``wanted``, or ``wanted-2``, ``wanted-3``, … where it exists and is not empty.

    Raises:
        WriteError: it cannot be made.
    """
    for number in itertools.count(1):
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if path.is_dir() and not any(path.iterdir()):
                return path
            continue
        except OSError as error:
            raise WriteError(f"cannot write to {path}: {error.strerror or error}") from error
        return path
    raise AssertionError  # itertools.count does not end


def to_paste(*words: str | Path | RemoteDirectory) -> str:
    """A command line that starts fmapboard the way this process was started."""
    return shlex.join([*_program(), *map(str, words)])


def _program() -> list[str]:
    """``fmapboard`` if that finds this installation, else the path or ``-m`` that was typed."""
    typed = Path(sys.argv[0])
    if typed.name == "__main__.py":
        return [sys.executable, "-m", "fmapboard"]
    beside, found = typed.with_name("fmapboard"), shutil.which("fmapboard")
    if found and beside.exists() and os.path.realpath(found) == os.path.realpath(beside):
        return ["fmapboard"]
    return [str(beside)] if beside.exists() else ["fmapboard"]
