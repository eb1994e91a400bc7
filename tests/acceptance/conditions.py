"""Which conditions of the rules make a difference: each is dropped once, and runs judged again.

    python tests/acceptance/records.py --out records --minutes 60
    python tests/acceptance/conditions.py records --out conditions.tsv
    python tests/acceptance/conditions.py records --only rules/dead     # one module

A condition is an operand of ``and`` or ``or``, the filter of a comprehension, the test of an ``if``
or a comparison that is returned, and one kind of ``unless``. To drop it, its place in the source of
the module takes ``True`` or ``False``. A row of the table says how the figures change: causes that
are named first, healthy trainings with a warning or with notes only, and of how many spoilt ones
something is said: of those that lose half of their progress, and of those that lose nothing.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from records import Kept
from spoilt_table import HALF, NEARLY_ALL

import fmapboard
from fmapboard.health import run as health_run
from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding
from fmapboard.health.rule import Rule
from fmapboard.health.rules import BUILT_IN, group_of, is_named

HEALTH = Path(fmapboard.__file__).parent / "health"
SHARED = (
    *("layer_findings", "evidence", "labels", "copies", "gradient_ratios", "signal", "attention"),
    *("gradient_cuts", "saturation", "output_sources", "updates", "nonfinite_causes"),
)
"""Modules besides those of the rules, in the order in which they import each other."""
GROUPS = {rule.kind: group_of(rule) for rule in BUILT_IN}
Key = tuple[str, int, str]
"""A training, one of its records, and the kind of a rule."""
Said = list[tuple[str, str]]
"""Classes and kinds of the findings of a run, in their order."""


class Figures(NamedTuple):
    """What the judgement of all runs comes to."""

    first: int
    warned: int
    noted: int
    lost_said: int
    kept_said: int

    def is_worse_than(self, other: Figures) -> bool:
        return (
            self.first < other.first
            or self.warned > other.warned
            or self.noted > other.noted
            or self.lost_said < other.lost_said
            or self.kept_said > other.kept_said
        )


@dataclass(frozen=True)
class Condition:
    """A condition and what stands in its place when it is dropped."""

    module: str
    line: int
    text: str
    start: int
    stop: int
    value: str

    def dropped(self, source: bytes) -> bytes:
        return source[: self.start] + self.value.encode() + source[self.stop :]


def conditions(module: str, source: bytes) -> Iterator[Condition]:
    """The conditions of a module, in the order of their lines."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for node in ast.walk(ast.parse(source)):
        for part, values in _parts(node):
            start = starts[part.lineno - 1] + part.col_offset
            stop = starts[(part.end_lineno or 0) - 1] + (part.end_col_offset or 0)
            text = " ".join(source[start:stop].decode().split())
            for value in values:
                found[start, stop, value] = Condition(module, part.lineno, text, start, stop, value)
    yield from (found[key] for key in sorted(found))


def _parts(node: ast.AST) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """Conditions in a node, and the values that they take when they are dropped."""
    if isinstance(node, ast.BoolOp):
        if any(isinstance(operand, (ast.Constant, ast.Tuple)) for operand in node.values):
            return  # a default, such as ``names or ()``
        value = "True" if isinstance(node.op, ast.And) else "False"
        for operand in node.values:
            yield operand, (value,)
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield test, ("True",)
    elif isinstance(node, ast.If) and not isinstance(node.test, ast.BoolOp):
        if not _is_of_text(node.body):
            yield node.test, ("False",)
    elif isinstance(node, ast.IfExp) and not _has_text(node):
        yield node.test, ("True", "False")
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Compare):
        yield node.value, ("True", "False")
    elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "unless":
        assert isinstance(node.value, ast.Tuple)
        for kind in node.value.elts:
            yield kind, ('""',)


def _is_of_text(body: list[ast.stmt]) -> bool:
    """True for statements that only set parts of a sentence."""
    if not all(isinstance(statement, (ast.Assign, ast.AugAssign)) for statement in body):
        return False
    return any(map(_has_text, body))


