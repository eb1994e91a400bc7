"""A program that reports, as JSON, what TensorBoard would find in the Python that runs it.

`doctor` passes the text of this file to the Python that runs ``tensorboard``. That may be an older
version and may lack fmapboard, so only the standard library is imported at the top, and errors are
reported instead of raised.
"""

from __future__ import annotations

import contextlib
import json
import platform
import sys
import threading
from importlib import metadata
from typing import Any

_LOOKING = 10.0  # s
PACKAGES = ("tensorboard", "tensorboard-data-server", "fmapboard", "torch")


def inspect() -> dict[str, Any]:
    """Examine this Python: package versions, the server, plugins, the tab, running servers.

    Returns:
        A dictionary for JSON. A version is None if the package is not installed; ``server`` is the
        error that keeps TensorBoard from starting, and ``tab`` the one that keeps the Feature maps
        tab from loading, or None.
    """
    versions = {name: _version(name) for name in PACKAGES}
    has_tensorboard = versions["tensorboard"] is not None
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "versions": versions,
        "has_entry": any(point.value.startswith("fmapboard.") for point in _entry_points()),
        "server": _server_error() if has_tensorboard else None,
        "broken": _broken() if has_tensorboard else [],
        "tab": _tab_error() if has_tensorboard else None,
        "running": _running() if has_tensorboard else [],
    }


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


def _server_error() -> dict[str, str | None] | None:
    """The error of importing the server, and the name of the module that is missing."""
    try:
        from tensorboard import default  # noqa: F401
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        return {"error": f"{type(error).__name__}: {error}", "missing": missing}
    return None


def _broken() -> list[str]:
    """Installed plugins whose import fails; a single one stops TensorBoard from starting."""
    broken = []
    for point in _entry_points():
        try:
            point.load()
        except Exception as error:
            broken.append(f"{point.name} ({point.value}): {type(error).__name__}: {error}")
    return broken


def _tab_error() -> str | None:
    try:
        from tensorboard.plugins.base_plugin import TBContext

        from fmapboard.plugin.plugin import FeatureMapsPlugin

        FeatureMapsPlugin(TBContext())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _running() -> list[dict[str, Any]]:
    """TensorBoard servers on this machine, from the info files that they write."""
    found: list[dict[str, Any]] = []

    def look() -> None:
        with contextlib.suppress(Exception):  # an unreadable info file does not affect the tab
            from tensorboard import manager

            for info in manager.get_all():
                server = {"port": info.port, "started": info.start_time, "logdir": info.logdir}
                found.append(server)

    # What has the name of an info file may be a pipe, which is read for ever.
    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(_LOOKING)
    return list(found)


if __name__ == "__main__":
    print(json.dumps(inspect()))
