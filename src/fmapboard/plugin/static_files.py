"""The front end's files: a fixed list, read once, each on a route of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fmapboard.plugin.http import Answer, app

ENTRY = "/index.js"
"""What TensorBoard imports into the tab's frame."""

FOLDER = Path(__file__).with_name("static")

# Not from `mimetypes`, which reads the registry on Windows, where other programs leave errors.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def static_routes() -> dict[str, Any]:
    """Route -> application, for every file of a known type in ``static`` and its folders.

    Raises:
        FileNotFoundError: the entry is not among them: an incomplete installation.
    """
    routes = {
        f"/{file.relative_to(FOLDER).as_posix()}": _file(file.read_bytes(), _TYPES[file.suffix])
        for file in sorted(FOLDER.rglob("*"))
        if file.suffix in _TYPES
    }
    if ENTRY not in routes:
        raise FileNotFoundError(f"fmapboard/plugin/static{ENTRY}; install fmapboard again")
    return routes


def _file(content: bytes, content_type: str) -> Any:
    return app(lambda environ, query: Answer(content, content_type))
