"""The health of a run's models, of whose overview series only new records are read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from fmapboard.formats import tags
from fmapboard.formats.checks import StoredChecks, unpack_checks
from fmapboard.formats.overview import COLUMNS, OverviewStep, unpack_overview
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError
from fmapboard.formats.training_facts import FirstNonfinite, unpack_nonfinite
from fmapboard.health.record import RunRecord
from fmapboard.health.table import HealthTable, health_of, joined
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.stored_record import attempted
from fmapboard.plugin.tag_names import natural, overview_of
from fmapboard.runs.provider import Point, Provider

_SERIES = (tags.OVERVIEW, tags.FIRST_OVERVIEW, tags.FIRST_NONFINITE_RECORD, tags.CHECKS)
_RECENT = 1.0
"""Time in s for which what was read is not renewed: a page asks for several answers at once."""


class ModelOverview(NamedTuple):
    """The overview series of one model.

    Attributes:
        name: name of the model; "" for none.
        kept: the records.
        table: all layers that the kept records name, at the kept steps and the restored first one.
        newest: the newest record that can be read.
        inputs: step -> numbers of the network's input.
    """

    name: str
    kept: Kept
    table: HealthTable
    newest: OverviewStep
    inputs: Mapping[int, Mapping[str, float]]

    @property
    def stamps(self) -> dict[int, float]:
        """Kept step -> its time, s."""
        return dict(zip(self.table.steps, self.table.wall_times, strict=True))

    def newest_column(self, name: str) -> dict[str, float]:
        """Label -> number in the newest record; empty if that has no such column."""
        numbers = self.newest.numbers.get(name)
        labels = (layer.label for layer in self.newest.layers)
        return {} if numbers is None else dict(zip(labels, numbers.tolist(), strict=True))

    def record(self) -> RunRecord:
        """What the series tells the checks."""
        return RunRecord(self.table.run, self.name, self.table, network_input=self.inputs)


@dataclass(frozen=True, slots=True)
class RunOverview:
    """The overview series of a run.

    Attributes:
        run: its name.
        models: those with records that can be read, by name.
        table: the health of all of them; None if there is none.
        errors: step -> why the records of other models cannot be read.
        checked: name of a model -> what the checks said last while it was logged.
        restored: steps at which findings begin, read from the run's files as they were dropped.
        tags: tags of all of the tab's records in the run.
        listed_at: when that was, s.
    """

    run: str
    models: tuple[ModelOverview, ...]
    table: HealthTable | None
    errors: Mapping[int, str]
    checked: Mapping[str, StoredChecks]
    restored: frozenset[int]
    tags: tuple[str, ...]
    listed_at: float

    def off(self, name: str) -> tuple[str, ...]:
        """Kinds of the checks of a model that were switched off, as far as it is known."""
        return self.checked[name].off if name in self.checked else ()

    def health(self) -> HealthTable:
        """``table``.

        Raises:
            Missing: the run has no overview that can be read.
        """
        if self.table is not None:
            return self.table
        for step, why in self.errors.items():
            cause = f"cannot be read: at step {step}, {why}"
            raise Missing(f"the overview of run {self.run!r} {cause}")
        raise Missing(f"no feature maps in run {self.run!r}")


def run_overview(provider: Provider, run: str) -> RunOverview:
    """Read the overview series of a run; only what is new since the last call."""
    return provider.built(("overview", run), partial(_renewed, provider, run), _bytes)


def unread_step(provider: Provider, model: ModelOverview) -> int | None:
    """The newest logged step that TensorBoard has not read yet; None if there is none."""
    read = max(model.table.wall_times, default=0.0)
    return provider.unread(model.table.run, tags.prefix(model.name) + tags.OVERVIEW, read)


def _renewed(provider: Provider, run: str, last: RunOverview | None) -> RunOverview:
    now = time.monotonic()
    if last is not None and now - last.listed_at < _RECENT:
        return last
    listed = tuple(provider.tags_of(PLUGIN_NAME, run))
    names = sorted({name for name in map(overview_of, listed) if name is not None}, key=natural)
    if not names:
        return RunOverview(run, (), None, {}, {}, frozenset(), listed, now)
    series = [tags.prefix(name) + tag for name in names for tag in _SERIES]
    found = provider.points(PLUGIN_NAME, run, series)
    restored = frozenset[int]() if last is None else last.restored
    checked = _checked(provider, names, found)
    steps = {tag: {point.step for point in points} for tag, points in found.items()}
    begins = {each.since_step for one in checked.values() for each in one.findings}
    begins.update(*(of for tag, of in steps.items() if tag.endswith(tags.FIRST_NONFINITE_RECORD)))
    begins.difference_update(*(of for tag, of in steps.items() if tags.OVERVIEW in tag))
    lost = frozenset(step for step in begins if step is not None)
    if not lost <= restored:
        restored |= lost
        provider.restore(run, restored)
        found = provider.points(PLUGIN_NAME, run, series)
    before = {} if last is None else {model.name: model for model in last.models}
    models, errors = [], dict[int, str]()
    for name in names:
        model = _read_model(provider, run, name, found, before.get(name))
        if isinstance(model, ModelOverview):
            models.append(model)
        else:
            errors |= model
    is_same = last is not None and list(map(id, last.models)) == list(map(id, models))
    if last is not None and is_same and last.errors == errors:
        return replace(last, checked=checked, restored=restored, tags=listed, listed_at=now)
    table = joined([model.table for model in models], errors) if models else None
    return RunOverview(run, tuple(models), table, errors, checked, restored, listed, now)


def _checked(
    provider: Provider, names: Sequence[str], found: Mapping[str, Sequence[Point]]
) -> dict[str, StoredChecks]:
    """What the newest record of each model says of it; a damaged one is left out."""
    series = {name: found.get(tags.prefix(name) + tags.CHECKS, ())[-1:] for name in names}
    newest = {name: (of[0], 0) for name, of in series.items() if of and of[0].blobs}
    blobs = provider.blobs(list(newest.values()))
    read = zip(newest, (attempted(unpack_checks, blob) for blob in blobs), strict=True)
    return {name: one for name, one in read if not isinstance(one, FormatError)}


def _read_model(
    provider: Provider,
    run: str,
    name: str,
    found: Mapping[str, Sequence[Point]],
    before: ModelOverview | None,
) -> ModelOverview | dict[int, str]:
    """Parse the records of a model; if there are the same as before, what was read of them.

    Returns:
        The overview, or for each step why its record cannot be read if none can.
    """
    series = (tuple(found.get(tags.prefix(name) + tag, ())) for tag in _SERIES[:3])
    own, firsts, nonfinite = series
    kept = Kept(own, firsts)
    points = kept.points
    times = {point.step: point.wall_time for point in points}
    told = _first_nonfinite(provider, name, nonfinite)
    if before is not None and (before.stamps, before.table.first_nonfinite) == (times, told):
        return before
    blobs = iter(provider.blobs([(point, i) for point in points for i in range(3)]))
    known = {p.step: attempted(unpack_overview, [next(blobs) for _ in range(3)]) for p in points}
    overviews = [(s, of) for s in times if isinstance(of := known[s], OverviewStep)]
    errors = {step: str(of) for step in times if isinstance(of := known[step], FormatError)}
    table = health_of(run, name, overviews, told, columns=COLUMNS, times=times)
    if table is None:
        return errors
    return ModelOverview(
        name,
        kept,
        replace(table, errors=errors),
        newest=overviews[-1][1],
        inputs={step: of.network_input for step, of in overviews if of.network_input},
    )


def _first_nonfinite(
    provider: Provider, name: str, points: Sequence[Point]
) -> FirstNonfinite | None:
    """The earliest record of a first non-finite value; a restarted run has several."""
    blobs = provider.blobs([(point, 0) for point in points if point.blobs])
    found = [attempted(unpack_nonfinite, [blob], name) for blob in blobs]
    readable = [one for one in found if not isinstance(one, FormatError)]
    return min(readable, key=lambda one: one.step, default=None)


def _bytes(overview: RunOverview) -> int:
    """Bytes in memory, roughly; a layer's facts take about 500."""
    tables = [model.table for model in overview.models]
    if len(tables) > 1 and overview.table is not None:
        tables.append(overview.table)
    columns = sum(column.nbytes for table in tables for column in table.columns.values())
    rows = sum(len(table.rows) for table in tables)
    return columns + 700 * rows + 100 * len(overview.tags)
