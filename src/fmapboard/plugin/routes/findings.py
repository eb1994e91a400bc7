"""What is wrong in a run, in words."""

from __future__ import annotations

import math
from dataclasses import asdict

from fmapboard.checks.layer_findings import findings as find
from fmapboard.plugin.checked import checked
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_tables import health_table
from fmapboard.plugin.http import Answer, Query, missing


def findings(reader: Reader, query: Query) -> Answer:
    """``data/findings``: the findings of a run, ranked, and what they were looked for in."""
    run = query.text("run")
    table = health_table(reader, run)
    if table is None:
        raise missing(f"no feature maps in run {run!r}")
    listed = [
        {**asdict(found), "class": _class(found.kind), "value": _number(found.value)}
        for found in find(table)
    ]
    listed += checked(reader, run, table)
    listed.sort(key=lambda line: (-line["severity"], line["since"]))
    return Answer(
        {
            "run": table.run,
            "source": table.source,
            "layers": len(table.rows),
            "steps": len(table.steps),
            "written": table.written,
            "findings": listed,
        }
    )


def _class(kind: str) -> str:
    return "fact" if kind in ("nonfinite", "unchanged") else "figure"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
