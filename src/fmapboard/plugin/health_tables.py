"""The health table of a run, from its overview series, and where the first non-finite value was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.overview import COLUMNS, KINDS, is_of_images
from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.formats.training_facts import FirstNonfinite, unpack_nonfinite
from fmapboard.health.record import RunRecord
from fmapboard.health.table import HealthTable, rows_of
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.overview_series import ModelOverview, RunOverview
from fmapboard.runs.provider import Provider


def first_nonfinite(
    provider: Provider, overview: RunOverview, prefixes: Iterable[str]
) -> FirstNonfinite | None:
    """The earliest record of a first non-finite value; a restarted run has several."""
    series = [prefix + tags.FIRST_NONFINITE_RECORD for prefix in prefixes]
    points = [point for tag in series for point in overview.beside.get(tag, ()) if point.blobs]
    found = []
    for point, blob in zip(points, provider.blobs([(each, 0) for each in points]), strict=True):
        name = point.tag.removesuffix(tags.FIRST_NONFINITE_RECORD).removesuffix(".")
        try:
            found.append(unpack_nonfinite([blob], name))
        except FormatError:
            continue
    return min(found, key=lambda one: one.step, default=None)


Built = tuple[tuple[ModelOverview, ...], HealthTable]
"""A table, and what it was built from."""


def health_table(provider: Provider, overview: RunOverview) -> HealthTable:
    """The health of a run's layers at all steps that are kept.

    Raises:
        Missing: the run has no overview that can be read.
    """
    run = overview.run
    if not overview.models:
        for step, why in overview.errors.items():
            raise Missing(f"the overview of run {run!r} cannot be read: at step {step}, {why}")
        raise Missing(f"no feature maps in run {run!r}")
    build = partial(_renewed, provider, overview)
    _, table = provider.built(("health", run), build, _bytes)
    return table


def model_record(run: str, model: ModelOverview, first: FirstNonfinite | None) -> RunRecord:
    """What the overview series of a model tells the checks; its records must be readable."""
    table = replace(_built(run, (model,)), first_nonfinite=first)
    return RunRecord(run, model.name, table, network_input=model.inputs)


def _renewed(provider: Provider, overview: RunOverview, last: Built | None) -> Built:
    """The table; from ``last`` what is still the same."""
    models = overview.models
    first = first_nonfinite(provider, overview, [tags.prefix(model.name) for model in models])
    errors = dict(overview.errors)
    for model in models:
        errors.update(model.errors)
    if last is None or list(map(id, last[0])) != list(map(id, models)):
        last = models, _built(overview.run, models)
    return models, replace(last[1], first_nonfinite=first, errors=errors)


def _bytes(built: Built) -> int:
    models, table = built
    own = sum(column.nbytes for column in table.columns.values()) if len(models) > 1 else 0
    return own + 200 * len(table.rows)


def _built(run: str, models: tuple[ModelOverview, ...]) -> HealthTable:
    times: dict[int, float] = {}
    for model in models:
        for point in model.points:
            times.setdefault(point.step, point.wall_time)
    steps = tuple(sorted(times))
    rows = [row for model in models for row in rows_of(model.name, model.layers)]
    since: dict[str, dict[int, int]] = {kind: {} for kind in KINDS}
    first_row = 0
    for model in models:
        place = {layer.label: first_row + index for index, layer in enumerate(model.layers)}
        now = model.newest
        for kind, among in now.since.items():
            for index, step in among.items():
                row = place.get(now.layers[index].label)
                if row is not None:
                    since[kind][row] = step
        first_row += len(model.layers)
    sources = {step: of for model in models for step, of in model.sources.items()}
    if is_of_images({step: sources.get(step) for step in steps}):
        since = {}
    return HealthTable(
        run=run,
        steps=steps,
        # A restarted run starts counting at 1 again.
        written=max(len(steps), *(model.newest.steps_written for model in models)),
        rows=tuple(rows),
        columns=dict(zip(COLUMNS, _joined(models, steps), strict=True)),
        since={kind: rows for kind, rows in since.items() if rows},
        wall_times=tuple(times[step] for step in steps),
        sources=sources,
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
