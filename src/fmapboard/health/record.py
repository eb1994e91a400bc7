"""The record of a run that checks read, and how it is collected: from files, or live."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.checks import StoredChecks, unpack_checks
from fmapboard.formats.overview import OverviewStep, unpack_overview
from fmapboard.formats.tab_records import Floats, FormatError, unpack
from fmapboard.formats.training_facts import (
    FirstNonfinite,
    TrainingFacts,
    unpack_nonfinite,
    unpack_training_facts,
)
from fmapboard.health import thresholds
from fmapboard.health.finding import Finding
from fmapboard.health.table import HealthRow, HealthTable, health_of

Steps = npt.NDArray[np.int64]


class NotRecorded(Exception):
    """A check lacks what it reads; the message says which series is missing."""


class Series(NamedTuple):
    """A scalar over the steps.

    Attributes:
        steps: int64 [S], ascending.
        values: float64 [S]; may hold NaN and infinities.
    """

    steps: Steps
    values: Floats


class LowRate(NamedTuple):
    """The newest steps at which a learning rate is below a share of its highest value.

    Attributes:
        since: the first of them.
        steps: their number.
    """

    since: int
    steps: int


class RateHistory(NamedTuple):
    """The learning rate of a parameter group over all logged steps, also those that were dropped.

    Attributes:
        first: the first step.
        last: the newest step.
        rate: at the newest step.
        peak: the highest so far.
        low: `thresholds.RATE_VANISHED` and ``RATE_REDUCED``, if the newest step is below it times
            the peak -> the newest steps that all are.
    """

    first: int
    last: int
    rate: float
    peak: float
    low: Mapping[float, LowRate] = {}

    def then(self, step: int, rate: float) -> RateHistory:
        """The history with a later step."""
        peak = max(self.peak, rate)
        low: dict[float, LowRate] = {}
        for share in (thresholds.RATE_VANISHED.value, thresholds.RATE_REDUCED.value):
            if rate < thresholds.RATE_ROUNDING.value * share * peak:
                before = self.low.get(share, LowRate(step, 0))
                low[share] = before._replace(steps=before.steps + 1)
        return RateHistory(self.first, step, rate, peak, low)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of one watched model; nothing in it depends on torch.

    Attributes:
        run: name or path of the run.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        health: numbers of every layer at every step; None if the run has no overview series.
        scalars: group, such as ``gradient_norm`` -> name of a layer or parameter -> its series;
            of the groups in `GROUPS`.
        facts: logged step -> what only the training process knew, ascending; empty if the run has
            no such series.
        first: label of a drawn layer -> ``minimum``, ``maximum``, ``mean`` and ``std`` of its drawn
            channels at the first logged step, float32 [channels].
        network_input: logged step -> `formats.overview.INPUT_NUMBERS` of the drawn input images.
        rates: parameter group -> its learning rate.
        is_thinned: True if logged steps were dropped.
        off: kinds of the built-in checks that do not run: switched off while the run was logged, or
            by who runs the checks.
    """

    run: str = ""
    name: str = ""
    health: HealthTable | None = None
    scalars: Mapping[str, Mapping[str, Series]] = field(default_factory=dict)
    facts: Mapping[int, TrainingFacts] = field(default_factory=dict)
    first: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict)
    network_input: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    rates: Mapping[str, RateHistory] = field(default_factory=dict)
    is_thinned: bool = False
    off: frozenset[str] = frozenset()

    @property
    def steps_called(self) -> str:
        """What the steps of the record are called where they are counted."""
        return "kept steps" if self.is_thinned else "logged steps"

    def layers(self) -> HealthTable:
        """``health``.

        Raises:
            NotRecorded: the run has no overview series.
        """
        if self.health is None:
            raise NotRecorded(f"the series {tags.OVERVIEW}")
        return self.health

    def training_facts(self) -> Mapping[int, TrainingFacts]:
        """``facts``.

        Raises:
            NotRecorded: the run has no series of findings.
        """
        if not self.facts:
            raise NotRecorded(f"the series {tags.TRAINING_FACTS}")
        return self.facts

    def group(self, group: str) -> Mapping[str, Series]:
        """Name of a layer or parameter -> its scalar in a group, such as ``gradient_norm``.

        Raises:
            NotRecorded: the run has no scalar in the group.
        """
        if not self.scalars.get(group):
            raise NotRecorded(f"the scalars {group}/…")
        return self.scalars[group]

    def picture(self, row: HealthRow) -> str:
        """Tag of the Images series that shows a layer, or the layer before it; "" if none does."""
        shown = [other.facts for other in self.layers().rows if other.key == row.shown_at]
        if row.shown_at is None or not shown or "feature_maps" not in shown[0].roles:
            return ""
        facts = shown[0]
        group = facts.shape or facts.type
        if facts.kernel_shape:
            group = "x".join(map(str, facts.kernel_shape))
        return tags.prefix(self.name) + tags.image("feature_maps", group, facts.label)

    def has_module(self, kind: str) -> bool | None:
        """True if a layer, or a module that follows one, is of a kind; None if no layer is known.

        Args:
            kind: part of the name of its class, in lower case, such as ``"batchnorm"``.
        """
        if self.health is None:
            return None
        facts = [row.facts for row in self.health.rows]
        names = {name.lower() for layer in facts for name in (layer.type, *layer.followed_by)}
        return any(kind in name for name in names)

    def weighted_layers(self) -> list[HealthRow]:
        """The first call of each layer with kernels, in network order."""
        rows = self.layers().rows
        return [row for row in rows if row.facts.kernel_shape and row.facts.call == 1]


