"""The most severe fault of the whole network at each step, and the first non-finite value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fmapboard.checks.health_table import HealthTable
from fmapboard.formats import tags
from fmapboard.formats.overview import KINDS, MAJOR, MINOR, constant_alone, is_activation, states
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.first_nonfinite import sent
from fmapboard.plugin.health_tables import health_table
from fmapboard.plugin.http import Answer, Query, missing
from fmapboard.plugin.recorded_health import MAX_SERIES, SCALARS, read_shares
from fmapboard.plugin.tag_names import natural

Found = dict[int, dict[str, dict[str, float]]]
"""Step -> kind -> layer -> share of channels, above 0."""


def timeline(reader: Reader, query: Query) -> Answer:
    """``data/timeline``: one entry per step with a fault, of the most severe kind at that step.

    The states are those of ``data/health``, from the same numbers. The scalars of the run add the
    steps between the kept ones, unless there are too many layers. ``kinds`` lists what was looked
    for in all layers: a run with very many layers and no overview series is not read completely.
    """
    run = query.text("run")
    table = health_table(reader, run)
    if table is None:
        raise missing(f"no feature maps in run {run!r}")
    found: Found = defaultdict(lambda: defaultdict(dict))
    kinds = list(KINDS)
    if table.source != "overview" or len(SCALARS) * len(table.rows) <= MAX_SERIES:
        told = _read_scalars(reader, table, found)
        if table.source != "overview":
            drawn = ["large", "unchanged"] if table.source == "records" else []
            kinds = [kind for kind in KINDS if kind in (*told, *drawn)]
    known = _table_faults(table, found)
    known |= {step: _worst(found[step]) for step in found if step not in known}
    faults = [{"step": step, **known[step]} for step in sorted(known) if known[step]]
    first = _first(table)
    return Answer({"run": run, "kinds": kinds, "faults": faults, "first_nonfinite": first})


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
    flags = states(columns, own)
    known: dict[int, dict[str, Any]] = {step: {} for step in table.steps}
    severe = {kind: np.any(flags[kind], axis=1) for kind in ("nonfinite", "large")}
    severe["dead"] = np.any(columns["dead"] >= MAJOR, axis=1)
    severe["constant"] = np.any(constant_alone(columns, own) >= MAJOR, axis=1)
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


def _read_scalars(reader: Reader, table: HealthTable, found: Found) -> Sequence[str]:
    """Add the faults that scalars tell of; returns the kinds that were looked for."""
    prefixes = sorted({tags.prefix(row.name) for row in table.rows})
    drawn = {name for name, row in zip(_names(table), table.rows, strict=True) if row.key}
    shares, kinds = read_shares(reader, table.run, prefixes)
    for (name, label), of in shares.items():
        layer = tags.prefix(name) + label
        for kind, values in of.items():
            # A dead activation is constant too; only of drawn layers that is a fault of its own.
            if kind == "constant" and layer not in drawn:
                continue
            least = MINOR if kind != "nonfinite" else 0.0
            for step, value in values.items():
                if value > least or value == least > 0:
                    found[step][kind][layer] = value
    return kinds


def _worst(kinds: dict[str, dict[str, float]]) -> dict[str, Any]:
    def severity(kind: str) -> tuple[bool, int]:
        return max(kinds[kind].values()) >= MAJOR or kind == "nonfinite", -KINDS.index(kind)

    kind = "nonfinite" if "nonfinite" in kinds else max(kinds, key=severity)
    layers = sorted(kinds[kind], key=natural)
    return {"kind": kind, "layers": len(layers), "layer": layers[0]}
