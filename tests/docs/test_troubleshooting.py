"""docs/troubleshooting.md quotes messages that fmapboard has."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
ROWS = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.splitlines() if "| `" in line[:4]]


def strings(path: Path) -> list[str]:
    """The string constants of a module; what is formatted into them is "…"."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
            found.append("".join(map(str, parts)))
    return [re.sub(r"%[srd]|{}", "…", text) for text in found]


@functools.cache
def source() -> str:
    """The string constants of all modules."""
    return "\n".join(
        text for path in sorted((ROOT / "src").rglob("*.py")) for text in strings(path)
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[:40])
def test_each_part_of_a_quoted_message_is_in_the_source(row: str) -> None:
    (quoted,) = re.findall(r"^`([^`]+)`", row)
    parts = [part.strip(" (:") for part in quoted.split("…")]
    assert [part for part in parts if part not in source()] == []
    assert max(map(len, parts)) > 7


def test_the_page_quotes_messages() -> None:
    assert len(ROWS) >= 12
