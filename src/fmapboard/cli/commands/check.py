"""``fmapboard check`` and ``fmapboard why``: what is wrong in logged runs, and the root cause."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fmapboard.errors import ConfigurationError, escaped
from fmapboard.formats import tags
from fmapboard.health.finding import Finding
from fmapboard.health.read_runs import RunFiles, read_runs
from fmapboard.health.record import Check
from fmapboard.health.run import BUILT_IN, Report, chosen, run_checks
from fmapboard.health.verdict import Verdict, judge, seen_in
from fmapboard.runs.log import EventLog
from fmapboard.writers.folder import file_stem, free_name, store
from fmapboard.writers.remote import make_directory


def check_runs(
    paths: Sequence[Path], *, as_json: bool, silenced: Sequence[str], further: Sequence[str]
) -> bool:
    """Check runs, print the findings, and return True if a warning is among them.

    Args:
        paths: run directories, or directories above them.
        as_json: Print one JSON array of findings. Otherwise text is printed.
        silenced: Leave out a check. Its kind, each.
        further: Add a check of your own, such as ``package.module:MyCheck``. Names of checks, or of
            their classes, which are called without arguments.

    Raises:
        FmapboardError: an argument is invalid, or a run cannot be read.
    """
    checks = checks_of(silenced, further)
    runs = runs_in(paths)
    reports = [(run, [run_checks(record, checks) for record in run.records]) for run in runs]
    found = [
        (run, finding) for run, every in reports for report in every for finding in report.findings
    ]
    if as_json:
        own = {run.path: {"run": str(run.path)} if len(runs) > 1 else {} for run in runs}
        print(json.dumps([{**each.as_json(), **own[run.path]} for run, each in found], indent=1))
    else:
        for run, every in reports:
            if every:
                _print(run, every)
    return any(finding.class_ == "warning" for _, finding in found)


def runs_in(paths: Iterable[Path]) -> list[RunFiles]:
    """The runs at or below these paths; what of them cannot be read is said on stderr."""
    runs = list({run.path: run for path in paths for run in read_runs(path)}.values())
    for run in runs:
        for problem in run.problems:
            print(escaped(f"fmapboard: {run.path}: {problem}", keep=""), file=sys.stderr)
    return runs


def checks_of(silenced: Sequence[str], further: Sequence[str]) -> tuple[Check, ...]:
    """The built-in checks but those silenced, and further ones; see `check_runs`."""
    added = {check.kind: check for check in chosen([_imported(name) for name in further])}
    known = {check.kind for check in BUILT_IN}
    chosen({kind: False for kind in silenced if kind not in added.keys() - known})
    return tuple(check for kind, check in added.items() if kind not in silenced)


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"--check {name}: {error}; expected package.module:NAME of a check"
        ) from error
    return found() if isinstance(found, type) else found


def _print(run: RunFiles, reports: Sequence[Report]) -> None:
    _say(run.path)
    for report in reports:
        for line in told(report.findings):
            _say(f"  {line}")
    for report in reports:
        of = f" of {report.record.name}" if report.record.name else ""
        if not report.findings:
            _say(f"  nothing found{of} in {_scope(report)}")
        by_reason: dict[str, list[str]] = {}
        for kind, why in report.not_recorded.items():
            by_reason.setdefault(why, []).append(kind)
        for why, kinds in by_reason.items():
            _say(f"  not recorded{of}: {', '.join(kinds)} (needs {why})")
        for kind, error in report.failed.items():
            _say(f"  failed{of}: {kind}: {error}")


def _say(line: object) -> None:
    print(escaped(line, keep=""))


def told(findings: Sequence[Finding]) -> Iterator[str]:
    """The findings as lines of text, in order.

    Consequences are indented below their cause. Findings that differ only in where they are and
    what was measured, such as the dead channels of several layers, are listed below one line with
    what they have in common.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for each in findings:
        own = () if each.explanation else (str(id(each)),)  # nothing is said that could be shared
        key = (each.class_, each.kind, each.model, each.healthy, each.meaning, each.advice, *own)
        alike.setdefault(key, []).append(each)
    for group in alike.values():
        first, count = group[0], len(group)
        indent = "  " * bool(first.follows)
        if count == 1:
            yield f"{indent}{first.class_}: {first.kind}: {first.text}"
            continue
        model = f" of `{first.model}`" if first.model else ""
        healthy = f" (healthy: {first.healthy})" if first.healthy else ""
        place = f"in {count} places{model}{healthy}"
        see = f" See {first.link}" if first.link else ""
        yield f"{indent}{first.class_}: {first.kind}: {place}. {first.explanation}{see}"
        for each in group:
            picture = f". Picture: `{each.picture}`" if each.picture else ""
            yield f"{indent}  {each.message}{picture}"


