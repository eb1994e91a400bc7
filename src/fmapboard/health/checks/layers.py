"""Faults that the layers tell: dead, copied, saturated, vanishing and exploding ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.overview import Flags
from fmapboard.formats.tab_records import Floats
from fmapboard.health.checks.outputs import ConstantOutputCheck, is_full, lasting, outputs, quoted
from fmapboard.health.finding import Finding, named, rounded
from fmapboard.health.layer_findings import DEAD, LINES, OFF, dead_layers
from fmapboard.health.record import (
    BuiltInCheck,
    NotRecorded,
    RunRecord,
    falls,
    first_of,
    first_outputs,
    largest_output,
    losses_of,
    over_steps,
    stays,
)
from fmapboard.health.states import ROUNDING
from fmapboard.health.table import (
    HealthRow,
    HealthTable,
    after_activation,
    call_text,
    is_normalized,
)

_FROM_START = "These channels pass no gradient, since the first logged step, so before this run: "
_WEIGHTS = (
    f"{_FROM_START}the layer's weights are 0, since its output is the same whatever it receives",
    "Initialize the weights at random, and check the checkpoint if one was loaded",
)
_SCALE = (
    f"{_FROM_START}the scale of the normalization behind the layer is 0, or its shift far below 0",
    "Check the initial or loaded weight (1) and bias (0) of the normalization",
)
_BIASES = (
    f"{_FROM_START}its biases start far below zero, or the input has hardly any content",
    "Check the initial or loaded biases and weights, and look at the network's input",
)


@dataclass(frozen=True, slots=True)
class DeadCheck(BuiltInCheck):
    """The same channels of an activation off for all inputs at four logged steps in a row.

    Only maps of at least 500 values per channel count. Or the whole output of the network is 0.

    Attributes:
        share: share of a layer's channels, 0 to 1, from which it is reported.
        share_at_start: the same, for channels that are dead since the first logged step, as many
            are in narrow layers with random weights, and for networks that learn all the same:
            their losses are known, and have fallen to four fifths or less.
    """

    share: float = 0.72
    share_at_start: float = 0.9
    kind: ClassVar[str] = "dead"
    unless: ClassVar[tuple[str, ...]] = ("constant_images",)

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        table, learns = record.layers(), falls(record)
        with suppress(NotRecorded):
            yield from self._output(record)
        listed = []
        for spell, share, behind in dead_layers(table):
            since = self._since(table, spell.since, spell.row)
            is_late = since > table.steps[0] and not learns
            is_lasting = since < table.steps[-1] or len(table.steps) == 1
            if is_lasting and share >= (self.share if is_late else self.share_at_start) - ROUNDING:
                listed.append((table.rows[spell.row], spell.row, since, share, behind))
        for number, (row, index, since, share, more) in enumerate(listed[:LINES]):
            more += max(0, len(listed) - LINES) * (number == LINES - 1)
            is_from_start = since <= table.steps[0]
            count = f"{row.facts.channels} " if row.facts.channels else ""
            where = call_text(table, row) + after_activation(table, row)
            besides = f"; the same in {more} further layer{'s' * (more > 1)}" if more else ""
            meaning, advice = DEAD
            if is_from_start and table.columns["constant"][0, index] >= 1 - ROUNDING:
                meaning, advice = _WEIGHTS
            elif is_from_start:
                meaning, advice = _SCALE if is_normalized(row) else _BIASES
            word, healthy = "dead", f"below {100 * self.share:.0f} %"
            if table.is_of_images:
                (meaning, advice), word, healthy = OFF, "off", ""
            yield Finding(
                message=f"{100 * share:.0f} % of {count}channels {word} in {where} "
                f"{table.since_text(since)}{besides}",
                since_step=since,
                layer=row.facts.label,
                value=share,
                healthy=healthy,
                meaning=meaning,
                advice=advice,
                picture=record.picture(row),
            )

    def _output(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            since = lasting(steps, lambda of: bool(of.shape) and of.low == of.high == 0, 4)
            if since is not None:
                yield Finding(
                    message=f"the output{quoted(name)} is 0 for all inputs since step {since}",
                    since_step=since,
                    value=1.0,
                    healthy="other values",
                    meaning="If a ReLU is at its end, it is off and passes no gradient",
                    advice="Leave out the activation at the end",
                )

    def _since(self, table: HealthTable, since: int, index: int) -> int:
        """First of the consecutive last steps at which this many channels of a layer are dead."""
        dead = table.columns["dead"][:, index]
        for step, share in zip(reversed(table.steps), dead[::-1].tolist(), strict=True):
            if share < self.share - ROUNDING:
                break
            since = step if math.isfinite(share) else since
        return since


@dataclass(frozen=True, slots=True)
class CopiedChannelsCheck(BuiltInCheck):
    """Channels of a layer that are copies of each other at the first logged step.

    Copies may differ by an offset, as that of a bias: they have equal ranges, standard deviations
    and distances of the mean from the minimum, to within 1e-4 of the range. Constant channels do
    not count, unless those of all layers are constant: their weights are 0. Nor do layers whose
    channels start in equal groups of 4, 9 or 16 neighbours, the usual initialization in front of a
    PixelShuffle, nor those behind one of a single channel. Layers without kernels other than linear
    ones, such as normalizations, are left out.

    Attributes:
        share: share of a layer's drawn channels that have a copy, 0 to 1, from which it is
            reported.
        least: number of channels that a layer must have.
    """

    share: float = 0.25
    least: int = 4
    kind: ClassVar[str] = "copied_channels"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        if not record.first:
            raise NotRecorded("records of the first logged step (fmapboard_first/…)")
        table = record.layers()
        shares = [
            (row, _copied(record.first[row.facts.label], self.least))
            for row in takewhile(lambda row: row.facts.channels != 1, table.rows)
            if row.facts.label in record.first
        ]
        copied = [(row, share) for row, share in shares if share >= self.share and is_weighted(row)]
        weighted = [row for row, _ in shares if is_weighted(row)]
        firsts = [record.first[row.facts.label] for row in weighted]
        if len(firsts) > 1 and all((of["minimum"] == of["maximum"]).all() for of in firsts):
            copied = [(row, 1.0) for row in weighted]
        if not copied:
            return
        row, share = copied[0]
        where = call_text(table, row)
        others = len(copied) - 1
        more = f", and in {others} further layer{'s' * (others > 1)}" if others else ""
        yield Finding(
            message=f"{100 * share:.0f} % of the drawn channels in {where} have a "
            f"copy in the layer at {table.step_text(table.steps[0])}{more}",
            since_step=table.steps[0],
            layer=row.facts.label,
            value=share,
            healthy=f"below {100 * self.share:.0f} %",
            meaning="Equal kernels compute the same feature. They get equal gradients and stay "
            "equal as long as the weights behind them are equal too",
            advice=""
            if table.is_of_images
            else "Initialize the weights at random, not with a constant",
            picture=record.picture(row),
        )


_ENDS = {"Tanh": (math.atanh(0.99), "±0.99"), "Sigmoid": (math.log(99), "0.01 and 0.99")}
"""Of what saturates: the magnitude of an input beyond which it does, and its outputs there."""


@dataclass(frozen=True, slots=True)
class SaturatedCheck(BuiltInCheck):
    """Tanh and sigmoids inside the network most of whose outputs are at their ends.

    Or at the end of the network, if the whole output is near the same end, or if the loss pulls
    many of its values beyond the end that they are at.

    That is estimated from mean and standard deviation of the layer in front, as if its values had a
    normal distribution. Sigmoids count only if it is so since the first logged step: gates may
    learn to open and close. The last layer with kernels does not count: there it is the answer.

    Attributes:
        share: share of the outputs beyond 0.99 (sigmoids: also below 0.01) from which it is
            reported.
        end: magnitude beyond which all values of an output of the network are, with one sign.
        pulled: share of its values that are at one end, 0 or ±1, and pulled further (median over
            the second half of the run).
        least: number of logged steps at the end of the run that must all have it.
    """

    share: float = 0.5
    end: float = 0.9
    pulled: float = 0.05
    least: int = 4
    kind: ClassVar[str] = "saturated"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        table, found = record.layers(), []
        if len(table.steps) < self.least or table.is_of_images:
            return
        for row in record.weighted_layers()[:-1]:
            kind = next(iter(row.facts.followed_by), "")  # else, a normalization is between
            if kind in _ENDS:
                at = table.rows.index(row)
                share = _beyond(_ENDS[kind][0], *(table.columns[n][:, at] for n in ("mean", "std")))
                low = np.flatnonzero(~(share >= self.share))
                first = int(low[-1]) + 1 if low.size else 0
                if len(share) - first >= self.least and (kind == "Tanh" or first == 0):
                    found.append((row, kind, table.steps[first], float(share[-1])))
        if not found:
            with suppress(NotRecorded):
                yield from self._output(record)
            return
        row, kind, since, value = found[0]
        more = f"; the same behind {len(found) - 1} further layers" if len(found) > 1 else ""
        yield Finding(
            message=f"about {100 * value:.0f} % of the outputs of the {kind} behind "
            f"{call_text(table, row)} are beyond {_ENDS[kind][1]} since step {since}{more}",
            since_step=since,
            layer=row.facts.label,
            value=value,
            healthy=f"below {100 * self.share:.0f} %",
            meaning="Saturated outputs pass hardly any gradient: weights or inputs are too large",
            advice="Check the scale of the images and of the initial weights, lower the learning "
            "rate, or put a normalization between the layer and its activation",
            picture=record.picture(row),
        )

    def _output(self, record: RunRecord) -> Iterator[Finding]:
        """An output that is never beyond ±1, and near one of them at the end of the run.

        Outputs of one unit do not count, unless their targets differ and are beyond all of them: a
        critic may be sure of a batch of one kind.
        """
        for name, steps in outputs(record).items():
            last, late = list(steps.values())[-1], max(self.least, len(steps) // 2)
            pulled = float(np.median([of.pulled for of in steps.values()][-late:]))
            ends = {round(end) for end in (last.low, last.high) if abs(end - round(end)) < 0.01}
            is_range = last.low < last.high and last.rows_are != "probabilities"
            if pulled >= self.pulled and late <= len(steps) and is_range and ends & {-1, 0, 1}:
                since = next((at for at, of in steps.items() if of.pulled >= self.pulled), None)
                text = f"{100 * pulled:.0f} % of the values of the output{quoted(name)} are at one "
                text += "end of its range, and the loss pulls them further"
            else:
                text = f"the output{quoted(name)} goes to an end of its range"
                since = lasting(steps, lambda of: max(of.low, -of.high) >= self.end, self.least)
                is_near = since is not None or max(last.high, -last.low) >= self.end
                if since is None or (last.shape[1:2] in ((), (1,)) and not is_full(record, last)):
                    since = lasting(steps, lambda of: of.away >= self.share, self.least)
                is_free = any(max(of.high, -of.low) > 1 for of in steps.values())
                if since is None or is_free or not is_near:
                    continue
            yield Finding(
                message=f"{text}, from {last.low:.3g} to {last.high:.3g} since step {since}",
                since_step=since,
                value=pulled or last.high,
                healthy=f"below {100 * self.pulled:.0f} % at an end",
                meaning="The targets are out of reach: a sigmoid, tanh or ReLU is at its end",
                advice="Scale the targets to the range of the output, or leave out its activation",
            )


def _beyond(end: float, mean: Floats, std: Floats) -> Floats:
    """[S]: share of normally distributed values whose magnitude is above ``end``."""
    below = [
        sum(math.erf((end + m) / (max(s, 1e-30) * math.sqrt(2))) for m in (own, -own)) / 2
        for own, s in zip(mean.tolist(), std.tolist(), strict=True)
    ]
    found: Floats = 1.0 - np.array(below)
    return found


@dataclass(frozen=True, slots=True)
class DropoutHighCheck(BuiltInCheck):
    """Dropout that leaves hardly anything, at the last two logged steps.

    Attributes:
        probability: from which it is reported.
        single: the same if it is one layer.
    """

    probability: float = 0.8
    single: float = 0.9
    kind: ClassVar[str] = "dropout_high"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        last = list(record.training_facts().items())[-2:]
        high = [{n: p for n, p in of.dropouts.items() if p >= self.probability} for _, of in last]
        names = [name for name in high[-1] if name in high[0]]
        value = max([high[-1][name] for name in names], default=0.0)
        if len(last) < 2 or value < (self.single if len(names) == 1 else self.probability):
            return
        since = next(at for at, of in record.facts.items() if names[0] in of.dropouts)
        yield Finding(
            message=f"dropout sets {100 * value:.3g} % of the values to 0 since step {since}: "
            f"{named(names)}",
            since_step=since,
            layer=names[0],
            value=value,
            healthy="10 to 50 %",
            meaning="Hardly any signal passes: it is the probability of dropping, not keeping",
            advice=f"Use a probability such as {max(1 - value, 0.1):.2g}",
        )


@dataclass(frozen=True, slots=True)
class UnevenUpsamplingCheck(BuiltInCheck):
    """A transposed convolution whose kernel's size is no multiple of its stride."""

    kind: ClassVar[str] = "uneven_upsampling"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for row in record.weighted_layers():
            kernel = (row.facts.kernel_shape or ())[2:]
            stride = row.facts.transposed_stride or ()
            if len(kernel) != len(stride) or 0 in stride:
                continue
            uneven = [size / step for size, step in zip(kernel, stride, strict=True) if size % step]
            if not uneven:
                continue
            sides, steps = ("×".join(map(str, sizes)) for sizes in (kernel, stride))
            yield Finding(
                message=f"the kernel of `{row.facts.layer}` ({row.facts.type}), {sides}, is no "
                f"multiple of its stride, {steps}",
                layer=row.facts.layer,
                value=uneven[0],
                healthy="a multiple of the stride, such as 4 with stride 2",
                meaning="Neighbouring outputs add up different numbers of inputs: a checkerboard",
                advice="Use a kernel that is a multiple of the stride, or upsample and convolve",
                picture=record.picture(row),
            )


