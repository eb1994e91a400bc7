"""Attribution: which series a run has, with the steps and gradient norms of each; one picture."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError, read_json, reading, typed
from fmapboard.health.table import HealthTable
from fmapboard.plugin.answers import Answer, Missing, Png
from fmapboard.plugin.layer_series import Kept, timeline
from fmapboard.plugin.overview_series import run_overview
from fmapboard.plugin.routes.maps import FIRST_PICTURE
from fmapboard.plugin.tag_names import natural
from fmapboard.runs.provider import IMAGES, Point, Provider

_OWN_TAG = re.compile(rf"{tags.ATTRIBUTION}/(.+)/sample_(\d{{1,9}})", re.ASCII)
"""Tag of an Images series without the model's prefix: label of the layer call, and sample."""


@dataclass(frozen=True, slots=True)
class _Series(Kept):
    """The pictures of an attribution series, and the tag that names it."""

    key: str


@dataclass(frozen=True, slots=True)
class AttributionFacts:
    """What is known of a series besides its pictures.

    Attributes:
        type: of the layer; "" if unknown.
        position: of the layer in the order of calls; 2**31 if unknown.
        size: height and width of the maps; None if unknown.
        of: what is explained: ``loss``, ``score`` or ``probe``.
    """

    type: str = ""
    position: int = 2**31
    size: tuple[int, int] | None = None
    of: Literal["loss", "probe", "score"] = "loss"


@dataclass(frozen=True, slots=True)
class _FirstRecord(AttributionFacts):
    """A first-step record, with the norm of the gradient at its step."""

    gradient: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The score that is explained, such as that of ``class 3``; ``value`` is None if not finite."""

    name: str
    value: float | None = None


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
        facts: what else is known.
        gradients: norm of the gradient at each step; None if unknown.
        scores: what is explained at each step; None if it is a loss or unknown.
        dead: label of the layer of which every channel is dead at each step, so that there is
            nothing to attribute: this one, or, where no gradient arrives, the nearest one behind
            it; None if there is none.
    """

    key: str
    name: str
    label: str
    sample: int
    steps: list[int]
    wall_times: list[float]
    facts: AttributionFacts
    gradients: list[float | None]
    scores: list[Score | None]
    dead: list[str | None]


@dataclass(frozen=True, slots=True)
class Attribution(Answer):
    """``data/attribution``: the attribution series of a run in network order; may be empty."""

    run: str
    series: list[AttributionSeries]


def attribution(provider: Provider, run: str) -> Attribution:
    """The attribution series of a run."""
    images = provider.tags_of(IMAGES, run)
    every = _series(provider, run, images)
    if not every:
        return Attribution(run, [])
    firsts = {series.key: series.firsts[0] for series in every if series.firsts}
    headers = provider.blobs([(point, 0) for point in firsts.values()])
    records = {}
    for key, header in zip(firsts, headers, strict=True):
        records[key] = _first_record(header)
    norm_tags = [_in_group(series.key, tags.ATTRIBUTION_GRADIENT) for series in every]
    found = provider.scalars(run, norm_tags)
    scores = _scores(provider, run, every)
    table = run_overview(provider, run).table
    listed = []
    for series, tag in zip(every, norm_tags, strict=True):
        first = records.get(series.key, _FirstRecord())
        norms = {datum.step: datum.value for datum in found.get(tag, ())}
        found_series = _listed(series, first, norms, scores[_score_tag(series.key)])
        if table is not None:
            found_series = replace(found_series, dead=_dead(found_series, table))
        listed.append(found_series)
    listed.sort(key=_order)
    return Attribution(run, listed)


def _dead(series: AttributionSeries, table: HealthTable) -> list[str | None]:
    """``AttributionSeries.dead`` at each step."""
    own = table.index(series.name, series.label)
    if own is None:
        return series.dead
    place = {step: index for index, step in enumerate(table.steps)}
    is_dead = table.columns["dead"] == 1
    dead: list[str | None] = []
    for step, gradient in zip(series.steps, series.gradients, strict=True):
        found = None
        if step in place:
            candidates = [own, *range(own + 1, len(table.rows))] if gradient == 0 else [own]
            for index in candidates:
                row = table.rows[index]
                if row.name == series.name and is_dead[place[step], index]:
                    found = row.facts.activation or row.facts.label
                    break
        dead.append(found)
    return dead


