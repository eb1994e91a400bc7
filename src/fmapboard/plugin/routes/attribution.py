"""Attribution: which series a run has, with the steps and gradient norms of each; one picture."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError, read_json, reading, typed
from fmapboard.plugin.answers import Answer, Missing, Png
from fmapboard.plugin.layer_series import Kept
from fmapboard.plugin.tag_names import natural
from fmapboard.runs.provider import IMAGES, Point, Provider

_PICTURE = 2
"""Index of the picture's blob, in an Images series and in a first-step record."""

_SAMPLE = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Name:
    """The attribution of a sample at a layer call, as its tag names it."""

    name: str
    label: str
    sample: int

    def tag(self, group: str) -> str:
        own = tags.attribution(self.label, self.sample)
        return tags.prefix(self.name) + tags.of(group, own)

    @property
    def first(self) -> str:
        return self.tag(tags.FIRST_ATTRIBUTION.rstrip("/"))


@dataclass(frozen=True, slots=True)
class _Series(Kept):
    """The pictures of one attribution series."""

    of: _Name


@dataclass(frozen=True, slots=True)
class AttributionSeries:
    """The pictures of the attribution of a sample at a layer.

    Attributes:
        key: tag of the Images series.
        name: name of the model; "" for none.
        label: the layer call.
        sample: index of the sample.
        steps: the steps that can be shown, ascending.
        wall_times: their times, s.
        first_is_restored: True if the first of them is that of the first-step record.
        type: of the layer; "" if unknown.
        position: of the layer in the order of calls; 2**31 if unknown.
        size: height and width of the maps; None if unknown.
        of: what is explained: ``loss``, ``score`` or ``probe``.
        gradients: norm of the gradient at each step; None if unknown.
    """

    key: str
    name: str
    label: str
    sample: int
    steps: list[int]
    wall_times: list[float]
    first_is_restored: bool
    type: str
    position: int
    size: tuple[int, int] | None
    of: str
    gradients: list[float | None]


@dataclass(frozen=True, slots=True)
class Attribution(Answer):
    """``data/attribution``: the attribution series of a run in network order; may be empty."""

    run: str
    series: list[AttributionSeries]


def attribution(provider: Provider, run: str) -> Attribution:
    """The attribution series of a run."""
    names = [name for name in map(_name, provider.tags_of(IMAGES, run)) if name is not None]
    every = _series(provider, run, names)
    if not every:
        return Attribution(run, [])
    firsts = provider.blobs([(point, 0) for series in every for point in series.firsts[:1]])
    headers = iter(firsts)
    norms = provider.scalars(run, [s.of.tag(tags.ATTRIBUTION_GRADIENT) for s in every])
    listed = []
    for series in every:
        header = next(headers) if series.firsts else None
        known = {d.step: d.value for d in norms.get(series.of.tag(tags.ATTRIBUTION_GRADIENT), ())}
        listed.append(_listed(series, _FirstRecord.of_blob(header), known))
    listed.sort(key=lambda e: (natural(e.name), e.position, natural(e.label), e.sample))
    return Attribution(run, listed)


def attribution_picture(provider: Provider, run: str, key: str, step: int) -> Png:
    """``data/attribution_picture``: the picture of a series, named by its tag ``key``, at a step.

    Raises:
        Missing: there is none.
    """
    name = _name(key)
    for series in _series(provider, run, [] if name is None else [name]):
        for point in series.points:
            if point.step == step:
                (png,) = provider.blobs([(point, _PICTURE)], keep=False)
                if png:
                    return Png(png, step, point.wall_time)
    raise Missing(f"no attribution {key!r} at step {step} in run {run!r}")


def _name(tag: str) -> _Name | None:
    group, _, rest = tag.partition("/")
    name, _, marker = group.rpartition(".")
    label, _, last = rest.rpartition("/")
    number = last.removeprefix("sample_")
    if marker != tags.ATTRIBUTION or not label or last == number or not _SAMPLE.fullmatch(number):
        return None
    return _Name(name, label, int(number))


def _series(provider: Provider, run: str, names: Iterable[_Name]) -> list[_Series]:
    names = list(names)
    if not names:
        return []
    own = provider.points(IMAGES, run, [name.tag(tags.ATTRIBUTION) for name in names])
    firsts = provider.points(PLUGIN_NAME, run, [name.first for name in names])
    every = [
        _Series(_with_picture(own, n.tag(tags.ATTRIBUTION)), _with_picture(firsts, n.first), n)
        for n in names
    ]
    return [series for series in every if series.points]


def _with_picture(points: Mapping[str, list[Point]], tag: str) -> tuple[Point, ...]:
    return tuple(point for point in points.get(tag, ()) if len(point.blobs) > _PICTURE)


@dataclass(frozen=True, slots=True)
class _FirstRecord:
    """What a first-step record knows of a series; a damaged or newer one is as none."""

    type: str = ""
    position: int = 2**31
    size: tuple[int, int] | None = None
    of: Literal["loss", "probe", "score"] = "loss"
    gradient: float | None = None

    @classmethod
    def of_blob(cls, header: bytes | None) -> _FirstRecord:
        try:
            with reading("the record is"):
                found: _FirstRecord = typed(cls, read_json(header))
        except FormatError:
            return cls()
        return found


def _listed(series: _Series, first: _FirstRecord, norms: dict[int, float]) -> AttributionSeries:
    points = series.points
    gradients = [_finite(norms.get(point.step)) for point in points]
    if series.first_step_is_restored and gradients[0] is None:
        gradients[0] = first.gradient
    return AttributionSeries(
        key=series.of.tag(tags.ATTRIBUTION),
        name=series.of.name,
        label=series.of.label,
        sample=series.of.sample,
        steps=[point.step for point in points],
        wall_times=[point.wall_time for point in points],
        first_is_restored=series.first_step_is_restored,
        type=first.type,
        position=first.position,
        size=first.size,
        of=first.of,
        gradients=gradients,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
