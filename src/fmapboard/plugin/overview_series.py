"""The overview series of a run's models, kept in memory for later requests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.overview_table import ModelOverview, read_model
from fmapboard.plugin.tag_names import natural, overview_of

_SERIES = (tags.OVERVIEW, tags.FIRST_OVERVIEW)
_RECENT = 1.0
"""Time in s for which a list of tags is used again: a page asks for several answers at once."""


@dataclass(frozen=True, slots=True)
class RunOverview:
    """The overview series of a run.

    Attributes:
        models: those with records that can be read, by name.
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
    series = [tags.prefix(name) + tag for name in names for tag in _SERIES]
    found = reader.points(PLUGIN_NAME, run, series)
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


def _bytes(model: ModelOverview | dict[int, str]) -> int:
    """Bytes in memory, roughly; a layer's facts take about 500."""
    if not isinstance(model, ModelOverview):
        return 0
    return model.numbers.nbytes + 500 * sum(map(len, model.listed.values()))
