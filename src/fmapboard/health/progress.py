"""What the checks of a run looked at: its losses, whether it learns, and its updates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.checks import Ends, LostSpread, OutputProgress, Seen
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health import thresholds
from fmapboard.health.evidence import BINARY, Evidence, OutputSteps, is_over_classes, late_loss
from fmapboard.health.labels import labels_of
from fmapboard.health.table import HealthTable


def seen_in(evidence: Evidence) -> Seen:
    """What is known of the run of one model, besides what is wrong in it."""
    record = evidence.record
    table = record.health
    usual_update, is_usual_estimate = _usual_update(evidence)
    largest = evidence.largest_update()
    if largest is not None:
        largest = replace(largest, parameter=_named(record.name, largest.parameter))
    newest = list(record.facts.values())[-1] if record.facts else None
    no_loss = {} if newest is None else newest.no_loss
    return Seen(
        layers=0 if table is None else len(table.rows),
        steps=0 if table is None else table.written,
        last_step=table.steps[-1] if table is not None and table.steps else None,
        is_of_images=table is not None and table.is_of_images,
        usual_update=usual_update,
        is_usual_estimate=is_usual_estimate,
        largest_update=largest,
        outputs=tuple(_outputs(evidence)),
        rates=None if newest is None else newest.rates,
        batch=None if newest is None else newest.batch,
        rows=None if newest is None else _rows(newest),
        optimizers=() if newest is None else newest.optimizers,
        weight_decays=None if newest is None else newest.weight_decays,
        no_loss={_named(record.name, output): why for output, why in no_loss.items()},
        lost_spread=None if table is None else _lost_spread(table),
    )


def _lost_spread(table: HealthTable) -> LostSpread | None:
    """Between which layers of a model the inputs become alike, and stay so up to its last layer.

    It is lost at the first layer from which on, in the order of calls, all have a smaller share
    than `thresholds.SPREAD_LOST` of the least spread before.
    """
    layers = []
    for row, spread in zip(table.rows, table.columns["spread"][-1].tolist(), strict=True):
        # Attention and experts may treat most inputs alike, in a network that learns.
        if math.isfinite(spread) and row.facts.unit not in ("head", "expert"):
            layers.append((_named(row.name, row.facts.label), spread))
    names = [name for name, _ in layers]
    spreads = np.array([spread for _, spread in layers])
    least_before = np.minimum.accumulate(spreads)[:-1]
    largest_behind = np.maximum.accumulate(spreads[::-1])[::-1][1:]
    is_lost = largest_behind < thresholds.SPREAD_LOST.value * least_before
    if not is_lost.any():
        return None
    at = int(is_lost.argmax())
    return LostSpread(
        last=names[at],
        before=float(least_before[at]),
        first=names[at + 1],
        behind=float(largest_behind[at]),
    )


def _rows(newest: TrainingFacts) -> int | None:
    """The size of the first axis that all outputs have; None without outputs of several rows."""
    return _the_one({output.shape[0] for output in newest.outputs if output.shape})


def merged(every: Sequence[Seen]) -> Seen:
    """What is known of all models of a run."""
    if len(every) == 1:
        return every[0]
    largest = [seen.largest_update for seen in every if seen.largest_update is not None]
    usual = [seen.usual_update for seen in every if seen.usual_update is not None]
    steps = [seen.last_step for seen in every if seen.last_step is not None]
    no_loss: dict[str, str] = {}
    for seen in every:
        no_loss.update(seen.no_loss)
    return Seen(
        layers=sum(seen.layers for seen in every),
        steps=max((seen.steps for seen in every), default=0),
        last_step=max(steps, default=None),
        is_of_images=any(seen.is_of_images for seen in every),
        usual_update=float(np.median(usual)) if usual else None,
        is_usual_estimate=any(seen.is_usual_estimate for seen in every),
        largest_update=max(largest, key=lambda update: update.value, default=None),
        outputs=tuple(output for seen in every for output in seen.outputs),
        no_loss=no_loss,
        optimizers=tuple(dict.fromkeys(name for seen in every for name in seen.optimizers)),
        rates=_around(seen.rates for seen in every),
        weight_decays=_around(seen.weight_decays for seen in every),
        batch=_the_one({seen.batch for seen in every}),
        rows=_the_one({seen.rows for seen in every}),
        lost_spread=next((seen.lost_spread for seen in every if seen.lost_spread), None),
    )


def _around(ranges: Iterable[tuple[float, float] | None]) -> tuple[float, float] | None:
    """From the lowest to the highest value of all ranges that are known."""
    known = [values for values in ranges if values is not None]
    if not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _the_one(values: set[int | None]) -> int | None:
    """What all have; None if they differ."""
    return values.pop() if len(values) == 1 else None


def learns(seen: Seen) -> bool | None:
    """True if a known loss has fallen, False if none has; None if none is known well enough."""
    known = [output.learns for output in seen.outputs if output.learns is not None]
    return any(known) if known else None


def _usual_update(evidence: Evidence) -> tuple[float | None, bool]:
    """The median update ratio of all weights, and whether some of them are estimates.

    Biases, which may start at 0, are left out. The median is None if no ratio is known.
    """
    ratios: list[float] = []
    is_estimate = False
    for name, series in evidence.record.scalars.get(tags.UPDATE_RATIO, {}).items():
        if name.rpartition(".")[2] == "weight":
            ratios += series.values[np.isfinite(series.values)].tolist()
            is_estimate |= evidence.is_estimated(name)
    if not ratios:
        return None, False
    return float(np.median(ratios)), is_estimate


def _outputs(evidence: Evidence) -> list[OutputProgress]:
    """The progress of each output of which something is known."""
    by_name: dict[str, dict[int, OutputFacts]] = {}
    for step, facts in evidence.record.facts.items():
        for output in facts.outputs:
            by_name.setdefault(output.name, {})[step] = output
    return [_progress(evidence, name, steps) for name, steps in by_name.items()]


def _progress(evidence: Evidence, name: str, steps: OutputSteps) -> OutputProgress:
    losses: dict[int, float] = {}
    accuracies: dict[int, float] = {}
    spreads: dict[int, float] = {}
    for step, output in steps.items():
        held = output.held
        if held is not None and held.loss is not None:
            losses[held.step] = held.loss
        if held is not None and held.accuracy is not None:
            accuracies[held.step] = held.accuracy
        if output.loss is not None:
            losses[step] = output.loss
        if output.accuracy is not None:
            accuracies[step] = output.accuracy
        if output.spread is not None:
            spreads[step] = output.spread
    newest = list(steps.values())[-1]
    is_known_kind = is_over_classes(newest) or newest.kind == BINARY
    labels = labels_of(steps) if is_known_kind else None
    guess = None if labels is None else labels.entropy
    ends = _ends(losses)
    factors = [output.factor for output in steps.values() if output.factor is not None]
    finite = [loss for _, loss in sorted(losses.items()) if math.isfinite(loss)]
    late = late_loss(finite) if len(finite) >= thresholds.LOGGED_STEPS.value else None
    may_stay = _may_be_critic(newest)
    return OutputProgress(
        name=_named(evidence.record.name, name),
        loss=ends,
        accuracy=_ends(accuracies),
        spread=_ends(spreads),
        classes=newest.classes if is_over_classes(newest) else None,
        guess=guess,
        late=late,
        learns=None if late is None or may_stay else _has_fallen(ends, finite, guess),
        factor=factors[-1] if factors else None,
        is_loss=not newest.shape and not newest.given,
        may_stay=may_stay,
    )


def _has_fallen(ends: Ends, losses: Sequence[float], guess: float | None) -> bool | None:
    """True if a loss is lower late in the run than at its start and than guessing.

    By a twentieth, and by twice the standard error that its changes from step to step tell: one
    batch differs from another. False if it is as much higher than at its start, or, over 50
    training steps or more, if it is not lower: in fewer, no loss need fall.

    Args:
        ends: the first and the last known loss.
        losses: all that are known, finite.
        guess: the loss of an answer that does not depend on the input; None if it is not known.

    Returns:
        None if they differ too much to tell, or if the loss fell to that of guessing: so much is
        learned from the frequency of the labels alone.
    """
    (start_step, first), (last_step, _) = ends[0], ends[-1]
    usual = late_loss(losses)
    half = losses[len(losses) // 2 :]
    noise = float(np.std(np.diff(half))) / math.sqrt(2 * len(half))
    share = 1 - thresholds.STAYS.value
    if first - usual <= share * abs(first):
        is_long = last_step - start_step >= thresholds.UPDATE_SPAN.value
        has_risen = usual - first > max(share * abs(first), 2 * noise)
        return False if is_long or has_risen else None
    start = first if guess is None else min(first, guess)
    return True if start - usual > max(share * abs(start), 2 * noise) else None


def _may_be_critic(output: OutputFacts) -> bool:
    """True for single units whose batches have one label each: their loss need not fall."""
    is_one_unit = output.shape[1:2] in ((), (1,)) and bool(output.shape)
    return is_one_unit and output.kind == BINARY and len(output.labels or ()) < 2


def _ends(values: dict[int, float]) -> Ends:
    """The first and the last finite value."""
    known = [(step, value) for step, value in sorted(values.items()) if math.isfinite(value)]
    return (known[0], known[-1]) if len(known) > 1 else tuple(known)


def _named(model: str, name: str) -> str:
    """A name behind that of its model."""
    return ": ".join(part for part in (model, name) if part)
