"""The layers of a run, and the steps at which each was logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fmapboard.formats.overview import LayerFacts
from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.answers import Answer, Missing
from fmapboard.plugin.layer_series import Kept, Series, series_of, timeline
from fmapboard.plugin.overview_series import ModelOverview, run_overview, unread_step
from fmapboard.plugin.stored_record import ROLES, Header, headers_at
from fmapboard.plugin.tag_names import LayerTag, input_tag, layer_of, natural
from fmapboard.runs.provider import IMAGES, Provider

_MAX_SAMPLES = 64
"""Input images per model that are looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer whose feature maps or kernels are drawn.

    Attributes:
        key: tag of its records.
        name: name of the model; "" for none.
        facts: what is known about it.
        error: why its newest record cannot be read; None if it can.
        steps_written: number of its records, those that are not kept included.
        steps: the steps that can be shown, ascending; None if they are those of the answer.
        wall_times: their times, s; None as ``steps``.
    """

    key: str
    name: str
    facts: LayerFacts
    error: str | None
    steps_written: int
    steps: Sequence[int] | None = None
    wall_times: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class InputSeries:
    """Where the pictures of one sample of the model's input are: steps, and wall times in s."""

    name: str
    sample: int
    steps: list[int]
    wall_times: list[float]


@dataclass(frozen=True, slots=True)
class Layers(Answer):
    """``data/layers``: the layers of a run in network order, and its inputs.

    Attributes:
        run: name of the run.
        layers: what the overview series tells of a layer is not read from its records.
        inputs: one series per model and drawn sample.
        steps: of all layers, ascending.
        wall_times: their times, s.
        step_words: step -> what it shows, in words, of ``visualize``.
        steps_written: number of logged steps.
        unread: the newest logged step if TensorBoard has not read it yet, otherwise None.
    """

    run: str
    layers: list[Layer]
    inputs: list[InputSeries]
    steps: Sequence[int]
    wall_times: Sequence[float]
    step_words: dict[int, str]
    steps_written: int
    unread: int | None


def layers(provider: Provider, run: str) -> Layers:
    """The layers of a run.

    Raises:
        Missing: it has none.
    """
    overview = run_overview(provider, run)
    table = overview.table
    known = [one for model in overview.models for one in _from_overview(provider, run, model)]
    told = {one.key for one in known}
    found = {layer.key for layer in map(layer_of, overview.tags) if layer is not None}
    every = series_of(provider, run, found - told)  # without maps: their kernels were drawn
    known += _from_records(provider, every)
    if not known:
        raise Missing(f"no feature maps in run {run!r}")
    known.sort(key=_order)
    times: dict[int, float] = {}
    for one in {id(one.steps): one for one in known}.values():  # most layers share their steps
        times.update(zip(one.steps or (), one.wall_times or (), strict=True))
    steps = sorted(times)
    whole = steps, [times[step] for step in steps]
    return Layers(
        run=run,
        layers=[
            replace(one, steps=None, wall_times=None)
            if (one.steps, one.wall_times) == whole
            else one
            for one in known
        ],
        inputs=_inputs(provider, run, known),
        steps=whole[0],
        wall_times=whole[1],
        step_words={step: table.step_text(step) for step in table.sources} if table else {},
        steps_written=max(one.steps_written for one in known),
        unread=unread_step(provider, overview.models[0]) if overview.models else None,
    )


def _order(layer: Layer) -> tuple[Any, ...]:
    of = layer.facts
    return natural(layer.name), of.position, of.call, natural(of.label)


def _from_overview(provider: Provider, run: str, model: ModelOverview) -> list[Layer]:
    """The layers of a model whose feature maps are drawn."""
    rows = [row for row in model.table.rows if "feature_maps" in row.facts.roles]
    missed = model.newest_column("missed")
    # A layer that had no record at some steps is kept at other steps than the overview.
    with_gaps = [row.key for row in rows if row.key and missed.get(row.facts.label) != 0]
    own = {series.layer.key: series for series in series_of(provider, run, with_gaps)}
    of_model, written = _shown(model.kept), model.newest.steps_written
    listed = []
    for row in rows:
        series, less = own.get(row.key or ""), missed.get(row.facts.label, 0)
        shown = of_model if series is None else _shown(series)
        # A damaged number of missed records counts as none.
        count = written - int(less) if 0 <= less <= written else written
        listed.append(_layer(row.name, row.facts, count, shown))
    return listed


def _from_records(provider: Provider, every: list[Series]) -> list[Layer]:
    """Layers of which the overview does not tell, from their last record and their first."""
    ends = [point for series in every for point in (series.points[-1], series.points[0])]
    headers = iter(headers_at(provider, ends))
    listed = []
    for series in every:
        both = next(headers), next(headers)
        known = [header for header in both if isinstance(header, Header)]
        error = str(both[0]) if isinstance(both[0], FormatError) else None
        facts, written = _facts(series.layer.label, known), known[0].steps_written if known else 0
        listed.append(_layer(series.layer.name, facts, written, _shown(series), error))
    return listed


def _layer(
    name: str, facts: LayerFacts, written: int, shown: dict[str, Any], error: str | None = None
) -> Layer:
    """A layer, with its roles in the order in which the tab offers them, each once."""
    key = LayerTag(name, facts.label).key
    facts = replace(facts, roles=tuple(role for role in ROLES if role in facts.roles))
    written = max(written, len(shown["steps"]))  # a restarted run starts counting at 1 again
    return Layer(key=key, name=name, facts=facts, error=error, steps_written=written, **shown)


def _shown(series: Kept) -> dict[str, Any]:
    """The steps of a `Layer` that can be shown, and their times."""
    steps, times = timeline(series.points)
    return {"steps": steps, "wall_times": times}


def _facts(label: str, known: list[Header]) -> LayerFacts:
    """What the first header of a layer says, with the roles of all."""
    if not known:
        return LayerFacts(label, label, "", None, 1, 2**31, channels=0, values=0)
    own, maps = known[0], known[0].maps
    return LayerFacts(
        label,
        own.layer,
        own.type,
        own.kernel_shape,
        own.call,
        own.position,
        channels=0 if maps is None else maps.channels or 0,
        values=0,
        drawn=0 if maps is None else maps.drawn or 0,
        samples=1 if maps is None else maps.samples,
        roles=tuple(picture.role for header in known for picture in header.pictures),
        activation=None if own.activation is None else own.activation.label,
    )


def _inputs(provider: Provider, run: str, known: list[Layer]) -> list[InputSeries]:
    """The series of the network's inputs, one per model and drawn sample."""
    samples: dict[str, int] = {}
    for one in known:
        samples[one.name] = max(samples.get(one.name, 1), one.facts.samples)
    requested = {
        input_tag(name, sample): (name, sample)
        for name in samples
        for sample in range(min(samples[name], _MAX_SAMPLES))
    }
    found = provider.points(IMAGES, run, requested)
    return [
        InputSeries(name, sample, *timeline(found[tag]))
        for tag, (name, sample) in requested.items()
        if found.get(tag)
    ]
