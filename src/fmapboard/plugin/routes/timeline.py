"""The most severe fault of the whole network at each step, and the first non-finite value."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.overview import KINDS
from fmapboard.health.states import (
    MAJOR,
    MINOR,
    MOSTLY_CONSTANT,
    MOSTLY_DEAD,
    is_activation,
    states,
)
from fmapboard.health.table import HealthTable
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_tables import health_table, sent
from fmapboard.plugin.http import Answer, Query
from fmapboard.plugin.tag_names import natural

SCALARS = {
    tags.NONFINITE: "nonfinite", tags.DEAD_CHANNELS: "dead", tags.CONSTANT_CHANNELS: "constant",
}  # fmt: skip
"""Group of scalars with the share of each layer's channels -> kind of fault."""
_MAX_SERIES = 1500
"""Scalar series that are read at most."""

Found = dict[int, dict[str, dict[str, float]]]
"""Step -> kind -> layer -> share of channels, above 0."""


def timeline(reader: Reader, query: Query) -> Answer:
    """``data/timeline``: one entry per step with a fault, of the most severe kind at that step.

    The states are those of ``data/health``, from the same numbers. The scalars of the run add the
    steps between the kept ones, unless there are too many layers.
    """
    run = query.text("run")
    table = health_table(reader, run)
    found: Found = defaultdict(lambda: defaultdict(dict))
    if len(SCALARS) * len(table.rows) <= _MAX_SERIES:
        _read_scalars(reader, table, found)
    known = _table_faults(table, found)
    known |= {step: _worst(found[step]) for step in found if step not in known}
    faults = [{"step": step, **known[step]} for step in sorted(known) if known[step]]
    first = _first(table)
    return Answer({"run": run, "faults": faults, "first_nonfinite": first})


def _first(table: HealthTable) -> dict[str, Any] | None:
    """Where the first non-finite value was, with the key of the layer whose pictures show it."""
    told = table.first_nonfinite
    if told is None:
        return None
    place = (told.name, told.label)
    row = next((row for row in table.rows if (row.name, row.facts.label) == place), None)
    return {**sent(told), "shown_at": None if row is None else row.shown_at}


def _table_faults(table: HealthTable, found: Found) -> dict[int, dict[str, Any]]:
    """The worst fault at each kept step, empty without one; adds onsets at other steps."""
    names, columns = _names(table), table.columns
    own = is_activation([row.facts for row in table.rows], columns["dead"])
    codes = states(columns, own)
    flags = {kind: each > 0 for kind, each in codes.items()}
    known: dict[int, dict[str, Any]] = {step: {} for step in table.steps}
    severe = {kind: np.any(flags[kind], axis=1) for kind in ("nonfinite", "large")}
    severe["dead"] = np.any(codes["dead"] == MOSTLY_DEAD, axis=1)
    severe["constant"] = np.any(codes["constant"] == MOSTLY_CONSTANT, axis=1)
    severe["unchanged"] = np.zeros(len(table.steps), bool)
    for at, step in enumerate(table.steps):
        present = [kind for kind in KINDS if flags[kind][at].any()]
        if present:
            worst = max(present, key=lambda kind: (severe[kind][at], -KINDS.index(kind)))
            rows = flags[worst][at]
            known[step] = {
                "kind": worst,
                "layers": int(rows.sum()),
                "layer": names[int(rows.argmax())],
            }
    for kind in KINDS[:4]:  # weights that are unchanged since a step had still changed at it
        for row, step in table.since.get(kind, {}).items():
            if step not in known:
                found[step][kind].setdefault(names[row], 1.0 if kind == "nonfinite" else MINOR)
    return known


def _names(table: HealthTable) -> list[str]:
    return [tags.prefix(row.name) + row.facts.label for row in table.rows]


def _read_scalars(reader: Reader, table: HealthTable, found: Found) -> None:
    """Add the faults that scalars tell of."""
    kind_of: dict[str, tuple[str, str]] = {}
    drawn = set()
    for layer, row in zip(_names(table), table.rows, strict=True):
        kind_of |= {
            tags.prefix(row.name) + tags.of(group, row.facts.label): (kind, layer)
            for group, kind in SCALARS.items()
        }
        if row.key:
            drawn.add(layer)
    for tag, data in reader.scalars(table.run, kind_of).items():
        kind, layer = kind_of[tag]
        # A dead activation is constant too; only of drawn layers that is a fault of its own.
        if kind == "constant" and layer not in drawn:
            continue
        least = MINOR if kind != "nonfinite" else 0.0
        for datum in data:
            if datum.value > least or datum.value == least > 0:
                found[datum.step][kind][layer] = datum.value


def _worst(kinds: dict[str, dict[str, float]]) -> dict[str, Any]:
    def severity(kind: str) -> tuple[bool, int]:
        return max(kinds[kind].values()) >= MAJOR or kind == "nonfinite", -KINDS.index(kind)

    kind = "nonfinite" if "nonfinite" in kinds else max(kinds, key=severity)
    layers = sorted(kinds[kind], key=natural)
    return {"kind": kind, "layers": len(layers), "layer": layers[0]}