class Check(Protocol):
    """Looks for one kind of fault in a run.

    An implementation is a small object, such as a frozen dataclass whose fields are its thresholds.
    It keeps no state: it is called again with a longer record as the run goes on, and with records
    of other models and runs, in any thread.

    Attributes:
        kind: names the check, to silence it, and the kind of its findings: a valid identifier.
    """

    @property
    def kind(self) -> str:
        """Name of the check."""
        ...

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """What is wrong; empty if nothing is.

        Args:
            record: the record of one model; it may be of a run that goes on, with few steps.

        Raises:
            NotRecorded: the run lacks a series that the check reads.
        """
        ...


GROUPS = frozenset(
    {
        *(tags.GRADIENT_NORM, tags.UPDATE_RATIO, tags.BATCHNORM_GAP, tags.LEARNING_RATE),
        *(tags.ATTENTION_ENTROPY, tags.ATTENTION_LOGIT),
    }
)
"""Groups of scalars that are collected."""
_SERIES = frozenset(
    {
        tags.OVERVIEW,
        tags.FIRST_OVERVIEW,
        tags.TRAINING_FACTS,
        tags.FIRST_NONFINITE_RECORD,
        tags.CHECKS,
        tags.CHECKS_PROVEN,
    }
)
_FIRST = tags.FIRST_RECORD.rstrip("/")
_STATISTICS = ("minimum", "maximum", "mean", "std")
Blobs = Sequence[bytes | None]


def is_read(tag: str) -> bool:
    """True for a series that some check reads."""
    _, own = tags.split(tag)
    group = own.partition("/")[0]
    return group in GROUPS or own in _SERIES or group == _FIRST


@dataclass(slots=True)
class _Step:
    """What was collected of one step."""

    overview: OverviewStep | None = None
    facts: TrainingFacts | None = None
    scalars: dict[str, float] = field(default_factory=dict)


