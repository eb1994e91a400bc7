"""Test modules change nothing process-wide when they are imported."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]


def calls_at_import(path: Path) -> list[str]:
    """Statements of a module that only call something: settings, registrations, side effects."""
    statements = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Expr)]
    return [ast.unparse(node) for node in statements if not isinstance(node.value, ast.Constant)]


def assignments_into_others(path: Path) -> list[str]:
    """Module-level assignments to items and attributes, as ``os.environ["X"] = "1"``."""
    targets = [
        target
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
    ]
    return [ast.unparse(one) for one in targets if isinstance(one, ast.Attribute | ast.Subscript)]


def test_importing_a_test_module_has_no_side_effect() -> None:
    modules = [*TESTS.rglob("test_*.py"), *TESTS.glob("helpers/*.py")]
    assert len(modules) > 100
    found = {
        path.relative_to(TESTS).as_posix(): calls_at_import(path) + assignments_into_others(path)
        for path in modules
    }
    assert {name: statements for name, statements in found.items() if statements} == {}
