"""The front end's files as the browser gets them: an entry module, a script and a style sheet.

The script is bundled from the modules in ``static`` with esbuild, and is committed:
``npm --prefix tests/js run build`` writes ``static/dist``.
"""

from __future__ import annotations

import lzma
import re
from pathlib import Path

FOLDER = Path(__file__).with_name("static")

ENTRY = "/index.js"
"""The module that TensorBoard imports in the tab's frame."""

SCRIPT = "/dist/app.js"
"""The bundle that the entry imports."""

_IMPORTED = re.compile(r'^@import url\("([^"]+)"\);\n', re.MULTILINE)

# `mimetypes` would read the Windows registry, where other programs may have set wrong types.
_JAVASCRIPT = "text/javascript"
_CSS = "text/css"


def report_script() -> bytes:
    """The bundle of a report. Only Python reads it, so a wheel holds it in less space."""
    packed = FOLDER / "dist" / "report.js.xz"
    if packed.is_file():
        return lzma.decompress(packed.read_bytes())
    return packed.with_suffix("").read_bytes()


def styles() -> str:
    """The style sheet, with the ones that it imports in front, in their order."""
    text = FOLDER.joinpath("style.css").read_text("utf-8")
    imported = [FOLDER.joinpath(name).read_text("utf-8") for name in _IMPORTED.findall(text)]
    return "".join([*imported, _IMPORTED.sub("", text)])


def static_files() -> dict[str, tuple[str, str]]:
    """Path -> text and content type, read once, when TensorBoard starts.

    Raises:
        FileNotFoundError: a file is missing, so the installation is incomplete.
    """
    files = {}
    try:
        for path in (ENTRY, SCRIPT):
            files[path] = (FOLDER.joinpath(path[1:]).read_text("utf-8"), _JAVASCRIPT)
        files["/style.css"] = (styles(), _CSS)
    except OSError as error:
        raise FileNotFoundError(f"no {error.filename}; reinstall fmapboard") from error
    return files
