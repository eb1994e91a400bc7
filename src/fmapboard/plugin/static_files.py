"""Routes for the front end's files, which are read once when TensorBoard starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fmapboard.plugin.http import Answer, app

ENTRY = "/index.js"
"""The module that TensorBoard imports in the tab's frame."""

FOLDER = Path(__file__).with_name("static")

# `mimetypes` would read the Windows registry, where other programs may have set wrong types.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def static_routes() -> dict[str, Any]:
    """Path -> WSGI application, for every file of a known type in ``static`` and its folders.

    Raises:
        FileNotFoundError: the entry module is missing, so the installation is incomplete.
    """
    routes = {
        f"/{file.relative_to(FOLDER).as_posix()}": _file(file.read_bytes(), _TYPES[file.suffix])
        for file in sorted(FOLDER.rglob("*"))
        if file.suffix in _TYPES
    }
    if ENTRY not in routes:
        raise FileNotFoundError(f"no fmapboard/plugin/static{ENTRY}; reinstall fmapboard")
    return routes


def _file(content: bytes, content_type: str) -> Any:
    return app(lambda environ, query: Answer(content, content_type))
