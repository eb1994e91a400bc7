"""The most severe fault of the whole network at each step, and the first non-finite value."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fmapboard import tags
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.http import Answer, Query, missing
from fmapboard.plugin.layer_series import Series, series_of
from fmapboard.plugin.stored_record import read_record, statistics
from fmapboard.plugin.tag_names import natural
from fmapboard.tab_format import FormatError

LARGE = 1e4
"""Magnitude from which a value is called large; the front end has the same."""
_SHARE = 0.1
"""Share of dead or constant channels from which a layer is flagged."""
_MAJOR = 0.5
_KINDS = ("nonfinite", "large", "dead", "constant")
"""By severity; a minor share of dead channels is less severe than a major one of constant ones."""
_SCALARS = {
    "nonfinite": tags.NONFINITE, "dead": tags.DEAD_CHANNELS, "constant": tags.CONSTANT_CHANNELS,
}  # fmt: skip
_MAX_SERIES = 1500
"""Scalar series that are read: the kinds are dropped from the last one on until they fit."""
_MAX_RECORDS = 2500
"""Records that are read for their extremes."""
_LAYER = re.compile(r"layer `([^`]+)` \([^`]*, call (\d+)\)")

Found = dict[int, dict[str, dict[str, float]]]
"""Step -> kind -> layer -> share of channels, above 0."""


def timeline(reader: Reader, query: Query) -> Answer:
    """``data/timeline``: one entry per step with a fault, of the most severe kind at that step.

    Non-finite, dead and constant channels come from the scalars of all measured layers, at every
    step that TensorBoard keeps of them; large values come from the records of the drawn layers.
    ``kinds`` lists what was looked for: a run with very many layers is not read completely.
    """
    run = query.text("run")
    every = sorted(series_of(reader, run), key=lambda series: natural(series.layer.key))
    if not every:
        raise missing(f"no feature maps in run {run!r}")
    prefixes = {series.layer.prefix for series in every}
    found: Found = defaultdict(lambda: defaultdict(dict))
    kinds = _read_scalars(reader, run, prefixes, {s.layer.key for s in every}, found)
    if _read_extremes(reader, every, found):
        kinds.append("large")
    faults = [{"step": step, **_worst(found[step])} for step in sorted(found)]
    first = _first_nonfinite(reader, run, prefixes)
    return Answer({"run": run, "kinds": kinds, "faults": faults, "first_nonfinite": first})


def _read_scalars(
    reader: Reader, run: str, prefixes: Iterable[str], drawn: set[str], found: Found
) -> list[str]:
    """Add the faults that scalars tell of; returns the kinds that were looked for."""
    groups = {p + group: (p, kind) for p in prefixes for kind, group in _SCALARS.items()}
    wanted: dict[str, list[tuple[str, str]]] = {kind: [] for kind in _SCALARS}
    for tag in reader.scalar_tags(run):
        group, _, label = tag.partition("/")
        prefix, kind = groups.get(group, ("", ""))
        # A dead activation is constant too; only of drawn layers that is a fault of its own.
        if kind and (kind != "constant" or f"{prefix}{tags.RECORD}{label}" in drawn):
            wanted[kind].append((tag, prefix + label))
    kinds = [kind for kind in _SCALARS if wanted[kind]]
    while kinds and sum(len(wanted[kind]) for kind in kinds) > _MAX_SERIES:
        kinds.pop()
    data = reader.scalars(run, [tag for kind in kinds for tag, _ in wanted[kind]]) if kinds else {}
    for kind in kinds:
        least = _SHARE if kind != "nonfinite" else 0.0
        for tag, label in wanted[kind]:
            for datum in data.get(tag, ()):
                if datum.value > least or datum.value == least > 0:
                    found[datum.step][kind][label] = datum.value
    return kinds


def _read_extremes(reader: Reader, every: Sequence[Series], found: Found) -> bool:
    """Add the layers with large values; False if there are too many records to read."""
    points = [(series.layer, point) for series in every for point in series.points]
    if len(points) > _MAX_RECORDS:
        return False
    blobs = iter(reader.blobs([(point, i) for _, point in points for i in (0, 1)]))
    for layer, point in points:
        try:
            arrays = statistics(read_record(next(blobs), next(blobs)), "feature_maps")
        except FormatError:
            continue
        ends = [arrays[name] for name in ("minimum", "maximum") if name in arrays]
        if any(np.any(np.abs(end[np.isfinite(end)]) >= LARGE) for end in ends):
            found[point.step]["large"][layer.prefix + layer.label] = 1.0
    return True


def _worst(kinds: dict[str, dict[str, float]]) -> dict[str, Any]:
    def severity(kind: str) -> tuple[bool, int]:
        return max(kinds[kind].values()) >= _MAJOR or kind == "nonfinite", -_KINDS.index(kind)

    kind = "nonfinite" if "nonfinite" in kinds else max(kinds, key=severity)
    layers = sorted(kinds[kind], key=natural)
    return {"kind": kind, "layers": len(layers), "layer": layers[0]}


def _first_nonfinite(reader: Reader, run: str, prefixes: Iterable[str]) -> dict[str, Any] | None:
    """The earliest text on a first non-finite value; a restarted run has several."""
    stored = reader.texts(run, [prefix + tags.FIRST_NONFINITE for prefix in prefixes])
    texts = [(d.step, tag, _text(d.numpy)) for tag, data in stored.items() for d in data]
    if not texts:
        return None
    step, tag, text = min(texts)
    at = _LAYER.search(text)
    call = f".call{at[2]}" if at is not None and at[2] != "1" else ""
    return {
        "step": step,
        "text": text.partition(": ")[2].replace("`", ""),
        "name": tag.removesuffix(tags.FIRST_NONFINITE).removesuffix("."),
        "label": at[1] + call if at is not None else None,
    }


def _text(stored: Any) -> str:
    """A stored text, which is an array of bytes or of strings."""
    values = np.asarray(stored, object).ravel()
    value = values[0] if values.size else ""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
