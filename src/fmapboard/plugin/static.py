"""The front end's files: a fixed list, read once, each on a route of its own."""

from __future__ import annotations

from importlib import resources
from typing import Any

from fmapboard.plugin.answers import Answer, app

ENTRY = "/index.js"
"""What TensorBoard imports into the tab's frame."""

# Not from `mimetypes`, which reads the registry on Windows, where other programs leave errors.
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def static_routes() -> dict[str, Any]:
    """Route -> application, for every file of a known type in ``static``.

    Raises:
        FileNotFoundError: the entry is not among them: an incomplete installation.
    """
    routes = {}
    for file in resources.files("fmapboard.plugin").joinpath("static").iterdir():
        suffix = file.name[file.name.rfind(".") :]
        if file.is_file() and suffix in _TYPES:
            routes[f"/{file.name}"] = _file(file.read_bytes(), _TYPES[suffix])
    if ENTRY not in routes:
        raise FileNotFoundError(f"fmapboard/plugin/static{ENTRY}; install fmapboard again")
    return routes


def _file(content: bytes, content_type: str) -> Any:
    return app(lambda environ, query: Answer(content, content_type))