def _order(series: AttributionSeries) -> tuple[Any, ...]:
    name = natural(series.name)
    label = natural(series.label)
    return name, series.facts.position, label, series.sample


def attribution_picture(provider: Provider, run: str, key: str, step: int) -> Png:
    """``data/attribution_picture``: the picture of a series, named by its tag ``key``, at a step.

    Raises:
        Missing: there is none.
    """
    for series in _series(provider, run, [key]):
        for point in series.points:
            if point.step != step:
                continue
            (png,) = provider.blobs([(point, FIRST_PICTURE)], keep=False)
            if png:
                return Png(png, step, point.wall_time)
    raise Missing(f"no attribution {key!r} at step {step} in run {run!r}")


def _in_group(key: str, group: str) -> str:
    """The tag of an attribution series in another group, given that of its pictures."""
    name, own = tags.split(key)
    label = own.removeprefix(f"{tags.ATTRIBUTION}/")
    return tags.prefix(name) + tags.of(group, label)


def _series(provider: Provider, run: str, every: Iterable[str]) -> list[_Series]:
    """The attribution series among those of some tags that have pictures."""
    keys = []
    for tag in every:
        _, own_tag = tags.split(tag)
        if _OWN_TAG.fullmatch(own_tag):
            keys.append(tag)
    if not keys:
        return []
    first_group = tags.FIRST_ATTRIBUTION.rstrip("/")
    first_tags = {key: _in_group(key, first_group) for key in keys}
    pictures = provider.points(IMAGES, run, keys)
    records = provider.points(PLUGIN_NAME, run, first_tags.values())
    found = []
    for key, first_tag in first_tags.items():
        own = _with_picture(pictures.get(key, ()))
        firsts = _with_picture(records.get(first_tag, ()))
        if own or firsts:
            found.append(_Series(own, firsts, key))
    return found


def _with_picture(points: Iterable[Point]) -> tuple[Point, ...]:
    return tuple(point for point in points if len(point.blobs) > FIRST_PICTURE)


def _first_record(header: bytes | None) -> _FirstRecord:
    """A first-step record; a damaged or newer one is as none."""
    try:
        with reading("the record is"):
            found: _FirstRecord = typed(_FirstRecord, read_json(header))
    except FormatError:
        return _FirstRecord()
    return found


def _score_tag(key: str) -> str:
    """The tag of the records with the scores of an attribution series' sample."""
    name, own_tag = tags.split(key)
    _, _, sample = own_tag.rpartition("/sample_")
    return f"{tags.prefix(name)}{tags.ATTRIBUTION_SCORE}{sample}"


def _scores(provider: Provider, run: str, every: Sequence[_Series]) -> dict[str, dict[int, Score]]:
    """Tag of a series' scores -> step -> its score; a damaged or newer record is as none."""
    asked = {_score_tag(series.key) for series in every}
    scores: dict[str, dict[int, Score]] = {tag: {} for tag in asked}
    for tag, points in provider.points(PLUGIN_NAME, run, asked).items():
        for point, blob in zip(points, provider.blobs([(at, 0) for at in points]), strict=True):
            with contextlib.suppress(FormatError), reading("the record is"):
                scores[tag][point.step] = typed(Score, read_json(blob))
    return scores


def _listed(
    series: _Series, first: _FirstRecord, norms: dict[int, float], scores: Mapping[int, Score]
) -> AttributionSeries:
    name, own_tag = tags.split(series.key)
    layer_and_sample = own_tag.removeprefix(f"{tags.ATTRIBUTION}/")
    label, _, sample = layer_and_sample.rpartition("/sample_")
    shown = timeline(series.points)
    gradients: list[float | None] = []
    for step in shown.steps:
        norm = norms.get(step, math.nan)
        gradients.append(norm if math.isfinite(norm) else None)
    if series.first_step_is_restored and gradients[0] is None:
        gradients[0] = first.gradient
    return AttributionSeries(
        key=series.key,
        name=name,
        label=label,
        sample=int(sample),
        steps=shown.steps,
        wall_times=shown.wall_times,
        facts=first,
        gradients=gradients,
        scores=[scores.get(step) for step in shown.steps],
        dead=[None] * len(shown.steps),
    )
