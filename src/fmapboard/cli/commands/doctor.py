"""``fmapboard doctor``: check that the Python that runs TensorBoard has the Feature maps tab."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlparse
from urllib.request import url2pathname

from fmapboard import __version__
from fmapboard.cli.commands.serve import without_pkg_resources
from fmapboard.cli.run_dirs import to_paste
from fmapboard.errors import FmapboardError

_TIMEOUT = 120.0  # s; imports from a network disk can take this long
_NAMES = {"tensorboard": "TensorBoard", "tensorboard-data-server": "data server"}


class ProblemsFound(FmapboardError):
    """TensorBoard cannot show the tab until the reported problems are fixed."""


Weight = Literal["ok", "note", "PROBLEM"]
"""Severity of a finding; only a PROBLEM keeps the tab from being shown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    text: str
    weight: Weight = "note"


def run_doctor() -> None:
    """Examine the Python that runs ``tensorboard`` and this one, and print the findings.

    Raises:
        ProblemsFound: one of them cannot show the tab; the report lists the problems.
    """
    problems = 0
    for title, python in _places():
        print(title)
        for finding in [python] if isinstance(python, Finding) else examine(python):
            problems += finding.weight == "PROBLEM"
            print(f"  {finding.weight:<7}  {finding.text}")
    if problems:
        raise ProblemsFound(f"{problems} problem{'s' if problems > 1 else ''}, see above")


def _places() -> Iterator[tuple[str, str | Finding]]:
    """(title, Python) for each way to start TensorBoard; a `Finding` if no Python is known."""
    command = shutil.which("tensorboard")
    python = None if command is None else interpreter_of(Path(command))
    if python is not None and _same(python, sys.executable):
        yield f"`tensorboard` ({command}) and `fmapboard serve`", sys.executable
        return
    if command is None:
        text = f"not on PATH; start it with: {to_paste('serve', 'LOGDIR')}"
        yield "`tensorboard`", Finding(text)
    elif python is None:
        text = f"cannot tell which Python runs it; use instead: {to_paste('serve', 'LOGDIR')}"
        yield f"`tensorboard` ({command})", Finding(text)
    else:
        yield f"`tensorboard` ({command})", python
    yield "`fmapboard serve`", sys.executable


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


def _same(one: str, other: str) -> bool:
    """True if both are in one environment; compares folders, as venvs may link to one Python."""
    return os.path.realpath(Path(one).parent) == os.path.realpath(Path(other).parent)


def examine(python: str) -> list[Finding]:
    """Check the installation of one interpreter: its versions, then problems and notes."""
    program = Path(__file__).with_name("doctor_probe.py").read_text("utf-8")
    try:
        done = subprocess.run(
            [python, "-c", program],
            capture_output=True, text=True, timeout=_TIMEOUT, check=True, stdin=subprocess.DEVNULL,
            cwd=Path(python).parent,  # so that nothing is imported from the user's directory
        )  # fmt: skip
        found = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return [Finding(f"{python} could not be run: {error}", "PROBLEM")]
    return [Finding(_versions(found), "ok"), *_judged(found, python)]


def _versions(found: dict[str, Any]) -> str:
    known = {name: version for name, version in found["versions"].items() if version}
    listed = [f"{_NAMES.get(name, name)} {version}" for name, version in known.items()]
    return ", ".join([f"Python {found['python']} ({found['executable']})", *listed])


def _judged(found: dict[str, Any], python: str) -> Iterator[Finding]:
    versions = found["versions"]
    install = f"run: {shlex.quote(python)} -m pip install"
    if versions["tensorboard"] is None:
        yield Finding(f"TensorBoard is not installed; {install} tensorboard", "PROBLEM")
        return
    server = found["server"]
    if server is not None and server["missing"] == "pkg_resources":
        yield Finding(without_pkg_resources(python), "PROBLEM")
    elif server is not None:
        text = f"TensorBoard does not start: {server['error']}"
        yield Finding(f"{text}; {install} --force-reinstall tensorboard", "PROBLEM")
    for plugin in found["broken"]:
        text = f"a plugin stops TensorBoard from starting: {plugin}; reinstall or uninstall it"
        yield Finding(text, "PROBLEM")
    if versions["fmapboard"] is None:
        yield Finding(
            f"fmapboard is not installed in this Python, so the tab is missing; "
            f"{install} {source()}",
            "PROBLEM",
        )
        return
    if not found["has_entry"]:
        text = "fmapboard is installed without its entry point"
        yield Finding(f"{text}; {install} --force-reinstall --no-deps {source()}", "PROBLEM")
    if found["tab"] is not None:
        yield Finding(f"the tab does not load: {found['tab']}", "PROBLEM")
    if versions["fmapboard"] != __version__:
        yield Finding(
            f"fmapboard {versions['fmapboard']} is not the version of this command "
            f"({__version__}); an older version may be unable to read newer runs"
        )
    if found["has_entry"] and not (server or found["tab"] or found["broken"]):
        yield Finding("the Feature maps tab is installed", "ok")
    if versions["tensorboard-data-server"] is None:
        yield Finding("no fast data loader (tensorboard-data-server): large runs load slowly")
    for running in found["running"]:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(running["started"]))
        where = f"TensorBoard has been running on port {running['port']} since {since}"
        yield Finding(f"{where}; restart it if fmapboard was installed after that")


def source() -> str:
    """The folder, wheel or repository that fmapboard was installed from, quoted for the shell.

    It is read from pip's record of the installation (PEP 610, ``direct_url.json``). Without that
    record, a placeholder is returned.
    """
    try:
        noted = json.loads(distribution("fmapboard").read_text("direct_url.json") or "")
    except (PackageNotFoundError, ValueError):
        return "PATH_TO_FMAPBOARD"
    url, repository = noted["url"], noted.get("vcs_info")
    if repository:
        return shlex.quote(f"{repository['vcs']}+{url}@{repository['commit_id']}")
    parts = urlparse(url)
    return shlex.quote(url2pathname(parts.path) if parts.scheme == "file" else url)
