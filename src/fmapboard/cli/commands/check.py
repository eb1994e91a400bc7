"""``fmapboard check`` and ``fmapboard why``: what is wrong in logged runs, and the root cause."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fmapboard.errors import ConfigurationError, FmapboardError, error_text, escaped
from fmapboard.formats import tags
from fmapboard.health.finding import Finding
from fmapboard.health.progress import merged
from fmapboard.health.read_runs import RunFiles, read_runs
from fmapboard.health.record import Check, RunRecord
from fmapboard.health.rules import is_named, unchecked_text
from fmapboard.health.run import Report, chosen, report_of, run_checks
from fmapboard.health.verdict import WORST_FIRST, Verdict, judge
from fmapboard.runs.log import EventLog
from fmapboard.writers.folder import file_stem, free_name, store
from fmapboard.writers.remote import make_directory

_FOUND = 1
"""Exit status if something was found."""
_FAILED = 2
"""Exit status if a run could not be read or judged, found or not."""


class Failures:
    """Runs that cannot be read or judged: each costs a line on stderr, and the others go on.

    Attributes:
        any: True if there is one.
    """

    def __init__(self) -> None:
        self.any = False

    @contextlib.contextmanager
    def noted(self, path: Path) -> Iterator[None]:
        """Note an error of the block, which reads or judges what is at a path."""
        try:
            yield
        except Exception as error:
            text = str(error)
            if not isinstance(error, FmapboardError):
                text = f"{path}: {error_text(error)}"
            complain(text)
            self.any = True

    def status(self, *, is_found: bool) -> int:
        """The exit status of a command that has looked for something."""
        if self.any:
            return _FAILED
        return _FOUND if is_found else 0


def check_runs(
    paths: Sequence[Path], *, as_json: bool, silenced: Sequence[str], further: Sequence[str]
) -> int:
    """Check runs, print the findings, and return the exit status: 1 if a warning is among them.

    Args:
        paths: run directories, or directories above them.
        as_json: Print one JSON array of findings. Otherwise text is printed.
        silenced: Leave out a check. Its kind, each.
        further: Add a check of your own, such as ``package.module:MyCheck``. Names of checks, or of
            their classes, which are called without arguments.

    Raises:
        ConfigurationError: a name of a check is invalid.
    """
    checks = Choice(silenced, further)
    failures = Failures()
    runs = runs_in(paths, failures)
    objects: list[dict[str, Any]] = []
    lines: list[str] = []
    classes: set[str] = set()
    for run in runs:
        with failures.noted(run.path):
            reports = checks.reports(run)
            findings = [finding for report in reports for finding in report.findings]
            answers = []
            for finding in findings:
                answer = dict(finding.as_json())
                if len(runs) > 1:
                    answer["run"] = str(run.path)
                answers.append(answer)
            json.dumps(answers)  # what cannot be printed is an error of this run alone
            objects += answers
            lines += _lines(run, reports)
            classes.update(finding.class_ for finding in findings)
    if as_json and runs:
        print(json.dumps(objects, indent=1))
    elif not as_json:
        for line in lines:
            print(escaped(line, keep=""))
    return failures.status(is_found="warning" in classes)


def runs_in(paths: Iterable[Path], failures: Failures) -> list[RunFiles]:
    """The runs at or below these paths; what of them cannot be read is said on stderr."""
    runs: dict[Path, RunFiles] = {}
    for path in paths:
        with failures.noted(path):
            found = read_runs(path)
            runs.update({run.path: run for run in found})
    for run in runs.values():
        for problem in run.problems:
            complain(f"{run.path}: {problem}")
    return list(runs.values())


def complain(text: str) -> None:
    """Print a line on stderr."""
    line = escaped(" ".join(text.split()), keep="")
    print(f"fmapboard: {line}", file=sys.stderr)


class Choice:
    """The checks that a command runs: the built-in ones and further ones, but those silenced.

    Args:
        silenced: kinds of checks to leave out.
        further: names of checks to add; see `check_runs`.

    Raises:
        ConfigurationError: there is no such check.
    """

    def __init__(self, silenced: Sequence[str], further: Sequence[str]) -> None:
        added = [_imported(name) for name in further]
        by_kind = {check.kind: check for check in chosen(added)}
        self._is_changed = bool(silenced or further)
        self._added = {check.kind for check in added}
        chosen({kind: False for kind in silenced if kind not in self._added})  # it must exist
        self._checks = [check for check in by_kind.values() if not is_named(check, silenced)]

    def reports(self, run: RunFiles) -> list[Report]:
        """The judgement on each model of a run: the stored one, unless other checks are asked for.

        A run that has none, such as one of `visualize`, is judged here. A check that was switched
        off while the run was logged runs only if it is a further one.
        """
        reports = []
        for record in run.records:
            stored = None
            if not self._is_changed and record.name in run.stored:
                stored = report_of(record.name, run.stored[record.name])
            reports.append(stored or run_checks(record, self._of(record)))
        return reports

    def _of(self, record: RunRecord) -> list[Check]:
        off = record.off - self._added
        return [check for check in self._checks if not is_named(check, off)]


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"--check {name}: {error}; expected package.module:NAME of a check that Python can "
            "import (for a module in this directory, set PYTHONPATH=.)"
        ) from error
    return found() if isinstance(found, type) else found


def _lines(run: RunFiles, reports: Sequence[Report]) -> Iterator[str]:
    """What is printed of a run as text; nothing if there is nothing to check in it."""
    if reports:
        yield str(run.path)
    for report in reports:
        yield from (f"  {line}" for line in finding_lines(report.findings))
    for report in reports:
        model = f" of {report.name}" if report.name else ""
        if not report.findings:
            verdict = judge("", (), report.seen, {})
            yield f"  {verdict.state}{model}: {verdict.line}"
        by_reason: dict[str, list[str]] = {}
        for kind, why in report.not_checked.items():
            by_reason.setdefault(why, []).append(kind)
        for why, kinds in by_reason.items():
            yield f"  not checked{model}: {unchecked_text(kinds, why)}"


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """The findings as lines of text, in order.

    Consequences are indented below their cause. Findings that differ only in where they are and
    what was measured, such as the dead channels of several layers, are listed below one line with
    what they have in common.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        shared = finding.class_, finding.kind, finding.model, finding.healthy, finding.follows
        explained = finding.meaning, finding.proved, finding.advice
        # Where nothing is explained, there is nothing to share a line for.
        own = () if finding.explanation else (str(id(finding)),)
        same = (*shared, *explained, *own)
        alike.setdefault(same, []).append(finding)
    for group in alike.values():
        first = group[0]
        indent = "  " if first.follows else ""
        start = f"{indent}{first.class_}: {first.kind}: "
        if len(group) == 1:
            yield f"{start}{first.text}"
            continue
        model = f" of `{first.model}`" if first.model else ""
        healthy = f" (healthy: {first.healthy})" if first.healthy else ""
        see = f" See {first.link}" if first.link else ""
        place = f"in {len(group)} places{model}{healthy}"
        yield f"{start}{place}. {first.explanation}{see}"
        for finding in group:
            picture = f". Picture: `{finding.picture}`" if finding.picture else ""
            yield f"{indent}  {finding.message}{picture}"


