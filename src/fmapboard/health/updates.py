"""Facts of the sizes of updates: large and small ones, and changes by other code beside them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats import tags
from fmapboard.formats.checks import LargestUpdate
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health import thresholds
from fmapboard.health.evidence import Evidence, Ratios, late_loss, quoted
from fmapboard.health.finding import percent, times


class LargeUpdates(NamedTuple):
    """Updates that are large beside their weights.

    Attributes:
        since: the first logged step with them.
        steps: number of logged steps.
        value: the median over the weights at the first of them.
        are_first: the first logged step is among them.
        largest: the largest update of a parameter at the first of them; None if none is known.
        is_estimate: some of the weights were read in part.
        are_of_kernels: the median is over the weights of layers with kernels only.
    """

    since: int
    steps: int
    value: float
    are_first: bool
    largest: LargestUpdate | None
    is_estimate: bool
    are_of_kernels: bool

    @property
    def parameter(self) -> str | None:
        """That with the largest update."""
        return None if self.largest is None else self.largest.parameter

    def text_with(self, decay: Decay | None) -> str:
        """When and how large they are, and what weight decay has left, in words."""
        size = times(self.value, is_estimate=self.is_estimate)
        which = "convolutions" if self.are_of_kernels else "weights"
        text = f"step {self.since} moves a weight by {size} (median over the {which})"
        most = self.largest
        if most is not None:
            size = times(most.value, is_estimate=most.is_estimate)
            text += f", `{most.parameter}` by {size}"
        if self.steps > 1:
            text += f"; {self.steps} logged steps are about as large"
        return text if decay is None else f"{text}; {decay.text}"


def large_updates(
    evidence: Evidence, ratios: Ratios, high: float, least: int
) -> LargeUpdates | None:
    """The logged steps of large updates; None if there are too few.

    Args:
        evidence: of the run.
        ratios: the update ratios.
        high: above which the median over the weights is large.
        least: number of logged steps in a row; of a single weight, the last ones of the run.
    """
    large = _large_steps(evidence, ratios, high, least)
    if large is None:
        return None
    since = ratios.steps[large.start]
    return LargeUpdates(
        since=since,
        steps=large.stop - large.start,
        value=float(ratios.median[large.start]),
        are_first=large.start == 0,
        largest=evidence.largest_update(since),
        is_estimate=ratios.is_estimate,
        are_of_kernels=ratios.are_of_kernels,
    )


def _large_steps(evidence: Evidence, ratios: Ratios, high: float, least: int) -> slice | None:
    """Where in ``ratios.steps`` updates are large."""
    median = ratios.median
    is_large = np.concatenate([[False], median > high, [False]])
    ends = np.flatnonzero(is_large[1:] != is_large[:-1]).reshape(-1, 2)  # [spells, 2]
    for start, stop in ends.tolist():
        if stop - start >= least and (len(ratios.names) > 1 or stop == len(median)):
            return slice(start, stop)
    lost = evidence.lost_since
    before = sum(step < (lost or 0) for step in ratios.steps)
    fatal = np.flatnonzero(median[:before] > high)
    if fatal.size:
        return _from_first_to_last(fatal)
    first = np.flatnonzero(median[: thresholds.LOGGED_STEPS.value] > high)
    if first.size and evidence.is_stuck:
        return _from_first_to_last(first)
    return None


def _from_first_to_last(places: npt.NDArray[np.intp]) -> slice:
    return slice(int(places[0]), int(places[-1]) + 1)


class Decay(NamedTuple):
    """Weight decay has shrunk the weights, and nothing is learned.

    Attributes:
        since: the logged step since which half of their norm at the first one is gone.
        left: what is left of it at the newest step, median over the weights.
        text: how large the decay is, and what it has left, in words.
    """

    since: int
    left: float
    text: str


def harmful_decay(evidence: Evidence) -> Decay | None:
    """What weight decay has left of the weights; None if that is more than half, or it learns.

    Raises:
        NotRecorded: nothing of the training process was recorded.
    """
    since = evidence.since(_is_half_gone) if evidence.is_stuck else None
    if since is None:
        return None
    newest = evidence.newest
    decay = max(newest.weight_decays or (0.0,))
    left = newest.weights_left or 0.0
    text = f"a weight decay of {decay:g} has left {percent(left)} of the weights' first norm"
    return Decay(since, left, f"{text} (median)")


def _is_half_gone(facts: TrainingFacts) -> bool:
    return facts.weights_left is not None and 2 * facts.weights_left <= 1


class SmallUpdates(NamedTuple):
    """How small updates are.

    Attributes:
        value: their median, or the largest of them.
        limit: below which it is reported.
        is_median: it is the median.
        is_estimate: some of the weights were read in part.
        parameter: that with the largest update.
        since: the first logged step at which one is known.
    """

    value: float
    limit: float
    is_median: bool
    is_estimate: bool
    parameter: str
    since: int

    def text(self, evidence: Evidence) -> str:
        """How small they are, in words, and what the loss does."""
        size = times(self.value, is_estimate=self.is_estimate)
        if not self.is_median:
            return f"no optimizer step changes a weight by more than {size} of its norm,"
        text = f"the median update is {size} of the weights,"
        if evidence.losses:
            text += f" and {_first_loss(evidence)},"
        return text


def small_updates(evidence: Evidence, low: float, idle: float) -> SmallUpdates | None:
    """How small the updates are; None if they are not small, or known at too few logged steps.

    Args:
        evidence: of the run.
        low: limit of all ratios.
        idle: limit of their median.

    Raises:
        NotRecorded: the run has no update ratios.
    """
    ratios = evidence.update_ratios
    if ratios is None or len(ratios.steps) < thresholds.LOGGED_STEPS.value:
        return None
    limit = _idle_limit(evidence, ratios, low, idle)
    value = float(np.nanmedian(ratios.values))
    is_median = value < limit
    if not is_median:
        limit = low
        value = float(np.nanmax(ratios.values))
    if value >= limit:
        return None
    largest = np.nan_to_num(ratios.values).max(0)
    return SmallUpdates(
        value=value,
        limit=limit,
        is_median=is_median,
        is_estimate=ratios.is_estimate,
        parameter=ratios.names[int(largest.argmax())],
        since=ratios.steps[0],
    )


def _first_loss(evidence: Evidence) -> str:
    """The loss of the first output of which it is known, none of which falls."""
    name, losses = next(iter(evidence.losses_of_outputs.items()))
    of_output = f" of{quoted(name)}" if name else ""
    return f"the loss{of_output} hardly falls ({losses[0]:.3g}, later {late_loss(losses):.3g})"


def _idle_limit(evidence: Evidence, ratios: Ratios, low: float, idle: float) -> float:
    """Limit of the median ratio, which depends on the loss; 0 if it says nothing."""
    if ratios.steps[-1] - ratios.steps[0] < thresholds.UPDATE_SPAN.value:
        return 0.0
    if evidence.losses:
        if evidence.stays_late(thresholds.STAYS.value):
            return idle
        return low if evidence.stays_late(thresholds.HARDLY_FALLS.value) else 0.0
    most = np.nanmax(ratios.median, initial=0.0)
    return idle if most < idle else 0.0


def clipping_norm(evidence: Evidence) -> float | None:
    """The norm of all gradients if it is the same at every logged step, as if clipped to it."""
    total = evidence.gradient_norms.get(tags.TOTAL)
    if total is None or len(total.values) < thresholds.LOGGED_STEPS.value:
        return None
    largest = total.values.max()
    if not 0 < largest < thresholds.CLIPPED.value * total.values.min():
        return None
    return float(largest)


class OutsideChanges(NamedTuple):
    """What code other than the optimizer changes in the weights, between two of its steps.

    Attributes:
        since: the first logged step with a change.
        steps: number of logged steps with one.
        later: number of logged steps behind the first one.
        names: of parameters that were changed, at the newest of these steps.
        parameters: how many were.
        usual: |Δw| / |w| of the change there, median over these parameters.
        share: change over that of the optimizer's step, median over parameters and steps.
        are_clamped: each change is to the ends of a range.
    """

    since: int
    steps: int
    later: int
    names: tuple[str, ...]
    parameters: int
    usual: float
    share: float
    are_clamped: bool


def outside_changes(evidence: Evidence, least: int) -> OutsideChanges | None:
    """What other code changes at most logged steps behind the first; None if it is at fewer.

    Args:
        evidence: of the run.
        least: number of logged steps.

    Raises:
        NotRecorded: nothing of the training process was recorded.
    """
    later = list(evidence.facts.items())[1:]
    changed = [(step, facts) for step, facts in later if facts.changed_outside]
    if len(changed) < max(least, len(later) / 2):
        return None
    shares = [share for step, facts in changed for share in _shares(evidence, step, facts)]
    last = changed[-1][1]
    are_clamped = all(facts.clamped.keys() == facts.changed_outside.keys() for _, facts in changed)
    return OutsideChanges(
        since=changed[0][0],
        steps=len(changed),
        later=len(later),
        names=tuple(last.changed_outside),
        parameters=last.count("changed_outside"),
        usual=float(np.median(list(last.changed_outside.values()))),
        share=float(np.median(shares)) if shares else 0.0,
        are_clamped=are_clamped,
    )


def _shares(evidence: Evidence, step: int, facts: TrainingFacts) -> list[float]:
    """Of each parameter, the change by other code over that of the optimizer's step."""
    found = list[float]()
    updates = evidence.record.scalars.get(tags.UPDATE_RATIO, {})
    for name, change in facts.changed_outside.items():
        series = updates.get(name)
        if series is None:
            continue
        for update in series.values[series.steps == step].tolist():
            if update > 0:
                found.append(change / update)
    return found
