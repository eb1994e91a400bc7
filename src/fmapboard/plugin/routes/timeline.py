"""The most severe fault of the whole network at each step, and the first non-finite value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from fmapboard import tags
from fmapboard.checks.health_table import HealthTable
from fmapboard.overview_format import (
    KINDS,
    LARGE,
    MAJOR,
    MINOR,
    is_activation,
    states,
)
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_tables import from_overview
from fmapboard.plugin.http import Answer, Query, missing
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.nonfinite_text import first_nonfinite
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.recorded_health import MAX_RECORDS, MAX_SERIES, SCALARS, read_shares
from fmapboard.plugin.stored_record import read_record, statistics
from fmapboard.plugin.tag_names import natural
from fmapboard.tab_format import FormatError

_KINDS = KINDS[:4]
"""By severity; a minor share of dead channels is less severe than a major one of constant ones.

Unchanged weights are left out: those of a network that is partly frozen are meant to be.
"""

Found = dict[int, dict[str, dict[str, float]]]
"""Step -> kind -> layer -> share of channels, above 0."""


def timeline(reader: Reader, query: Query) -> Answer:
    """``data/timeline``: one entry per step with a fault, of the most severe kind at that step.

    With an overview series, all layers are looked at, at every step that TensorBoard keeps of it.
    The scalars of a run with few layers add the steps between. Without one, non-finite, dead and
    constant channels come from the scalars of all measured layers, and large values from the
    records of the drawn layers. ``kinds`` lists what was looked for: a run with very many layers
    is then not read completely.
    """
    run = query.text("run")
    overview = run_overview(reader, run)
    found: Found = defaultdict(lambda: defaultdict(dict))
    known: dict[int, dict[str, Any]] = {}
    if overview.models:
        table = from_overview(reader, run, overview)
        kinds, first = list(_KINDS), table.first_nonfinite
        if len(SCALARS) * len(table.rows) <= MAX_SERIES:
            prefixes = [tags.prefix(model.name) for model in overview.models]
            drawn = {name for name, row in zip(_names(table), table.rows, strict=True) if row.key}
            _read_scalars(reader, run, prefixes, drawn, found)
        known = _table_faults(table, found)
    else:
        every = sorted(series_of(reader, run), key=lambda series: natural(series.layer.key))
        if not every:
            raise missing(f"no feature maps in run {run!r}")
        prefixes = sorted({series.layer.prefix for series in every})
        drawn = {series.layer.prefix + series.layer.label for series in every}
        kinds = _read_scalars(reader, run, prefixes, drawn, found)
        if _read_extremes(reader, every, found):
            kinds.append("large")
        first = first_nonfinite(reader, run, prefixes)
    known |= {step: _worst(found[step]) for step in found if step not in known}
    faults = [{"step": step, **known[step]} for step in sorted(known) if known[step]]
    return Answer({"run": run, "kinds": kinds, "faults": faults, "first_nonfinite": first})


def _table_faults(table: HealthTable, found: Found) -> dict[int, dict[str, Any]]:
    """The worst fault at each kept step, empty without one; adds onsets at other steps."""
    names, columns = _names(table), table.columns
    own = is_activation([row.facts for row in table.rows], columns["dead"])
    flags = {kind: each for kind, each in states(columns, own).items() if kind in _KINDS}
    known: dict[int, dict[str, Any]] = {step: {} for step in table.steps}
    severe = {
        kind: np.any(columns[kind] >= MAJOR if kind in ("dead", "constant") else each, axis=1)
        for kind, each in flags.items()
    }
    for at, step in enumerate(table.steps):
        present = [kind for kind in _KINDS if kind in flags and flags[kind][at].any()]
        if present:
            worst = max(present, key=lambda kind: (severe[kind][at], -_KINDS.index(kind)))
            rows = flags[worst][at]
            known[step] = {
                "kind": worst,
                "layers": int(rows.sum()),
                "layer": names[int(rows.argmax())],
            }
    for kind in _KINDS:
        for row, step in table.since.get(kind, {}).items():
            if step not in known:
                found[step][kind].setdefault(names[row], 1.0 if kind == "nonfinite" else MINOR)
    return known


def _names(table: HealthTable) -> list[str]:
    return [tags.prefix(row.name) + row.facts.label for row in table.rows]


def _read_scalars(
    reader: Reader, run: str, prefixes: Sequence[str], drawn: set[str], found: Found
) -> list[str]:
    """Add the faults that scalars tell of; returns the kinds that were looked for."""
    shares, kinds = read_shares(reader, run, prefixes)
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


def _read_extremes(reader: Reader, every: Sequence[Series], found: Found) -> bool:
    """Add the layers with large values; False if there are too many records to read."""
    points = [(series.layer, point) for series in every for point in series.points]
    if len(points) > MAX_RECORDS:
        return False
    blobs = iter(reader.blobs([(point, i) for _, point in points for i in (0, 1)]))
    for layer, point in points:
        try:
            arrays = statistics(read_record(next(blobs), next(blobs)), "feature_maps")
        except FormatError:
            continue
        ends = [arrays[name] for name in ("minimum", "maximum") if name in arrays]
        if any(np.any(np.abs(end[np.isfinite(end)]) >= LARGE) for end in ends):
            found[point.step]["large"][layer.prefix + layer.label] = 1.0
    return True


def _worst(kinds: dict[str, dict[str, float]]) -> dict[str, Any]:
    def severity(kind: str) -> tuple[bool, int]:
        return max(kinds[kind].values()) >= MAJOR or kind == "nonfinite", -_KINDS.index(kind)

    kind = "nonfinite" if "nonfinite" in kinds else max(kinds, key=severity)
    layers = sorted(kinds[kind], key=natural)
    return {"kind": kind, "layers": len(layers), "layer": layers[0]}
