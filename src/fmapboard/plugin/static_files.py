"""Routes for the front end: the module that TensorBoard imports, the script and the style sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fmapboard.plugin.bundle import script, styles
from fmapboard.plugin.http import Answer, app

ENTRY = "/index.js"
"""The module that TensorBoard imports in the tab's frame."""

FOLDER = Path(__file__).with_name("static")

# `mimetypes` would read the Windows registry, where other programs may have set wrong types.
_SCRIPT, _STYLES = "text/javascript", "text/css"


def static_routes() -> dict[str, Any]:
    """Path -> WSGI application. The files are read once, when TensorBoard starts.

    Raises:
        FileNotFoundError: a file is missing, so the installation is incomplete.
        ValueError: see `script`.
    """
    try:
        return {
            ENTRY: _text(FOLDER.joinpath(ENTRY[1:]).read_text("utf-8"), _SCRIPT),
            "/app.js": _text(script(FOLDER, "app.js"), _SCRIPT),
            "/style.css": _text(styles(FOLDER, "style.css"), _STYLES),
        }
    except OSError as error:
        raise FileNotFoundError(f"no {error.filename}; reinstall fmapboard") from error


def _text(content: str, content_type: str) -> Any:
    return app(lambda environ, query: Answer(content, content_type))
