"""The layers of a run, and the steps at which each was logged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fmapboard.formats.overview import LayerFacts, source_text
from fmapboard.formats.tab_records import FormatError
from fmapboard.plugin.answers import Answer, Missing
from fmapboard.plugin.layer_series import Kept, Series, series_of
from fmapboard.plugin.overview_series import ModelOverview, run_overview, unread_step
from fmapboard.plugin.stored_record import ROLES, Header, headers_at
from fmapboard.plugin.tag_names import input_tag, layer_of, natural
from fmapboard.runs.provider import IMAGES, Provider

_MAX_SAMPLES = 64
"""Input images per model that are looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer whose feature maps are drawn; see `formats.overview.LayerFacts`.

    Attributes:
        key: tag of its records.
        name: name of the model; "" for none.
        step_from_first: True if the first step is that of the first-step record.
        error: why its newest record cannot be read; None if it can.
        roles: which pictures it has.
        steps_written: number of its records, those that are not kept included.
        steps: the steps that can be shown, ascending; None if they are those of the answer.
        wall_times: their times, s; None as ``steps``.
    """

    key: str | None
    name: str
    label: str
    step_from_first: bool
    error: str | None
    layer: str
    call: int
    type: str
    kernel_shape: Sequence[int] | None
    position: int
    channels: int
    drawn: int
    samples: int
    roles: list[str]
    activation: str | None
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
    step_words: dict[str, str]
    steps_written: int
    unread: int | None


@dataclass(frozen=True, slots=True)
class _Shown:
    """The steps that can be shown of a series, and their times, s."""

    steps: tuple[int, ...]
    wall_times: tuple[float, ...]
    from_first: bool

    @classmethod
    def of(cls, series: Kept) -> _Shown:
        points = series.points
        steps = tuple(point.step for point in points)
        times = tuple(point.wall_time for point in points)
        return cls(steps, times, series.first_step_is_restored)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a layer."""

    key: str | None
    name: str
    facts: LayerFacts
    shown: _Shown
    written: int
    error: str | None = None


def layers(provider: Provider, run: str) -> Layers:
    """The layers of a run.

    Raises:
        Missing: it has none.
    """
    overview = run_overview(provider, run)
    known = [one for model in overview.models for one in _from_overview(provider, run, model)]
    told = {one.key for one in known}
    found = {layer.key for layer in map(layer_of, overview.tags) if layer is not None}
    every = series_of(provider, run, found - told)  # without maps: their kernels were drawn
    known += _from_records(provider, every)
    if not known:
        raise Missing(f"no feature maps in run {run!r}")
    known.sort(
        key=lambda one: (
            *(natural(one.name), one.facts.position, one.facts.call),
            natural(one.facts.label),
        )
    )
    times: dict[int, float] = {}
    for shown in {id(one.shown): one.shown for one in known}.values():
        times.update(zip(shown.steps, shown.wall_times, strict=True))
    steps = tuple(sorted(times))
    whole = steps, tuple(times[step] for step in steps)
    return Layers(
        run=run,
        layers=[_layer(one, whole) for one in known],
        inputs=_inputs(provider, run, known),
        steps=whole[0],
        wall_times=whole[1],
        step_words={
            str(step): source_text(source, step)
            for model in overview.models
            for step, source in model.table.sources.items()
        },
        steps_written=max(one.written for one in known),
        unread=unread_step(provider, overview.models[0]) if overview.models else None,
    )


def _from_overview(provider: Provider, run: str, model: ModelOverview) -> list[_Known]:
    """The layers of a model whose feature maps are drawn."""
    rows = [row for row in model.table.rows if "feature_maps" in row.facts.roles]
    missed = model.newest_column("missed")
    # A layer that had no record at some steps is kept at other steps than the overview.
    with_gaps = [row.key for row in rows if row.key and missed.get(row.facts.label) != 0]
    own = {series.layer.key: series for series in series_of(provider, run, with_gaps)}
    of_model, written = _Shown.of(model.kept), model.newest.steps_written
    listed = []
    for row in rows:
        series = own.get(row.key or "")
        shown = of_model if series is None else _Shown.of(series)
        steps = max(_steps_written(written, missed.get(row.facts.label)), len(shown.steps))
        listed.append(_Known(row.key, row.name, row.facts, shown, steps))
    return listed


def _steps_written(steps: int, missed: float | None) -> int:
    """Number of records of a layer; a damaged number of missed ones counts as none."""
    return steps - int(missed) if missed is not None and 0 <= missed <= steps else steps


def _from_records(provider: Provider, every: list[Series]) -> list[_Known]:
    """Layers of which the overview does not tell, from their last record and their first."""
    ends = [point for series in every for point in (series.points[-1], series.points[0])]
    headers = iter(headers_at(provider, ends))
    listed = []
    for series in every:
        both = next(headers), next(headers)
        known = [header for header in both if isinstance(header, Header)]
        shown = _Shown.of(series)
        # A restarted run starts counting at 1 again.
        written = max([len(shown.steps), *(header.steps_written for header in known[:1])])
        error = str(both[0]) if isinstance(both[0], FormatError) else None
        facts = _facts(series.layer.label, known)
        listed.append(_Known(series.layer.key, series.layer.name, facts, shown, written, error))
    return listed


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


def _layer(known: _Known, whole: tuple[tuple[int, ...], tuple[float, ...]]) -> Layer:
    """A layer as it is sent; ``whole`` has the steps of all layers, and their times."""
    facts, shown = known.facts, known.shown
    has_all = (shown.steps, shown.wall_times) == whole
    return Layer(
        key=known.key,
        name=known.name,
        label=facts.label,
        step_from_first=shown.from_first,
        error=known.error,
        layer=facts.layer,
        call=facts.call,
        type=facts.type,
        kernel_shape=facts.kernel_shape,
        position=facts.position,
        channels=facts.channels,
        drawn=facts.drawn,
        samples=facts.samples,
        roles=[role for role in ROLES if role in facts.roles],
        activation=facts.activation,
        steps_written=known.written,
        steps=None if has_all else shown.steps,
        wall_times=None if has_all else shown.wall_times,
    )


def _inputs(provider: Provider, run: str, known: list[_Known]) -> list[InputSeries]:
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
        InputSeries(
            name,
            sample,
            [point.step for point in found[tag]],
            [point.wall_time for point in found[tag]],
        )
        for tag, (name, sample) in requested.items()
        if found.get(tag)
    ]
