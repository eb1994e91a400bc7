"""Weights that never change, updates of an unusual size, and BatchNorm's running variance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.tags import BATCHNORM_GAP, UPDATE_RATIO
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.checks.layers import DeadCheck, ExplodingCheck
from fmapboard.health.checks.loop import ConstantImagesCheck, newest
from fmapboard.health.checks.outputs import has_constant_output
from fmapboard.health.finding import Finding, named, percent
from fmapboard.health.record import (
    BuiltInCheck,
    NotRecorded,
    RunRecord,
    falls,
    first_of,
    has_zero_gradient,
    losses_of,
    over_steps,
)
from fmapboard.health.table import is_normalized


@dataclass(frozen=True, slots=True)
class UnchangedWeightsCheck(BuiltInCheck):
    """Weights that never change although the network trains.

    A warning: they are the same after several logged steps that an optimizer applied at a learning
    rate above 0 with a gradient that is not zero. Biases are left out: before a BatchNorm their
    gradient is rounding noise, which may be too small to change them.

    A note, if there is no warning, the first of these that applies: no optimizer steps although
    backward passes run; the learning rate is 0 at every logged step; no parameter has a gradient
    other than 0 when an optimizer steps; a layer that is used never gets a gradient for its weight.

    Attributes:
        steps: number of logged steps without a change, for a warning.
        idle: number of logged steps without an optimizer step over which the weights are the same.
        at_zero: number of logged steps at a rate of 0; the first ones of a warm-up have it too.
        without: number of logged steps without a gradient.
        ignored: share of the layers with kernels that run without one, behind others, from which
            they are reported, two at least; fewer may be those of a head that is not used.
        flat: share of the weights above which gradients of exactly 0 count as none.
    """

    steps: int = 3
    idle: int = 3
    at_zero: int = 8
    without: int = 4
    ignored: float = 0.25
    flat: float = 0.5
    kind: ClassVar[str] = "unchanged_weights"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        last = newest(record)
        found = {}
        for name, unchanged in last.unchanged.items():
            is_bias = name.rpartition(".")[2] == "bias"
            lasts = unchanged.steps >= self.steps
            if lasts and not is_bias and not has_zero_gradient(record, name):
                found[name] = unchanged
        if not found:
            rules = self._idle, self._at_zero, self._no_gradients, self._without
            yield from first_of(rule(record) for rule in rules)
            return
        names = sorted(found, key=lambda name: found[name].since)
        first = names[0]
        same_as = found[first].since
        since = next((step for step in record.facts if step > same_as), same_as)
        rate = f" at a learning rate of {last.rates[1]:.2g}" if last.rates else ""
        weights = "weights" if len(found) == 1 else f"{len(found)} weights"
        yield Finding(
            class_="warning",
            message=f"{weights} unchanged since step {since}, over {found[first].steps} "
            f"logged steps that the optimizer applied{rate}: {named(names)}",
            since_step=since,
            parameter=first,
            parameters=tuple(names),
            value=found[first].steps,
            meaning="Updates are lost: they are smaller than the weights' rounding (a tiny "
            "rate, or weights in half precision), or the weights are restored after it",
            advice="Keep the weights in float32, or raise the learning rate",
        )

    def _idle(self, record: RunRecord) -> Finding | None:
        """Backward passes without an optimizer step, at the last logged steps."""
        idle = newest(record).idle
        every = [facts.idle for facts in record.training_facts().values()]
        if idle is None or idle.steps < self.idle or idle.is_held is None:
            return None
        in_a_row = [before for before in every[-1 - idle.steps :] if before is not None]
        if idle.is_held and not all(before.is_cleared for before in in_a_row):
            return None  # gradients are being accumulated
        why = (
            "An optimizer holds them, and none of its steps lies in a logged step"
            if idle.is_held
            else "No optimizer holds a parameter of this model; it may hold those of a former copy"
        )
        return Finding(
            message=f"no optimizer stepped on the model at the last {idle.steps + 1} logged "
            f"steps, and weights are the same since step {idle.since}, although backward "
            "passes run",
            since_step=idle.since,
            value=idle.steps,
            healthy=_CHANGES,
            meaning=why,
            advice="Check that optimizer.step() is reached, and that the optimizer was "
            "created from the parameters of the model that runs",
        )

    def _at_zero(self, record: RunRecord) -> Finding | None:
        """A rate of 0 at every logged step of the run."""
        every = record.training_facts().items()
        rates = {step: facts.rates for step, facts in every if facts.rates}
        if len(rates) < self.at_zero or any(high > 0 for _, high in rates.values()):
            return None
        return Finding(
            message=f"the learning rate is 0 at each of {len(rates)} logged steps",
            since_step=min(rates),
            value=len(rates),
            healthy=_CHANGES,
            meaning="Nothing is learned: the scheduler's factor is 0, such as a warm-up that "
            "is computed with an integer division or counts epochs",
            advice="Print scheduler.get_last_lr() over some steps; intended in a long warm-up",
        )

    def _no_gradients(self, record: RunRecord) -> Finding | None:
        """Optimizer steps at which no parameter of the model has a gradient other than 0."""
        none = _without_gradient(record)
        norms = record.scalars.get(tags.GRADIENT_NORM, {})
        if len(none) < self.without or any((series.values != 0).any() for series in norms.values()):
            return None
        if not norms and not set.intersection(*none.values()):
            return None
        return Finding(
            message=f"no parameter has a gradient other than 0 at any of {len(none)} logged steps",
            since_step=min(none),
            value=len(none),
            healthy=_CHANGES,
            meaning="Nothing is learned: zero_grad() is called between backward() and step(), "
            "backward() is not called, or the loss does not depend on the parameters",
            advice="Call zero_grad() before backward() or after step(), and check that the "
            "loss is not detached or multiplied by 0",
        )

    def _without(self, record: RunRecord) -> Finding | None:
        """Trainable weights of layers that run and that an optimizer holds, without a gradient."""
        facts = _without_gradient(record)
        if len(facts) < self.without:
            return None
        always = set.intersection(*facts.values()) if facts else set()
        norms = record.scalars.get(tags.GRADIENT_NORM, {})
        weights = [name for name in norms if name.endswith(".weight")]
        zero = {name for name in weights if has_zero_gradient(record, name)}
        if len(zero) > self.flat * len(weights):
            always |= zero
        names = [name for name in sorted(always) if _is_used(record, name, facts)]
        if not names and record.health is not None:
            kernels = _kernels(record)
            ignored = sorted(name for name in kernels & always if _ran(record, name, facts))
            if len(ignored) >= max(2, self.ignored * len(kernels)):
                names = ignored
        if not names:
            return None
        are = "weights are" if len(names) > 1 else "weight is"
        return Finding(
            message=f"{len(names)} trainable {are} without a gradient at each of {len(facts)} "
            f"logged steps, in layers that are used: {named(names)}",
            since_step=min(facts),
            parameter=names[0],
            parameters=tuple(names),
            value=len(names),
            healthy=_CHANGES,
            meaning="The layer runs in torch.no_grad(), it or its output is detached, not "
            "used or passed through something without a slope, such as rounding",
            advice="Remove what cuts the gradient off, or freeze the layer",
        )


_CHANGES = "each weight changes at each optimizer step"
"""What healthy runs have."""


def _without_gradient(record: RunRecord) -> dict[int, set[str]]:
    """Logged step at which an optimizer stepped -> the parameters without a gradient."""
    found = {}
    for step, facts in record.training_facts().items():
        if facts.no_gradient is not None:
            found[step] = set(facts.no_gradient)
    return found


def _is_used(record: RunRecord, parameter: str, steps: Iterable[int]) -> bool:
    """True for a weight of a layer that is used, so that a gradient would be expected.

    Another parameter of the layer has a gradient, or the layer ran at these steps before every
    layer that has one: something cuts off the start of the network. Layers behind others with
    gradients may compute what the loss ignores. Biases and the like do not count: some are unused
    on purpose, such as the token of a mask.
    """
    layer, _, own = parameter.rpartition(".")
    if "weight" not in own or not layer:
        return False
    trained = {name.rpartition(".")[0] for name in record.scalars.get(tags.GRADIENT_NORM, {})}
    if layer in trained:
        return True
    if record.health is None:
        return False
    layers = [row.facts.layer for row in record.health.rows]
    first = next((index for index, name in enumerate(layers) if name in trained), 0)
    return layer in layers[:first] and _ran(record, parameter, steps)


def _ran(record: RunRecord, parameter: str, steps: Iterable[int]) -> bool:
    """True if the layer of a parameter ran at these steps."""
    table = record.layers()
    layer = parameter.rpartition(".")[0]
    rows = [index for index, row in enumerate(table.rows) if row.facts.layer == layer]
    if not rows:
        return False
    is_asked = np.isin(table.steps, list(steps))
    is_known = np.isfinite(table.columns["minimum"][is_asked][:, rows])  # [steps, calls]
    return bool(is_known.any(1).all())


@dataclass(frozen=True, slots=True)
class UpdateRatioCheck(BuiltInCheck):
    """Updates of the weights that are very small or very large, relative to the weights.

    The ratio is |Δw| / |w| of one optimizer step. Biases and the like, which may start at 0, are
    left out: only weights with kernels count, or, where these are less than a third, as in a
    transformer, all parameters named ``weight``; none whose gradient is 0 at every logged step.

    Attributes:
        low: reported if all ratios of all logged steps are below it; at least four steps. A ratio
            of 0 counts if the learning rate is known to be above 0.
        idle: the same of their median over 50 steps or more, if the loss is known and its median in
            the second half of the run above 0.95 times its first value (``low``: 0.85 times). If it
            is not known, the median over the weights must be below it at each logged step.
        steady: then the median over the steps of each weight must be below it too; if not, the
            former below an eighth of ``idle``.
        high: reported if the median over the weights is above it at ``lasting`` logged steps in a
            row. Neither is reported if the network has layers with kernels and trains none of
            them: a fresh head on a frozen backbone has nothing to lose. Nor are steps whose rate is
            known to be none: one step of L-BFGS is many steps along a line.
        replaced: reported if that median is above it at one of the first four logged steps, in a
            network of six weights or more, or of three if it is above half of ``high`` at another
            of them. One step above ``high`` is enough before channels die, and before activations
            explode or are not finite; one above half of it among the first four, and none later,
            if the loss stays or the output is constant in the end.
        few: the same of other networks; a single weight, which may start near 0, is not reported.
        lasting: number of logged steps; of a single weight, the last ones of the run.
    """

    low: float = 1e-4
    idle: float = 4e-4
    steady: float = 1e-3
    high: float = 0.2
    replaced: float = 0.6
    few: float = 4.0
    lasting: int = 3
    kind: ClassVar[str] = "update_ratio"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        ratios = _ratios(record)
        if ratios is None:
            return
        small = self._small(record, ratios)
        large = self._large(record, ratios)
        if large is not None and not ratios.is_of_head:
            start = large.start
            moved = ratios.median[large]
            value = float(np.nanmax(moved))
            largest = ratios.values[start]
            steps = "logged step" if len(moved) == 1 else "logged steps"
            text = (
                f"an optimizer step changes the weights by up to {percent(value)} of their "
                f"norm (median over the weights) at {len(moved)} {steps}"
            )
            meaning, advice = _LARGE
        elif len(ratios.steps) >= 4 and small.value < small.limit and not falls(record):
            start = 0
            value = small.value
            largest = np.nan_to_num(ratios.values).max(0)
            text = f"no optimizer step changes a weight by more than {percent(value)} of its norm,"
            if small.is_median:
                loss = " and the loss hardly falls," if losses_of(record) else ""
                text = f"the median update is {percent(value)} of the weights,{loss}"
            meaning, advice = _clipped(record) or _SMALL
        else:
            return
        since = ratios.steps[start]
        parameter = ratios.names[int(np.nanargmax(largest))]
        yield Finding(
            message=f"{text} since step {since}; the most in `{parameter}`",
            since_step=since,
            parameter=parameter,
            value=value,
            healthy=f"{percent(max(small.limit, 1e-4))} to 4 %",
            meaning=meaning,
            advice=advice,
        )

    def _small(self, record: RunRecord, ratios: Ratios) -> Small:
        """How small the updates are, and below which limit that is reported."""
        median = float(np.nanmedian(ratios.values))
        idle = self._idle_limit(record, ratios)
        if median < idle:
            return Small(median, idle, is_median=True)
        return Small(float(np.nanmax(ratios.values)), self.low, is_median=False)

    def _idle_limit(self, record: RunRecord, ratios: Ratios) -> float:
        """Limit of the median ratio, which depends on the loss; 0 if it says nothing."""
        if ratios.steps[-1] - ratios.steps[0] < 50:
            return 0.0
        losses = losses_of(record)
        if losses:
            if _stays_late(losses, 0.95):
                return self.idle
            return self.low if _stays_late(losses, 0.85) else 0.0
        usual = np.nanmax(np.nanmedian(ratios.values, axis=0))  # of the weight that moves most
        limit = self.idle if usual < self.steady else self.idle / 8
        most = np.nanmax(ratios.median, initial=0.0)
        return self.idle if most < limit else 0.0

    def _large(self, record: RunRecord, ratios: Ratios) -> slice | None:
        """The logged steps of large updates; None if there are too few."""
        median = ratios.median
        weights = len(ratios.names)
        is_large = np.concatenate([[False], median > self.high, [False]])
        ends = np.flatnonzero(is_large[1:] != is_large[:-1]).reshape(-1, 2)  # [spells, 2]
        for start, stop in ends.tolist():
            if stop - start >= self.lasting and (weights > 1 or stop == len(median)):
                return slice(start, stop)
        first = np.flatnonzero(median[:4] > self.high / 2)
        if median[first].max(initial=0.0) > self._most(weights, len(first)):
            return _from_first_to_last(first)
        if not (median > self.high / 2).any():
            return None
        fatal = np.flatnonzero(median[: _steps_before_loss(record, ratios)] > self.high)
        if fatal.size:
            return _from_first_to_last(fatal)
        is_first = np.nan_to_num(median).argmax() < 4
        if is_first and first.size and _is_stuck(record):
            return _from_first_to_last(first)
        return None

    def _most(self, weights: int, steps: int) -> float:
        """Ratio of one of the first steps up to which it is not reported.

        Args:
            weights: number of weights.
            steps: number of large ones among the first steps.
        """
        if weights == 1:
            return math.inf
        enough = 3 if steps > 1 else 6
        return self.few if weights < enough else self.replaced


class Ratios(NamedTuple):
    """Update ratios of the weights that count.

    Attributes:
        names: of the weights.
        steps: logged steps at which a ratio is known.
        values: [steps, weights]; NaN if not known.
        median: over the weights, [steps]; NaN also at steps whose rate is known to be none.
        is_of_head: the network has layers with kernels, and trains none of them.
    """

    names: list[str]
    steps: list[int]
    values: Floats
    median: Floats
    is_of_head: bool


class Small(NamedTuple):
    """How small updates are.

    Attributes:
        value: their median, or the largest of them.
        limit: below which it is reported.
        is_median: it is the median.
    """

    value: float
    limit: float
    is_median: bool


def _ratios(record: RunRecord) -> Ratios | None:
    """The ratios that the check of updates reads; None if there are none.

    Raises:
        NotRecorded: the run has no update ratios.
    """
    every = record.group(UPDATE_RATIO)
    weights = {
        name: series
        for name, series in every.items()
        if name.rpartition(".")[2].startswith("weight")
    }
    kernels = _kernels(record)
    trained = {name: series for name, series in weights.items() if name in kernels}
    if 0 < len(trained) < len(weights) / 3:
        trained = weights
    chosen = trained or weights
    if not chosen:
        chosen = {name: series for name, series in every.items() if not name.endswith("bias")}
    chosen = {n: series for n, series in chosen.items() if not has_zero_gradient(record, n)}
    if not chosen:
        return None
    steps, values = over_steps(chosen.values())
    facts = record.facts.items()
    moving = [step for step, known in facts if known.rates and known.rates[1] > 0]
    # At a rate of 0, or one that is not known, no update is none to judge.
    values[(values <= 0) & ~np.isin(steps, moving)[:, None]] = np.nan
    is_known = ~np.isnan(values).all(1)
    steps = steps[is_known]
    values = values[is_known]
    if not len(steps):
        return None
    median = np.nanmedian(values, axis=1)
    searched = [step for step, known in facts if known.rates is None]
    median[np.isin(steps, searched)] = np.nan
    is_of_head = bool(kernels) and not trained
    return Ratios(list(chosen), steps.tolist(), values, median, is_of_head)


def _stays_late(every: Sequence[Sequence[float]], share: float) -> bool:
    """True if the median of the second half of each loss is above a share of its first value."""
    return all(np.median(losses[len(losses) // 2 :]) > share * losses[0] for losses in every)


def _from_first_to_last(places: npt.NDArray[np.intp]) -> slice:
    return slice(int(places[0]), int(places[-1]) + 1)


def _steps_before_loss(record: RunRecord, ratios: Ratios) -> int:
    """Number of steps before channels died, or values exploded or became non-finite; else 0."""
    if record.health is None:
        return 0
    table = record.health
    is_lost = (table.columns["nonfinite"] > 0).any(1)  # [steps]
    lost = np.array(table.steps)[is_lost].tolist()
    for finding in (*_dead(record), ExplodingCheck().over_steps(record)):
        if finding is not None and finding.since_step:
            lost.append(finding.since_step)
    return sum(step < min(lost, default=0) for step in ratios.steps)


def _is_stuck(record: RunRecord) -> bool:
    """True if the loss stays, or the output is constant."""
    losses = losses_of(record)
    if losses and _stays_late(losses, 0.95):
        return True
    return record.health is not None and has_constant_output(record)


def _dead(record: RunRecord) -> Sequence[Finding]:
    """Dead channels, unless they are said to follow from constant images."""
    with suppress(NotRecorded):
        if "constant_images" not in record.off and ConstantImagesCheck()(record):
            return ()
    return DeadCheck()(record)


def _clipped(record: RunRecord) -> tuple[str, str] | None:
    """Meaning and advice if gradients are clipped to the same norm at every logged step."""
    total = record.scalars.get(tags.GRADIENT_NORM, {}).get(tags.TOTAL)
    values = np.zeros(0) if total is None else total.values
    if len(values) < 4 or not 0 < values.max() < 1.01 * values.min():
        return None
    return (
        f"The norm of all gradients is {values.max():.2g} at every logged step: they are "
        "clipped to it",
        "Clip the gradients to a larger norm, such as 1, before the learning rate is changed",
    )


_SMALL = (
    "At this rate training takes very long, or stands still",
    "Raise the learning rate, unless a tiny rate is intended",
)
_LARGE = (
    "Steps of this size may undo what the weights have learned: the learning rate, or its "
    "product with the weight decay, may be too large",
    "Lower the learning rate or the weight decay, or warm the rate up",
)
"""Meaning and advice."""


@dataclass(frozen=True, slots=True)
class BatchnormGapCheck(BuiltInCheck):
    """BatchNorm's running variance far from that of the batches, and not about to get closer.

    Or still mostly the initial one, which does not depend on the batches, at the last two logged
    steps: the momentum is far too small.

    Attributes:
        gap: median over the layers of |log(batch variance / running variance)| from which it is
            reported; of each layer, the median of the last quarter of the logged steps.
        decay: the gap is shrinking, and not reported, if that is less than this times the median of
            the quarter before.
        least: number of logged steps.
        span: number of training steps between the first and the last of them; until then the
            running variance still approaches that of the batches.
    """

    gap: float = 1.0
    decay: float = 0.9
    least: int = 8
    span: int = 50
    kind: ClassVar[str] = "batchnorm_gap"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        initial = self._initial(record)
        if initial is not None:
            yield initial
            return
        if not _has_gaps(record):
            return
        third: dict[str, float] = {}
        fourth: dict[str, float] = {}
        begins: list[int] = []
        for layer, series in record.group(BATCHNORM_GAP).items():
            is_known = np.isfinite(series.values)
            gaps = np.abs(series.values[is_known])
            steps = series.steps[is_known]
            quarter = len(gaps) // 4
            if len(gaps) >= self.least and steps[-1] - steps[0] >= self.span:
                third[layer] = float(np.median(gaps[-2 * quarter : -quarter]))
                fourth[layer] = float(np.median(gaps[-quarter:]))
                begins.append(int(steps[-2 * quarter]))
        if not begins:
            return
        before = float(np.median(list(third.values())))
        value = float(np.median(list(fourth.values())))
        if value < self.gap or value < self.decay * before:
            return
        worst = max(fourth, key=fourth.__getitem__)
        since = min(begins)
        factor = math.exp(min(value, 700))
        yield Finding(
            message=f"the variance of the batches differs by a factor of {factor:.2g} from "
            f"BatchNorm's running variance (median of {len(begins)} layers) since step "
            f"{since}; the most in `{worst}`",
            since_step=since,
            layer=worst,
            value=value,
            healthy="a factor of 1.2 or less",
            meaning="In eval mode the network computes something else than in training: the "
            "batches are too small or differ from each other, or the momentum is too small",
            advice="Use larger or better mixed batches, another momentum, or GroupNorm",
        )

    def _initial(self, record: RunRecord) -> Finding | None:
        """Layers whose running variance is still mostly the initial one."""
        last = list(record.facts.values())[-2:]
        if len(last) < 2:
            return None
        before, newest_facts = last
        names = [
            name
            for name in newest_facts.initial_norms
            if name in before.initial_norms and not _is_close(record, name)
        ]
        if not names:
            return None
        facts = record.facts.items()
        since = next(step for step, known in facts if names[0] in known.initial_norms)
        count = len(names) + newest_facts.left_out.get("initial_norms", 0)
        return Finding(
            message=f"the running variance of {count} BatchNorm layer{'s' * (count > 1)} is "
            f"still 90 % or more the initial value of 1 after 50 batches or more, since step "
            f"{since}: {named(names, count)}",
            since_step=since,
            layer=names[0],
            value=count,
            healthy="10 % or less after 50 batches, at the usual momentum of 0.1",
            meaning="The momentum is 0 or far too small (in torch it is the weight of a new batch)",
            advice="Use a momentum of 0.1 or 0.01; call eval() on layers that are to stay",
        )


@dataclass(frozen=True, slots=True)
class BatchnormSmallBatchCheck(BuiltInCheck):
    """BatchNorm over batches of two images, whose variances are not those that eval mode uses.

    Or over two values per channel, of which nothing is left but which one is larger.

    Attributes:
        batch: largest number of images, or else of rows of the output.
        values: the same of values per channel, of any number of images.
        gap: |log(batch variance / running variance)| from which it is reported: of each layer the
            median over the second half of the logged steps, of these that over the layers or, of
            one image, the largest.
        least: number of logged steps.
    """

    batch: int = 2
    values: int = 2
    gap: float = 0.16
    least: int = 4
    kind: ClassVar[str] = "batchnorm_small_batch"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        if not _has_gaps(record):
            return
        sizes = [_batch_size(facts) for facts in record.training_facts().values()]
        if len([size for size in sizes if size]) < self.least:
            return
        batch = max(sizes)
        steps, gaps = over_steps(record.group(BATCHNORM_GAP).values())
        late = np.abs(gaps[len(steps) // 2 :])
        late = late[:, np.isfinite(late).any(0)]  # [steps, layers]
        value = 0.0
        if batch == 1:
            value = float(np.nanmedian(late, axis=0).max(initial=0.0))
        elif late.size:
            value = float(np.nanmedian(late))
        if batch > self.batch or value < self.gap:
            names = self._narrow(record)
            if not names:
                return
            seen = f"at most {self.values} values per channel behind {named(names)}"
        else:
            images = "1 image" if batch == 1 else f"{batch} images"
            which = "the most" if batch == 1 else "median"
            seen = (
                f"{images} per step, whose variance differs by a factor of "
                f"{math.exp(min(value, 700)):.2g} from its running variance ({which} of "
                f"{late.shape[1]} layers),"
            )
        yield Finding(
            message=f"BatchNorm sees {seen} since step {steps[0]}",
            since_step=int(steps[0]),
            value=value,
            healthy="8 images or more",
            meaning="The statistics of so few values are far from the running ones of eval mode",
            advice="Use larger batches or GroupNorm; intended if never in eval mode, as pix2pix",
        )

    def _narrow(self, record: RunRecord) -> list[str]:
        """Layers with few values per channel in front of a BatchNorm."""
        table = record.layers()
        most = table.columns["values"].max(0).tolist()
        names = []
        for row, values in zip(table.rows, most, strict=True):
            if values <= self.values and is_normalized(row, "batchnorm"):
                names.append(row.facts.layer)
        return names


def _batch_size(facts: TrainingFacts) -> int:
    """Number of images, or else of rows of the first output; 0 if it is not known."""
    if facts.batch:
        return facts.batch
    return next((output.shape[0] for output in facts.outputs if output.shape), 0)


def _has_gaps(record: RunRecord) -> bool:
    """True if the gaps of BatchNorm layers are recorded; False if the network has no such layer.

    Raises:
        NotRecorded: it has one, or its layers are not known.
    """
    if record.scalars.get(BATCHNORM_GAP):
        return True
    if record.has_module("batchnorm") is False:
        return False
    raise NotRecorded(f"the scalars {BATCHNORM_GAP}/…, of BatchNorm layers in training mode")


def _is_close(record: RunRecord, layer: str) -> bool:
    """True if a running variance fits the batches, whatever it is made of."""
    series = record.scalars.get(BATCHNORM_GAP, {}).get(layer)
    known = np.zeros(0) if series is None else series.values[np.isfinite(series.values)]
    return bool(known.size and np.median(np.abs(known[-max(1, known.size // 4) :])) <= 0.2)


def _kernels(record: RunRecord) -> set[str]:
    """Names of the weights of layers with kernels; empty if the layers are not recorded."""
    rows = [] if record.health is None else record.weighted_layers()
    return {f"{row.facts.layer}.weight" for row in rows}
