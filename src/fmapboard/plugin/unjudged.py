"""The record of a model without a stored judgement, as ``fmapboard check`` collects it."""

from __future__ import annotations

from collections.abc import Iterable

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.health.record import RecordBuilder, RunRecord, is_read
from fmapboard.health.run import record_as_live
from fmapboard.runs.events import SCALARS
from fmapboard.runs.provider import Provider


def record_of(provider: Provider, run: str, name: str) -> RunRecord:
    """What the checks read of a model, of the steps that the provider keeps.

    Args:
        provider: answers questions about runs.
        run: name of the run.
        name: name of the model; "" for none.
    """
    builder = RecordBuilder(run, name)
    series = _series_of(name, provider.tags_of(PLUGIN_NAME, run))
    for tag, points in provider.points(PLUGIN_NAME, run, series).items():
        asked = [(point, index) for point in points for index in range(len(point.blobs))]
        blobs = iter(provider.blobs(asked, keep=False))
        for point in points:
            record = [next(blobs) for _ in point.blobs]
            if point.step >= 0:
                builder.add_blobs(point.step, series[tag], record)
    series = _series_of(name, provider.tags_of(SCALARS, run))
    for tag, values in provider.scalars(run, series).items():
        for value in values:
            if value.step >= 0:
                builder.add_scalar(value.step, series[tag], value.value)
    return record_as_live(builder)


def _series_of(name: str, listed: Iterable[str]) -> dict[str, str]:
    """Those of the model's tags that checks read -> the same without its name."""
    series = {}
    for tag in listed:
        model, own = tags.split(tag)
        if model == name and is_read(tag):
            series[tag] = own
    return series
