"""Weights that never change, updates of an unusual size, and BatchNorm's running variance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.tags import BATCHNORM_GAP, UPDATE_RATIO
from fmapboard.health.checks.layers import DeadCheck, ExplodingCheck
from fmapboard.health.checks.loop import ConstantImagesCheck, newest
from fmapboard.health.checks.outputs import ConstantOutputCheck
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
        found = {
            name: unchanged
            for name, unchanged in last.unchanged.items()
            if unchanged.steps >= self.steps
            and name.rpartition(".")[2] != "bias"
            and not has_zero_gradient(record, name)
        }
        if not found:
            rules = self._idle, self._at_zero, self._no_gradients, self._without
            yield from first_of(rule(record) for rule in rules)
            return
        first, *_ = names = sorted(found, key=lambda name: found[name].since)
        same_as = found[first].since
        since = next((step for step in record.facts if step > same_as), same_as)
        rate = f" at a learning rate of {last.rates[1]:.2g}" if last.rates else ""
        of = "weights" if len(found) == 1 else f"{len(found)} weights"
        yield Finding(
            class_="warning",
            message=f"{of} unchanged since step {since}, over {found[first].steps} logged "
            f"steps that the optimizer applied{rate}: {named(names)}",
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
        in_a_row = [one for one in every[-1 - idle.steps :] if one is not None]
        if idle.is_held and not all(one.is_cleared for one in in_a_row):
            return None  # gradients are being accumulated
        why = (
            "An optimizer holds them, and none of its steps lies in a logged step"
            if idle.is_held
            else "No optimizer holds a parameter of this model; it may hold those of a former copy"
        )
        return Finding(
            message=f"no optimizer stepped on the model at the last {idle.steps + 1} logged steps, "
            f"and weights are the same since step {idle.since}, although backward passes run",
            since_step=idle.since,
            value=idle.steps,
            healthy=_CHANGES,
            meaning=why,
            advice="Check that optimizer.step() is reached, and that the optimizer was created "
            "from the parameters of the model that runs",
        )

    def _at_zero(self, record: RunRecord) -> Finding | None:
        """A rate of 0 at every logged step of the run."""
        rates = {at: of.rates for at, of in record.training_facts().items() if of.rates}
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
        always = set.intersection(*facts.values()) if facts else set()
        weights = [n for n in record.scalars.get(tags.GRADIENT_NORM, {}) if n.endswith(".weight")]
        zero = {name for name in weights if has_zero_gradient(record, name)}
        always |= zero if len(zero) > self.flat * len(weights) else set()
        names = [name for name in sorted(always) if _is_used(record, name, facts)]
        if not names and record.health is not None:
            kernels = _kernels(record)
            ignored = sorted(name for name in kernels & always if _ran(record, name, facts))
            names = ignored if len(ignored) >= max(2, self.ignored * len(kernels)) else []
        if len(facts) < self.without or not names:
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
            meaning="The layer runs in torch.no_grad(), it or its output is detached, not used or "
            "passed through something without a slope, such as rounding",
            advice="Remove what cuts the gradient off, or freeze the layer",
        )


_CHANGES = "each weight changes at each optimizer step"
"""What healthy runs have."""


def _without_gradient(record: RunRecord) -> dict[int, set[str]]:
    """Logged step at which an optimizer stepped -> the parameters without a gradient."""
    facts = record.training_facts().items()
    return {at: set(of.no_gradient) for at, of in facts if of.no_gradient is not None}


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
    first = next((n for n, name in enumerate(layers) if name in trained), 0)
    return layer in layers[:first] and _ran(record, parameter, steps)


def _ran(record: RunRecord, parameter: str, steps: Iterable[int]) -> bool:
    """True if the layer of a parameter ran at these steps."""
    table, layer = record.layers(), parameter.rpartition(".")[0]
    rows = [n for n, row in enumerate(table.rows) if row.facts.layer == layer]
    at = np.isin(table.steps, list(steps))
    return bool(np.isfinite(table.columns["minimum"][at][:, rows]).any(1).all() and rows)


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
        series = record.group(UPDATE_RATIO)
        weights = {n: s for n, s in series.items() if n.rpartition(".")[2].startswith("weight")}
        kernels = _kernels(record)
        trained = {n: s for n, s in weights.items() if n in kernels}
        if 0 < len(trained) < len(weights) / 3:
            trained = weights
        chosen = trained or weights or {n: s for n, s in series.items() if not n.endswith("bias")}
        chosen = {n: s for n, s in chosen.items() if not has_zero_gradient(record, n)}
        if not chosen:
            return
        every, ratios = over_steps(chosen.values())
        moving = [at for at, facts in record.facts.items() if facts.rates and facts.rates[1] > 0]
        # At a rate of 0, or one that is not known, no update is none to judge.
        ratios[(ratios <= 0) & ~np.isin(every, moving)[:, None]] = np.nan
        known = ~np.isnan(ratios).all(1)
        ratios, steps = ratios[known], every[known].tolist()
        if not steps:
            return
        median = np.nanmedian(ratios, axis=1)  # [steps]
        searched = [at for at, facts in record.facts.items() if facts.rates is None]
        median[np.isin(steps, searched)] = np.nan
        losses, table, idle = losses_of(record), record.health, 0.0
        for share, limit in ((0.85, self.low), (0.95, self.idle)):
            stuck = [np.median(of[len(of) // 2 :]) > share * of[0] for of in losses]
            idle = limit if all(stuck) else idle
        if not losses:
            usual, most = np.nanmax(np.nanmedian(ratios, axis=0)), np.nanmax(median, initial=0.0)
            idle *= most < self.idle * (1 if usual < self.steady else 0.125)
        idle *= steps[-1] - steps[0] >= 50
        least, slow = (idle, np.nanmedian) if np.nanmedian(ratios) < idle else (self.low, np.nanmax)
        before, is_stuck = 0, bool(losses) and all(stuck)
        if table is not None and (median > self.high / 2).any():
            lost = np.array(table.steps)[(table.columns["nonfinite"] > 0).any(1)].tolist()
            results = [*_dead(record), ExplodingCheck().over_steps(record)]
            lost += [one.since_step for one in results if one is not None and one.since_step]
            before = sum(at < min(lost, default=0) for at in steps)
            with suppress(NotRecorded):
                is_stuck = is_stuck or bool(ConstantOutputCheck()(record))
        large = self._large(median, before, is_stuck, len(chosen))
        if large.stop and (trained or not kernels):
            at, moved = large.start, median[large]
            value, most = float(np.nanmax(moved)), ratios[at]
            text = (
                f"an optimizer step changes the weights by up to {percent(value)} of their norm "
                f"(median over the weights) at {len(moved)} logged step{'s' * (len(moved) > 1)}"
            )
            meaning, advice = _LARGE
        elif len(steps) >= 4 and slow(ratios) < least and not falls(record):
            at, value, most = 0, float(slow(ratios)), np.nan_to_num(ratios).max(0)
            text = f"no optimizer step changes a weight by more than {percent(value)} of its norm,"
            if slow is np.nanmedian:
                stays = " and the loss hardly falls," * bool(losses)
                text = f"the median update is {percent(value)} of the weights,{stays}"
            meaning, advice = _clipped(record) or _SMALL
        else:
            return
        since, parameter = steps[at], list(chosen)[int(np.nanargmax(most))]
        yield Finding(
            message=f"{text} since step {since}; the most in `{parameter}`",
            since_step=since,
            parameter=parameter,
            value=value,
            healthy=f"{percent(max(least, 1e-4))} to 4 %",
            meaning=meaning,
            advice=advice,
        )

    def _large(self, median: Floats, before: int, is_stuck: bool, weights: int) -> slice:
        """The logged steps [S] of large updates; an empty slice if there are too few.

        Args:
            median: over the weights, [S].
            before: number of steps until channels died or activations exploded; 0 if they did not.
            is_stuck: the loss stays, or the output is constant.
            weights: number of weights.
        """
        is_large = np.concatenate([[False], median > self.high, [False]])
        ends = np.flatnonzero(is_large[1:] != is_large[:-1]).reshape(-1, 2)  # [spells, 2]
        for start, stop in ends.tolist():
            if stop - start >= self.lasting and (weights > 1 or stop == len(median)):
                return slice(start, stop)
        moved = np.flatnonzero(median[:4] > self.high / 2)
        most = median[moved].max(initial=0.0)
        is_few = weights < (3 if len(moved) > 1 else 6)
        if most <= (math.inf if weights == 1 else self.few if is_few else self.replaced):
            moved = np.flatnonzero(median[:before] > self.high)
        if not moved.size and is_stuck and np.nan_to_num(median).argmax() < 4:
            moved = np.flatnonzero(median[:4] > self.high / 2)
        return slice(int(moved[0]), int(moved[-1]) + 1) if moved.size else slice(0)


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
        f"The norm of all gradients is {values.max():.2g} at every logged step: they are clipped "
        "to it",
        "Clip the gradients to a larger norm, such as 1, before the learning rate is changed",
    )


_SMALL = (
    "At this rate training takes very long, or stands still",
    "Raise the learning rate, unless a tiny rate is intended",
)
_LARGE = (
    "Steps of this size may undo what the weights have learned: the learning rate, or its product "
    "with the weight decay, may be too large",
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
        if (other := self._initial(record)) is not None:
            yield other
            return
        if not _has_gaps(record):
            return
        late: dict[str, tuple[float, float]] = {}
        steps: list[int] = []
        for layer, one in record.group(BATCHNORM_GAP).items():
            known = np.isfinite(one.values)
            values, at = np.abs(one.values[known]), one.steps[known]
            quarter = len(values) // 4
            if len(values) >= self.least and at[-1] - at[0] >= self.span:
                third, fourth = values[-2 * quarter : -quarter], values[-quarter:]
                late[layer] = float(np.median(third)), float(np.median(fourth))
                steps.append(int(at[-2 * quarter]))
        if not late:
            return
        before, value = (float(np.median(part)) for part in zip(*late.values(), strict=True))
        if value < self.gap or value < self.decay * before:
            return
        worst, since = max(late, key=lambda layer: late[layer][1]), min(steps)
        factor = math.exp(min(value, 700))
        yield Finding(
            message=f"the variance of the batches differs by a factor of {factor:.2g} from "
            f"BatchNorm's running variance (median of {len(late)} layers) since step {since}; "
            f"the most in `{worst}`",
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
        last = list(record.facts.items())[-2:]
        if len(last) < 2:
            return None
        lasting = set(last[0][1].initial_norms)
        names = [n for n in last[1][1].initial_norms if n in lasting and not _is_close(record, n)]
        if not names:
            return None
        since = next(at for at, of in record.facts.items() if names[0] in of.initial_norms)
        count = len(names) + last[-1][1].left_out.get("initial_norms", 0)
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
        known = [(of.batch, of.outputs) for of in record.training_facts().values()]
        sizes = [n or next((o.shape[0] for o in all_of if o.shape), 0) for n, all_of in known]
        if sum(map(bool, sizes)) < self.least:
            return
        steps, gaps = over_steps(record.group(BATCHNORM_GAP).values())
        late = np.abs(gaps[len(steps) // 2 :])
        late, batch = late[:, np.isfinite(late).any(0)], max(sizes)  # [steps, layers]
        value = float(np.nanmedian(late)) if late.size else 0.0
        if batch == 1:
            value = float(np.nanmedian(late, axis=0).max(initial=0.0))
        seen = f"{batch} image{'s' * (batch > 1)} per step"
        if batch > self.batch or value < self.gap:
            table = record.layers()
            rows = zip(table.rows, table.columns["values"].max(0) <= self.values, strict=True)
            names = [r.facts.layer for r, few in rows if few and is_normalized(r, "batchnorm")]
            if not names:
                return
            seen = f"at most {self.values} values per channel behind {named(names)}"
        else:
            seen += f", whose variance differs by a factor of {math.exp(min(value, 700)):.2g} from "
            of = "the most" if batch == 1 else "median"
            seen += f"its running variance ({of} of {late.shape[1]} layers),"
        yield Finding(
            message=f"BatchNorm sees {seen} since step {steps[0]}",
            since_step=int(steps[0]),
            value=value,
            healthy="8 images or more",
            meaning="The statistics of so few values are far from the running ones of eval mode",
            advice="Use larger batches or GroupNorm; intended if never in eval mode, as pix2pix",
        )


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
