"""Health of all layers of a run at all kept steps, in one answer, and their numbers at one step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fmapboard.formats.tab_records import Floats
from fmapboard.health.states import is_activation, worst_states
from fmapboard.health.table import HealthRow, HealthTable
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_tables import health_table, sent, table_with_step
from fmapboard.plugin.http import Answer, Query, container, missing
from fmapboard.plugin.shading import Shading, shading_by_change, shading_by_range

NUMBERS = (
    "minimum", "maximum", "nonfinite", "constant", "dead", "change", "weights_change",
)  # fmt: skip
"""Columns whose numbers are sent."""
MAX_NUMBERS = 20_000
"""Cells up to which the numbers of all are sent; of more cells, `health_step` sends those asked."""


def health(reader: Reader, query: Query) -> Answer:
    """``data/health``: what is known of each layer, and its state and brightness at each step.

    After the JSON follow, if there are at most `MAX_NUMBERS` cells, float32 arrays [steps, layers]
    of the numbers in ``arrays``, NaN where a number is not known; then for each name in ``cells``
    an array of bytes [steps, layers]: ``codes`` (see `health.states`), and levels of brightness by
    ``range`` and by ``change``.
    """
    run, stamp = query.text("run"), query.stamp()
    table = health_table(reader, run)
    shape = (len(table.steps), len(table.rows))
    own = is_activation([row.facts for row in table.rows], table.columns["dead"])
    codes = worst_states(table.columns, own, shape)
    shadings = {
        "range": shading_by_range(table.columns, codes),
        "change": shading_by_change(table.columns, codes),
    }
    told = table.first_nonfinite
    names = NUMBERS if codes.size <= MAX_NUMBERS else ()
    facts = {
        "run": run,
        "steps": table.steps,
        "wall_times": table.wall_times,
        "written": table.written,
        "layers": [_layer(row) for row in table.rows],
        "since": {
            kind: {str(row): step for row, step in rows.items()}
            for kind, rows in table.since.items()
        },
        "step_words": {str(step): table.step_text(step) for step in table.sources},
        "first_nonfinite": None if told is None else sent(told),
        "errors": {str(step): why for step, why in table.errors.items()},
        "arrays": [{"name": name, "shape": list(shape)} for name in names],
        "cells": ["codes", *shadings],
        "scales": {name: _scale(shading) for name, shading in shadings.items()},
    }
    parts = [_numbers(table, name).tobytes() for name in names]
    parts += [codes.tobytes(), *(shading.levels.tobytes() for shading in shadings.values())]
    lasting = bool(table.wall_times) and stamp == max(table.wall_times)
    return container(facts, parts, lasting=lasting, compress=True)


def health_step(reader: Reader, query: Query) -> Answer:
    """``data/health_step``: the numbers of all layers at one kept step, float32 [layers] each."""
    run, step, stamp = query.text("run"), query.whole("step"), query.stamp()
    table = table_with_step(reader, run, step, stamp)
    if step not in table.steps:
        raise missing(f"step {step} of run {run!r} is not kept")
    at = table.steps.index(step)
    shape = [len(table.rows)]
    facts = {"step": step, "arrays": [{"name": name, "shape": shape} for name in NUMBERS]}
    parts = [_numbers(table, name, at).tobytes() for name in NUMBERS]
    return container(facts, parts, lasting=stamp == table.wall_times[at])


def _numbers(table: HealthTable, name: str, at: int | slice = slice(None)) -> Floats:
    """A column as little-endian float32, or a step of it."""
    with np.errstate(over="ignore"):
        return table.columns[name][at].astype("<f4")


def _scale(of: Shading) -> dict[str, Any]:
    ends = {"lo": of.lo, "hi": of.hi}
    return {"of": of.of, **{name: x if math.isfinite(x) else None for name, x in ends.items()}}


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
