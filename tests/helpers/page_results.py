"""Run the Python blocks of a documentation page and collect the results that it states.

The comment after an expression statement is its result: what ``repr`` prints, or the type and text
of the exception that it raises. A stated result that ends in ``…`` is a prefix of the real one.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


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


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page after its blocks were run, in order, in one directory and one namespace."""

    text: str
    directory: Path
    names: dict[str, Any]
    results: list[Result]

    def run(self, name: str) -> EventAccumulator:
        """What TensorBoard reads in ``runs/<name>``."""
        return events(self.directory / "runs" / name)


def run_page(page: Path) -> RunPage:
    """Run a page's Python blocks in the current directory."""
    text, names = page.read_text(), {"__name__": "page"}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    results = [result for block in blocks for result in run_block(block, names)]
    return RunPage(text, Path.cwd(), names, results)


def run_block(block: str, names: dict[str, Any]) -> list[Result]:
    """Run the statements of one block, which ends where one raises, as a notebook's cell does.

    An exception that the block does not state is raised. One inside a ``with`` block is stated in
    that block's last line.
    """
    results: list[Result] = []
    lines = block.splitlines()
    for node in ast.parse(block).body:
        source, _, stated = lines[(node.end_lineno or 0) - 1].partition("  # ")
        is_stated = bool(stated) and isinstance(node, ast.Expr | ast.With)
        try:
            if isinstance(node, ast.Expr) and stated:
                results.append(Result(source, stated, repr(eval(source, names))))
            else:
                exec(compile(ast.Module([node], []), "page", "exec"), names)
        except Exception as error:
            if not is_stated:
                raise
            results.append(Result(source.strip(), stated, f"{type(error).__name__}: {error}"))
            break
    return results


def events(directory: Path) -> EventAccumulator:
    """The run in a directory, as TensorBoard's Python loader reads it."""
    return EventAccumulator(str(directory)).Reload()


def steps(run: EventAccumulator, tag: str) -> list[int]:
    """The steps at which a picture or a histogram is stored."""
    return [event.step for event in run.Tensors(tag)]


def scalar_steps(run: EventAccumulator, tag: str) -> list[int]:
    """The steps at which a scalar is stored."""
    return [event.step for event in run.Scalars(tag)]