def _scope(report: Report) -> str:
    health = report.record.health
    if health is None:
        return "what is recorded"
    of = f" of {health.written}" if health.written > len(health.steps) else ""
    return f"{len(health.rows)} layers × {len(health.steps)}{of} steps"


_PICTURES = 3
"""Maximum number of pictures of a run."""


def why_runs(
    paths: Sequence[Path],
    *,
    as_json: bool,
    pictures: Path | None,
    silenced: Sequence[str],
    further: Sequence[str],
) -> bool:
    """Print the verdict on each run, the worst first, and return True if one is a fault.

    Args:
        paths: run directories, or directories above them.
        as_json: Print one JSON object per line, one for each run. Otherwise text is printed.
        pictures: Write up to three pictures of each run that show it as PNG files into this folder;
            None writes none.
        silenced: Leave out a check. Its kind, each.
        further: Add a check of your own, such as ``package.module:MyCheck``. Names of checks, or of
            their classes, which are called without arguments.

    Raises:
        FmapboardError: an argument is invalid, a run cannot be read, or a picture not written.
    """
    checks = checks_of(silenced, further)
    told: list[tuple[Verdict, RunFiles]] = []
    for run in runs_in(paths):
        if run.records:
            reports = [run_checks(record, checks) for record in run.records]
            found = [finding for report in reports for finding in report.findings]
            told.append((judge(str(run.path), found, seen_in(reports)), run))
    told.sort(key=lambda one: ("fault", "suspicion", "nothing found").index(one[0].verdict))
    taken: set[str] = set()
    for place, (verdict, run) in enumerate(told):
        paths_of = [] if pictures is None else list(_write(verdict, run, pictures, taken))
        if as_json:
            shown = {"pictures": paths_of} if pictures is not None else {}
            print(json.dumps({**verdict.as_json(), **shown}))
            continue
        if place:
            print()
        for line in verdict.lines(paths_of):
            print(escaped(line, keep=""))
    return any(verdict.verdict == "fault" for verdict, _ in told)


def _write(verdict: Verdict, run: RunFiles, folder: Path, taken: set[str]) -> Iterator[str]:
    """Write the pictures that show the cause, or the newest input; yield their paths."""
    cause, models = verdict.cause, [record.name for record in run.records]
    asked = [cause.picture] if cause is not None and cause.picture else []
    asked += [tags.prefix(name) + tag for name in models for tag in tags.INPUT_PICTURES]
    since = None if cause is None else cause.since_step
    log = EventLog(run.path, frozenset(asked).__contains__)
    make_directory(folder)
    shown = [tag for tag in dict.fromkeys(asked) if tag in log.series and log.series[tag].data]
    for tag in shown[:_PICTURES]:
        steps = log.series[tag].ordered()
        at = next((one for one in steps if since is not None and one.step >= since), steps[-1])
        png = log.strings(at)[2:3]  # behind width and height
        if png:
            stem = file_stem(f"{run.path.name}_{tag}_step{at.step}")
            path = folder / f"{free_name(stem, taken)}.png"
            store(path, png[0])
            yield str(path)
