"""Health of all layers of a run at all kept steps, in one answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from fmapboard.checks.health_table import HealthRow
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_tables import health_table
from fmapboard.plugin.http import Answer, Query, container, missing

ARRAYS = (
    "minimum", "maximum", "nonfinite", "constant", "dead", "dead_lasting", "change",
    "weights_change",
)  # fmt: skip
"""Columns that are sent."""


def health(reader: Reader, query: Query) -> Answer:
    """``data/health``: what is known of each layer, and float32 arrays [steps, layers].

    Numbers that are not known are NaN.
    """
    run, stamp = query.text("run"), query.stamp()
    table = health_table(reader, run)
    if table is None:
        raise missing(f"no feature maps in run {run!r}")
    unknown = np.full((len(table.steps), len(table.rows)), np.nan)
    facts = {
        "run": run,
        "source": table.source,
        "steps": table.steps,
        "wall_times": table.wall_times,
        "written": table.written,
        "layers": [_layer(row) for row in table.rows],
        "since": {
            kind: {str(row): step for row, step in rows.items()}
            for kind, rows in table.since.items()
        },
        "first_nonfinite": table.first_nonfinite,
        "errors": {str(step): why for step, why in table.errors.items()},
        "arrays": [{"name": name, "shape": list(unknown.shape)} for name in ARRAYS],
    }
    parts = [table.columns.get(name, unknown).astype("<f4").tobytes() for name in ARRAYS]
    lasting = bool(table.wall_times) and stamp == max(table.wall_times)
    return container(facts, parts, lasting=lasting)


def _layer(row: HealthRow) -> dict[str, Any]:
    facts = row.facts
    return {
        "name": row.name,
        "label": facts.label,
        "layer": facts.layer,
        "type": facts.type,
        "kernel_shape": facts.kernel_shape,
        "call": facts.call,
        "position": facts.position,
        "channels": facts.channels,
        "values": facts.values,
        "drawn": facts.drawn,
        "activation": facts.activation,
        "key": row.key,
        "shown_at": row.shown_at,
    }
