"""The overview series of a run's models, kept in memory for later requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fmapboard import tags
from fmapboard.plugin.data_source import Point, Reader
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.overview_table import ModelOverview, read_model
from fmapboard.plugin.tag_names import layer_of, natural, overview_of
from fmapboard.tab_format import PLUGIN_NAME

_SERIES = (tags.OVERVIEW, tags.FIRST_OVERVIEW)
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
    listed = tuple(reader.tags(run).get(run, ()))
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
            (run, name), partial(read_model, reader, name, Kept(own, firsts)), _bytes
        )
        if not isinstance(model, ModelOverview):
            errors.update(model)
        elif not _is_complete(model, found):
            return RunOverview((), {}, listed)
        else:
            models.append(model)
    return RunOverview(tuple(models), errors, listed)


def _is_complete(model: ModelOverview, found: Mapping[str, Sequence[Point]]) -> bool:
    """False if a layer with pictures at each step has records at steps without an overview."""
    steps = {point.step for point in model.points}
    prefix = tags.prefix(model.name) + tags.RECORD
    missed = model.newest_column("missed")
    for layer in model.layers:
        if layer.roles and missed.get(layer.label) == 0:
            points = found.get(prefix + layer.label, ())
            if any(point.step not in steps and point.step < max(steps) for point in points):
                return False
    return True


def _bytes(model: ModelOverview | dict[int, str]) -> int:
    """Bytes in memory, roughly; a layer's facts take about 500."""
    if not isinstance(model, ModelOverview):
        return 0
    return model.numbers.nbytes + 500 * sum(map(len, model.listed.values()))
