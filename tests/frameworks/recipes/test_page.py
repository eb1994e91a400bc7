"""The page of recipes agrees with the scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markdown_pages import is_part, python_blocks

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "recipes.md"
SCRIPTS = {path.stem: path.read_text() for path in (ROOT / "examples" / "recipes").glob("*.py")}
ROWS = re.findall(
    r"^\| \[(\w+)\.py\]\(\.\./examples/recipes/\1\.py\) \| \[(.*?)\]\(#(.*?)\) \|",
    PAGE.read_text(),
    re.MULTILINE,
)
"""Script, heading and anchor of each row of the table."""


def test_the_table_has_each_script_once_and_leads_to_every_section_in_order() -> None:
    assert sorted(script for script, _, _ in ROWS) == sorted(SCRIPTS)
    headings = re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)
    assert [heading for _, heading, _ in ROWS] == headings
    for _, heading, anchor in ROWS:
        assert anchor == re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(("script", "heading"), [row[:2] for row in ROWS])
def test_the_lines_of_a_section_are_in_its_script(script: str, heading: str) -> None:
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert [block for block in blocks if not is_part(block, SCRIPTS[script])] == []


def test_a_script_whose_section_shows_no_line_has_the_one_at_the_top() -> None:
    top = python_blocks(PAGE)[0].removeprefix("with ").removesuffix(":\n")
    for script, heading, _ in ROWS:
        section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
        assert "```python" in section or is_part(top, SCRIPTS[script]), script
    assert sum(is_part(top, text) for text in SCRIPTS.values()) == 5


def test_the_command_on_the_page_runs_a_script() -> None:
    (command,) = re.findall(r"^python (\S+)$", PAGE.read_text(), re.MULTILINE)
    assert (ROOT / command).exists()
