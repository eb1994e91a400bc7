"""``fmapboard report``: write runs into one HTML file, and say what was left out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from fmapboard.errors import escaped
from fmapboard.report.result import Report
from fmapboard.report.write import write_report


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
