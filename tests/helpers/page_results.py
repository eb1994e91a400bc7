"""Run the Python blocks of a documentation page and collect the results that it states.

A comment behind an expression statement is its result: what ``repr`` prints, or the type and text
of the exception that it raises. A text that ends in ``…`` may go on.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, NamedTuple

_COMMENT = "  # "


class Result(NamedTuple):
    """One expression of a page: its source, the result that the page states, and the real one."""

    source: str
    stated: str
    found: str

    @property
    def is_right(self) -> bool:
        if self.stated.endswith("…"):
            return self.found.startswith(self.stated.removesuffix("…").rstrip())
        return self.found == self.stated


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def run_block(block: str, scope: dict[str, Any]) -> list[Result]:
    """Run the statements of one block in ``scope``; an exception that is not stated is raised."""
    results = []
    lines = block.splitlines()
    for node in ast.parse(block).body:
        source, _, stated = lines[node.end_lineno - 1].partition(_COMMENT)  # type: ignore[operator]
        if isinstance(node, ast.Expr) and stated:
            results.append(Result(source, stated, _evaluated(source, scope)))
        else:
            module = ast.Module([node], [])
            exec(compile(module, "page", "exec"), scope)
    return results


def _evaluated(source: str, scope: dict[str, Any]) -> str:
    try:
        return repr(eval(source, scope))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
