"""The trainings of `tests/acceptance`, which no test runs, can be imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import warm_python

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("timm", "transformers"))), reason="trains their networks"
)
ACCEPTANCE = Path(__file__).parents[1] / "acceptance"
PRINT_MISSING = """
import ast, importlib, pathlib, types
for file in sorted(pathlib.Path().rglob("*.py")):
    module = importlib.import_module(".".join(file.with_suffix("").parts))
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = getattr(module, node.value.id, None)
            if isinstance(owner, types.ModuleType) and not hasattr(owner, node.attr):
                print(f"{file}:{node.lineno} {node.value.id}.{node.attr}")
"""
"""Prints what the trainings take from a module that does not have it."""
ASK_TWICE = """
import runpy, sys
for options in (["--first-seen", "2020-01"], ["--only", "actor_critics"]):
    sys.argv = ["run.py", "healthy/reinforcement", "--list", *options]
    try:
        runpy.run_path("run.py", run_name="__main__")
    except SystemExit as ended:
        print(ended.code)
"""
"""Lists cases in one process, which imports the libraries once; prints the exit statuses."""


def test_what_the_trainings_take_from_modules_is_there() -> None:
    found = warm_python.run(PRINT_MISSING, cwd=ACCEPTANCE, timeout=240)
    assert (found.stdout, found.returncode) == ("", 0), found.stderr


def test_a_date_or_a_name_without_cases_is_an_error_that_names_what_there_is() -> None:
    found = warm_python.run(ASK_TWICE, cwd=ACCEPTANCE, timeout=240)
    assert (found.stdout, found.returncode) == ("2\n2\n", 0), found.stderr
    assert [line for line in found.stderr.splitlines() if line.startswith("no case")] == [
        "no case was first seen at '2020-01'; there are: 2026-11-27T11:30, 2026-11-28T03:00, "
        "2026-11-28T10:00, 2026-11-28T11:40, 2026-11-28T12:40",
        "no case matches 'actor_critics' among 7; closest: actor_critic",
    ]
