"""The layers of a run, and the steps at which each was logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fmapboard.formats.overview import LayerFacts
from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.answers import Answer, Missing
from fmapboard.plugin.layer_series import Series, Timeline, series_of, timeline
from fmapboard.plugin.overview_series import ModelOverview, run_overview, unread_step
from fmapboard.plugin.stored_record import ROLES, Header, PictureFacts, headers_at
from fmapboard.plugin.tag_names import LayerTag, input_tag, layer_of, natural
from fmapboard.runs.provider import IMAGES, Provider

_MAX_SAMPLES = 64
"""Input images per model that are looked up."""
_NO_MAPS = PictureFacts(role="", tag="")


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
    known = []
    for model in overview.models:
        known += _from_overview(provider, run, model)
    in_records = {layer.key for layer in map(layer_of, overview.tags) if layer is not None}
    in_overview = {layer.key for layer in known}
    without_maps = series_of(provider, run, in_records - in_overview)  # their kernels were drawn
    known += _from_records(provider, without_maps)
    if not known:
        raise Missing(f"no feature maps in run {run!r}")
    known.sort(key=_order)
    times: dict[int, float] = {}
    distinct = {id(layer.steps): layer for layer in known}  # most layers share their steps
    for layer in distinct.values():
        times.update(zip(layer.steps or (), layer.wall_times or (), strict=True))
    steps = sorted(times)
    wall_times = [times[step] for step in steps]
    listed = []
    for layer in known:
        if layer.steps == steps and layer.wall_times == wall_times:
            layer = replace(layer, steps=None, wall_times=None)
        listed.append(layer)
    table = overview.table
    words = {}
    if table is not None:
        words = {step: table.step_text(step) for step in table.sources}
    unread = None
    if overview.models:
        unread = unread_step(provider, overview.models[0])
    return Layers(
        run=run,
        layers=listed,
        inputs=_inputs(provider, run, known),
        steps=steps,
        wall_times=wall_times,
        step_words=words,
        steps_written=max(layer.steps_written for layer in known),
        unread=unread,
    )


def _order(layer: Layer) -> tuple[Any, ...]:
    name = natural(layer.name)
    facts = layer.facts
    return name, facts.position, facts.call, natural(facts.label)


def _from_overview(provider: Provider, run: str, model: ModelOverview) -> list[Layer]:
    """The layers of a model whose feature maps are drawn."""
    rows = [row for row in model.table.rows if "feature_maps" in row.facts.roles]
    missed = model.newest_column("missed")
    # A layer that had no record at some steps is kept at other steps than the overview.
    with_gaps = []
    for row in rows:
        if row.key and missed.get(row.facts.label) != 0:
            with_gaps.append(row.key)
    own = {series.layer.key: series for series in series_of(provider, run, with_gaps)}
    shared = timeline(model.kept.points)
    written = model.newest.steps_written
    listed = []
    for row in rows:
        without = missed.get(row.facts.label, 0)
        if not 0 <= without <= written:  # damaged
            without = 0
        series = own.get(row.key or "")
        shown = shared if series is None else timeline(series.points)
        listed.append(_layer(row.name, row.facts, written - int(without), shown))
    return listed


def _from_records(provider: Provider, every: list[Series]) -> list[Layer]:
    """Layers of which the overview does not tell, from their last record and their first."""
    ends = []
    for series in every:
        points = series.points
        ends += [points[-1], points[0]]
    headers = iter(headers_at(provider, ends))
    listed = []
    for series in every:
        last = next(headers)
        first = next(headers)
        known = [header for header in (last, first) if isinstance(header, Header)]
        written = known[0].steps_written if known else 0
        facts = _facts(series.layer.label, known)
        layer = _layer(series.layer.name, facts, written, timeline(series.points))
        if isinstance(last, FormatError):
            layer = replace(layer, error=str(last))
        listed.append(layer)
    return listed


def _layer(name: str, facts: LayerFacts, written: int, shown: Timeline) -> Layer:
    """A layer, with its roles in the order in which the tab offers them, each once."""
    roles = tuple(role for role in ROLES if role in facts.roles)
    return Layer(
        key=LayerTag(name, facts.label).key,
        name=name,
        facts=replace(facts, roles=roles),
        error=None,
        # A restarted run starts counting at 1 again.
        steps_written=max(written, len(shown.steps)),
        steps=shown.steps,
        wall_times=shown.wall_times,
    )


def _facts(label: str, known: list[Header]) -> LayerFacts:
    """What the first header of a layer says, with the roles of all."""
    if not known:
        return LayerFacts(
            label,
            layer=label,
            type="",
            kernel_shape=None,
            call=1,
            position=2**31,
            channels=0,
            values=0,
        )
    header = known[0]
    maps = header.maps or _NO_MAPS
    return LayerFacts(
        label,
        layer=header.layer,
        type=header.type,
        kernel_shape=header.kernel_shape,
        call=header.call,
        position=header.position,
        channels=maps.channels or 0,
        values=0,
        drawn=maps.drawn or 0,
        samples=maps.samples,
        roles=tuple(picture.role for header in known for picture in header.pictures),
        activation=None if header.activation is None else header.activation.label,
        shape=header.shape,
        unit=header.unit,
    )


def _inputs(provider: Provider, run: str, known: list[Layer]) -> list[InputSeries]:
    """The series of the network's inputs, one per model and drawn sample."""
    samples: dict[str, int] = {}
    for layer in known:
        known_samples = samples.get(layer.name, 1)
        samples[layer.name] = max(known_samples, layer.facts.samples)
    requested = {}
    for name, count in samples.items():
        for sample in range(min(count, _MAX_SAMPLES)):
            requested[input_tag(name, sample)] = (name, sample)
    found = provider.points(IMAGES, run, requested)
    listed = []
    for tag, (name, sample) in requested.items():
        points = found.get(tag)
        if points:
            shown = timeline(points)
            listed.append(InputSeries(name, sample, shown.steps, shown.wall_times))
    return listed
