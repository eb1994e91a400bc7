"""The health of all layers at all steps: numbers, states, and how brightly to draw them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.overview import COLUMNS, Flags
from fmapboard.formats.tab_records import Floats, FormatError
from fmapboard.health import thresholds
from fmapboard.health.finding import whole_percent
from fmapboard.health.states import (
    FINE,
    IS_LARGE,
    LARGE_AND_DEAD,
    MOSTLY_CONSTANT,
    MOSTLY_DEAD,
    NONFINITE,
    OFF,
    UNCHANGED,
    UNKNOWN,
    Codes,
    is_activation,
    states,
    worst_states,
)
from fmapboard.health.table import HealthRow, HealthTable
from fmapboard.plugin.answers import Binary, MaybeNonfinite, Missing
from fmapboard.plugin.layer_series import nearest, series_of
from fmapboard.plugin.overview_series import ModelOverview, RunOverview, run_overview
from fmapboard.plugin.stored_record import WEIGHTS, Record, change, records_at
from fmapboard.plugin.tag_names import layer_of
from fmapboard.runs.provider import Provider

LEVELS = 24
"""Levels of brightness."""
UNKNOWN_LEVEL = 255
_TAIL = 0.02
"""Share of the values at each end that the scale leaves out, so that one outlier cannot rule it."""
_SAMPLE = 20_000
"""Cells that the scale is computed from, roughly."""
_DECADES = 1.0
"""Smallest extent of the scale, so that small differences do not look like large ones."""


@dataclass(frozen=True, slots=True)
class Shading:
    """Brightness of the cells: the range of values of a layer, on a logarithmic scale.

    Attributes:
        lo: value of level 0, which smaller values have too; None if no value is known of a layer
            without a fault.
        hi: value of the highest level, which larger values have too; None likewise.
        levels: uint8 [steps, layers], 0 to `LEVELS` - 1, or `UNKNOWN_LEVEL`.
    """

    lo: float | None
    hi: float | None
    levels: Codes


def shading_of(columns: Mapping[str, Floats], codes: Codes) -> Shading:
    """Brightness that shows the range of values of each layer at each step.

    The scale is that of cells without a fault, as only these are drawn with it. A value of 0 or
    less has level 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        extent = columns["maximum"] - columns["minimum"]
    logs = _sampled_logs(extent, codes)
    low = 0.0
    high = 0.0
    if logs.size:
        low = _quantile(logs, _TAIL)
        high = _quantile(logs, 1 - _TAIL)
    missing = max(0.0, _DECADES - (high - low))
    low -= missing / 2
    high += missing / 2
    levels = np.full(extent.shape, UNKNOWN_LEVEL, np.uint8)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = (LEVELS - 1) / (high - low)
        place = (np.log10(extent) - low) * scale + 0.5
        rounded = np.clip(place, 0, LEVELS - 1).astype(np.uint8)
        np.copyto(levels, rounded, where=extent > 0)
        levels[extent <= 0] = 0
    if not logs.size:
        return Shading(None, None, levels)
    return Shading(10**low, 10**high, levels)


