"""The trainings of `tests/acceptance`, which no test runs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
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
            told = isinstance(date, ast.Constant) and re.fullmatch(
                r"\d{4}-\d\d-\d\dT\d\d:\d\d", str(date.value)
            )
            if call.func.id != "seen" or not told:
                undated.append(f"{file.name}:{call.lineno}")
    assert undated == []


LOOK = """
import ast, importlib, pathlib, sys, types
for file in sorted(pathlib.Path().rglob("*.py")):
    module = importlib.import_module(".".join(file.with_suffix("").parts))
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of = getattr(module, node.value.id, None)
            if isinstance(of, types.ModuleType) and not hasattr(of, node.attr):
                print(f"{file}:{node.lineno} {node.value.id}.{node.attr}")
"""
"""Prints what the trainings take from a module that does not have it."""


def test_what_the_trainings_take_from_modules_is_there() -> None:
    looking = [sys.executable, "-c", LOOK]
    found = subprocess.run(looking, cwd=ACCEPTANCE, capture_output=True, text=True, timeout=120)
    assert (found.stdout, found.returncode) == ("", 0), found.stderr


def _sets_cases(node: ast.AST) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == "CASES" for target in targets)