_EQUAL = 1e-4
"""Numbers of copies differ by at most this share of the channel's range."""


def _copied(statistics: Mapping[str, Floats], least: int) -> float:
    """Share of channels with the same statistics as another one, 0 to 1."""
    names = ("minimum", "maximum", "mean", "std")
    low, high, mean, std = (statistics[name].astype(np.float64) for name in names)
    if len(low) < least or not np.isfinite([low, high, mean, std]).all():
        return 0.0
    size = high - low
    varies = size > 1e-5 * (high.max() - low.min())
    shape = np.stack([size, mean - low, std], axis=1)  # [channels, 3]
    if varies.all() and _is_for_pixel_shuffle(shape):
        return 0.0
    return float(_twins(shape[varies]).sum() / len(size))


def _same(one: Floats, other: Floats) -> Flags:
    """bool [...]: two channels, each [..., 3], have the same numbers."""
    same: Flags = np.abs(one - other).max(-1) <= _EQUAL * one[..., 0]
    return same


def _twins(shape: Floats) -> Flags:
    """bool [channels]: another one has the same numbers, given all of them, [channels, 3]."""
    key = shape.sum(1)  # of copies, it differs by at most 3 times the tolerance
    order = np.argsort(key)
    ranked, key, found = shape[order], key[order], np.zeros(len(shape), bool)
    for lag in range(1, min(len(shape), 65)):  # of those with the nearest numbers
        same = _same(ranked[:-lag], ranked[lag:])
        found[order[:-lag][same]] = found[order[lag:][same]] = True
        if found.all() or (key[lag:] - key[:-lag] > 3 * _EQUAL * ranked[:-lag, 0]).all():
            break
    return found


