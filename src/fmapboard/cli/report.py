"""``fmapboard report``: write runs into one HTML file, and say what was left out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fmapboard.report.write import Report, write_report


def run_report(
    runs: Sequence[Path],
    out: Path,
    *,
    steps: int,
    layers: Sequence[str],
    max_mb: float,
    no_input: bool,
) -> None:
    """Write a report and print where it is.

    Raises:
        FmapboardError: an argument is invalid, or the file cannot be written.
    """
    say_report(
        write_report(runs, out, steps=steps, layers=layers, max_mb=max_mb, inputs=not no_input)
    )


def say_report(report: Report) -> None:
    """Print where a report is, what it contains, and what was left out."""
    several = f"{len(report.runs)} runs" if len(report.runs) > 1 else "1 run"
    print(f"{report.path}: {several}, {report.size / 1e6:.1f} MB. {report.privacy}")
    for text in report.left_out:
        print(f"left out: {text}")
    for problem in report.problems:
        print(f"fmapboard: {problem}", file=sys.stderr)
