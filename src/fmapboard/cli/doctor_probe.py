"""What a Python installation would give TensorBoard: run there as a program, answers in JSON.

`doctor` hands this file's text to the interpreter that runs ``tensorboard``, which may be another
one than ours and may lack fmapboard: standard library alone at the top, and nothing raised.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import metadata
from typing import Any

PACKAGES = ("tensorboard", "tensorboard-data-server", "fmapboard", "torch")


def inspect() -> dict[str, Any]:
    """Versions (None where missing), plugins that fail, and why the tab would not load."""
    versions = {name: _version(name) for name in PACKAGES}
    has_tensorboard = versions["tensorboard"] is not None
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "versions": versions,
        "has_entry": any(point.value.startswith("fmapboard.") for point in _entry_points()),
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
    # Before Python 3.10 a dict; fmapboard does not run there, but TensorBoard may.
    return list(found.select(group=group) if hasattr(found, "select") else found.get(group, ()))


def _broken() -> list[str]:
    """Plugins of others whose import fails: each stops TensorBoard from starting."""
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
    """TensorBoards that run on this machine, as they announce themselves."""
    try:
        from tensorboard import manager

        return [
            {"port": info.port, "started": info.start_time, "logdir": info.logdir}
            for info in manager.get_all()
        ]
    except Exception:
        return []  # a damaged announcement: nothing that a tab could suffer from


if __name__ == "__main__":
    print(json.dumps(inspect()))
