"""What is wrong in a run, in words."""

from __future__ import annotations

import math
from dataclasses import asdict

from fmapboard.checks.layer_findings import findings as find
from fmapboard.plugin.checked import checked, in_one_line, stored_findings, without_repeats
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.explanations import explanation
from fmapboard.plugin.health_tables import health_table
from fmapboard.plugin.http import Answer, Query
from fmapboard.plugin.overview_series import unread_step


def findings(reader: Reader, query: Query) -> Answer:
    """``data/findings``: the findings of a run, ranked, and what they were looked for in.

    ``unread`` is the newest logged step if TensorBoard has not read it yet, otherwise None.
    """
    run = query.text("run")
    table = health_table(reader, run)
    told = find(table)
    stored = stored_findings(reader, run, table)
    said, told = in_one_line(without_repeats(checked(stored, table), told, table), told)
    listed = [
        {
            **asdict(found),
            "class": _class(found.kind),
            "value": _number(found.value),
            "explanation": explanation(found, stored),
        }
        for found in told
    ]
    listed += said
    listed.sort(key=lambda line: (-line["severity"], line["since"]))
    unread = unread_step(reader, run, table.rows[0].name, table.wall_times)
    return Answer(
        {
            "run": table.run,
            "layers": len(table.rows),
            "steps": len(table.steps),
            "written": table.written,
            "unread": unread,
            "findings": listed,
        }
    )


def _class(kind: str) -> str:
    """The class of what follows from the table; unchanged weights may be frozen on purpose."""
    return "warning" if kind == "nonfinite" else "note"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
