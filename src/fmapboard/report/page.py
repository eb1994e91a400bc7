"""The page of a report: answers, each part stored once, and the front end, in one HTML file.

Of a site, the pictures are in files beside it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Iterable, Iterator
from typing import Any

from fmapboard.arithmetic import ceil_div
from fmapboard.plugin.front_end import FOLDER, report_script, styles
from fmapboard.report.answers import Embedded

_SMALL = 200
"""Bytes up to which nothing is compressed."""
_TAG = b'<script type="text/plain" id="%s">%s</script>\n'


_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'{files}; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_FILES = " 'self' file:"
"""What a site may load scripts from: the folder that it is in."""
_PICTURES = {"maps", "input", "attribution_picture", "layer_patches", "tokens"}
"""Routes whose answers are in files of a site."""
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<meta name="generator" content="{generator}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{styles}</style>
</head>
<body>
<noscript>This report needs JavaScript. {privacy}</noscript>
"""
_TAIL = '<script id="start" data-index="{index}" data-script="{script}">\n{start}</script>\n</body>\n</html>\n'  # noqa: E501


NO_FACTS: dict[str, Any] = {"title": "", "version": "", "privacy": ""}
"""Facts for a page whose size is to be known."""


class Page:
    """Collects answers and writes the page.

    Args:
        is_site: True to have the pictures in files beside the page.

    Attributes:
        embedded: bytes that are stored, after compression and before base64.
        size: bytes that they take in the page, or in the files.
    """

    def __init__(self, *, is_site: bool = False) -> None:
        self._is_site = is_site
        self._files: dict[str, dict[str, bytes]] = {}
        self._index: dict[str, list[str]] = {}
        self._names: dict[bytes, str] = {}
        self._stored: dict[str, bytes] = {}
        self.embedded = 0
        self.size = 0

    def add(self, answers: Iterable[Embedded]) -> None:
        """Embed answers."""
        for answer in answers:
            question = _dumped([answer.path, *answer.query])
            is_apart = self._is_site and answer.path in _PICTURES
            file = f".{len(self._files)}" if is_apart else ""
            self._index[question] = [self._name_of(part, file) for part in answer.parts if part]

    def _name_of(self, blob: bytes, file: str = "") -> str:
        """Store some bytes and name them; the names of compressed ones begin with ``z``.

        Args:
            blob: the bytes.
            file: a dot and the name of the file to store them in; empty for the page.
        """
        digest = hashlib.sha256(blob).digest()
        known = self._names.get(digest)
        if known is not None:
            return known
        kind = "b"
        stored = blob
        if len(blob) >= _SMALL:
            packed = gzip.compress(blob, 6, mtime=0)
            if len(packed) < 0.95 * len(blob):
                kind = "z"
                stored = packed
        name = f"{kind}{len(self._names)}{file}"
        self._names[digest] = name
        of_file = self._files.setdefault(file[1:], {}) if file else self._stored
        of_file[name] = stored
        self.embedded += len(stored)
        self.size += len(_TAG) - len("%s%s") + len(name) + 4 * ceil_div(len(stored), 3)
        return name

    def html(self, facts: dict[str, Any]) -> bytes:
        """The page.

        Args:
            facts: what the page says about itself (``ReportFacts`` in ``state/report.js``).
        """
        code = self._name_of(report_script())
        index = {"report": facts, "answers": self._index}
        listed = self._name_of(_dumped(index).encode())
        head = _HEAD.format(
            policy=html.escape(_POLICY.format(files=_FILES if self._is_site else "")),
            generator=html.escape(f"fmapboard {facts['version']}"),
            title=html.escape(facts["title"]),
            styles=styles(),
            privacy=html.escape(facts["privacy"]),
        )
        start = FOLDER.joinpath("report_start.js").read_text("utf-8")
        tail = _TAIL.format(index=listed, script=code, start=start)
        # No HTML parser can misread base64.
        parts = [head.encode()]
        for name, stored in self._stored.items():
            parts.append(_TAG % (name.encode(), base64.b64encode(stored)))
        parts.append(tail.encode())
        return b"".join(parts)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Name and content of each file of pictures: a script, as a page from disk cannot fetch."""
        for name, stored in self._files.items():
            texts = {part: base64.b64encode(blob).decode() for part, blob in stored.items()}
            yield f"{name}.js", f"window.fmapboardPictures={_dumped(texts)};\n".encode()


def size_of(answers: Iterable[Embedded]) -> int:
    """Bytes that answers take in a page."""
    page = Page()
    page.add(answers)
    return page.size


def _dumped(content: Any) -> str:
    """JSON as JavaScript's ``JSON.stringify`` writes it."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
