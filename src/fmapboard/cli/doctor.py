"""``fmapboard doctor``: is the tab installed where TensorBoard runs, and what is wrong."""

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
from enum import Enum
from importlib import resources
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from fmapboard import __version__
from fmapboard.cli.run_dirs import to_paste
from fmapboard.errors import FmapboardError

_LIMIT = 120.0  # s; an interpreter on a network disk may need long to import
_NAMES = {"tensorboard": "TensorBoard", "tensorboard-data-server": "data server"}


class ProblemsFound(FmapboardError):
    """The tab cannot be shown as things are."""


class Weight(Enum):
    """How much a finding matters: a problem means that the tab is missing."""

    FINE = "ok"
    NOTE = "note"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    text: str
    weight: Weight = Weight.NOTE


def run_doctor() -> None:
    """Look into the Python of ``tensorboard`` and into this one, and print what is found.

    Raises:
        Unwell: the tab is missing in one of them; what to do stands in the report.
    """
    problems = 0
    for title, python in _places():
        print(title)
        for finding in [python] if isinstance(python, Finding) else examine(python):
            problems += finding.weight is Weight.PROBLEM
            print(f"  {finding.weight.value:<7}  {finding.text}")
    if problems:
        raise ProblemsFound(f"{problems} problem{'s' if problems > 1 else ''}, see above")


def _places() -> Iterator[tuple[str, str | Finding]]:
    """Where TensorBoard may run: what it is, and its Python."""
    command = shutil.which("tensorboard")
    python = None if command is None else interpreter_of(Path(command))
    if python is not None and _same(python, sys.executable):
        yield f"`tensorboard` ({command}) and `fmapboard serve`", sys.executable
        return
    if command is None:
        text = f"not on PATH; start it with: {to_paste('serve', 'LOGDIR')}"
        yield "`tensorboard`", Finding(text)
    elif python is None:
        text = f"cannot tell which Python runs it; safe is: {to_paste('serve', 'LOGDIR')}"
        yield f"`tensorboard` ({command})", Finding(text)
    else:
        yield f"`tensorboard` ({command})", python
    yield "`fmapboard serve`", sys.executable


def interpreter_of(command: Path) -> str | None:
    """The Python that runs an installed command: of its first line, or beside it on Windows."""
    beside = command.with_name("python.exe")
    if command.suffix.lower() == ".exe":
        return str(beside) if beside.exists() else None
    with command.open("rb") as file:
        first, second = [file.readline(1000).decode(errors="replace") for _ in range(2)]
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return None
    if Path(words[0]).name == "env":
        return shutil.which(words[-1])
    if Path(words[0]).name == "sh":
        return _started_by(second)
    return words[0] if os.access(words[0], os.X_OK) else None


def _started_by(line: str) -> str | None:
    """The Python in pip's way around long paths, a shell script that is Python as well."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    return words[1] if words[:1] == ["exec"] and len(words) > 1 else None


def _same(one: str, other: str) -> bool:
    """The same environment: not the same file, which environments share by links."""
    return os.path.realpath(Path(one).parent) == os.path.realpath(Path(other).parent)


def examine(python: str) -> list[Finding]:
    """What an interpreter's installation is like."""
    try:
        found = _inspected(python)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return [Finding(f"{python} cannot be asked: {error}", Weight.PROBLEM)]
    return [Finding(_versions(found), Weight.FINE), *_judged(found, python)]


def _inspected(python: str) -> dict[str, Any]:
    program = resources.files("fmapboard.cli").joinpath("doctor_probe.py").read_text("utf-8")
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True, text=True, timeout=_LIMIT, check=True, stdin=subprocess.DEVNULL,
        cwd=Path(python).parent,  # an import must not find what lies in the user's directory
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _versions(found: dict[str, Any]) -> str:
    known = {name: version for name, version in found["versions"].items() if version}
    listed = [f"{_NAMES.get(name, name)} {version}" for name, version in known.items()]
    return ", ".join([f"Python {found['python']} ({found['executable']})", *listed])


def _judged(found: dict[str, Any], python: str) -> Iterator[Finding]:
    versions = found["versions"]
    install = f"run: {shlex.quote(python)} -m pip install"
    if versions["tensorboard"] is None:
        yield Finding(f"TensorBoard is not installed; {install} tensorboard", Weight.PROBLEM)
        return
    for plugin in found["broken"]:
        text = f"a plugin stops TensorBoard from starting: {plugin}; uninstall or repair it"
        yield Finding(text, Weight.PROBLEM)
    if versions["fmapboard"] is None:
        yield Finding(
            f"fmapboard is not installed there, so no tab; {install} {source()}", Weight.PROBLEM
        )
        return
    if not found["has_entry"]:
        text = "fmapboard is installed without its entry point"
        yield Finding(f"{text}; {install} --force-reinstall --no-deps {source()}", Weight.PROBLEM)
    if found["tab"] is not None:
        yield Finding(f"the tab does not load: {found['tab']}", Weight.PROBLEM)
    if versions["fmapboard"] != __version__:
        yield Finding(f"another version than here ({__version__}): an older one may not read all")
    if found["has_entry"] and found["tab"] is None and not found["broken"]:
        yield Finding("the Feature maps tab is installed", Weight.FINE)
    if versions["tensorboard-data-server"] is None:
        yield Finding("no fast loader on this platform: large runs load slowly, all else works")
    for server in found["running"]:
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(server["started"]))
        where = f"TensorBoard runs on port {server['port']} since {since}"
        yield Finding(f"{where}: restart it if fmapboard was installed later")


def source() -> str:
    """What this installation was installed from, as ``pip install`` takes it.

    A folder, a wheel or a repository; the name alone where pip noted none of them (PEP 610), as
    of an installation from an index.
    """
    try:
        noted = json.loads(distribution("fmapboard").read_text("direct_url.json") or "")
    except (PackageNotFoundError, ValueError):
        return "fmapboard"
    url, repository = noted["url"], noted.get("vcs_info")
    if repository:
        return shlex.quote(f"{repository['vcs']}+{url}@{repository['commit_id']}")
    parts = urlparse(url)
    return shlex.quote(url2pathname(parts.path) if parts.scheme == "file" else url)