def _is_for_pixel_shuffle(shape: Floats) -> bool:
    """True if channels [channels, 3] are equal in groups of 4, 9 or 16 neighbours, and only so."""
    for size in (4, 9, 16):
        firsts = shape[::size]
        is_grouped = bool(_same(np.repeat(firsts, size, axis=0)[: len(shape)], shape).all())
        if is_grouped and len(firsts) > 1 and not _twins(firsts).any():
            return True
    return False


_SMALL = (
    "The first layers hardly learn: saturating activations, too small weights, or a deep network "
    "without normalization or skip connections",
    "Use another initialization, normalization layers or skip connections",
)
_ZERO = (
    "No gradient reaches the first layers: an operation whose gradient is 0, such as rounding, a "
    "threshold, clamping out of range or a weight of 0, or activations that are all off",
    "Find the operation behind these layers whose gradient is 0",
)
"""Meaning and advice."""


@dataclass(frozen=True, slots=True)
class VanishingCheck(BuiltInCheck):
    """Gradients of the first layers far below those of the last ones, in the first half of the run.

    Or outputs that fade from layer to layer, at the first logged step.

    Attributes:
        ratio: reported if the first ratio and the median are below it (see `gradient_ratios`).
        least: number of logged steps with a ratio.
        fading: largest share of a channel's standard deviation that is left at the last of three
            layers or more with no normalization between them, if the loss stays, or the output.
        alike: (standard deviation over the images) / (mean magnitude) of the output at the first
            logged step up to which it is reported, under the same condition.
        faint: the same of the output's largest magnitude, if it is not 0.
    """

    ratio: float = 1e-4
    least: int = 3
    fading: float = 1e-3
    alike: float = 3e-4
    faint: float = 1e-3
    kind: ClassVar[str] = "vanishing"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        if (faded := self._faded(record)) is not None:
            yield faded
            return
        found = gradient_ratios(record, self.least)
        if found is None or not max(found[1][0], np.median(found[1])) < self.ratio:
            return
        since, early, first = found
        value, size = float(np.median(early)), "are exactly 0"
        if early.any():
            size = f"are {value:.0e} times those of the last ones"
        meaning, advice = _SMALL if early.any() else _ZERO
        yield Finding(
            message=f"gradients per weight of the first layers, from `{first}` on, {size} since "
            f"step {since}",
            since_step=since,
            layer=first,
            value=value,
            healthy="0.05 or more",
            meaning=meaning,
            advice=advice,
        )

    def _faded(self, record: RunRecord) -> Finding | None:
        """Layers behind which hardly anything is left of what differs between the inputs."""
        table, shown = record.layers(), record.first
        is_stuck = any(map(stays, losses_of(record)))
        with suppress(NotRecorded):
            is_stuck = is_stuck or bool(ConstantOutputCheck()(record))
        if not is_stuck:
            return None
        stds = [
            float(np.median(shown[row.facts.label]["std"]))
            if row.facts.label in shown and is_weighted(row)
            else math.nan
            for row in table.rows
        ]
        faded = (p for p in _stretches(table, stds) if 0 < p[-1][1] <= self.fading * p[0][1])
        every = [of for of in first_outputs(record) if of.shape]
        spread = max([of.spread or 0.0 for of in every], default=0.0)
        size = max([max(-of.low, of.high) for of in every], default=0.0)
        if part := next(faded, None):
            (first, most), (last, std) = part[0], part[-1]
            value, healthy = most / std, "below 1,000-fold"
            text = f"the standard deviation of a channel falls {rounded(value)}-fold from "
            text += f"{call_text(table, first)} to {call_text(table, last)}"
        elif 0 < spread <= self.alike:
            last, value, healthy = None, spread, "0.03 or more"
            text = f"the output varies from input to input by {rounded(spread)} of its magnitude"
        elif 0 < size <= self.faint:
            last, value, healthy = None, size, "0.02 or more"
            text = f"the magnitudes of the output are up to {rounded(size)}"
        else:
            return None
        return Finding(
            message=f"{text} at {table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=last.facts.label if last else None,
            value=value,
            healthy=healthy,
            meaning="The signal fades from layer to layer, and so do the gradients: the "
            "initial weights are too small, or saturating activations flatten it",
            advice="Use the layers' own initialization, ReLU, or normalization layers",
            picture=record.picture(last) if last else "",
        )