class RecordBuilder:
    """Collects the record of one model; used by one thread at a time.

    Args:
        run: name or path of the run.
        name: name of the model; "" for none.
    """

    def __init__(self, run: str = "", name: str = "") -> None:
        self._run = run
        self._name = name
        self._steps: dict[int, _Step] = {}
        self._first: dict[str, tuple[int, dict[str, Floats]]] = {}
        self._nonfinite: dict[int, FirstNonfinite] = {}
        self._rates: dict[str, RateHistory] = {}
        self._checks: dict[tuple[int, bool], bytes | None] = {}
        self._is_thinned = False
        self.errors: dict[int, str] = {}
        """Step -> why a record of it cannot be read."""

    def add_scalar(self, step: int, tag: str, value: float) -> None:
        """Add a value of a scalar, as an event file stores it.

        Args:
            step: the logged step.
            tag: the tag without the model's prefix.
            value: the value; may be NaN or infinite.
        """
        self._add_stored(step, tag, float(_stored([value])[0]))

    def add_scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Set all scalars of a step.

        Args:
            step: the logged step.
            values: by tag without the model's prefix.
        """
        self._at(step).scalars = {}  # not cleared: copies share it
        stored_values = _stored(list(values.values())).tolist()
        for tag, value in zip(values, stored_values, strict=True):
            self._add_stored(step, tag, value)

    def _add_stored(self, step: int, tag: str, value: float) -> None:
        self._at(step).scalars[tag] = value
        group, _, name = tag.partition("/")
        if group == tags.LEARNING_RATE and math.isfinite(value):
            new = RateHistory(step, step, value, value)
            self._rates[name] = self._rates.get(name, new).then(step, value)

    def add_blobs(self, step: int, tag: str, blobs: Blobs) -> None:
        """Add a record of one of the tab's series; one that is damaged goes to ``errors``.

        Args:
            step: the logged step.
            tag: the tag without the model's prefix.
            blobs: the blobs of the record.
        """
        try:
            if tag == tags.TRAINING_FACTS:
                self._at(step).facts = unpack_training_facts(blobs)
            elif tag == tags.FIRST_NONFINITE_RECORD:
                self._nonfinite[step] = unpack_nonfinite(blobs, self._name)
            elif tag in (tags.CHECKS, tags.CHECKS_PROVEN):
                is_proven = tag == tags.CHECKS_PROVEN
                self._checks[step, is_proven] = blobs[0] if blobs else None
            elif tag in _SERIES:
                self._at(step).overview = unpack_overview(blobs)
            else:
                self._add_first(step, tag.partition("/")[2], blobs)
        except FormatError as error:
            self.errors[step] = str(error)

    def copy(self) -> RecordBuilder:
        """A copy to which steps can be added without changing this one."""
        builder = RecordBuilder(self._run, self._name)
        builder._steps = {step: replace(collected) for step, collected in self._steps.items()}
        builder._first = dict(self._first)
        builder._nonfinite = dict(self._nonfinite)
        builder._rates = dict(self._rates)
        builder._checks = dict(self._checks)
        builder.errors = dict(self.errors)
        builder._is_thinned = self._is_thinned
        return builder

    def stored_checks(self) -> StoredChecks:
        """What the checks said last while the run was logged; damaged records go to ``errors``."""
        for moment in sorted(self._checks, reverse=True):
            try:
                return unpack_checks(self._checks[moment])
            except FormatError as error:
                self.errors[moment[0]] = str(error)
        return StoredChecks()

    def record(self) -> RunRecord:
        """What was collected so far and not dropped."""
        overviews: list[tuple[int, OverviewStep]] = []
        facts: dict[int, TrainingFacts] = {}
        inputs: dict[int, Mapping[str, float]] = {}
        scalars: list[tuple[int, Mapping[str, float]]] = []
        for step, collected in sorted(self._steps.items()):
            scalars.append((step, collected.scalars))
            if collected.facts is not None:
                facts[step] = collected.facts
            if collected.overview is not None:
                overviews.append((step, collected.overview))
                if collected.overview.network_input:
                    inputs[step] = collected.overview.network_input
        nonfinite = self._nonfinite[min(self._nonfinite)] if self._nonfinite else None
        return RunRecord(
            run=self._run,
            name=self._name,
            health=health_of(self._run, self._name, overviews, nonfinite),
            scalars=_series(scalars),
            facts=facts,
            first={label: arrays for label, (_, arrays) in self._first.items()},
            network_input=inputs,
            rates=dict(self._rates),
            is_thinned=self._is_thinned,
            off=frozenset(self.stored_checks().off),
        )

    def thin(self, begins: Set[int | None]) -> None:
        """Drop the steps of a training that are neither among the first nor among the last.

        A long run then takes no more memory, and its numbers are the same while it is logged and
        afterwards.

        Args:
            begins: steps since which something is wrong; they are kept, and so are the logged
                steps before them and before the first non-finite value.
        """
        overviews = [collected.overview for collected in self._steps.values()]
        if any(overview is not None and overview.source for overview in overviews):
            return  # images or checkpoints
        ordered = sorted(self._steps)
        kept = set(begins)
        for step in (*begins, min(self._nonfinite, default=None)):
            if step is None:
                continue
            place = bisect_left(ordered, step)
            if place:  # what was so at the step before tells the cause, in every outlet the same
                kept.add(ordered[place - 1])
        for step in ordered[thresholds.LOGGED_STEPS.value : -thresholds.NEWEST_STEPS.value]:
            if step not in kept:
                del self._steps[step]
                self._is_thinned = True

    def _at(self, step: int) -> _Step:
        if step not in self._steps:
            self._steps[step] = _Step()
        return self._steps[step]

    def _add_first(self, step: int, label: str, blobs: Blobs) -> None:
        if len(blobs) < 2 or blobs[0] is None or blobs[1] is None:
            raise FormatError("the record has fewer than 2 blobs")
        known = self._first.get(label)
        if known is not None and known[0] <= step:
            return
        _, arrays = unpack([blobs[0], blobs[1]])
        statistics: dict[str, Floats] = {}
        for name in _STATISTICS:
            if f"feature_maps.{name}" not in arrays:
                return
            statistics[name] = arrays[f"feature_maps.{name}"]
        shapes = {array.shape for array in statistics.values()}
        if len(shapes) == 1:
            flat = {name: array.ravel().copy() for name, array in statistics.items()}
            self._first[label] = step, flat  # [channels] each


def _stored(values: Sequence[float]) -> Floats:
    """The values with the precision of an event file, so that a live run has the same numbers."""
    with np.errstate(over="ignore"):
        return np.array(values, np.float64).astype(np.float32)


def _series(steps: Sequence[tuple[int, Mapping[str, float]]]) -> dict[str, dict[str, Series]]:
    """Group -> name -> its values at the steps that have it."""
    points: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for step, values in steps:
        for tag, value in values.items():
            points[tag][step] = value
    found: defaultdict[str, dict[str, Series]] = defaultdict(dict)
    for tag, by_step in points.items():
        known = np.array(list(by_step.values()), np.float64)
        known[~np.isfinite(known)] = np.nan
        group, _, name = tag.partition("/")
        found[group][name] = Series(np.array(list(by_step), np.int64), known)
    return dict(found)
