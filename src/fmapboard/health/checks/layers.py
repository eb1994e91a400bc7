"""Faults that the layers tell: dead, copied, saturated, vanishing and exploding ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.overview import Flags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.checks.outputs import (
    Steps,
    has_constant_output,
    is_full,
    lasting,
    outputs,
    quoted,
)
from fmapboard.health.finding import Finding, named, rounded
from fmapboard.health.layer_findings import DEAD, LINES, OFF, DeadLayer, Spell, dead_layers
from fmapboard.health.record import (
    BuiltInCheck,
    NotRecorded,
    RunRecord,
    Series,
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
        with suppress(NotRecorded):
            yield from self._output(record)
        layers = self._layers(record)
        further = len(layers) - LINES
        if further > 0:  # the last of the lines counts them
            last = layers[LINES - 1]
            layers[LINES - 1] = last._replace(behind=last.behind + further)
        for layer in layers[:LINES]:
            yield self._finding(record, layer)

    def _layers(self, record: RunRecord) -> list[DeadLayer]:
        """The layers with enough dead channels, and the step since which that holds."""
        table = record.layers()
        learns = falls(record)
        layers = []
        for layer in dead_layers(table):
            since = self._since(table, layer.spell)
            least = self.share_at_start
            if since > table.steps[0] and not learns:
                least = self.share
            is_lasting = since < table.steps[-1] or len(table.steps) == 1
            if is_lasting and layer.share >= least - ROUNDING:
                layers.append(layer._replace(spell=layer.spell._replace(since=since)))
        return layers

    def _finding(self, record: RunRecord, layer: DeadLayer) -> Finding:
        table = record.layers()
        row = table.rows[layer.spell.row]
        since = layer.spell.since
        count = f"{row.facts.channels} " if row.facts.channels else ""
        where = call_text(table, row) + after_activation(table, row)
        besides = ""
        if layer.behind:
            layers = "layer" if layer.behind == 1 else "layers"
            besides = f"; the same in {layer.behind} further {layers}"
        word = "dead"
        healthy = f"below {100 * self.share:.0f} %"
        meaning, advice = self._explanation(table, layer.spell)
        if table.is_of_images:
            word = "off"
            healthy = ""
        return Finding(
            message=f"{100 * layer.share:.0f} % of {count}channels {word} in {where} "
            f"{table.since_text(since)}{besides}",
            since_step=since,
            layer=row.facts.label,
            value=layer.share,
            healthy=healthy,
            meaning=meaning,
            advice=advice,
            picture=record.picture(row),
        )

    def _explanation(self, table: HealthTable, spell: Spell) -> tuple[str, str]:
        """Meaning and advice."""
        if table.is_of_images:
            return OFF
        if spell.since > table.steps[0]:
            return DEAD
        if table.columns["constant"][0, spell.row] >= 1 - ROUNDING:
            return _WEIGHTS
        return _SCALE if is_normalized(table.rows[spell.row]) else _BIASES

    def _output(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            since = lasting(steps, _is_zero, 4)
            if since is not None:
                yield Finding(
                    message=f"the output{quoted(name)} is 0 for all inputs since step {since}",
                    since_step=since,
                    value=1.0,
                    healthy="other values",
                    meaning="If a ReLU is at its end, it is off and passes no gradient",
                    advice="Leave out the activation at the end",
                )

    def _since(self, table: HealthTable, spell: Spell) -> int:
        """First of the consecutive last steps at which this many channels of a layer are dead."""
        since = spell.since
        shares = table.columns["dead"][:, spell.row].tolist()
        for step, share in zip(reversed(table.steps), reversed(shares), strict=True):
            if share < self.share - ROUNDING:
                break
            if math.isfinite(share):
                since = step
        return since


def _is_zero(output: OutputFacts) -> bool:
    return bool(output.shape) and output.low == output.high == 0


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
        copied = self._copied(record)
        if not copied:
            return
        row, share = copied[0]
        where = call_text(table, row)
        others = len(copied) - 1
        more = ""
        if others:
            layers = "layer" if others == 1 else "layers"
            more = f", and in {others} further {layers}"
        yield Finding(
            message=f"{100 * share:.0f} % of the drawn channels in {where} have a "
            f"copy in the layer at {table.step_text(table.steps[0])}{more}",
            since_step=table.steps[0],
            layer=row.facts.label,
            value=share,
            healthy=f"below {100 * self.share:.0f} %",
            meaning="Equal kernels compute the same feature. They get equal gradients and "
            "stay equal as long as the weights behind them are equal too",
            advice=""
            if table.is_of_images
            else "Initialize the weights at random, not with a constant",
            picture=record.picture(row),
        )

    def _copied(self, record: RunRecord) -> list[tuple[HealthRow, float]]:
        """The layers with enough copied channels, and the share of these."""
        rows = []
        for row in record.layers().rows:
            if row.facts.channels == 1:
                break
            if row.facts.label in record.first and is_weighted(row):
                rows.append(row)
        firsts = [record.first[row.facts.label] for row in rows]
        if len(rows) > 1 and all(map(_is_constant, firsts)):
            return [(row, 1.0) for row in rows]
        copied = []
        for row, statistics in zip(rows, firsts, strict=True):
            share = _copied(statistics, self.least)
            if share >= self.share:
                copied.append((row, share))
        return copied


def _is_constant(statistics: Mapping[str, Floats]) -> bool:
    """True if all channels are constant."""
    return bool((statistics["minimum"] == statistics["maximum"]).all())


class End(NamedTuple):
    """Where an activation saturates.

    Attributes:
        beyond: magnitude of an input beyond which it does.
        text: its outputs there.
    """

    beyond: float
    text: str


_ENDS = {"Tanh": End(math.atanh(0.99), "±0.99"), "Sigmoid": End(math.log(99), "0.01 and 0.99")}
"""Kind of an activation -> where it saturates."""


class Saturated(NamedTuple):
    """A layer whose activation is saturated: since which step, and for which share of outputs."""

    row: HealthRow
    kind: str
    since: int
    share: float


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
        table = record.layers()
        if len(table.steps) < self.least or table.is_of_images:
            return
        layers = self._hidden(record)
        if not layers:
            with suppress(NotRecorded):
                yield from self._output(record)
            return
        row, kind, since, share = layers[0]
        more = f"; the same behind {len(layers) - 1} further layers" if len(layers) > 1 else ""
        yield Finding(
            message=f"about {100 * share:.0f} % of the outputs of the {kind} behind "
            f"{call_text(table, row)} are beyond {_ENDS[kind].text} since step {since}{more}",
            since_step=since,
            layer=row.facts.label,
            value=share,
            healthy=f"below {100 * self.share:.0f} %",
            meaning="Saturated outputs pass hardly any gradient: weights or inputs are too large",
            advice="Check the scale of the images and of the initial weights, lower the "
            "learning rate, or put a normalization between the layer and its activation",
            picture=record.picture(row),
        )

    def _hidden(self, record: RunRecord) -> list[Saturated]:
        """Saturated layers but the last one, in network order."""
        table = record.layers()
        layers = []
        for row in record.weighted_layers()[:-1]:
            kind = next(iter(row.facts.followed_by), "")  # else, a normalization is between
            if kind not in _ENDS:
                continue
            index = table.rows.index(row)
            mean = table.columns["mean"][:, index]
            std = table.columns["std"][:, index]
            shares = _beyond(_ENDS[kind].beyond, mean, std)  # [steps]
            others = np.flatnonzero(~(shares >= self.share))
            first = int(others[-1]) + 1 if others.size else 0
            may_be_gate = kind != "Tanh" and first > 0
            if len(shares) - first >= self.least and not may_be_gate:
                layers.append(Saturated(row, kind, table.steps[first], float(shares[-1])))
        return layers

    def _output(self, record: RunRecord) -> Iterator[Finding]:
        """An output that is never beyond ±1, and near one of them at the end of the run.

        Outputs of one unit do not count, unless their targets differ and are beyond all of them: a
        critic may be sure of a batch of one kind.
        """
        for name, steps in outputs(record).items():
            last = list(steps.values())[-1]
            late = max(self.least, len(steps) // 2)
            pulled = float(np.median([output.pulled for output in steps.values()][-late:]))
            ends = {round(end) for end in (last.low, last.high) if abs(end - round(end)) < 0.01}
            is_range = last.low < last.high and last.rows_are != "probabilities"
            is_pulled = pulled >= self.pulled and late <= len(steps)
            if is_pulled and is_range and ends & {-1, 0, 1}:
                far = [step for step, output in steps.items() if output.pulled >= self.pulled]
                since = far[0] if far else None
                text = f"{100 * pulled:.0f} % of the values of the output{quoted(name)} are at one "
                text += "end of its range, and the loss pulls them further"
            else:
                since = self._at_end(record, steps)
                if since is None:
                    continue
                text = f"the output{quoted(name)} goes to an end of its range"
            yield Finding(
                message=f"{text}, from {last.low:.3g} to {last.high:.3g} since step {since}",
                since_step=since,
                value=pulled or last.high,
                healthy=f"below {100 * self.pulled:.0f} % at an end",
                meaning="The targets are out of reach: a sigmoid, tanh or ReLU is at its end",
                advice="Scale the targets to the range of the output, or leave out its activation",
            )

    def _at_end(self, record: RunRecord, steps: Steps) -> int | None:
        """Since when all values are near one end, or the targets beyond them; None if not so."""
        last = list(steps.values())[-1]
        if any(max(output.high, -output.low) > 1 for output in steps.values()):
            return None  # it is free
        since = lasting(steps, lambda output: max(output.low, -output.high) >= self.end, self.least)
        is_near = since is not None or max(last.high, -last.low) >= self.end
        if not is_near:
            return None
        may_be_critic = last.shape[1:2] in ((), (1,)) and not is_full(record, last)
        if since is None or may_be_critic:
            return lasting(steps, lambda output: output.away >= self.share, self.least)
        return since


def _beyond(end: float, means: Floats, stds: Floats) -> Floats:
    """[S]: share of normally distributed values whose magnitude is above ``end``."""
    shares = []
    for mean, std in zip(means.tolist(), stds.tolist(), strict=True):
        width = max(std, 1e-30) * math.sqrt(2)
        below = math.erf((end + mean) / width) + math.erf((end - mean) / width)
        shares.append(1.0 - below / 2)
    return np.array(shares)


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
        every = list(record.training_facts().values())
        if len(every) < 2:
            return
        before, last = every[-2:]
        names = [
            name
            for name, probability in last.dropouts.items()
            if min(probability, before.dropouts.get(name, 0.0)) >= self.probability
        ]
        value = max([last.dropouts[name] for name in names], default=0.0)
        least = self.single if len(names) == 1 else self.probability
        if not names or value < least:
            return
        since = next(step for step, facts in record.facts.items() if names[0] in facts.dropouts)
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
            sides = "×".join(map(str, kernel))
            steps = "×".join(map(str, stride))
            yield Finding(
                message=f"the kernel of `{row.facts.layer}` ({row.facts.type}), {sides}, is "
                f"no multiple of its stride, {steps}",
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
    low = statistics["minimum"].astype(np.float64)
    high = statistics["maximum"].astype(np.float64)
    mean = statistics["mean"].astype(np.float64)
    std = statistics["std"].astype(np.float64)
    if len(low) < least or not np.isfinite([low, high, mean, std]).all():
        return 0.0
    size = high - low
    varies = size > 1e-5 * (high.max() - low.min())
    shape = np.stack([size, mean - low, std], axis=1)  # [channels, 3]
    if varies.all() and _is_for_pixel_shuffle(shape):
        return 0.0
    return float(_twins(shape[varies]).sum() / len(size))


def _same(first: Floats, second: Floats) -> Flags:
    """bool [...]: two channels, each [..., 3], have the same numbers."""
    same: Flags = np.abs(first - second).max(-1) <= _EQUAL * first[..., 0]
    return same


def _twins(shape: Floats) -> Flags:
    """bool [channels]: another one has the same numbers, given all of them, [channels, 3]."""
    key = shape.sum(1)  # of copies, it differs by at most 3 times the tolerance
    order = np.argsort(key)
    ranked = shape[order]
    key = key[order]
    found = np.zeros(len(shape), bool)
    for lag in range(1, min(len(shape), 65)):  # of those with the nearest numbers
        same = _same(ranked[:-lag], ranked[lag:])
        found[order[:-lag][same]] = True
        found[order[lag:][same]] = True
        are_apart = key[lag:] - key[:-lag] > 3 * _EQUAL * ranked[:-lag, 0]
        if found.all() or are_apart.all():
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
    "The first layers hardly learn: saturating activations, too small weights, or a deep "
    "network without normalization or skip connections",
    "Use another initialization, normalization layers or skip connections",
)
_ZERO = (
    "No gradient reaches the first layers: an operation whose gradient is 0, such as "
    "rounding, a threshold, clamping out of range or a weight of 0, or activations that are "
    "all off",
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
        faded = self._faded(record)
        if faded is not None:
            yield faded
            return
        ratios = gradient_ratios(record, self.least)
        if ratios is None:
            return
        value = float(np.median(ratios.early))
        if not max(ratios.early[0], value) < self.ratio:
            return
        size = "are exactly 0"
        meaning, advice = _ZERO
        if ratios.early.any():
            size = f"are {value:.0e} times those of the last ones"
            meaning, advice = _SMALL
        yield Finding(
            message=f"gradients per weight of the first layers, from `{ratios.layer}` on, "
            f"{size} since step {ratios.step}",
            since_step=ratios.step,
            layer=ratios.layer,
            value=value,
            healthy="0.05 or more",
            meaning=meaning,
            advice=advice,
        )

    def _faded(self, record: RunRecord) -> Finding | None:
        """Layers behind which hardly anything is left of what differs between the inputs."""
        table = record.layers()
        if not any(map(stays, losses_of(record))) and not has_constant_output(record):
            return None
        stretch = self._faded_stretch(record)
        if stretch is not None:
            value = stretch.factor
            text = f"the standard deviation of a channel falls {rounded(value)}-fold from "
            text += f"{call_text(table, stretch.first)} to {call_text(table, stretch.last)}"
            return self._of_signal(record, text, value, "below 1,000-fold", stretch.last)
        drawn = [output for output in first_outputs(record) if output.shape]
        spread = max([output.spread or 0.0 for output in drawn], default=0.0)
        if 0 < spread <= self.alike:
            text = f"the output varies from input to input by {rounded(spread)} of its magnitude"
            return self._of_signal(record, text, spread, "0.03 or more")
        size = max([max(-output.low, output.high) for output in drawn], default=0.0)
        if 0 < size <= self.faint:
            text = f"the magnitudes of the output are up to {rounded(size)}"
            return self._of_signal(record, text, size, "0.02 or more")
        return None

    def _faded_stretch(self, record: RunRecord) -> Change | None:
        """The first stretch of layers over which the signal fades."""
        table = record.layers()
        stds = []
        for row in table.rows:
            is_known = row.facts.label in record.first and is_weighted(row)
            std = float(np.median(record.first[row.facts.label]["std"])) if is_known else math.nan
            stds.append(std)
        for stretch in _stretches(table, stds):
            first, most = stretch[0]
            last, std = stretch[-1]
            if 0 < std <= self.fading * most:
                return Change(first, last, most / std)
        return None

    def _of_signal(
        self,
        record: RunRecord,
        text: str,
        value: float,
        healthy: str,
        last: HealthRow | None = None,
    ) -> Finding:
        """The finding of a signal that fades, of which the layer that ends it may be known."""
        table = record.layers()
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
        magnitudes = np.nan_to_num(table.magnitudes[0], posinf=0.0)  # [layers]
        value = float(magnitudes.max())
        row: HealthRow | None = table.rows[int(magnitudes.argmax())]
        if value < self.start:
            row = None
            value = 0.0 if losses_of(record) else largest_output(record)
            if not self.output <= value < math.inf:
                return None
        where = call_text(table, row) if row else "the output"
        first = table.steps[0]
        return Finding(
            message=f"magnitudes in {where} are up to {rounded(value)} {table.since_text(first)}",
            since_step=first,
            layer=row.facts.label if row else None,
            value=value,
            healthy="below 50",
            meaning="The initial weights are too large, or the inputs are not scaled",
            advice="Use the layers' own initialization, and scale the inputs",
            picture=record.picture(row) if row else "",
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
        index = int(is_large[step].argmax())
        row = table.rows[index]
        value = float(grown[:, index].max())
        largest = float(np.nanmax(magnitude[:, index]))
        return Finding(
            message=f"magnitudes in {call_text(table, row)} grew {rounded(value)}-fold since "
            f"step {table.steps[0]}, to {rounded(largest)} "
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
        grown = self._growth_over_layers(record)
        if grown is None or grown.factor < self.depth or falls(record, self.guess):
            return None
        first = call_text(table, grown.first)
        last = call_text(table, grown.last)
        return Finding(
            message="the standard deviation of the activations grows "
            f"{rounded(grown.factor)}-fold from {first} to {last} at "
            f"{table.step_text(table.steps[0])}",
            since_step=table.steps[0],
            layer=grown.last.facts.label,
            value=grown.factor,
            healthy=f"less than {self.depth:.0f}-fold",
            meaning="The initial weights are too large: each layer amplifies the signal",
            advice="Scale the initial weights with the number of inputs, or add normalization",
            picture=record.picture(grown.last),
        )

    def _growth_over_layers(self, record: RunRecord) -> Change | None:
        """The stretch of layers over which the activations grow most."""
        table = record.layers()
        sizes = {row.facts.values for row in table.rows}
        least = min(sizes) if len(sizes) > 1 else 0
        stds = []
        for row, std in zip(table.rows, table.columns["std"][0].tolist(), strict=True):
            counts = is_weighted(row) and not _is_gate(row, least)
            stds.append(std if counts else math.nan)
        known = np.flatnonzero(np.isfinite(stds))
        first_layer = table.rows[int(known[0])] if known.size else None
        received = record.network_input.get(table.steps[0], {}).get("std", 1.0)
        most: Change | None = None
        for stretch in _stretches(table, stds):
            first, std = stretch[0]
            last, last_std = stretch[-1]
            factor = last_std / std
            if first is first_layer:  # its response to images of standard deviation 1
                factor *= min(received, 1.0)
            if most is None or factor > most.factor:
                most = Change(first, last, factor)
        return most


def is_weighted(row: HealthRow) -> bool:
    """True for layers with kernels and linear layers."""
    return row.facts.kernel_shape is not None or row.facts.type == "Linear"


class Change(NamedTuple):
    """How much the activations grow or fade over a stretch of layers."""

    first: HealthRow
    last: HealthRow
    factor: float


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


class GradientRatios(NamedTuple):
    """The gradient per weight of the first layers, divided by that of the last ones.

    Attributes:
        step: the first logged step.
        early: finite ratios of at least 0 at the logged steps of the first half of the run.
        layer: the first layer in network order.
    """

    step: int
    early: Floats
    layer: str


def gradient_ratios(record: RunRecord, least: int) -> GradientRatios | None:
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

    Raises:
        NotRecorded: the run has no overview series, or no gradient norms.
    """
    norms = record.group(tags.GRADIENT_NORM)
    rows = record.weighted_layers()
    firsts = 2
    if not rows:
        rows = [row for row in record.layers().rows if row.facts.type == "Linear"]
        firsts = 3
    names: list[str] = []
    series: list[Series] = []
    roots: list[float] = []
    for row in rows:
        weights = math.prod(row.facts.kernel_shape or (_LEAST_WEIGHTS,))
        own = norms.get(f"{row.facts.layer}.weight")
        if own is not None and weights >= _LEAST_WEIGHTS:
            names.append(row.facts.layer)
            series.append(own)
            roots.append(math.sqrt(weights))
    if len(names) < 2 or (len(names) < 4 and series[0].values.any()):
        return None
    steps, norm = over_steps(series)
    norm /= roots  # [S, layers], per weight
    with np.errstate(all="ignore"):
        first_layers = norm[:, :-1][:, :firsts].max(1)
        ratios = first_layers / norm[:, -3:].max(1)
    is_known = np.isfinite(ratios) & ~np.isnan(norm).any(1)
    ratios = ratios[is_known]
    if len(ratios) < max(least, 1):
        return None
    early = ratios[: max(least, len(ratios) // 2)]
    return GradientRatios(int(steps[is_known][0]), early, names[0])
