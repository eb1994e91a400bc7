"""Build the health table of a run, from its overview series or what else it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fmapboard import tags
from fmapboard.checks.health_table import HealthTable, rows_of
from fmapboard.overview_format import COLUMNS, KINDS
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.nonfinite_text import first_nonfinite
from fmapboard.plugin.overview_series import RunOverview, run_overview
from fmapboard.plugin.overview_table import ModelOverview
from fmapboard.plugin.recorded_health import recorded_health
from fmapboard.tab_format import Floats


def health_table(reader: Reader, run: str) -> HealthTable | None:
    """The health of a run's layers at all steps that are kept; None if there are no layers."""
    overview = run_overview(reader, run)
    if overview.models:
        return from_overview(reader, run, overview)
    table = recorded_health(reader, run)
    return None if table is None else replace(table, errors=overview.errors)


def from_overview(reader: Reader, run: str, overview: RunOverview) -> HealthTable:
    """The health table of a run with an overview series."""
    models = overview.models
    times: dict[int, float] = {}
    for model in models:
        for point in model.points:
            times.setdefault(point.step, point.wall_time)
    steps = tuple(sorted(times))
    rows = [row for model in models for row in rows_of(model.name, model.layers)]
    since: dict[str, dict[int, int]] = {kind: {} for kind in KINDS}
    first_row, every = 0, dict(overview.errors)
    for model in models:
        place = {layer.label: first_row + index for index, layer in enumerate(model.layers)}
        now = model.newest
        for kind, among in now.since.items():
            for index, step in among.items():
                row = place.get(now.layers[index].label)
                if row is not None:
                    since[kind][row] = step
        every.update(model.errors)
        first_row += len(model.layers)
    return HealthTable(
        run=run,
        source="overview",
        steps=steps,
        # A restarted run starts counting at 1 again.
        written=max(len(steps), *(model.newest.steps_written for model in models)),
        rows=tuple(rows),
        columns=dict(zip(COLUMNS, _joined(models, steps), strict=True)),
        since={kind: rows for kind, rows in since.items() if rows},
        first_nonfinite=first_nonfinite(reader, run, [tags.prefix(m.name) for m in models]),
        wall_times=tuple(times[step] for step in steps),
        errors=every,
    )


def _joined(models: Sequence[ModelOverview], steps: tuple[int, ...]) -> Floats:
    """The numbers of all models, [columns, steps, rows]."""
    if len(models) == 1:
        return models[0].numbers
    place = {step: index for index, step in enumerate(steps)}
    parts = []
    for model in models:
        part = np.full((len(COLUMNS), len(steps), len(model.layers)), np.nan, np.float32)
        part[:, [place[point.step] for point in model.points]] = model.numbers
        parts.append(part)
    return np.concatenate(parts, axis=2)