@dataclass(frozen=True, slots=True)
class ExplodingCheck(BuiltInCheck):
    """Activations that are huge at the start, or grow through the layers or over the steps.

    Attributes:
        start: magnitude that is reported if a layer reaches it at the first logged step.
        output: the same of an output [N, C] that reaches it with both signs, if the loss is not
            known.
        growth: factor by which a layer's largest magnitude exceeds that at the first logged step,
            or the median layer's at that step if its own was smaller: a layer that is initialized
            near zero may grow to the magnitudes of the others.
        size: largest magnitude from which such a layer is reported.
        depth: factor between the standard deviations of the last and the first drawn layer at the
            first logged step, of those with no normalization between them that are no gates. Images
            of little contrast make those of the first layers small: their responses to images of
            standard deviation 1 count.
        guess: the same does not count if the loss starts below it, and falls by a fifth.
    """

    start: float = 1e4
    output: float = 200.0
    growth: float = 1000.0
    size: float = 50.0
    depth: float = 50.0
    guess: float = 10.0
    kind: ClassVar[str] = "exploding"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        rules = self._at_start, self.over_steps, self._over_layers
        yield from first_of(rule(record) for rule in rules)

    def _at_start(self, record: RunRecord) -> Finding | None:
        """Magnitudes that no healthy network starts with."""
        table = record.layers()
        magnitude, first = np.nan_to_num(table.magnitudes[0], posinf=0.0), table.steps[0]
        row, value = table.rows[int(magnitude.argmax())], float(magnitude.max())
        is_layer, size = value >= self.start, 0.0 if losses_of(record) else largest_output(record)
        value, where = (value, call_text(table, row)) if is_layer else (size, "the output")
        if not (self.start if is_layer else self.output) <= value < math.inf:
            return None
        return Finding(
            message=f"magnitudes in {where} are up to {rounded(value)} {table.since_text(first)}",
            since_step=first,
            layer=row.facts.label if is_layer else None,
            value=value,
            healthy="below 50",
            meaning="The initial weights are too large, or the inputs are not scaled",
            advice="Use the layers' own initialization, and scale the inputs",
            picture=record.picture(row) if is_layer else "",
        )

    def over_steps(self, record: RunRecord) -> Finding | None:
        """A layer whose magnitudes have grown since the first logged step."""
        table = record.layers()
        if table.is_of_images:
            return None
        magnitude = table.magnitudes
        with np.errstate(all="ignore"):
            grown = magnitude.astype(np.float64) / _usual(magnitude[0])  # [steps, layers]
            grown[~np.isfinite(grown)] = 0.0
        is_large = (grown >= self.growth) & (magnitude >= self.size)
        if not is_large.any():
            return None
        step = int(is_large.any(1).argmax())
        at = int(is_large[step].argmax())
        row, value = table.rows[at], float(grown[:, at].max())
        return Finding(
            message=f"magnitudes in {call_text(table, row)} grew {rounded(value)}-fold since step "
            f"{table.steps[0]}, to {rounded(float(np.nanmax(magnitude[:, at])))} "
            f"({self.growth:.0f}-fold or more from step {table.steps[step]} on)",
            since_step=table.steps[step],
            layer=row.facts.label,
            value=value,
            healthy=f"less than {self.growth:.0f}-fold",
            meaning="The weights grow: the rate is too high, or the loss has no lower bound",
            advice="Lower the learning rate, or clip the gradients",
            picture=record.picture(row),
        )

    def _over_layers(self, record: RunRecord) -> Finding | None:
        table = record.layers()
        sizes = {each.facts.values for each in table.rows}
        least = min(sizes) if len(sizes) > 1 else 0
        stds = [
            std if is_weighted(each) and not _is_gate(each, least) else math.nan
            for each, std in zip(table.rows, table.columns["std"][0].tolist(), strict=True)
        ]
        at = next((n for n, std in enumerate(stds) if math.isfinite(std)), 0)
        received = record.network_input.get(table.steps[0], {}).get("std", 1.0)
        grown = [
            (part, part[-1][1] / std * (min(received, 1.0) if row is table.rows[at] else 1.0))
            for part in _stretches(table, stds)
            for row, std in part[:1]
        ]
        part, value = max(grown, key=lambda one: one[1], default=([], 0.0))
        if value < self.depth or falls(record, self.guess):
            return None
        (first, _), (row, _) = part[0], part[-1]
        return Finding(
            message=f"the standard deviation of the activations grows {rounded(value)}-fold from "
            f"{call_text(table, first)} to {call_text(table, row)} "
            f"at {table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=row.facts.label,
            value=value,
            healthy=f"less than {self.depth:.0f}-fold",
            meaning="The initial weights are too large: each layer amplifies the signal",
            advice="Scale the initial weights with the number of inputs, or add normalization",
            picture=record.picture(row),
        )


