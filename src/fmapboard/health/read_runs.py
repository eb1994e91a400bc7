"""Read what the checks need from a run's event files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fmapboard.errors import FmapboardError, error_text, nearby
from fmapboard.formats import tags
from fmapboard.formats.checks import StoredChecks
from fmapboard.health.record import GROUPS, RecordBuilder, RunRecord, is_read
from fmapboard.health.run import record_as_live
from fmapboard.runs.find import run_directories
from fmapboard.runs.log import EventLog

_GIVE = "; give the log_dir of fmapboard.watch"
"""The end of a message about a path that is no run."""


class UnreadableRun(FmapboardError):
    """A run directory that does not exist, or holds nothing that fmapboard wrote."""

    exit_code = 2


@dataclass(slots=True)
class RunFiles:
    """What was read of one run directory.

    Attributes:
        path: the directory.
        records: one record per watched model.
        stored: name of a model -> what the checks said last while it was logged.
        problems: what could not be read, in words.
        is_read: False if no event could be read.
    """

    path: Path
    records: list[RunRecord]
    stored: Mapping[str, StoredChecks] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_read: bool = True


def read_runs(path: Path) -> list[RunFiles]:
    """Read all runs at or below a path; other tools' runs among them are left out.

    What cannot be read is in the list too, without records. A file may end in the middle of a
    record, as that of a run that goes on does: everything before it is read. A resumed run replaces
    the steps from its first one on.

    Raises:
        UnreadableRun: there is no run of fmapboard.
    """
    if not path.exists():
        raise UnreadableRun(f"{path}: no such directory{nearby(path) or _GIVE}")
    if not path.is_dir():
        raise UnreadableRun(
            f"{path}: expected the directory that holds the event files; give {path.parent}"
        )
    unlisted: list[OSError] = []
    runs = [_read(directory) for directory in run_directories(path, unlisted)]
    if not runs:
        why = "".join(f"; {error.filename}: {error.strerror}" for error in unlisted)
        raise UnreadableRun(f"{path}: no event files in it or below it{why}{_GIVE}")
    if not any(run.records for run in runs):
        why = f" ({runs[0].problems[0]})" if runs[0].problems else ""
        nothing = f"{runs[0].path}: nothing in it was logged by fmapboard{why}"
        raise UnreadableRun(f"{nothing}{_GIVE}, after its first logged step")
    hidden = []
    for error in unlisted:
        hidden.append(RunFiles(Path(error.filename), [], problems=[str(error.strerror)]))
    return [run for run in runs if run.records or not run.is_read] + hidden


def _read(path: Path) -> RunFiles:
    """What a run directory holds; an error that stops the reading becomes a problem of the run."""
    try:
        return _records_of(path)
    except Exception as error:
        return RunFiles(path, [], problems=[error_text(error)], is_read=False)


def _records_of(path: Path) -> RunFiles:
    log = EventLog(path, is_read)
    builders: dict[str, RecordBuilder] = {}
    for full, series in log.series.items():
        name, tag = tags.split(full)
        is_scalar = tag.partition("/")[0] in GROUPS
        for datum in series.ordered():
            if datum.step < 0:
                continue
            builder = builders.setdefault(name, RecordBuilder(str(path), name))
            if not is_scalar:
                builder.add_blobs(datum.step, tag, log.strings(datum))
            elif datum.number is not None:
                builder.add_scalar(datum.step, tag, datum.number)
    stored = {name: builder.stored_checks() for name, builder in builders.items()}
    problems = list(log.problems)
    for builder in builders.values():
        if builder.errors:
            step, why = min(builder.errors.items())
            problems.append(f"{len(builder.errors)} records, the first at step {step}: {why}")
    records = [record_as_live(builder) for _, builder in sorted(builders.items())]
    return RunFiles(path, records, stored, problems, is_read=log.started is not None)
