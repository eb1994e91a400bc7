"""A program that says whether TensorBoard has the Feature maps tab in the Python that runs it.

`doctor` passes the text of this file to the Python that runs ``tensorboard``. That may be an older
version and may lack fmapboard, so only the standard library is imported at the top, and errors are
said instead of raised. The last line that it prints is a JSON list of what `examined` yields.
"""

from __future__ import annotations

import contextlib
import json
import platform
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from importlib import metadata
from subprocess import list2cmdline
from typing import Any

_LOOKING = 10.0  # s
_NAMES = {
    "tensorboard": "TensorBoard",
    "tensorboard-data-server": "data server",
    "fmapboard": "fmapboard",
    "torch": "torch",
}
"""Packages whose versions are listed, and what they are called."""


def examined(version: str, source: str, python: str) -> Iterator[tuple[str, str]]:
    """What there is to say of this Python: its versions, then problems and notes.

    Each is a severity and a text. Only a ``PROBLEM`` keeps the tab from being shown, the others are
    ``ok`` and ``note``.

    Args:
        version: version of the fmapboard that asks.
        source: what to install fmapboard from, quoted for the shell.
        python: how to call this Python.
    """
    versions = {name: found for name in _NAMES if (found := _version(name)) is not None}
    listed = [f"{_NAMES[name]} {found}" for name, found in versions.items()]
    yield "ok", ", ".join([f"Python {platform.python_version()} ({sys.executable})", *listed])
    install = f"run: {_pip_install(python)}"
    if "tensorboard" not in versions:
        yield "PROBLEM", f"TensorBoard is not installed; {install} tensorboard"
        return
    problems = [*_of_server(python), *_of_plugins()]
    if "fmapboard" not in versions:
        why = "fmapboard is not installed in this Python, so the tab is missing"
        problems.append(f"{why}; {install} {source}")
    else:
        if not any(point.value.startswith("fmapboard.") for point in _entry_points()):
            why = "fmapboard is installed without its entry point"
            problems.append(f"{why}; {install} --force-reinstall --no-deps {source}")
        problems += _of_tab()
    yield from (("PROBLEM", problem) for problem in problems)
    if "fmapboard" not in versions:
        return
    if versions["fmapboard"] != version:
        other = f"fmapboard {versions['fmapboard']} is not the version of this command ({version})"
        yield "note", f"{other}; an older version may be unable to read newer runs"
    if not problems:
        yield "ok", "the Feature maps tab is installed"
    if "tensorboard-data-server" not in versions:
        yield "note", "no fast data loader (tensorboard-data-server): large runs load slowly"
    for port, started in _running():
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(started))
        where = f"TensorBoard has been running on port {port} since {since}"
        yield "note", f"{where}; restart it if fmapboard was installed after that"


def without_pkg_resources(python: str) -> str:
    """Why a TensorBoard that lacks the module ``pkg_resources`` does not start, and the cure.

    TensorBoard 2.16 to 2.20 import it and accept every setuptools, which no longer has it.

    Args:
        python: the Python that runs TensorBoard.
    """
    install = _pip_install(python)
    return (
        "TensorBoard does not start: before version 2.21 it needs pkg_resources, which setuptools "
        f"82 and newer no longer have; run: {install} 'setuptools<82', or: {install} --upgrade "
        "tensorboard"
    )


def _pip_install(python: str) -> str:
    quoted = list2cmdline([python]) if sys.platform == "win32" else shlex.quote(python)
    return f"{quoted} -m pip install"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _entry_points() -> list[Any]:
    found: Any = metadata.entry_points()
    group = "tensorboard_plugins"
    # A dict before Python 3.10, which TensorBoard supports and fmapboard does not.
    return list(found.select(group=group) if hasattr(found, "select") else found.get(group, ()))


def _of_server(python: str) -> Iterator[str]:
    """Why the server does not start, if it does not."""
    try:
        from tensorboard import default  # noqa: F401
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "pkg_resources":
            yield without_pkg_resources(python)
        else:
            text = f"TensorBoard does not start: {type(error).__name__}: {error}"
            yield f"{text}; run: {_pip_install(python)} --force-reinstall tensorboard"


def _of_plugins() -> Iterator[str]:
    """Installed plugins whose import fails; a single one stops TensorBoard from starting."""
    for point in _entry_points():
        try:
            point.load()
        except Exception as error:
            what = f"{point.name} ({point.value}): {type(error).__name__}: {error}"
            yield f"a plugin stops TensorBoard from starting: {what}; reinstall or uninstall it"


def _of_tab() -> Iterator[str]:
    """Why the tab does not load, if it does not."""
    try:
        from tensorboard.plugins.base_plugin import TBContext

        from fmapboard.plugin.plugin import FeatureMapsPlugin

        FeatureMapsPlugin(TBContext())
    except Exception as error:
        yield f"the tab does not load: {type(error).__name__}: {error}"


def _running() -> list[tuple[int, float]]:
    """Port and start of TensorBoard's servers on this machine, by the info files they write."""
    found: list[tuple[int, float]] = []

    def look() -> None:
        with contextlib.suppress(Exception):  # an unreadable info file does not affect the tab
            from tensorboard import manager

            found.extend((info.port, info.start_time) for info in manager.get_all())

    # What has the name of an info file may be a pipe, which is read for ever.
    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(_LOOKING)
    return list(found)


if __name__ == "__main__":
    print(json.dumps(list(examined(*sys.argv[1:]))))
