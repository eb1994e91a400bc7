"""The overview series of a run's models, as one table each, of which only new records are read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.overview import (
    COLUMNS,
    LayerFacts,
    OverviewStep,
    StepSource,
    overview_step,
    unpack_layers,
)
from fmapboard.formats.tab_records import PLUGIN_NAME, Floats, FormatError, unpack
from fmapboard.health.table import MAX_LAYERS, merged, with_values
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.stored_record import attempted
from fmapboard.plugin.tag_names import natural, overview_of
from fmapboard.runs.provider import Point, Provider

_LISTS = 8
"""Lists of layers per model to keep."""

T = TypeVar("T")
Listed = Mapping[str, tuple[LayerFacts, ...]]
"""Digest of blob 2 -> what it says."""
Places = npt.NDArray[np.intp] | slice
"""Indices of layers; a slice copies ten times faster."""


@dataclass(frozen=True, slots=True)
class ModelOverview:
    """The overview series of one model.

    Attributes:
        name: name of the model; "" for none.
        kept: the records.
        points: the kept steps, with the restored first one, ascending.
        layers: all layers that the kept records name, as in the newest that does, in network order.
        numbers: float32 [columns, steps, layers], NaN if not known, in the order of `COLUMNS`.
        newest: the newest record that can be read.
        listed: the lists of layers that the records refer to.
        errors: step -> why its record cannot be read.
        sources: step -> what it shows, of ``visualize``.
        inputs: step -> numbers of the network's input.
    """

    name: str
    kept: Kept
    points: tuple[Point, ...]
    layers: tuple[LayerFacts, ...]
    numbers: Floats
    newest: OverviewStep
    listed: Listed
    errors: Mapping[int, str]
    sources: Mapping[int, StepSource] = field(default_factory=dict)
    inputs: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    def newest_column(self, name: str) -> dict[str, float]:
        """Label -> number in the newest record; empty if that has no such column."""
        numbers = self.newest.numbers.get(name)
        labels = (layer.label for layer in self.newest.layers)
        return {} if numbers is None else dict(zip(labels, numbers.tolist(), strict=True))


def read_model(
    provider: Provider, name: str, kept: Kept, before: ModelOverview | dict[int, str] | None
) -> ModelOverview | dict[int, str]:
    """Parse the records of a model; those that are in ``before`` are taken from there.

    Returns:
        The overview, or for each step why its record cannot be read if none can.
    """
    points = tuple(kept.points)
    if not isinstance(before, ModelOverview):
        before = None
    elif _stamps(before.points) == _stamps(points):
        return before
    old = _stamps(before.points) if before is not None else {}
    stamps = _stamps(points)
    # The newest one is read in any case, for what only it tells.
    fresh = [points[i] for stamp, i in stamps.items() if stamp not in old or i == len(points) - 1]
    listed = dict(before.listed) if before is not None else {}
    records = _records(provider, fresh, listed)
    steps = {step: found for step, found in records.items() if isinstance(found, OverviewStep)}
    unreadable = {step: str(found) for step, found in records.items() if step not in steps}
    errors = _kept(points, before.errors if before is not None else {}, unreadable)
    if steps:
        newest = steps[max(steps)]
    elif before is not None:
        newest = before.newest
    else:
        return errors
    for digest in list(listed)[:-_LISTS]:
        del listed[digest]
    layers = merged([*([before.layers] if before else []), *(s.layers for s in steps.values())])
    numbers = _table(points, layers, steps, before)
    layers = with_values(layers, newest)
    shown = {step: found.source for step, found in steps.items() if found.source is not None}
    sources = _kept(points, before.sources if before is not None else {}, shown)
    given = {step: found.network_input for step, found in steps.items() if found.network_input}
    inputs = _kept(points, before.inputs if before is not None else {}, given)
    return ModelOverview(
        name, kept, points, layers, numbers, newest, listed, errors, sources, inputs
    )


def _kept(points: Sequence[Point], before: Mapping[int, T], new: Mapping[int, T]) -> dict[int, T]:
    """What was known of steps and is new, of the steps that are kept, ascending."""
    known = {**before, **new}
    return {point.step: known[point.step] for point in points if point.step in known}


def _records(
    provider: Provider, points: Sequence[Point], listed: dict[str, tuple[LayerFacts, ...]]
) -> dict[int, OverviewStep | FormatError]:
    """Step -> its record, or why it cannot be read; adds the lists of layers to ``listed``."""
    blobs = iter(provider.blobs([(p, i) for p in points for i in (0, 1)], keep=False))
    opened = [(point, attempted(_opened, next(blobs), next(blobs))) for point in points]
    lists = {
        found[2]: point
        for point, found in opened
        if not isinstance(found, FormatError) and found[2] not in listed
    }
    packed = provider.blobs([(point, 2) for point in lists.values()], keep=False)
    unreadable: dict[str, FormatError] = {}
    for digest, blob in zip(lists, packed, strict=True):
        layers = attempted(_layers, blob)
        if isinstance(layers, FormatError):
            unreadable[digest] = layers
        else:
            listed[digest] = layers
    records: dict[int, OverviewStep | FormatError] = {}
    for point, found in opened:
        if isinstance(found, FormatError):
            records[point.step] = found
        elif found[2] in unreadable:
            records[point.step] = unreadable[found[2]]
        else:
            header, arrays, digest = found
            is_last = point is points[-1]
            records[point.step] = attempted(
                partial(overview_step, with_since=is_last), header, arrays, listed[digest]
            )
    return records


def _opened(
    header: bytes | None, numbers: bytes | None
) -> tuple[dict[str, Any], dict[str, Floats], str]:
    """Header and arrays of a record, and the digest of its list of layers."""
    facts, arrays = unpack([_present(header), _present(numbers)])
    digest = facts.get("layers")
    if not isinstance(digest, str):
        raise FormatError(f"the overview's list of layers is {digest!r}")
    return facts, arrays, digest


def _layers(blob: bytes | None) -> tuple[LayerFacts, ...]:
    layers = unpack_layers(_present(blob))
    if len(layers) > MAX_LAYERS:
        raise FormatError(f"the overview has {len(layers)} layers; at most {MAX_LAYERS} are read")
    return layers


def _present(blob: bytes | None) -> bytes:
    if blob is None:
        raise FormatError("the overview can no longer be read")
    return blob


def _table(
    points: Sequence[Point],
    layers: tuple[LayerFacts, ...],
    steps: Mapping[int, OverviewStep],
    before: ModelOverview | None,
) -> Floats:
    """``numbers`` of a `ModelOverview`."""
    labels = [layer.label for layer in layers]
    table = np.full((len(COLUMNS), len(points), len(layers)), np.nan, np.float32)
    if before is not None:
        old, now = _stamps(before.points), _stamps(points)
        source, target = _among(before.layers, labels)
        for stamp in now:
            if stamp in old:
                table[:, now[stamp], target] = before.numbers[:, old[stamp], source]
    places: dict[int, tuple[Places, Places]] = {}
    for index, point in enumerate(points):
        step = steps.get(point.step)
        if step is None:
            continue
        if id(step.layers) not in places:
            places[id(step.layers)] = _among(step.layers, labels)
        source, target = places[id(step.layers)]
        for column, name in enumerate(COLUMNS):
            if name in step.numbers:
                table[column, index, target] = step.numbers[name][source]
    return table


def _among(layers: tuple[LayerFacts, ...], labels: Sequence[str]) -> tuple[Places, Places]:
    """Indices of layers, and where they are among all; slices if they are all, in that order."""
    own = [layer.label for layer in layers]
    if own == labels:
        return slice(None), slice(None)
    place = {label: index for index, label in enumerate(labels)}
    known = [(index, place[label]) for index, label in enumerate(own) if label in place]
    return np.array([i for i, _ in known], np.intp), np.array([at for _, at in known], np.intp)


def _stamps(points: Sequence[Point]) -> dict[tuple[int, float], int]:
    """Step and time of each record -> its index."""
    return {(point.step, point.wall_time): index for index, point in enumerate(points)}


_SERIES = (tags.OVERVIEW, tags.FIRST_OVERVIEW)
_BESIDE = (tags.CHECKS, tags.FIRST_NONFINITE_RECORD)
_RECENT = 1.0
"""Time in s for which a list of tags is used again: a page asks for several answers at once."""


@dataclass(frozen=True, slots=True)
class RunOverview:
    """The overview series of a run.

    Attributes:
        run: its name.
        models: those with records that can be read, by name.
        errors: step -> why the records of other models cannot be read.
        tags: tags of all of the tab's records in the run.
        beside: tag -> kept steps of what the checks said, and of where values first were not
            finite; of tags that the run has.
    """

    run: str
    models: tuple[ModelOverview, ...]
    errors: Mapping[int, str]
    tags: tuple[str, ...]
    beside: Mapping[str, Sequence[Point]] = field(default_factory=dict)

    def of_model(self, name: str) -> ModelOverview:
        """The overview of one of the models."""
        return next(model for model in self.models if model.name == name)


def run_overview(provider: Provider, run: str) -> RunOverview:
    """Read the overview series of a run; only what is new since the last call."""
    _, listed = provider.built(("tags", run), partial(_listing, provider, run), _length)
    names = sorted({name for name in map(overview_of, listed) if name is not None}, key=natural)
    if not names:
        return RunOverview(run, (), {}, listed)
    series = [tags.prefix(name) + tag for name in names for tag in (*_SERIES, *_BESIDE)]
    found = provider.points(PLUGIN_NAME, run, series)
    models, errors = [], {}
    for name in names:
        own, firsts = (tuple(found.get(tags.prefix(name) + tag, ())) for tag in _SERIES)
        if not own and not firsts:
            continue
        model = provider.built(
            ("overview", run, name), partial(read_model, provider, name, Kept(own, firsts)), _bytes
        )
        if not isinstance(model, ModelOverview):
            errors.update(model)
        else:
            models.append(model)
    beside = [tags.prefix(name) + tag for name in names for tag in _BESIDE]
    beside_found = {tag: found[tag] for tag in beside if tag in found}
    return RunOverview(run, tuple(models), errors, listed, beside_found)


def unread_step(provider: Provider, run: str, name: str, wall_times: Sequence[float]) -> int | None:
    """The newest logged step that TensorBoard has not read yet; None if there is none.

    Args:
        provider: reads the data.
        run: name of a run with an overview series.
        name: name of a model in it.
        wall_times: those of the overviews of this model that were read, s.
    """
    read = max(wall_times, default=0.0)
    return provider.unread(run, tags.prefix(name) + tags.OVERVIEW, read)


def _listing(
    provider: Provider, run: str, last: tuple[float, tuple[str, ...]] | None
) -> tuple[float, tuple[str, ...]]:
    """The tags of a run, and when they were listed; the last list if that is recent."""
    now = time.monotonic()
    if last is not None and now - last[0] < _RECENT:
        return last
    return now, tuple(provider.tags_of(PLUGIN_NAME, run))


def _length(listing: tuple[float, tuple[str, ...]]) -> int:
    return 100 * len(listing[1])


def _bytes(model: ModelOverview | dict[int, str]) -> int:
    """Bytes in memory, roughly; a layer's facts take about 500."""
    if not isinstance(model, ModelOverview):
        return 0
    return model.numbers.nbytes + 500 * sum(map(len, model.listed.values()))