_PICTURES = 3
"""Maximum number of pictures of a run."""


def why_runs(
    paths: Sequence[Path],
    *,
    as_json: bool,
    pictures: Path | None,
    silenced: Sequence[str],
    further: Sequence[str],
) -> int:
    """Print the verdict on each run, the worst first; the exit status is 1 if one is a fault.

    Args:
        paths: run directories, or directories above them.
        as_json: Print one JSON object per line, one for each run. Otherwise text is printed.
        pictures: Write up to three pictures of each run that show it as PNG files into this folder;
            None writes none.
        silenced: Leave out a check. Its kind, each.
        further: Add a check of your own, such as ``package.module:MyCheck``. Names of checks, or of
            their classes, which are called without arguments.

    Raises:
        FmapboardError: a name of a check is invalid, or the folder cannot be created.
    """
    checks = Choice(silenced, further)
    if pictures is not None:
        make_directory(pictures)
    failures = Failures()
    judged: list[tuple[Verdict, RunFiles]] = []
    for run in runs_in(paths, failures):
        if run.records:
            with failures.noted(run.path):
                judged.append((_verdict(run, checks), run))
    judged.sort(key=lambda pair: WORST_FIRST.index(pair[0].state))
    taken: set[str] = set()
    texts = []
    for verdict, run in judged:
        with failures.noted(run.path):
            shown = [] if pictures is None else list(_write(verdict, run, pictures, taken))
            if as_json:
                listed = {} if pictures is None else {"pictures": shown}
                texts.append(json.dumps({**verdict.as_json(), **listed}))
            else:
                lines = verdict.lines(shown, verdict.unproven)
                texts.append("\n".join(escaped(line, keep="") for line in lines))
    if texts:
        print(("\n" if as_json else "\n\n").join(texts))
    is_fault = any(verdict.state == "fault" for verdict, _ in judged)
    return failures.status(is_found=is_fault)


def _verdict(run: RunFiles, checks: Choice) -> Verdict:
    reports = checks.reports(run)
    findings = [finding for report in reports for finding in report.findings]
    not_checked: dict[str, str] = {}
    for report in reports:
        not_checked.update(report.not_checked)
    seen = merged([report.seen for report in reports])
    return judge(str(run.path), findings, seen, not_checked)


def _write(verdict: Verdict, run: RunFiles, folder: Path, taken: set[str]) -> Iterator[str]:
    """Write the pictures that show the cause, or the newest input; yield their paths.

    Raises:
        WriteError: a picture cannot be written.
    """
    cause = verdict.cause
    since = None if cause is None else cause.since_step
    asked = [] if cause is None else [cause.picture]
    for record in run.records:
        asked += [tags.prefix(record.name) + tag for tag in tags.INPUT_PICTURES]
    log = EventLog(run.path, frozenset(asked).__contains__)
    shown = []
    for tag in dict.fromkeys(asked):
        series = log.series.get(tag)
        if series:
            shown.append(tag)
    for tag in shown[:_PICTURES]:
        data = log.series[tag].ordered()
        datum = data[-1]
        if since is not None:
            datum = next((later for later in data if later.step >= since), datum)
        png = log.strings(datum)[2:3]  # behind width and height
        if png:
            stem = file_stem(f"{run.path.name}_{tag}_step{datum.step}")
            path = folder / f"{free_name(stem, taken)}.png"
            store(path, png[0])
            yield str(path)