def _has_text(node: ast.AST) -> bool:
    constants = [part for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return any(isinstance(constant.value, str) for constant in constants)


class Judge:
    """Judges kept runs with the rules of today, or with one of their modules changed."""

    def __init__(self, runs: Sequence[Kept]) -> None:
        self.runs = runs
        self._found: dict[Key, list[Finding] | Exception] = {}
        self.said = [self._said(run, list(BUILT_IN)) for run in runs]
        self.figures = self.figures_of(self.said)

    def with_module(self, module: str, source: bytes) -> list[Said]:
        """What is said of each run if a module had this source."""
        rules = list(BUILT_IN)
        name = f"fmapboard.health.{module.replace('/', '.')}"
        if module.startswith("rules/"):
            changed = _executed(name, source)
            place = next(i for i, rule in enumerate(rules) if type(rule).__module__ == name)
            rules[place] = getattr(changed, type(rules[place]).__name__)()
            return [self._said(run, rules, changed=rules[place].kind) for run in self.runs]
        kept = dict(sys.modules)
        try:
            for behind in SHARED[SHARED.index(module) :]:
                text = source if behind == module else (HEALTH / f"{behind}.py").read_bytes()
                path = f"fmapboard.health.{behind}"
                sys.modules[path] = _executed(path, text)
            health_run.Evidence = sys.modules["fmapboard.health.evidence"].Evidence
            for place, rule in enumerate(rules):
                path = type(rule).__module__
                own = HEALTH / "rules" / f"{rule.kind}.py"
                rules[place] = getattr(_executed(path, own.read_bytes()), type(rule).__name__)()
            return [self._said(run, rules, changed="*") for run in self.runs]
        finally:
            sys.modules.update(kept)
            health_run.Evidence = Evidence

    def _said(self, run: Kept, rules: list[Rule], changed: str = "") -> Said:
        """What is said of a run; findings of rules that are not changed are those of before."""
        said: Said = []
        for index, record in enumerate(run.records):
            known = [
                _Known(
                    rule,
                    (run.job.name, index, rule.kind),
                    self._found,
                    is_new=changed in ("*", rule.kind),
                )
                for rule in rules
                if not is_named(rule, record.off)
            ]
            report = health_run.run_checks(record, known)
            said += [(f"failed {kind}", error) for kind, error in report.failed.items()]
            said += [(finding.class_, finding.kind) for finding in report.findings]
        return said

    def figures_of(self, every: list[Said]) -> Figures:
        names = {run.job.name: said for run, said in zip(self.runs, every, strict=True)}
        first = warned = noted = lost_said = kept_said = 0
        for run, said in zip(self.runs, every, strict=True):
            job = run.job
            classes = {class_ for class_, _ in said}
            if job.group == "healthy":
                warned += "warning" in classes
                noted += bool(said) and "warning" not in classes
            elif job.group == "fault":
                expected = set(job.expected.split(",")) if job.expected else set()
                first += bool(said) and not expected.isdisjoint(
                    {said[0][1], GROUPS.get(said[0][1], "")}
                )
            else:
                of_twin = {kind for _, kind in names.get(job.twin, [])}
                is_said = any(kind not in of_twin for _, kind in said)
                lost_said += is_said and job.share <= HALF
                kept_said += is_said and job.share >= NEARLY_ALL
        return Figures(first, warned, noted, lost_said, kept_said)


class _Known(Rule):
    """A rule whose findings are computed once per record."""

    def __init__(
        self,
        rule: Rule,
        key: Key,
        found: dict[Key, list[Finding] | Exception],
        *,
        is_new: bool,
    ) -> None:
        self._rule = rule
        self._key = key
        self._all = found
        self._is_new = is_new
        self.kind = rule.kind  # type: ignore[misc]  # of an object, here
        self.unless = rule.unless  # type: ignore[misc]

    def findings(self, evidence: Evidence) -> list[Finding]:
        if self._is_new:
            return self._rule.findings(evidence)
        if self._key not in self._all:
            try:
                self._all[self._key] = self._rule.findings(evidence)
            except Exception as error:
                self._all[self._key] = error
        known = self._all[self._key]
        if isinstance(known, Exception):
            raise known
        return list(known)

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        raise NotImplementedError


def _executed(name: str, source: bytes) -> ModuleType:
    """A module of this name with this source; that of before stays in place if it is a rule's."""
    module = ModuleType(name)
    before = sys.modules[name]
    sys.modules[name] = module
    try:
        exec(compile(source, name, "exec"), vars(module))
    finally:
        sys.modules[name] = before
    return module


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("records", type=Path, help="folder that records.py has filled")
    parser.add_argument("--only", default="", help="what the names of modules begin with")
    parser.add_argument("--out", type=Path, help="the table; without it, stdout")
    args = parser.parse_args()
    runs = [Kept.read(path) for path in sorted(args.records.glob("*.pickle"))]
    groups = [run.job.group for run in runs]
    judge = Judge(runs)
    counted = {group: groups.count(group) for group in ("fault", "healthy", "spoilt")}
    print(counted, judge.figures, file=sys.stderr)
    modules = [*SHARED, *(f"rules/{rule.kind}" for rule in BUILT_IN)]
    with args.out.open("w", newline="") if args.out else sys.stdout as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(
            ["module", "line", "condition", "becomes", "runs changed", *Figures._fields, "worse"]
        )
        writer.writerow(["", "", "as it is", "", 0, *judge.figures, ""])
        for module in modules:
            if not module.startswith(args.only):
                continue
            source = (HEALTH / f"{module}.py").read_bytes()
            for condition in conditions(module, source):
                writer.writerow(row_of(judge, condition, source))
                file.flush()


def row_of(judge: Judge, condition: Condition, source: bytes) -> list[Any]:
    start = [condition.module, condition.line, condition.text, condition.value]
    try:
        said = judge.with_module(condition.module, condition.dropped(source))
    except Exception as error:  # the module cannot be imported without it
        return [*start, "", *[""] * len(Figures._fields), type(error).__name__]
    changed = sum(before != now for before, now in zip(judge.said, said, strict=True))
    figures = judge.figures_of(said)
    fails = any(class_.startswith("failed") for own in said for class_, _ in own)
    worse = "fails" if fails else "worse" if figures.is_worse_than(judge.figures) else ""
    return [*start, changed, *figures, worse]


if __name__ == "__main__":
    main()
