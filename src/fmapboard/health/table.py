"""What is known about the state of a run's layers over the steps, and their names in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.overview import (
    KINDS,
    LayerFacts,
    OverviewStep,
    StepSource,
    is_of_images,
    source_text,
)
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import FirstNonfinite


@dataclass(frozen=True, slots=True)
class HealthRow:
    """One layer call of a run.

    Attributes:
        facts: what is known about the layer.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        key: tag of the layer's records, or None if the layer has no pictures.
        shown_at: key of the layer whose pictures show this one: its own; of an activation, that of
            the layer it follows; otherwise that of the nearest layer with pictures before it in
            the order of calls, else after it; None if the run has no pictures at all.
    """

    facts: LayerFacts
    name: str
    key: str | None
    shown_at: str | None


@dataclass(frozen=True, slots=True)
class HealthTable:
    """Numbers of every layer of a run at every step that is kept.

    Attributes:
        run: name of the run.
        steps: the kept steps, ascending.
        written: number of logged steps.
        rows: the layers in network order.
        columns: name of one of `formats.overview.COLUMNS` -> float [steps, rows], NaN if not known.
        since: kind of `formats.overview.KINDS` -> row -> first of the logged steps at which the
            layer has been in that state without interruption up to the newest step; of
            ``"unchanged"``, the step since which the weights are the same. Exact even where
            TensorBoard has dropped steps.
        first_nonfinite: where the first non-finite value was found; None if none was.
        wall_times: time of each step, s.
        errors: step -> why its record cannot be read; its numbers are NaN.
        sources: step -> what it shows, of ``visualize``; empty for a training. If each step is
            another image, ``since`` is empty: nothing lasts from one image to the next.
    """

    run: str
    steps: tuple[int, ...]
    written: int
    rows: tuple[HealthRow, ...]
    columns: Mapping[str, Floats]
    since: Mapping[str, Mapping[int, int]]
    first_nonfinite: FirstNonfinite | None = None
    wall_times: tuple[float, ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)
    sources: Mapping[int, StepSource] = field(default_factory=dict)

    @property
    def is_of_images(self) -> bool:
        """True if each step is another image."""
        return is_of_images({step: self.sources.get(step) for step in self.steps})

    @property
    def magnitudes(self) -> Floats:
        """The largest magnitude of each layer, [steps, rows]; NaN if not known."""
        return np.fmax(np.abs(self.columns["minimum"]), np.abs(self.columns["maximum"]))

    def index(self, name: str, label: str | None) -> int | None:
        """Index of the row of a layer call; None if there is none.

        Args:
            name: name of the model; "" for none.
            label: label of the layer call.
        """
        for index, row in enumerate(self.rows):
            if row.name == name and row.facts.label == label:
                return index
        return None

    def step_text(self, step: int) -> str:
        """A step in words: "step 3", "image 3 (cat.jpg)"."""
        return source_text(self.sources.get(step), step)

    def since_text(self, step: int, last: int | None = None) -> str:
        """From a step on, in words: "since step 3", of images "for images 3 to 7".

        Of steps that ended: "at step 3", "from step 3 to 7".

        Args:
            step: the first step.
            last: the last one; None for the newest.
        """
        if last is None:
            last = self.steps[-1]
        if not self.is_of_images:
            if last == self.steps[-1]:
                return f"since step {step}"
            return f"at step {step}" if step == last else f"from step {step} to {last}"
        if step == last:
            return f"for {self.step_text(step)}"
        return f"for images {step} to {last}"


def rows_of(name: str, layers: Sequence[LayerFacts]) -> list[HealthRow]:
    """The rows of one model, given its layers in network order."""
    prefix = tags.prefix(name) + tags.RECORD
    keys = [prefix + layer.label if layer.roles else None for layer in layers]
    drawn = [key for key in keys if key]
    followed = {layer.activation: key for layer, key in zip(layers, keys, strict=True) if key}
    nearest = drawn[0] if drawn else None  # before the first one with pictures
    rows = []
    for layer, key in zip(layers, keys, strict=True):
        nearest = key or nearest
        shown_at = key or followed.get(layer.label) or nearest
        rows.append(HealthRow(layer, name, key, shown_at))
    return rows


COLUMNS = (
    "minimum", "maximum", "mean", "std", "nonfinite", "constant", "dead", "dead_lasting",
    "weights_change", "values", "spread",
)  # fmt: skip
"""Columns of an overview that the checks read."""
MAX_LAYERS = 20_000
"""Layers of a model that are read; a real network has fewer."""
Places = npt.NDArray[np.intp] | slice
"""Indices of layers; a slice copies ten times faster."""


def health_of(
    run: str,
    name: str,
    overviews: Sequence[tuple[int, OverviewStep]],
    first_nonfinite: FirstNonfinite | None,
    *,
    columns: Sequence[str] = COLUMNS,
    times: Mapping[int, float] | None = None,
) -> HealthTable | None:
    """The health table of a model; None without overviews.

    Args:
        run: name of the run.
        name: name of the model; "" for none.
        overviews: step and overview, ascending.
        first_nonfinite: where `watch` found the first non-finite value.
        columns: the columns of the table.
        times: kept step -> its wall time, s, ascending by step, with the steps of which no overview
            can be read; None if the steps are those of the overviews, and no time is known.
    """
    if not overviews:
        return None
    newest = overviews[-1][1]
    layers = _with_values(_merged([overview.layers for _, overview in overviews]), newest)
    labels = [layer.label for layer in layers]
    steps = [step for step, _ in overviews] if times is None else list(times)
    sources = {step: overview.source for step, overview in overviews if overview.source is not None}
    return HealthTable(
        run=run,
        steps=tuple(steps),
        # A restarted run starts counting at 1 again.
        written=max(len(steps), newest.steps_written),
        rows=tuple(rows_of(name, layers)),
        columns=_columns(overviews, columns, steps, labels),
        since=_lasting(_since(newest, labels), steps, sources),
        first_nonfinite=first_nonfinite,
        wall_times=() if times is None else tuple(times.values()),
        sources=sources,
    )


def _columns(
    overviews: Sequence[tuple[int, OverviewStep]],
    columns: Sequence[str],
    steps: Sequence[int],
    labels: Sequence[str],
) -> dict[str, Floats]:
    """The columns of a table, float32 [steps, layers] each; NaN where nothing is recorded."""
    shape = len(steps), len(labels)
    tables = {name: np.full(shape, np.nan, np.float32) for name in columns}
    place = {step: index for index, step in enumerate(steps)}
    last: tuple[LayerFacts, ...] | None = None
    for step, overview in overviews:
        if overview.layers is not last:
            last = overview.layers
            source, target = _among(last, labels)
        for name, table in tables.items():
            if name in overview.numbers:
                table[place[step], target] = overview.numbers[name][source]
    return tables


def _since(newest: OverviewStep, labels: Sequence[str]) -> dict[str, dict[int, int]]:
    """``since`` of the newest overview, by row of the table."""
    place = {label: row for row, label in enumerate(labels)}
    since: dict[str, dict[int, int]] = {}
    for kind, layers in newest.since.items():
        rows: dict[int, int] = {}
        for index, step in layers.items():
            row = place.get(newest.layers[index].label)
            if row is not None:
                rows[row] = step
        since[kind] = rows
    return since


def _lasting(
    since: Mapping[str, Mapping[int, int]], steps: Iterable[int], sources: Mapping[int, StepSource]
) -> dict[str, Mapping[int, int]]:
    """``since`` of a table, without kinds of which there is nothing."""
    if is_of_images({step: sources.get(step) for step in steps}):
        return {}
    return {kind: since[kind] for kind in KINDS if since.get(kind)}


def joined(tables: Sequence[HealthTable], errors: Mapping[int, str]) -> HealthTable:
    """The table of all models of a run, one after the other.

    Args:
        tables: one of each model, at least one.
        errors: step -> why records of other models cannot be read.
    """
    if len(tables) == 1:
        return replace(tables[0], errors={**errors, **tables[0].errors})
    times: dict[int, float] = {}
    since: dict[str, dict[int, int]] = {kind: {} for kind in KINDS}
    all_errors = dict(errors)
    first_row = 0
    for table in tables:
        all_errors.update(table.errors)
        times = {**dict(zip(table.steps, table.wall_times, strict=True)), **times}
        for kind, rows in table.since.items():
            since[kind].update({first_row + row: step for row, step in rows.items()})
        first_row += len(table.rows)
    steps = sorted(times)
    nonfinite = [table.first_nonfinite for table in tables if table.first_nonfinite is not None]
    sources = {step: source for table in tables for step, source in table.sources.items()}
    return HealthTable(
        run=tables[0].run,
        steps=tuple(steps),
        written=max(len(steps), *(table.written for table in tables)),
        rows=tuple(row for table in tables for row in table.rows),
        columns={name: _at(steps, tables, name) for name in tables[0].columns},
        since=_lasting(since, steps, sources),
        first_nonfinite=min(nonfinite, key=lambda first: first.step, default=None),
        wall_times=tuple(times[step] for step in steps),
        errors=all_errors,
        sources=sources,
    )


def _at(steps: Sequence[int], tables: Sequence[HealthTable], column: str) -> Floats:
    """A column of several tables at these steps, float [steps, rows of all]."""
    place = {step: index for index, step in enumerate(steps)}
    parts = []
    for table in tables:
        part = np.full((len(steps), len(table.rows)), np.nan, np.float32)
        part[[place[step] for step in table.steps]] = table.columns[column]
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _among(layers: Sequence[LayerFacts], labels: Sequence[str]) -> tuple[Places, Places]:
    """Indices of layers, and where they are among all; slices if they are all, in that order."""
    own = [layer.label for layer in layers]
    if own == labels:
        return slice(None), slice(None)
    place = {label: index for index, label in enumerate(labels)}
    known = [(index, place[label]) for index, label in enumerate(own) if label in place]
    source, target = np.array(known, np.intp).reshape(-1, 2).T
    return source, target


def _merged(lists: Iterable[tuple[LayerFacts, ...]]) -> tuple[LayerFacts, ...]:
    """All layers, each as in the last list that has it, in the order of calls."""
    found: dict[str, LayerFacts] = {}
    last: tuple[LayerFacts, ...] = ()
    for layers in lists:
        if layers is not last:
            found.update({layer.label: layer for layer in layers})
            last = layers
    ordered = sorted(found.values(), key=lambda layer: (layer.position, layer.call, layer.label))
    return tuple(ordered[:MAX_LAYERS])


def _with_values(layers: tuple[LayerFacts, ...], newest: OverviewStep) -> tuple[LayerFacts, ...]:
    """The layers with their number of values per channel at the newest step."""
    if "values" not in newest.numbers:
        return layers
    values: dict[str, int] = {}
    for layer, value in zip(newest.layers, newest.numbers["values"].tolist(), strict=True):
        if 0 <= value < 2**53:
            values[layer.label] = int(value)
    return tuple(
        replace(layer, values=values[layer.label]) if layer.label in values else layer
        for layer in layers
    )


def call_text(table: HealthTable, row: HealthRow, *, with_model: bool = False) -> str:
    """The layer of a row between backticks, followed by its call if that is not the first.

    Args:
        table: has the row, and the layers before it.
        row: the layer call.
        with_model: begin with the name of the model, if it has one.
    """
    facts = row.facts
    model = f"{row.name}: " if row.name and with_model else ""
    text = f"`{model}{facts.layer}`"
    if facts.call <= 1:
        return text
    before = [
        other.facts.label
        for other in table.rows
        if other.name == row.name and other.facts.activation == facts.label
    ]
    behind = f", behind `{before[0]}`" if before else ""
    return f"{text} (call {facts.call}{behind})"


def is_normalized(row: HealthRow, by: str = "norm") -> bool:
    """True if a normalization follows the layer, as far as the order of definition tells."""
    return any(by in kind.lower() for kind in row.facts.followed_by)


def after_activation(table: HealthTable, row: HealthRow) -> str:
    """`` (after `relu`, call 2)`` if a row's numbers are those behind an activation; else ""."""
    label = row.facts.activation
    if not label:
        return ""
    index = table.index(row.name, label)
    if index is None or table.rows[index].facts.call == 1:
        return f" (after `{label}`)"
    facts = table.rows[index].facts
    return f" (after `{facts.layer}`, call {facts.call})"
