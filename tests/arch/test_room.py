"""Sentences of the source have room: bounds on what stands in a line, in a function, in a name."""

from __future__ import annotations

import ast
import tokenize as tk
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "fmapboard"
BLANK = {tk.COMMENT, tk.NL, tk.NEWLINE, tk.INDENT, tk.DEDENT, tk.ENDMARKER}
MOST = {"functions over 40 code lines": 8, "classes over 250 lines": 4}
MOST |= {"calls with six positional arguments": 15, "names of, one, told, said": 0}
MOST |= {"tuple assignments": 0.006, "lines over 95 columns": 0.02}  # per code line


def broken_rules(node: ast.AST, code: set[int], fields: set[ast.AST]) -> list[bool]:
    """In the order of ``MOST``, without that of lines; fields may be so."""
    lines = range(getattr(node, "lineno", 0), (getattr(node, "end_lineno", 0) or 0) + 1)
    is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    name = getattr(node, "id" if is_stored and node not in fields else "arg", "")
    is_of_tuple = isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    return [
        isinstance(node, ast.FunctionDef) and len(code & set(lines)) > 40,
        isinstance(node, ast.ClassDef) and len(lines) > 250,
        isinstance(node, ast.Call) and len(node.args) >= 6,
        name in {"of", "one", "told", "said"} and not isinstance(node, ast.keyword),
        is_of_tuple and isinstance(node.targets[0], ast.Tuple),
    ]


def code_tokens(lines: list[str]) -> list[tk.TokenInfo]:
    """The tokens of code; an f-string is one, as it is before Python 3.12."""
    found = []
    depth = 0
    for token in tk.generate_tokens(iter(lines).__next__):
        if tk.tok_name[token.type] == "FSTRING_START":
            depth += 1
        elif tk.tok_name[token.type] == "FSTRING_END":
            depth -= 1
        if depth == 0 and token.type not in BLANK:
            found.append(token)
    return found


def test_the_source_has_room() -> None:
    places: dict[str, list[str]] = {rule: [] for rule in MOST}
    tokens = code_lines = 0
    for path in SOURCE.rglob("*.py"):
        lines = path.read_text().splitlines(keepends=True)
        nodes = list(ast.walk(ast.parse("".join(lines))))
        bodies = [
            n.body for n in nodes if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)
        ]
        docs = [body[0] for body in bodies if body and isinstance(body[0], ast.Expr)]
        prose = {n for doc in docs for n in range(doc.lineno, (doc.end_lineno or 0) + 1)}
        inside = [own for n in nodes if isinstance(n, ast.ClassDef) for own in n.body]
        fields = {own.target for own in inside if isinstance(own, ast.AnnAssign)}
        found = code_tokens(lines)
        code = {line for t in found for line in range(t.start[0], t.end[0] + 1)} - prose
        tokens += sum(token.start[0] not in prose for token in found)
        code_lines += len(code)
        long = [n for n, line in enumerate(lines, 1) if n in code and len(line) > 96]  # with \n
        places["lines over 95 columns"] += [f"{path}:{number}" for number in long]
        for node in nodes:
            for rule, is_broken in zip(MOST, broken_rules(node, code, fields), strict=False):
                if is_broken:
                    places[rule].append(f"{path}:{getattr(node, 'lineno', 1)}")
    assert tokens / code_lines <= 8.6, "tokens per code line"
    for rule, found_at in places.items():
        most = MOST[rule] * (code_lines if 0 < MOST[rule] < 1 else 1)
        assert len(found_at) <= most, f"{rule}, at most {most:.0f}:\n" + "\n".join(found_at)
