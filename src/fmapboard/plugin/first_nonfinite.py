"""Where the first non-finite value of a run was found, as stored and as sent to the front end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError
from fmapboard.formats.training_facts import FirstNonfinite, unpack_nonfinite
from fmapboard.plugin.data_source import Reader


def first_nonfinite(reader: Reader, run: str, prefixes: Iterable[str]) -> FirstNonfinite | None:
    """The earliest record of a first non-finite value; a restarted run has several."""
    series = [prefix + tags.FIRST_NONFINITE_RECORD for prefix in prefixes]
    listed = reader.points(PLUGIN_NAME, run, series) if series else {}
    points = [point for tag in series for point in listed.get(tag, ()) if point.blobs]
    found = []
    for point, blob in zip(points, reader.blobs([(each, 0) for each in points]), strict=True):
        name = point.tag.removesuffix(tags.FIRST_NONFINITE_RECORD).removesuffix(".")
        try:
            found.append(unpack_nonfinite([blob], name))
        except FormatError:
            continue
    return min(found, key=lambda one: one.step, default=None)


def sent(found: FirstNonfinite) -> dict[str, Any]:
    """What is sent to the front end."""
    text = found.text.replace("`", "")
    return {"step": found.step, "text": text, "name": found.name, "label": found.label}
