"""``fmapboard report`` and ``visualize --html``: say what is in a report, and what is not."""

from __future__ import annotations

import sys

from fmapboard.errors import escaped
from fmapboard.report.result import Report


def say_report(report: Report) -> None:
    """Print where a report is, what it contains, and what was left out."""
    several = f"{len(report.runs)} runs" if len(report.runs) > 1 else "1 run"
    size = f"{report.size / 1e6:.1f} MB"
    print(escaped(f"{report.path}: {several}, {size}. {report.privacy}", keep=""))
    for text in report.left_out:
        print(escaped(f"left out: {text}", keep=""))
    for problem in report.problems:
        print(escaped(f"fmapboard: {problem}", keep=""), file=sys.stderr)
