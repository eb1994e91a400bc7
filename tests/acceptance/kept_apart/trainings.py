"""The trainings that are kept apart, and how one is run in a process of its own.

A file of an author lists functions in ``PAIRS``, called with ``(run, seed, wrong)``, and in
``HEALTHY``, called with ``(run, seed)``. Both return the loss of each step and a measure on
held-out data, higher is better.
"""

from __future__ import annotations

import ast
import atexit
import importlib.util
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

RIGHT, WRONG, UNTRAINED, HEALTHY = "right", "wrong", "untrained", "healthy"
"""Versions of a training. The untrained one is the right one whose optimizers do not step."""
MISTAKE = "MISTAKE:"


@dataclass(frozen=True)
class Training:
    """One version of a case.

    Attributes:
        file: that of its author.
        case: name of the function.
        version: ``right``, ``wrong``, ``untrained`` or ``healthy``.
        description: its docstring in one line, without the mistake.
        mistake: what is wrong in the wrong version, in the author's words; empty for none.
    """

    file: Path
    case: str
    version: str
    description: str
    mistake: str

    @property
    def author(self) -> str:
        return self.file.stem

    def directory(self, runs: Path) -> Path:
        """Where its log and its results are kept."""
        return runs / self.author / self.case / self.version

    def train(self, run: Path, seed: int, watch: Callable[..., Any] | None = None) -> Outcome:
        """Train with fmapboard's log below ``run``.

        Args:
            run: a directory that exists.
            seed: of data, weights and batches.
            watch: called in place of ``fmapboard.watch``.
        """
        module = _imported(self.file)
        if self.version == UNTRAINED:
            watch = Board
        if watch is not None:
            vars(module)["fmapboard"] = StandIn(watch)
        function = getattr(module, self.case)
        if self.version == HEALTHY:
            losses, held_out = function(run, seed)
        else:
            with without_steps() if self.version == UNTRAINED else nullcontext():
                losses, held_out = function(run, seed, self.version == WRONG)
        return Outcome([float(loss) for loss in losses], float(held_out))


@dataclass(frozen=True)
class Outcome:
    """The loss of each step, and the measure on held-out data at the end."""

    losses: list[float]
    held_out: float


class Board:
    """A logger that logs nothing: what a case calls of the one that ``watch`` returns."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def loss(self, *_: Any) -> None:
        pass

    def step(self, _: int | None = None) -> nullcontext[None]:
        return nullcontext()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class StandIn:
    """What a case takes for the package ``fmapboard``."""

    watch: Callable[..., Any]


@contextmanager
def without_steps() -> Iterator[None]:
    """Make the ``step`` of every optimizer do nothing but call its closure."""
    from torch.optim import Optimizer

    def step(_: Optimizer, closure: Callable[[], Any] | None = None) -> Any:
        return None if closure is None else closure()

    steps = {kind: kind.__dict__["step"] for kind in _below(Optimizer) if "step" in kind.__dict__}
    for kind in steps:
        kind.step = step
    try:
        yield
    finally:
        for kind, original in steps.items():
            kind.step = original


def _below(kind: type) -> Iterator[Any]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _below(subclass)


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"author_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def author_files(folder: Path) -> list[Path]:
    """The Python files in a folder that list ``PAIRS``."""
    return [file for file in sorted(folder.glob("*.py")) if "\nPAIRS = [" in file.read_text()]


def trainings(file: Path) -> list[Training]:
    """All trainings of an author, those of a pair behind each other."""
    tree = ast.parse(file.read_text())
    docs = {
        node.name: " ".join((ast.get_docstring(node) or "").split())
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    found = []
    for case in _listed(tree, "PAIRS"):
        description, _, mistake = docs[case].partition(MISTAKE)
        for version in (RIGHT, WRONG, UNTRAINED):
            found.append(Training(file, case, version, description.strip(), mistake.strip()))
    for case in _listed(tree, "HEALTHY"):
        found.append(Training(file, case, HEALTHY, docs[case], ""))
    return found


def _listed(tree: ast.Module, name: str) -> list[str]:
    """Names in the list that a file sets."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            assert isinstance(node.value, ast.List)
            return [ast.unparse(element) for element in node.value.elts]
    return []


def start_server(*preloaded: str) -> None:
    """Import modules once for all processes that `isolated` starts, each with one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    multiprocessing.set_forkserver_preload([__name__, *preloaded])


def isolated(log: Path, seconds: float, work: Callable[..., None], *arguments: Any) -> str:
    """Call a function in a process of its own.

    Args:
        log: file for what it prints.
        seconds: the process is killed after these.
        work: a function of a module, which the process imports by name.
        arguments: for the function.

    Returns:
        Why it ended, in a line; empty if it returned.
    """
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=_work, args=(log, work, arguments))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return f"not over after {seconds:g} s"
    if process.exitcode == 0:
        return ""
    lines = log.read_text().strip().splitlines() if log.exists() else []
    return lines[-1] if lines else f"ended with {process.exitcode}"


def _work(log: Path, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        work(*arguments)
    except Exception:
        atexit._run_exitfuncs()  # as at the end of a script, which this process would leave out
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
