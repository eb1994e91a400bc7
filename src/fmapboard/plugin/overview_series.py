"""The health of a run's models, of whose overview series only new records are read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from fmapboard.formats import tags
from fmapboard.formats.checks import StoredChecks, unpack_checks
from fmapboard.formats.overview import COLUMNS, OverviewStep, unpack_overview
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError
from fmapboard.formats.training_facts import FirstNonfinite, unpack_nonfinite
from fmapboard.health.table import HealthTable, health_of, joined
from fmapboard.plugin.answers import Missing
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.stored_record import attempted
from fmapboard.plugin.tag_names import natural, overview_of
from fmapboard.runs.provider import Point, Provider

_CHECKS = (tags.CHECKS, tags.CHECKS_PROVEN)
_SERIES = (tags.OVERVIEW, tags.FIRST_OVERVIEW, tags.FIRST_NONFINITE_RECORD, *_CHECKS)
_BLOBS = 3
"""Per record of an overview."""
_RECENT = 1.0
"""Time in s for which what was read is not renewed: a page asks for several answers at once."""


class ModelOverview(NamedTuple):
    """The overview series of one model.

    Attributes:
        name: name of the model; "" for none.
        kept: the records.
        table: all layers that the kept records name, at the kept steps and the restored first one.
        newest: the newest record that can be read.
    """

    name: str
    kept: Kept
    table: HealthTable
    newest: OverviewStep

    @property
    def stamps(self) -> dict[int, float]:
        """Kept step -> its time, s."""
        return dict(zip(self.table.steps, self.table.wall_times, strict=True))

    def newest_column(self, name: str) -> dict[str, float]:
        """Label -> number in the newest record; empty if that has no such column."""
        numbers = self.newest.numbers.get(name)
        if numbers is None:
            return {}
        labels = [layer.label for layer in self.newest.layers]
        return dict(zip(labels, numbers.tolist(), strict=True))


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

    @property
    def is_of_images(self) -> bool:
        """True if each step is another image."""
        return self.table is not None and self.table.is_of_images

    def off(self, name: str) -> tuple[str, ...]:
        """Kinds of the checks of a model that were switched off, as far as it is known."""
        stored = self.checked.get(name)
        return () if stored is None else stored.off

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
    renew = partial(_renewed, provider, run)
    return provider.built(("overview", run), renew, _bytes)


def unread_step(provider: Provider, model: ModelOverview) -> int | None:
    """The newest logged step that TensorBoard has not read yet; None if there is none."""
    tag = tags.prefix(model.name) + tags.OVERVIEW
    newest_read = max(model.table.wall_times, default=0.0)
    return provider.unread(model.table.run, tag, newest_read)


def _renewed(provider: Provider, run: str, last: RunOverview | None) -> RunOverview:
    now = time.monotonic()
    if last is not None and now - last.listed_at < _RECENT:
        return last
    listed = tuple(provider.tags_of(PLUGIN_NAME, run))
    names = _model_names(listed)
    empty = RunOverview(
        run=run,
        models=(),
        table=None,
        errors={},
        checked={},
        restored=frozenset(),
        tags=listed,
        listed_at=now,
    )
    if not names:
        return empty
    last = last or empty
    points = _points_of(provider, run, names)
    newest = {name: _newest(series.checks, series.proven) for name, series in points.items()}
    checked = _read_checks(provider, newest)
    restored = last.restored
    lost = _lost_steps(points, checked)
    if not lost <= restored:
        restored |= lost
        provider.restore(run, restored)
        points = _points_of(provider, run, names)
    models, errors = _read_models(provider, run, points, last.models)
    renewed = replace(last, checked=checked, restored=restored, tags=listed, listed_at=now)
    read_before = [id(model) for model in last.models]
    is_same = [id(model) for model in models] == read_before
    if is_same and last.errors == errors:
        return renewed
    tables = [model.table for model in models]
    table = joined(tables, errors) if tables else None
    return replace(renewed, models=tuple(models), table=table, errors=errors)


def _model_names(listed: Iterable[str]) -> list[str]:
    """Names of the models that have overviews."""
    names = {overview_of(tag) for tag in listed}
    known = [name for name in names if name is not None]
    return sorted(known, key=natural)


class _Points(NamedTuple):
    """The records of the series of a model."""

    kept: Kept
    nonfinite: tuple[Point, ...]
    checks: tuple[Point, ...]
    proven: tuple[Point, ...]


def _points_of(provider: Provider, run: str, names: Sequence[str]) -> dict[str, _Points]:
    """Name of a model -> its records."""
    series = [tags.prefix(name) + tag for name in names for tag in _SERIES]
    found = provider.points(PLUGIN_NAME, run, series)
    points = {}
    for name in names:
        prefix = tags.prefix(name)
        of_model = [tuple(found.get(prefix + tag, ())) for tag in _SERIES]
        own, firsts, nonfinite, checks, proven = of_model
        kept = Kept(own, firsts)
        points[name] = _Points(kept, nonfinite, checks, proven)
    return points


def stored_checks(
    provider: Provider, runs: Sequence[str]
) -> dict[str, dict[str, StoredChecks | None]]:
    """Run -> name of each of its models -> what the checks said last; None if it is not stored."""
    listed = provider.runs()
    found: dict[str, dict[str, StoredChecks | None]] = {}
    newest: dict[tuple[str, str], Point | None] = {}
    for run in runs:
        _, run_tags = listed.get(run, (None, ()))
        names = _model_names(run_tags)
        found[run] = dict.fromkeys(names)
        series = [tags.prefix(name) + tag for name in names for tag in _CHECKS]
        points = provider.points(PLUGIN_NAME, run, series)
        for name in names:
            own = [points.get(tags.prefix(name) + tag, ()) for tag in _CHECKS]
            newest[run, name] = _newest(*own)
    for (run, name), stored in _read_checks(provider, newest).items():
        found[run][name] = stored
    return found


def _newest(checks: Sequence[Point], proven: Sequence[Point]) -> Point | None:
    """The newest record of what the checks said; of one step, that with experiments."""
    if proven and (not checks or proven[-1].step >= checks[-1].step):
        return proven[-1]
    return checks[-1] if checks else None


Key = TypeVar("Key")


def _read_checks(provider: Provider, newest: Mapping[Key, Point | None]) -> dict[Key, StoredChecks]:
    """What the newest record of each model says of it; a damaged one is left out."""
    asked = {key: (point, 0) for key, point in newest.items() if point is not None and point.blobs}
    blobs = provider.blobs(list(asked.values()))
    read = {}
    for key, blob in zip(asked, blobs, strict=True):
        stored = attempted(unpack_checks, blob)
        if not isinstance(stored, FormatError):
            read[key] = stored
    return read


def _lost_steps(
    points: Mapping[str, _Points], checked: Mapping[str, StoredChecks]
) -> frozenset[int]:
    """Steps at which findings begin that TensorBoard has dropped."""
    begins: set[int] = set()
    for stored in checked.values():
        for finding in stored.findings:
            if finding.since_step is not None:
                begins.add(finding.since_step)
    kept: set[int] = set()
    for series in points.values():
        begins.update(point.step for point in series.nonfinite)
        kept.update(point.step for point in series.kept.points)
    return frozenset(begins - kept)


def _read_models(
    provider: Provider, run: str, points: Mapping[str, _Points], last: Sequence[ModelOverview]
) -> tuple[list[ModelOverview], dict[int, str]]:
    """The models, and step -> why the records of other ones cannot be read."""
    before = {model.name: model for model in last}
    models: list[ModelOverview] = []
    errors: dict[int, str] = {}
    for name, series in points.items():
        read_before = before.get(name)
        model = _read_model(provider, run, name, series, read_before)
        if isinstance(model, ModelOverview):
            models.append(model)
        else:
            errors |= model
    return models, errors


def _read_model(
    provider: Provider, run: str, name: str, series: _Points, before: ModelOverview | None
) -> ModelOverview | dict[int, str]:
    """Parse the records of a model; if there are the same as before, what was read of them.

    Returns:
        The overview, or for each step why its record cannot be read if none can.
    """
    points = series.kept.points
    times = {point.step: point.wall_time for point in points}
    nonfinite = _first_nonfinite(provider, name, series.nonfinite)
    if before is not None:
        is_same = before.table.first_nonfinite == nonfinite
        if is_same and before.stamps == times:
            return before
    overviews = []
    errors = {}
    for step, overview in _read_overviews(provider, points).items():
        if isinstance(overview, FormatError):
            errors[step] = str(overview)
            continue
        overviews.append((step, overview))
    table = health_of(run, name, overviews, nonfinite, columns=COLUMNS, times=times)
    if table is None:
        return errors
    _, newest = overviews[-1]
    table = replace(table, errors=errors)
    return ModelOverview(name, series.kept, table, newest)


def _read_overviews(
    provider: Provider, points: Sequence[Point]
) -> dict[int, OverviewStep | FormatError]:
    """Step -> its record, or why it cannot be read."""
    asked = []
    for point in points:
        asked += [(point, blob) for blob in range(_BLOBS)]
    blobs = iter(provider.blobs(asked))
    read = {}
    for point in points:
        record = list(islice(blobs, _BLOBS))
        read[point.step] = attempted(unpack_overview, record)
    return read


def _first_nonfinite(
    provider: Provider, name: str, points: Sequence[Point]
) -> FirstNonfinite | None:
    """The earliest record of a first non-finite value; a restarted run has several."""
    asked = [(point, 0) for point in points if point.blobs]
    earliest: FirstNonfinite | None = None
    for blob in provider.blobs(asked):
        first = attempted(unpack_nonfinite, [blob], name)
        if isinstance(first, FormatError):
            continue
        if earliest is None or first.step < earliest.step:
            earliest = first
    return earliest


def _bytes(overview: RunOverview) -> int:
    """Bytes in memory, roughly; a layer's facts take about 500."""
    tables = [model.table for model in overview.models]
    if len(tables) > 1 and overview.table is not None:
        tables.append(overview.table)
    total = 100 * len(overview.tags)
    for table in tables:
        total += 700 * len(table.rows)
        total += sum(column.nbytes for column in table.columns.values())
    return total
