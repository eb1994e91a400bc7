"""Every row of the table of set-ups is a test."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows() -> list[list[str]]:
    page = (ROOT / "docs" / "setups.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def existing() -> set[str]:
    names: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return names


def test_every_set_up_names_a_test_that_exists() -> None:
    table, known = rows(), existing()
    assert len(table) >= 30
    for row in table:
        assert len(row) == 3, row
        assert row[2].strip("`") in known, row[2]


def test_every_set_up_says_something_and_stands_once() -> None:
    table = rows()
    assert len({row[0] for row in table}) == len(table)
    assert all(row[0] and row[1] for row in table)


def test_every_test_of_a_training_set_up_is_in_the_table() -> None:
    named = {row[2].strip("`") for row in rows()}
    tree = ast.parse((ROOT / "tests" / "training" / "setups" / "test_setups.py").read_text())
    tests = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    beside = {"test_a_skipped_step_marked_by_hand_has_no_norm"}  # a second view of one row
    assert {name for name in tests if name.startswith("test_")} - named == beside
