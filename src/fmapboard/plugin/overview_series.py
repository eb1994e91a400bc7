"""The overview series of a run's models, kept in memory for later requests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.data_source import Point, Reader
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.overview_table import ModelOverview, read_model
from fmapboard.plugin.tag_names import layer_of, natural, overview_of

_SERIES = (tags.OVERVIEW, tags.FIRST_OVERVIEW)
_RECENT = 1.0
"""Time in s for which a list of tags is used again: a page asks for several answers at once."""
_PROBES = 8
"""Layers whose steps are compared with those of the overview."""


@dataclass(frozen=True, slots=True)
class RunOverview:
    """The overview series of a run.

    Attributes:
        models: those with records that can be read, by name. None if the run, or a part of it, was
            logged by a version without this series.
        errors: step -> why the records of other models cannot be read.
        tags: tags of all of the tab's records in the run.
    """

    models: tuple[ModelOverview, ...]
    errors: Mapping[int, str]
    tags: tuple[str, ...]


def run_overview(reader: Reader, run: str) -> RunOverview:
    """Read the overview series of a run; only what is new since the last call."""
    _, listed = reader.built(("tags", run), partial(_listing, reader, run), _length)
    names = sorted({name for name in map(overview_of, listed) if name is not None}, key=natural)
    if not names:
        return RunOverview((), {}, listed)
    probes = [tag for tag in listed if (layer := layer_of(tag)) is not None and layer.key == tag]
    probes = probes[:: max(1, len(probes) // _PROBES)]
    series = [tags.prefix(name) + tag for name in names for tag in _SERIES]
    found = reader.points(PLUGIN_NAME, run, [*series, *probes])
    models, errors = [], {}
    for name in names:
        own, firsts = (tuple(found.get(tags.prefix(name) + tag, ())) for tag in _SERIES)
        if not own and not firsts:
            continue
        model = reader.built(
            ("overview", run, name), partial(read_model, reader, name, Kept(own, firsts)), _bytes
        )
        if not isinstance(model, ModelOverview):
            errors.update(model)
        elif not _is_complete(model, found):
            return RunOverview((), {}, listed)
        else:
            models.append(model)
    return RunOverview(tuple(models), errors, listed)


def unread_step(reader: Reader, run: str, name: str, wall_times: Sequence[float]) -> int | None:
    """The newest logged step that TensorBoard has not read yet; None if there is none.

    Args:
        reader: reads the data.
        run: name of a run with an overview series.
        name: name of a model in it.
        wall_times: those of the overviews of this model that were read, s.
    """
    read = max(wall_times, default=0.0)
    return reader.ends.unread(run, tags.prefix(name) + tags.OVERVIEW, read)


def _listing(
    reader: Reader, run: str, last: tuple[float, tuple[str, ...]] | None
) -> tuple[float, tuple[str, ...]]:
    """The tags of a run, and when they were listed; the last list if that is recent."""
    now = time.monotonic()
    if last is not None and now - last[0] < _RECENT:
        return last
    return now, tuple(reader.tags(run).get(run, ()))


def _length(listing: tuple[float, tuple[str, ...]]) -> int:
    return 100 * len(listing[1])


def _is_complete(model: ModelOverview, found: Mapping[str, Sequence[Point]]) -> bool:
    """False if layers have records at steps without an overview.

    That are steps before the first overview, and for a layer with pictures at each step all others.
    """
    steps = {point.step for point in model.points}
    first, last = min(steps), max(steps)
    missed = model.newest_column("missed")
    for tag, points in found.items():
        layer = layer_of(tag)
        if layer is None or layer.name != model.name:
            continue
        is_regular = missed.get(layer.label) == 0
        for point in points:
            if point.step < first or (is_regular and point.step < last and point.step not in steps):
                return False
    return True


def _bytes(model: ModelOverview | dict[int, str]) -> int:
    """Bytes in memory, roughly; a layer's facts take about 500."""
    if not isinstance(model, ModelOverview):
        return 0
    return model.numbers.nbytes + 500 * sum(map(len, model.listed.values()))
