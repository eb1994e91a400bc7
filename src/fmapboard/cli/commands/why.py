"""``fmapboard why``: of each run the verdict, its cause, the evidence and the next step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from fmapboard.cli.commands.check import checks_of, runs_in
from fmapboard.errors import escaped
from fmapboard.formats import tags
from fmapboard.health.read_runs import RunFiles
from fmapboard.health.run import run_checks
from fmapboard.health.verdict import Verdict, judge, seen_in, severity
from fmapboard.runs.log import EventLog
from fmapboard.writers.folder import file_stem, free_name, store
from fmapboard.writers.remote import make_directory

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
    told.sort(key=lambda one: severity(one[0]))
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
