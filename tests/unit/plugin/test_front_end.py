"""What the browser gets is made from the modules and style sheets of the front end."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from fmapboard.plugin import front_end

STATIC = Path(__file__).parents[3] / "src" / "fmapboard" / "plugin" / "static"
"""A wheel has only what is made from it."""

BUNDLES = {"app.js": 106_000, "report.js": 106_000}
"""Largest size of each, bytes at gzip 6; a report has its answers in the page."""


def bundle(name: str) -> str:
    if name == "report.js":
        return front_end.report_script().decode()
    return front_end.FOLDER.joinpath("dist", name).read_text("utf-8")


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_is_made_from_the_modules_as_they_are(name: str) -> None:
    """After a change of a module: ``npm --prefix tests/js run build``."""
    modules = {
        path.relative_to(STATIC).as_posix(): path
        for path in STATIC.rglob("*.js")
        if path.parent.name != "dist"
    }
    digest = hashlib.sha256(b"".join(modules[name].read_bytes() for name in sorted(modules)))
    assert bundle(name).splitlines()[0] == f"// sources {digest.hexdigest()}"


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_is_small_and_has_the_licences_of_what_is_vendored(name: str) -> None:
    text = bundle(name)
    assert len(gzip.compress(text.encode(), 6)) <= BUNDLES[name]
    assert text.count("The MIT License (MIT)") == text.count("Apache License") == 1


def test_every_style_sheet_is_sent() -> None:
    styles = front_end.styles()
    assert "@import" not in styles
    for sheet in front_end.FOLDER.glob("*.css"):
        assert sheet.read_text("utf-8").splitlines()[-3] in styles, sheet.name
