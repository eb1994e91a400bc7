"""The built-in rules: one per module, explained in its docstring, its numbers in `thresholds`."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fmapboard
from fmapboard.health import thresholds
from fmapboard.health.rules import BUILT_IN
from fmapboard.health.thresholds import Threshold

HEALTH = Path(fmapboard.__file__).parent / "health"
MODULES = sorted(path for path in (HEALTH / "rules").glob("*.py") if path.stem != "__init__")
PARTS = ("Why it hurts:", "Silent:", "Example:")
"""What the docstring of a rule explains, in this order."""
PLAIN = {0, 1, 2}
"""Numbers that need no source, of either sign."""
NAMES = ("states", "evidence", "labels", "progress", "record")
NAMES += ("copies", "gradient_ratios", "nonfinite_causes", "signal", "attention")
NAMES += ("gradient_cuts", "saturation", "output_sources", "updates")
JUDGES = [HEALTH / f"{name}.py" for name in NAMES]
"""Modules of ``health``, besides the rules, in which no other number stands."""
READERS = [*JUDGES, HEALTH / "verdict.py", HEALTH / "layer_findings.py"]
"""Modules of ``health``, besides the rules, that compare with thresholds."""
SERIES = {"PIXEL_SHUFFLE"}
"""Names in `thresholds` that are several numbers, with a docstring in place of unit and source."""


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def rule_classes(path: Path) -> list[ast.ClassDef]:
    """The classes of a module that are rules."""
    return [
        node
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and "Rule" in map(ast.unparse, node.bases)
    ]


def numbers_in(node: ast.AST) -> Iterator[ast.Constant]:
    """The numbers that stand in the code; none in indices and format specifications.

    In a formatted text 100 may stand as a factor of a percentage.
    """
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            yield node
        return
    for name, child in ast.iter_fields(node):
        if (isinstance(node, ast.Subscript) and name == "slice") or name == "format_spec":
            continue
        for part in child if isinstance(child, list) else [child]:
            if isinstance(part, ast.AST) and not is_percentage(node, part):
                yield from numbers_in(part)


def is_percentage(above: ast.AST, node: ast.AST) -> bool:
    """True for ``100 * share`` in a formatted text."""
    return (
        isinstance(above, ast.FormattedValue)
        and isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and isinstance(node.left, ast.Constant)
        and node.left.value == 100
        and isinstance(node.right, ast.Name)
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_has_one_rule_which_has_its_name_and_is_built_in(path: Path) -> None:
    (rule,) = rule_classes(path)
    built_in = [type(known).__name__ for known in BUILT_IN if known.kind == path.stem]
    assert built_in == [rule.name]
    assert rule.name.removesuffix("Check").lower() == path.stem.replace("_", "")


def code_lines(path: Path) -> int:
    """Lines of a module that are neither blank, nor comments, nor docstrings."""
    prose = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                prose |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines = enumerate(path.read_text().splitlines(), 1)
    return sum(number not in prose and line.strip()[:1] not in ("", "#") for number, line in lines)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_rule_can_be_read_in_one_go(path: Path) -> None:
    assert 25 <= code_lines(path) <= 60


def test_every_built_in_rule_has_a_module() -> None:
    assert sorted(rule.kind for rule in BUILT_IN) == [path.stem for path in MODULES]
    for rule in BUILT_IN:
        assert type(rule).__module__ == f"fmapboard.health.rules.{rule.kind}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_docstring_of_a_rule_says_why_it_hurts_when_it_is_silent_and_an_example(
    path: Path,
) -> None:
    (rule,) = rule_classes(path)
    text = ast.get_docstring(rule) or ""
    paragraphs = [paragraph for paragraph in text.split("\n\n") if paragraph.startswith(PARTS)]
    assert [paragraph.partition(":")[0] + ":" for paragraph in paragraphs] == [*PARTS]
    for paragraph in paragraphs:
        assert len(paragraph.partition(":")[2].split()) > 1, paragraph


@pytest.mark.parametrize("path", [*MODULES, *JUDGES], ids=lambda path: path.stem)
def test_every_number_that_is_compared_with_is_a_threshold(path: Path) -> None:
    found = [
        f"line {number.lineno}: {number.value}"
        for number in numbers_in(tree_of(path))
        if number.value not in PLAIN
    ]
    assert found == []


def test_every_field_of_a_rule_has_the_value_of_a_threshold() -> None:
    wrong = []
    for path in MODULES:
        (rule,) = rule_classes(path)
        for field in rule.body:
            if not isinstance(field, ast.AnnAssign) or "ClassVar" in ast.unparse(field.annotation):
                continue
            value = ast.unparse(field.value) if field.value else ""
            if not re.fullmatch(r"thresholds\.[A-Z0-9_]+\.value", value):
                wrong.append(f"{rule.name}.{ast.unparse(field.target)} = {value}")
    assert wrong == []


def test_every_threshold_is_used_and_says_its_unit_and_source() -> None:
    charts = HEALTH.parent / "plugin" / "routes" / "charts.py"  # of update ratios: the usual range
    outputs = HEALTH.parent / "gradients" / "output_facts.py"  # what is read of the loss
    readers = [*MODULES, *READERS, charts, outputs]
    used = {
        node.attr
        for path in readers
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "thresholds"
    }
    names = {name for name in vars(thresholds) if name.isupper()}
    assert len(names) > 100
    assert names == {name for name in used if name.isupper()}
    for name in names:
        threshold = getattr(thresholds, name)
        if name not in SERIES:
            assert isinstance(threshold, Threshold), name
            assert threshold.unit, name
            assert threshold.source, name


def test_no_rule_imports_another_one() -> None:
    for path in MODULES:
        imported = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        imported |= {
            alias.name
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not [name for name in imported if name.startswith("fmapboard.health.rules")], path