def is_weighted(row: HealthRow) -> bool:
    """True for layers with kernels and linear layers."""
    return row.facts.kernel_shape is not None or row.facts.type == "Linear"


def _stretches(table: HealthTable, stds: Sequence[float]) -> list[list[tuple[HealthRow, float]]]:
    """Three layers or more in a row with no normalization between them, and their numbers.

    Args:
        table: of all layers.
        stds: one number per row; rows with NaN are left out.
    """
    parts: list[list[tuple[HealthRow, float]]] = [[]]
    for row, std in zip(table.rows, stds, strict=True):
        if math.isfinite(std):
            parts[-1].append((row, std))
        if is_normalized(row):
            parts.append([])
    return [part for part in parts if len(part) >= 3 and part[0][1] > 0]


def _is_gate(row: HealthRow, least: int) -> bool:
    """True for kernels of one pixel on the smallest of all maps, of channels squeezed to a gate."""
    return math.prod((row.facts.kernel_shape or ())[2:]) == 1 and row.facts.values <= least


def _usual(magnitudes: Floats) -> Floats:
    """The larger of each layer's magnitude and the median layer's; NaN where it is 0 or unknown."""
    known = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    median = float(np.median(known)) if known.size else math.nan
    return np.where(magnitudes > 0, np.fmax(magnitudes, median), np.nan).astype(np.float64)


