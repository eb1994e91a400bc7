"""``fmapboard doctor``: check that the Python that runs TensorBoard has the Feature maps tab."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

from fmapboard import __version__
from fmapboard.cli.run_dirs import to_paste
from fmapboard.errors import FmapboardError, for_shell

_TIMEOUT = 120.0  # s; imports from a network disk can take this long


Line = tuple[str, str]
"""A severity and a text, as in `doctor_probe.examined`."""


def run_doctor() -> None:
    """Examine the Python that runs ``tensorboard`` and this one, and print what there is to say.

    Raises:
        FmapboardError: one of them cannot show the tab; the report lists the problems.
    """
    problems = 0
    for title, lines in _places():
        print(title)
        for severity, text in lines:
            problems += severity == "PROBLEM"
            print(f"  {severity:<7}  {text}")
    if problems:
        raise FmapboardError(f"{problems} problem{'s' if problems > 1 else ''}, see above")


def _places() -> Iterator[tuple[str, list[Line]]]:
    """Title and lines for each way to start TensorBoard."""
    command = shutil.which("tensorboard")
    python = None if command is None else interpreter_of(Path(command))
    if python is not None and _same(python, sys.executable):
        yield f"`tensorboard` ({command}) and `fmapboard serve`", examine(sys.executable)
        return
    instead = to_paste("serve", "LOGDIR")
    if command is None:
        yield "`tensorboard`", [("note", f"not on PATH; start it with: {instead}")]
    elif python is None:
        text = f"cannot tell which Python runs it; use instead: {instead}"
        yield f"`tensorboard` ({command})", [("note", text)]
    else:
        yield f"`tensorboard` ({command})", examine(python)
    yield "`fmapboard serve`", examine(sys.executable)


def interpreter_of(command: Path) -> str | None:
    """The Python that runs an installed command, or None if it cannot be determined.

    It is read from the script's ``#!`` line. On Windows, it is the ``python.exe`` next to the
    command.
    """
    beside = command.with_name("python.exe")
    if command.suffix.lower() == ".exe":
        return str(beside) if beside.exists() else None
    with command.open("rb") as file:
        first, second = [file.readline(1000).decode(errors="replace") for _ in range(2)]
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words or "\0" in first + second:
        return None
    if Path(words[0]).name == "env":
        return shutil.which(words[-1])
    if Path(words[0]).name == "sh":
        return _started_by(second)
    return words[0] if os.access(words[0], os.X_OK) else None


def _started_by(line: str) -> str | None:
    """The Python in the second line of a ``#!/bin/sh`` script; pip writes these for long paths."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    return words[1] if words[:1] == ["exec"] and len(words) > 1 else None


def _same(python: str, other: str) -> bool:
    """True if both are in one environment; compares folders, as venvs may link to one Python."""
    folder = os.path.realpath(Path(python).parent)
    other_folder = os.path.realpath(Path(other).parent)
    return folder == other_folder


def examine(python: str) -> list[Line]:
    """What `doctor_probe` says of one interpreter."""
    program = Path(__file__).with_name("doctor_probe.py").read_text("utf-8")
    try:
        done = subprocess.run(
            [python, "-c", program, __version__, source(), python],
            capture_output=True, text=True, timeout=_TIMEOUT, check=True, stdin=subprocess.DEVNULL,
            cwd=Path(python).parent,  # so that nothing is imported from the user's directory
        )  # fmt: skip
        *_, answer = done.stdout.splitlines()
        return [(severity, text) for severity, text in json.loads(answer)]
    except (OSError, subprocess.SubprocessError, LookupError, TypeError, ValueError) as error:
        return [("PROBLEM", f"{python} could not be run: {error}")]


def source() -> str:
    """The folder, wheel or repository that fmapboard was installed from, quoted for the shell.

    It is read from pip's record of the installation (PEP 610, ``direct_url.json``). Without that
    record, a placeholder is returned.
    """
    try:
        noted = json.loads(distribution("fmapboard").read_text("direct_url.json") or "")
    except (PackageNotFoundError, ValueError):
        return "PATH_TO_FMAPBOARD"
    url = noted["url"]
    repository = noted.get("vcs_info")
    if repository:
        return for_shell(f"{repository['vcs']}+{url}@{repository['commit_id']}")
    parts = urlparse(url)
    if parts.scheme == "file":
        url = url2pathname(parts.path)
    return for_shell(url)
