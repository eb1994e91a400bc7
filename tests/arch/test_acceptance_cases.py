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
        calls = [node.value for node in ast.parse(file.read_text()).body if _sets_cases(node)]
        assert calls, file
        for call in calls:
            assert isinstance(call, ast.Call), file
            assert isinstance(call.func, ast.Name), file
            date = call.args[0]
            is_date = isinstance(date, ast.Constant) and re.fullmatch(
                r"\d{4}-\d\d-\d\dT\d\d:\d\d", str(date.value)
            )
            if call.func.id != "seen" or not is_date:
                undated.append(f"{file.name}:{call.lineno}")
    assert undated == []


def _sets_cases(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "CASES" for target in targets)
