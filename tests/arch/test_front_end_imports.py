"""The front end's modules import in one direction, as CONTRIBUTING says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "src" / "fmapboard" / "plugin" / "static"
ORDER = ["vendor", "server", "model", "picture", "chart", "view"]
"""Folders; each may import itself and those before it. The entry points above may import all."""
_IMPORTED = re.compile(r'^import [^;]*? from "(\.[^"]+)";', re.MULTILINE)


def modules() -> list[Path]:
    """Those that are written by hand."""
    written = set(STATIC.rglob("*.js")) - set(STATIC.glob("vendor/*")) - set(STATIC.glob("dist/*"))
    return sorted(written)


def folder_of(path: Path) -> str:
    """Name of the folder in ``static``; empty for an entry point."""
    within = path.relative_to(STATIC).parts
    return within[0] if len(within) > 1 else ""


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_imports_only_itself_and_those_before_it(folder: str) -> None:
    allowed = set(ORDER[: ORDER.index(folder) + 1])
    wrong = [
        f"{path.relative_to(STATIC)} imports {imported}"
        for path in sorted((STATIC / folder).glob("*.js"))
        for imported in _IMPORTED.findall(path.read_text())
        if folder_of((path.parent / imported).resolve()) not in allowed
    ]
    assert not wrong


def test_only_the_hooks_of_the_views_reach_the_page_itself() -> None:
    words = ("createElement(", "replaceChildren(", "addEventListener(")
    found = [
        f"{path.name}: {word}"
        for path in sorted((STATIC / "view").glob("*.js"))
        for word in words
        if word in path.read_text() and path.name != "hooks.js"
    ]
    assert not found


def test_no_two_modules_share_a_name() -> None:
    names = [path.name for path in [*modules(), *STATIC.rglob("*.d.ts")]]
    assert sorted(names) == sorted(set(names))


def test_types_are_in_the_declarations_of_a_folder_and_comments_hold_prose() -> None:
    found = [path.name for path in modules() if "@typedef" in path.read_text()]
    assert not found


def test_every_module_is_an_entry_point_or_in_one_of_the_folders() -> None:
    found = {folder_of(path) for path in modules()}
    assert found <= {"", *ORDER}
    entries = {path.name for path in STATIC.glob("*.js")}
    assert entries == {"app.js", "index.js", "report.js", "report_start.js"}
