"""``fmapboard report``: write runs into one HTML file, and say what was left out."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fmapboard.errors import ConfigurationError, escaped
from fmapboard.report.choice import CHART_STEPS
from fmapboard.report.result import Report
from fmapboard.report.write import write_report
from fmapboard.writers.remote import RemoteDirectory

_TEMPORARY = "fmapboard-report-"


def run_report(
    runs: Sequence[Path],
    out: Path,
    *,
    steps: int,
    layers: Sequence[str] | None,
    max_mb: float,
    no_input: bool,
) -> None:
    """Write a report and print where it is.

    Raises:
        FmapboardError: an argument is invalid, or the file cannot be written.
    """
    say_report(
        write_report(
            runs, out, steps=steps, layers=layers or (), max_mb=max_mb, inputs=not no_input
        )
    )


def say_report(report: Report) -> None:
    """Print where a report is, what it contains, and what was left out."""
    several = f"{len(report.runs)} runs" if len(report.runs) > 1 else "1 run"
    size = f"{report.size / 1e6:.1f} MB"
    print(escaped(f"{report.path}: {several}, {size}. {report.privacy}", keep=""))
    for text in report.left_out:
        print(escaped(f"left out: {text}", keep=""))
    for problem in report.problems:
        print(escaped(f"fmapboard: {problem}", keep=""), file=sys.stderr)


@contextmanager
def logged_for(
    html: Path | None,
    logdir: Path | RemoteDirectory | None,
    steps: int,
    say: Callable[[Report], None],
) -> Iterator[Path | RemoteDirectory | None]:
    """A log directory to write to; afterwards, a report of it, with pictures of all steps.

    Args:
        html: the report; None for none.
        logdir: the log directory that was asked for. If there is none, a report gets a temporary
            one, which is removed.
        steps: number of steps that will be logged.
        say: called with the report.

    Raises:
        ConfigurationError: a report of a remote directory was asked for.
    """
    if html is None:
        yield logdir
        return
    if isinstance(logdir, RemoteDirectory):
        raise ConfigurationError(f"a report needs a local log directory, not {logdir}")
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY) as folder:
        place = Path(folder) / "visualize" if logdir is None else logdir
        yield place
        say(write_report([place], html, steps=min(max(steps, 8), CHART_STEPS)))


def is_temporary(logdir: Path | RemoteDirectory) -> bool:
    """True for a directory that `logged_for` removes."""
    return isinstance(logdir, Path) and logdir.parent.name.startswith(_TEMPORARY)