_LEAST_WEIGHTS = 40
"""Weights of a layer below which it is left out."""


def gradient_ratios(record: RunRecord, least: int) -> tuple[int, Floats, str] | None:
    """The gradient per weight of the first layers, divided by that of the last ones.

    It is the larger one of the first two layers with kernels, divided by the largest one of the
    last three; the gradient per weight is its 2-norm divided by the square root of the number of
    weights. None if fewer than four such layers of at least 40 weights have gradients, or two of
    which the first one's is always 0. In a network
    of linear layers alone it is the norm itself, and three layers are the first ones: two may be
    queries and keys, which hardly learn at first.

    Args:
        record: the record of the model.
        least: number of logged steps; None is returned if fewer have a ratio.

    Returns:
        The first logged step, finite ratios of at least 0 at the logged steps of the first half of
        the run, and the first layer in network order.

    Raises:
        NotRecorded: the run has no overview series, or no gradient norms.
    """
    norms = record.group(tags.GRADIENT_NORM)
    layers = []
    rows, is_linear = record.weighted_layers(), not record.weighted_layers()
    for row in rows or [row for row in record.layers().rows if row.facts.type == "Linear"]:
        weights = math.prod(row.facts.kernel_shape or (_LEAST_WEIGHTS,))
        series = norms.get(f"{row.facts.layer}.weight")
        if series is not None and weights >= _LEAST_WEIGHTS:
            layers.append((row.facts.layer, series, math.sqrt(weights)))
    if len(layers) < 2 or (len(layers) < 4 and layers[0][1].values.any()):
        return None
    steps, norm = over_steps(series for _, series, _ in layers)
    norm /= [root for _, _, root in layers]  # [S, layers], per weight
    with np.errstate(all="ignore"):
        ratios = norm[:, :-1][:, : 2 + is_linear].max(1) / norm[:, -3:].max(1)
    known = np.isfinite(ratios) & ~np.isnan(norm).any(1)
    steps, ratios = steps[known], ratios[known]
    if len(steps) < max(least, 1):
        return None
    return int(steps[0]), ratios[: max(least, len(steps) // 2)], layers[0][0]