def _sampled_logs(raw: Floats, codes: Codes) -> Floats:
    """Logarithms of some of the finite values above 0 of cells without a fault, ascending."""
    stride = max(1, raw.size // _SAMPLE)
    sample = raw.ravel()[::stride]
    states = codes.ravel()[::stride]
    is_finite = (sample > 0) & (sample < np.inf)
    is_drawn = np.isin(states, (FINE, OFF, UNCHANGED))
    logs = np.log10(sample[is_finite & is_drawn], dtype=np.float64)
    return np.sort(logs)


def _quantile(ascending: Floats, share: float) -> float:
    last = ascending.size - 1
    index = math.floor(share * last + 0.5)
    return float(ascending[index])


NUMBERS = ("minimum", "maximum", "nonfinite", "constant", "dead", "change", "weights_change")
"""Columns whose numbers are sent."""
STEP_NUMBERS = (
    *NUMBERS, "mean", "std", "nan", "positive_infinity", "negative_infinity", "counted",
    "change_steps", "weights_steps",
)  # fmt: skip
"""Columns whose numbers at one step are sent."""
MAX_NUMBERS = 20_000
"""Cells up to which the numbers of all are sent; of more cells, `health_step` sends those asked."""


@dataclass(frozen=True, slots=True)
class StateWords:
    """Word of a state, and what it means."""

    word: str
    what: str


_PART = f"≥ {whole_percent(thresholds.MINOR_SHARE.value)}"
_MOST = f"≥ {whole_percent(thresholds.MAJOR_SHARE.value)}"
_CONSTANT = "channels that hold one single value"
_DEAD = "channels that are 0 everywhere after the activation"
_LARGE = f"|x| ≥ {thresholds.LARGE.value:,.0f}"
STATES = (
    StateWords("not recorded", "no number of the layer is known at this step"),
    StateWords("fine", "none of the other states"),
    StateWords(f"{_PART} off", f"{_DEAD}, for this image"),
    StateWords("unchanged", "no weight has changed since the logged step before"),
    StateWords(f"{_PART} constant", _CONSTANT),
    StateWords(f"{_PART} dead", _DEAD),
    StateWords(f"{_MOST} constant", _CONSTANT),
    StateWords(f"{_MOST} dead", _DEAD),
    StateWords("large", _LARGE),
    StateWords(f"large, {_MOST} dead", f"{_LARGE}; {_DEAD}"),
    StateWords("non-finite", "NaN or infinity"),
)
"""The states by code, see `health.states.CODES`."""
_FINITE = StateWords("finite", "none of the other states")
_OF_DIFFERENCES = tuple(_FINITE if words.word == "fine" else words for words in STATES)
"""Those of a run of differences: a layer that differs is not fine."""


@dataclass(frozen=True, slots=True)
class FirstFault:
    """Where the first non-finite value was, in words and with the key of the layer to look at."""

    step: int
    text: str
    name: str
    label: str | None
    shown_at: str | None


@dataclass(frozen=True, slots=True)
class Health(Binary):
    """``data/health``: what is known of each layer, and its state and brightness at each step.

    Attributes:
        run: name of the run.
        steps: the kept ones, ascending.
        wall_times: their times, s.
        written: number of logged steps.
        layers: in network order.
        since: kind of state -> row -> first logged step of the state that lasts.
        step_words: step -> what it is called, of images and checkpoints.
        first_nonfinite: where the first non-finite value was.
        states: words of each state, by code.
        severe: row -> the severe states of the layer in words, with the largest share of its
            channels that were dead or constant.
        zero_rows: rows of the layers that have no value but 0 at any kept step: in a run of
            differences, those of layers that do not differ.
        is_of_probe: the drawn maps are those of fixed images in a pass of their own, in eval mode.
        input_is_stretched: its pictures have other colours than the images before they were
            normalized.
        errors: step -> why its record cannot be read.
        arrays: float [steps, layers], NaN where a number is not known; empty if there are more than
            `MAX_NUMBERS` cells.
        codes: of `health.states`, uint8 [steps, layers].
        shading: brightness.
    """

    compresses: ClassVar[bool] = True
    run: str
    steps: tuple[int, ...]
    wall_times: tuple[float, ...]
    written: int
    layers: tuple[HealthRow, ...]
    since: Mapping[str, Mapping[int, int]]
    step_words: dict[int, str]
    first_nonfinite: FirstFault | None
    states: tuple[StateWords, ...]
    severe: Mapping[int, str]
    zero_rows: list[int]
    is_of_probe: bool
    input_is_stretched: bool
    errors: Mapping[int, str]
    arrays: dict[str, Floats]
    codes: Codes
    shading: Shading

    @property
    def as_of(self) -> float | None:
        """The time of the newest step, s."""
        return max(self.wall_times, default=None)


def health(provider: Provider, run: str) -> Health:
    """The states and the brightness of all layers at all kept steps.

    Raises:
        Missing: the run has no overview that can be read.
    """
    overview = run_overview(provider, run)
    table = overview.health()
    shape = (len(table.steps), len(table.rows))
    is_activation = _is_activation(table)
    codes = worst_states(table.columns, is_activation, shape, is_of_images=table.is_of_images)
    sent = NUMBERS if codes.size <= MAX_NUMBERS else ()
    return Health(
        run=run,
        steps=table.steps,
        wall_times=table.wall_times,
        written=table.written,
        layers=table.rows,
        since=table.since,
        step_words={step: table.step_text(step) for step in table.sources},
        first_nonfinite=_first_nonfinite(table, overview),
        states=_OF_DIFFERENCES if tags.MODEL_DIFFERENCE in overview.tags else STATES,
        severe=_severe(codes, table.columns, is_activation),
        zero_rows=_zero_rows(table),
        is_of_probe=bool(np.isfinite(table.columns["change"]).any()),  # of a probe's maps only
        input_is_stretched=any(_is_stretched(model) for model in overview.models),
        errors=table.errors,
        arrays={name: table.columns[name] for name in sent},
        codes=codes,
        shading=shading_of(table.columns, codes),
    )


@dataclass(frozen=True, slots=True)
class WeightsOnly:
    """A layer with pictures but without feature maps, such as one of which only kernels are drawn.

    Attributes:
        key: of the layer.
        step: the kept step that it is from.
        change: of the weights, the mean over channels, NaN if it is finite for none; None if it is
            not recorded.
        since: the step that was compared with.
        code: `UNCHANGED` if the change of each channel is exactly 0.
        error: why the record cannot be read.
    """

    key: str
    step: int
    change: MaybeNonfinite | None
    since: int | None
    code: int
    error: str | None


@dataclass(frozen=True, slots=True)
class HealthStep(Binary):
    """``data/health_step``: the numbers and the states of all layers at a step.

    Attributes:
        step: the last kept one up to the requested one.
        steps: of each layer, the step of its numbers: its last one up to the requested one, or its
            first one if all are later.
        keys: of the layers with feature maps; None for the others.
        channels: of each layer.
        unchanged: row -> step since which the weights have been the same, of layers whose weights
            had not changed at their step.
        error: why the record of ``step`` cannot be read.
        others: layers that are not among the rows.
        arrays: float [layers], NaN where a number is not known.
        codes: of each layer, uint8 [layers].
        as_of: see `Answer`.
    """

    compresses: ClassVar[bool] = True
    step: int
    steps: list[int]
    keys: list[str | None]
    channels: list[int]
    unchanged: Mapping[int, int]
    error: str | None
    others: list[WeightsOnly]
    arrays: dict[str, Floats]
    codes: Codes
    as_of: float | None = None


def health_step(provider: Provider, run: str, step: int) -> HealthStep:
    """The numbers and the states of all layers at a step.

    Raises:
        Missing: the run has no layers, or its overview cannot be read.
    """
    overview = run_overview(provider, run)
    has_overview = overview.models or overview.errors
    table = overview.health() if has_overview else _without_overview(run, step)
    at = max(0, bisect_right(table.steps, step) - 1)
    is_known = ~np.isnan(table.columns["counted"])
    places = _places(is_known, at)
    rows = np.arange(len(table.rows))
    columns = {name: table.columns[name][places, rows] for name in STEP_NUMBERS}
    keys = []
    for row in table.rows:
        has_maps = "feature_maps" in row.facts.roles
        keys.append(row.key if has_maps else None)
    others = _others(provider, run, step, overview.tags, keys)
    if not keys and not others:
        raise Missing(f"no feature maps in run {run!r}")
    kept_step = table.steps[at]
    may_be_kept = step == kept_step and not others
    steps = [table.steps[place] for place in places.tolist()]
    return HealthStep(
        step=kept_step,
        steps=steps,
        keys=keys,
        channels=[row.facts.channels for row in table.rows],
        unchanged=_unchanged_since(table, columns, steps),
        error=table.errors.get(kept_step),
        others=others,
        arrays=columns,
        codes=worst_states(
            columns, _is_activation(table), rows.shape, is_of_images=table.is_of_images
        ),
        as_of=table.wall_times[at] if may_be_kept else None,
    )


def _unchanged_since(
    table: HealthTable, columns: Mapping[str, Floats], steps: Sequence[int]
) -> dict[int, int]:
    """See ``HealthStep.unchanged``.

    Args:
        table: of all steps.
        columns: float [layers], at one step.
        steps: of each layer, the step of its numbers.
    """
    onsets = table.since.get("unchanged", {})
    unchanged = states(columns, _is_activation(table))["unchanged"]
    is_compared = ~np.isnan(columns["weights_steps"])
    found = {}
    for row in np.flatnonzero(is_compared & (unchanged > 0)).tolist():
        before = steps[row] - int(columns["weights_steps"][row])
        found[row] = min(before, onsets.get(row, before))
    return found


def _places(known: Flags, at: int) -> npt.NDArray[np.intp]:
    """Index of the last step up to ``at`` that is known, else of the first one, for each layer.

    Of layers that are known at no step it is ``at``.

    Args:
        known: bool [steps, layers].
        at: index of a step.
    """
    before = known[: at + 1]
    last = at - before[::-1].argmax(0)
    first = known.argmax(0)
    places: npt.NDArray[np.intp] = np.where(before.any(0), last, first)
    return np.where(known.any(0), places, at)


def _without_overview(run: str, step: int) -> HealthTable:
    nothing = np.zeros((1, 0), np.float32)
    return HealthTable(
        run=run,
        steps=(step,),
        written=0,
        rows=(),
        columns=dict.fromkeys(COLUMNS, nothing),
        since={},
        wall_times=(0.0,),
    )


def _others(
    provider: Provider, run: str, step: int, tags: Iterable[str], listed: Iterable[str | None]
) -> list[WeightsOnly]:
    """What is known of the layers that have records and no feature maps in the table."""
    keys = {layer.key for layer in map(layer_of, tags) if layer}
    keys.difference_update(listed)
    every = series_of(provider, run, sorted(keys))
    points = []
    for series in every:
        kept = series.points
        points.append(kept[nearest(kept, step)])
    records = records_at(provider, points)
    others = []
    for series, point, record in zip(every, points, records, strict=True):
        layer = _weights_only(series.layer.key, point.step, record)
        others.append(layer)
    return others


def _weights_only(key: str, step: int, record: Record | FormatError) -> WeightsOnly:
    nothing = WeightsOnly(key, step, change=None, since=None, code=UNKNOWN, error=None)
    if isinstance(record, FormatError):
        return replace(nothing, error=str(record))
    values = change(record, WEIGHTS)
    if values is None:
        return nothing
    finite = values[np.isfinite(values)]
    mean = float(finite.mean()) if finite.size else math.nan
    code = UNKNOWN if values.any() else UNCHANGED
    since = record.header.change_since[WEIGHTS]
    return replace(nothing, change=mean, since=since, code=code)


def _is_activation(table: HealthTable) -> Flags:
    layers = [row.facts for row in table.rows]
    return is_activation(layers, table.columns["dead"])


def _is_stretched(model: ModelOverview) -> bool:
    return model.newest.network_input.get("stretched") == 1.0


def _severe(codes: Codes, columns: Mapping[str, Floats], is_activation: Flags) -> dict[int, str]:
    """See ``Health.severe``.

    Args:
        codes: see `Health`, [steps, layers].
        columns: the numbers, likewise.
        is_activation: of each layer, see `health.states`.
    """
    worst = codes.max(axis=0, initial=UNKNOWN)
    is_large = np.isin(codes, (IS_LARGE, LARGE_AND_DEAD))
    is_dead = np.isin(codes, (MOSTLY_DEAD, LARGE_AND_DEAD))
    dead = np.where(is_dead, columns["dead"], 0).max(axis=0, initial=0)
    alone = columns["constant"] - np.where(is_activation, columns["dead"], 0)
    constant = np.where(codes == MOSTLY_CONSTANT, alone, 0).max(axis=0, initial=0)
    found = {}
    for row in np.flatnonzero(worst >= MOSTLY_CONSTANT).tolist():
        words = ["large"] if is_large[:, row].any() else []
        if dead[row]:
            words.append(f"{whole_percent(float(dead[row]))} dead")
        elif constant[row]:
            words.append(f"{whole_percent(float(constant[row]))} constant")
        found[row] = STATES[NONFINITE].word if worst[row] == NONFINITE else ", ".join(words)
    return found


def _zero_rows(table: HealthTable) -> list[int]:
    columns = table.columns
    with np.errstate(invalid="ignore"):
        is_nonzero = columns["nonfinite"] > 0
        for name in ("minimum", "maximum"):
            is_nonzero |= (columns[name] < 0) | (columns[name] > 0)
    rows: list[int] = np.flatnonzero(~is_nonzero.any(axis=0)).tolist()
    return rows


def _first_nonfinite(table: HealthTable, overview: RunOverview) -> FirstFault | None:
    """Where the first non-finite value was; None also if the check of it was switched off."""
    first = table.first_nonfinite
    if first is None or "nonfinite" in overview.off(first.name):
        return None
    text = f"Step {first.step}: {first.text}"
    stored = overview.checked.get(first.name)
    for finding in stored.findings if stored is not None else ():
        if finding.kind == "nonfinite" and finding.since_step == first.step:
            text = finding.message  # as the verdict says it, which knows the network's input
    index = table.index(first.name, first.label)
    shown_at = None if index is None else table.rows[index].shown_at
    return FirstFault(
        step=first.step,
        text=text.replace("`", "").replace("-Inf", "−Inf"),
        name=first.name,
        label=first.label,
        shown_at=shown_at,
    )
