"""The trainings of `tests/acceptance`, which no test runs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ACCEPTANCE = Path(__file__).parents[1] / "acceptance"
FILES = sorted(ACCEPTANCE.glob("cases/*/*.py"))


def test_every_case_bears_the_time_at_which_the_checks_first_saw_it() -> None:
    undated = []
    for file in FILES:
        (cases,) = (node.value for node in ast.parse(file.read_text()).body if _sets_cases(node))
        assert isinstance(cases, ast.List), file
        assert cases.elts, file
        for group in cases.elts:
            assert isinstance(group, ast.Starred), file
            if not _is_dated(group.value):
                undated.append(f"{file.name}:{group.lineno}")
    assert undated == []


def test_no_two_cases_of_a_file_and_a_date_share_a_name() -> None:
    twice = []
    for file in FILES:
        (cases,) = (node.value for node in ast.parse(file.read_text()).body if _sets_cases(node))
        for group in ast.walk(cases):
            if isinstance(group, ast.Call) and _is_dated(group):
                names = [_first_text(case) for case in group.args[1:]]
                twice += [f"{file.name}: {n}" for n in names if n and names.count(n) > 1]
    assert twice == []


def test_cases_stand_under_a_subject_or_a_fault() -> None:
    assert {file.parent.name for file in FILES} == {"healthy", "faults"}
    assert [file.name for file in FILES if re.search(r"\d|strangers", file.stem)] == []


def test_no_case_file_imports_from_another() -> None:
    imports = []
    for file in ACCEPTANCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            imports += [f"{file.name}: {name}" for name in modules if name.split(".")[0] == "cases"]
    assert imports == []


def _sets_cases(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "CASES" for target in targets)


def _is_dated(call: ast.expr) -> bool:
    """True for ``seen("2026-11-28T10:00", …)``."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or not call.args:
        return False
    date = call.args[0]
    return (
        call.func.id == "seen"
        and isinstance(date, ast.Constant)
        and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", str(date.value)) is not None
    )


def _first_text(call: ast.expr) -> str:
    """The name of ``one("name", …)``; empty for a comprehension over cases."""
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    return str(first.value) if isinstance(first, ast.Constant) else ""
