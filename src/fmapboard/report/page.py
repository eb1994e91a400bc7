"""The HTML of a report: the tab's own front end, and the answers that it asks for."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

from fmapboard.plugin.bundle import script, styles
from fmapboard.plugin.static_files import FOLDER
from fmapboard.report.answers import Answer
from fmapboard.report.blobs import Blobs

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
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

    Attributes:
        blobs: everything that is embedded.
    """

    def __init__(self) -> None:
        self.blobs = Blobs()
        self._index: dict[str, list[str]] = {}

    def add(self, answers: Iterable[Answer]) -> None:
        """Embed answers."""
        for answer in answers:
            question = _dumped([answer.path, *answer.query])
            self._index[question] = [self.blobs.add(part) for part in answer.parts if part]

    def html(self, facts: dict[str, Any]) -> bytes:
        """The page.

        Args:
            facts: what the page says about itself (``ReportFacts`` in ``state/report.js``).
        """
        code = self.blobs.add(script(FOLDER, "report.js").encode())
        index = {"report": facts, "answers": self._index}
        listed = self.blobs.add(_dumped(index).encode())
        head = _HEAD.format(
            policy=html.escape(_POLICY),
            generator=html.escape(f"fmapboard {facts['version']}"),
            title=html.escape(facts["title"]),
            styles=styles(FOLDER, "style.css"),
            privacy=html.escape(facts["privacy"]),
        )
        start = FOLDER.joinpath("report_start.js").read_text("utf-8")
        tail = _TAIL.format(index=listed, script=code, start=start)
        return b"".join([head.encode(), *self.blobs.page_parts(), tail.encode()])


def _dumped(content: Any) -> str:
    """JSON as JavaScript's ``JSON.stringify`` writes it."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
