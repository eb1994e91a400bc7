"""Facts of a run that several rules need, each computed once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.checks import LargestUpdate
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import OutputFacts, TrainingFacts
from fmapboard.health import thresholds
from fmapboard.health.layer_findings import DeadLayer, dead_layers
from fmapboard.health.record import NotRecorded, RunRecord, Series, Steps
from fmapboard.health.table import HealthRow, HealthTable

OutputSteps = Mapping[int, OutputFacts]
"""Logged step -> what is known of an output, ascending."""


class FaultyBatches(NamedTuple):
    """Most batches have a fault.

    Attributes:
        since: first logged step with it.
        size: of the newest one.
        text: how many have it, in words.
    """

    since: int
    size: int
    text: str


class ImageScale(NamedTuple):
    """The scale of the input images, medians over the logged steps.

    Attributes:
        since: the first logged step.
        steps: number of logged steps.
        low: smallest value.
        high: largest value.
        magnitude: the larger magnitude of the two.
        spread: standard deviation where the values differ; infinite if they never do.
    """

    since: int
    steps: int
    low: float
    high: float
    magnitude: float
    spread: float

    @property
    def are_bytes(self) -> bool:
        """True if the values look like 0 to 255, perhaps after a mean was subtracted."""
        is_positive = self.low > -thresholds.BYTES_BELOW_0.value * self.high
        return (
            is_positive and thresholds.BYTES_LOW.value <= self.high <= thresholds.BYTES_HIGH.value
        )


class ConstantOutput(NamedTuple):
    """Every output is nearly the same for all images.

    Attributes:
        since: first of the newest logged steps at which that is so.
        spread: largest mean over the units of (standard deviation over the images) / (mean
            magnitude), at the newest step.
        is_one: every output is a single unit that is exactly 1 at every step.
    """

    since: int
    spread: float
    is_one: bool


class Growth(NamedTuple):
    """A layer whose magnitudes have grown since the first logged step.

    Attributes:
        row: index of the layer.
        step: first logged step at which they have.
        last: the last one.
        factor: the most by which they have grown.
        largest: the largest magnitude.
    """

    row: int
    step: int
    last: int
    factor: float
    largest: float


class Ratios(NamedTuple):
    """Update ratios, |Δw| / |w| of one optimizer step, of the weights that count.

    Attributes:
        names: of the weights.
        steps: logged steps at which a ratio is known.
        values: [steps, weights]; NaN if not known.
        is_estimate: some of the weights were read in part.
        are_of_kernels: only weights of layers with kernels count, and there are others.
        median: over the weights, [steps]; NaN also at steps whose rate is known to be none.
        is_of_head: the network has layers with kernels, and trains none of them.
    """

    names: list[str]
    steps: list[int]
    values: Floats
    median: Floats
    is_of_head: bool
    is_estimate: bool
    are_of_kernels: bool


class InputEvidence:
    """Facts of what the model of a run receives; each is computed when it is first asked for.

    Args:
        record: what was logged of the model.
    """

    def __init__(self, record: RunRecord) -> None:
        self.record = record

    @property
    def layers(self) -> HealthTable:
        """Numbers of every layer at every step.

        Raises:
            NotRecorded: the run has no overview series.
        """
        return self.record.layers()

    @property
    def facts(self) -> Mapping[int, TrainingFacts]:
        """Logged step -> what only the training process knew, ascending, at least one.

        Raises:
            NotRecorded: the run has no such series.
        """
        return self.record.training_facts()

    @property
    def newest(self) -> TrainingFacts:
        """What only the training process knew, at the last logged step.

        Raises:
            NotRecorded: nothing of it was recorded.
        """
        return list(self.facts.values())[-1]

    def since(self, is_faulty: Callable[[TrainingFacts], bool]) -> int | None:
        """First of the steps at the end of the run that all have a fault; None if too few have.

        Raises:
            NotRecorded: nothing of the training process was recorded.
        """
        since = None
        count = 0
        for step, facts in reversed(list(self.facts.items())):
            if not is_faulty(facts):
                break
            since = step
            count += 1
        return since if count >= min(thresholds.LASTING.value, len(self.facts)) else None

    def faulty_batches(self, is_faulty: Callable[[TrainingFacts], bool]) -> FaultyBatches | None:
        """The batches of two images or more that have a fault; None if few have.

        Half of them are enough, or the last four.

        Raises:
            NotRecorded: at no step the network received a batch of images.
        """
        self.check_batches()
        batches = [(step, facts) for step, facts in self.facts.items() if (facts.batch or 0) >= 2]
        faulty = [(step, facts) for step, facts in batches if is_faulty(facts)]
        least = max(min(thresholds.LASTING.value, len(batches)), len(batches) / 2)
        last = batches[-thresholds.LOGGED_STEPS.value :]
        has_last = len(last) == thresholds.LOGGED_STEPS.value and faulty[-len(last) :] == last
        if not faulty or (len(faulty) < least and not has_last):
            return None
        since = faulty[0][0]
        size = faulty[-1][1].batch or 0
        steps = f"{len(batches)} {self.record.steps_called}"
        text = f"at {len(faulty)} of {steps}, since step {since}"
        return FaultyBatches(since, size, text)

    def check_batches(self) -> None:
        """Do nothing if the network received images at some step, or has no layer for images.

        Raises:
            NotRecorded: it may have received some that are not known.
        """
        if all(facts.batch is None for facts in self.facts.values()):
            self.check_images()

    def check_attention(self) -> None:
        """Do nothing if rows of attention are known of each layer that computes it.

        Raises:
            NotRecorded: of one they are not, such as where it is computed in a way of its own.
        """
        rows = [row.facts for row in self.layers.rows]
        seen = {facts.layer.rpartition(".")[0] for facts in rows if facts.unit == "head"}
        for facts in rows:
            is_attention = facts.shape.startswith("Attention") and facts.unit != "head"
            if is_attention and facts.layer not in seen:
                raise NotRecorded(f"the rows of attention in `{facts.layer}`, which was not seen")

    def check_images(self) -> None:
        """Do nothing if the network is known to have no layer for images.

        Raises:
            NotRecorded: it has a layer with kernels of two dimensions or more, or none is known.
        """
        rows = [] if self.record.health is None else self.record.health.rows
        shapes = [row.facts.kernel_shape or () for row in rows]
        if not shapes or max(map(len, shapes)) >= len(("out", "in", "height", "width")):
            raise NotRecorded(
                "a batch of images with 1 or 3 channels as an argument of the model that is watched"
            )

    @property
    def drawn_input(self) -> str:
        """Tag of the Images series that shows what the model receives."""
        return tags.prefix(self.record.name) + tags.network_input(0)

    @property
    def image_numbers(self) -> list[Mapping[str, float]]:
        """Numbers of the drawn input images, per logged step; empty if none are known."""
        needed = {"minimum", "maximum", "std"}
        every = self.record.network_input.values()
        return [numbers for numbers in every if needed <= numbers.keys()]

    @cached_property
    def image_scale(self) -> ImageScale | None:
        """The scale of the input images; None if they are not known."""
        if not self.image_numbers:
            return None
        return _image_scale(self.image_numbers, min(self.record.network_input))


class OutputEvidence(InputEvidence):
    """Facts of what the model of a run returns, and of its losses.

    Args:
        record: what was logged of the model.
    """

    @property
    def losses(self) -> list[list[float]]:
        """The losses of each output, where they are known at four logged steps or more."""
        return list(self.losses_of_outputs.values())

    @cached_property
    def losses_of_outputs(self) -> dict[str, list[float]]:
        """Name of an output -> its losses, where they are known at four logged steps or more.

        That of the first step too, if it was certain only later.
        """
        known: dict[str, list[float]] = {}
        for facts in self.record.facts.values():
            for output in facts.outputs:
                if output.loss is None:
                    continue
                losses = known.setdefault(output.name, [])
                if output.held is not None and output.held.loss is not None:
                    losses.append(output.held.loss)
                losses.append(output.loss)
        least = thresholds.LOGGED_STEPS.value
        return {name: losses for name, losses in known.items() if len(losses) >= least}

    def falls(self) -> bool:
        """True if losses are known, and all end at four fifths of their first value or less."""
        share = thresholds.LEARNS.value
        return bool(self.losses) and all(own[-1] < share * own[0] for own in self.losses)

    @property
    def has_loss_that_stays(self) -> bool:
        """True if one of the known losses never fell to 95 % of its first value."""
        return any(map(stays, self.losses))

    def stays_late(self, share: float) -> bool:
        """True if each loss, late in the run, is above a share of its first value.

        Also if no loss is known. See `late_loss`.
        """
        return all(late_loss(losses) > share * losses[0] for losses in self.losses)

    @property
    def first_outputs(self) -> Sequence[OutputFacts]:
        """The outputs at the first logged step, if they are known."""
        return next(iter(self.record.facts.values())).outputs if self.record.facts else ()

    @property
    def largest_first_output(self) -> float:
        """The largest magnitude that an output [N, C] first reaches with both signs; 0 if unknown.

        Outputs of one sign, such as distances or pixels, may well be large.
        """
        sizes = [
            min(-output.low, output.high)
            for output in self.first_outputs
            if len(output.shape) == 2 and output.shape[1] > 1
        ]
        return max(sizes, default=0.0)

    @cached_property
    def outputs(self) -> dict[str, OutputSteps]:
        """Name of an output -> what is known of it, at steps at which it is finite.

        Raises:
            NotRecorded: no output with a gradient is known.
        """
        found: dict[str, dict[int, OutputFacts]] = {}
        for step, facts in self.facts.items():
            for output in facts.outputs:
                known = found.setdefault(output.name, {})
                if not output.shape or output.predictions is not None or output.low < output.high:
                    known[step] = output
        if not found:
            raise NotRecorded("an output of the network with a gradient")
        return {name: known for name, known in found.items() if known}

    def constant_output(
        self,
        spread: float = thresholds.OUTPUT_SPREAD.value,
        images: int = thresholds.OUTPUT_IMAGES.value,
    ) -> ConstantOutput | None:
        """Since when all outputs are nearly the same for all images; None if they are not.

        At the last two logged steps, the first of the run not counted.

        Args:
            spread: (standard deviation over the images) / (mean magnitude) up to which they are.
            images: least number of images.

        Raises:
            NotRecorded: no output with a gradient is known.
        """

        def is_constant(output: OutputFacts) -> bool:
            if not self._may_be_judged(output) or output.spread is None:
                return False
            return output.spread <= spread and output.shape[0] >= images

        begins = []
        last = []
        is_one = True
        for steps in self.outputs.values():
            later = dict(list(steps.items())[1:])
            since = lasting(later, is_constant, thresholds.LASTING.value)
            if since is None:
                return None
            begins.append(since)
            last.append(list(steps.values())[-1])
            is_one &= all(map(_is_one, steps.values()))
        if not begins:
            return None
        value = max(output.spread or 0.0 for output in last)
        return ConstantOutput(max(begins), value, is_one)

    @cached_property
    def has_constant_output(self) -> bool:
        """True if all outputs are known, and nearly the same for all images."""
        try:
            return self.constant_output() is not None
        except NotRecorded:
            return False

    def _may_be_judged(self, output: OutputFacts) -> bool:
        """False for one of several predictions, and for what may be a critic's answers."""
        if (output.predictions or 1) != 1:
            return False
        is_one_unit = output.shape[1:2] in ((), (1,)) and not self.has_largest_maps(output)
        may_be_critic = len(output.labels or ()) < 2 and not output.is_pulled_apart
        return not (is_one_unit and may_be_critic) or _is_one(output)

    def has_largest_maps(self, output: OutputFacts) -> bool:
        """True if an output is maps as large as the largest maps of the network."""
        if len(output.shape) <= 2 or self.record.health is None:
            return False
        values = output.shape[0] * math.prod(output.shape[2:])  # per channel
        return not values < np.nanmax(self.record.health.columns["values"])

    @property
    def is_stuck(self) -> bool:
        """True if the loss stays, or the output is constant."""
        if self.losses and self.stays_late(thresholds.STAYS.value):
            return True
        return self.record.health is not None and self.has_constant_output

    def ends_in(self, kind: str) -> bool:
        """True if the last layer is followed by a module of a kind, such as ``"Sigmoid"``."""
        if self.record.health is None or not self.record.health.rows:
            return False
        last = self.record.health.rows[-1].facts
        return kind in (last.type, *last.followed_by)

    @property
    def ends_in_one_unit(self) -> bool:
        """True if the last layer that is watched returns a single unit, or a softmax follows it."""
        if self.record.health is None or not self.record.health.rows:
            return False
        return self.ends_in("Softmax") or self.record.health.rows[-1].facts.channels == 1

    @property
    def is_sigmoid_at_end(self) -> bool:
        """True if a sigmoid follows the last layer, or all that it returns would saturate one."""
        if self.ends_in("Sigmoid"):
            return True
        if self.record.health is None or not self.record.health.rows:
            return False
        lowest = self.record.health.columns["minimum"][:, -1]
        return bool((lowest >= thresholds.SIGMOID_SATURATED.value).all())


class UpdateEvidence(OutputEvidence):
    """Facts of the gradients and of the updates; each is computed when it is first asked for."""

    @cached_property
    def weighted_layers(self) -> list[HealthRow]:
        """The first call of each layer with kernels, in network order."""
        return self.record.weighted_layers()

    @cached_property
    def kernels(self) -> set[str]:
        """Names of the weights of layers with kernels; empty if the layers are not recorded."""
        rows = [] if self.record.health is None else self.weighted_layers
        return {f"{row.facts.layer}.weight" for row in rows}

    @property
    def gradient_norms(self) -> Mapping[str, Series]:
        """Parameter, or ``tags.TOTAL`` -> the 2-norm of its gradient; empty if none is recorded."""
        return self.record.scalars.get(tags.GRADIENT_NORM, {})

    def has_zero_gradient(self, parameter: str) -> bool:
        """True if the gradient of a parameter is known to be zero at every logged step."""
        norms = self.gradient_norms.get(parameter)
        return norms is not None and bool((norms.values == 0).all())

    @cached_property
    def update_ratios(self) -> Ratios | None:
        """The update ratios that rules read; None if there are none.

        Those of layers with kernels, or, where these are less than a third, as in a transformer,
        all parameters named ``weight``; none whose gradient is 0 at every logged step.

        Raises:
            NotRecorded: the run has no update ratios.
        """
        every = self.record.group(tags.UPDATE_RATIO)
        weights = {
            name: series
            for name, series in every.items()
            if name.rpartition(".")[2].startswith("weight")
        }
        trained = {name: series for name, series in weights.items() if name in self.kernels}
        if 0 < len(trained) < thresholds.FEW_KERNELS.value * len(weights):
            trained = weights
        chosen = trained or weights
        if not chosen:
            chosen = {name: series for name, series in every.items() if not name.endswith("bias")}
        chosen = {n: series for n, series in chosen.items() if not self.has_zero_gradient(n)}
        if not chosen:
            return None
        steps, values = over_steps(chosen.values())
        facts = self.record.facts.items()
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
        is_of_head = bool(self.kernels) and not trained
        return Ratios(
            list(chosen),
            steps=steps.tolist(),
            values=values,
            median=median,
            is_of_head=is_of_head,
            is_estimate=any(map(self.is_estimated, chosen)),
            are_of_kernels=0 < len(trained) < len(weights),
        )

    @cached_property
    def _estimated(self) -> frozenset[str] | None:
        """Parameters whose update ratio is an estimate at some step; None if not all are stored."""
        found = set[str]()
        for facts in self.record.facts.values():
            if "estimated_updates" in facts.left_out:
                return None
            found.update(facts.estimated_updates)
        return frozenset(found)

    def is_estimated(self, parameter: str) -> bool:
        """True if the update ratio of a parameter is an estimate, or may be one."""
        return self._estimated is None or parameter in self._estimated

    @cached_property
    def _large_update_steps(self) -> Sequence[int]:
        """The steps at which the median of the update ratios is large."""
        ratios = self.update_ratios
        if ratios is None:
            return ()
        is_large = ratios.median > thresholds.UPDATE_HIGH.value
        return [step for step, large in zip(ratios.steps, is_large, strict=True) if large]

    def largest_update(self, step: int | None = None) -> LargestUpdate | None:
        """The largest update ratio of all parameters, at a logged step or at any.

        Parameters other than weights, which may start at 0, count up to their own norm; at steps
        at which the weights move by as much as is called large, they count as all others.

        Args:
            step: of the optimizer; None for all logged steps.
        """
        largest: LargestUpdate | None = None
        every = self.record.scalars.get(tags.UPDATE_RATIO, {})
        large = self._large_update_steps if every else ()
        for name, series in every.items():
            is_asked = np.isfinite(series.values)
            if step is not None:
                is_asked &= series.steps == step
            if not name.rpartition(".")[2].startswith("weight"):
                is_asked &= (series.values <= 1) | np.isin(series.steps, large)
            if not is_asked.any():
                continue
            values = series.values[is_asked]
            place = int(values.argmax())
            if largest is None or values[place] > largest.value:
                at = int(series.steps[is_asked][place])
                is_estimate = self.is_estimated(name)
                largest = LargestUpdate(name, at, float(values[place]), is_estimate)
        return largest


class Evidence(UpdateEvidence):
    """Facts of the run of one model; each is computed when it is first asked for.

    Args:
        record: what was logged of the model.
    """

    @property
    def first_response(self) -> float:
        """Standard deviation of the first layer with kernels at the first logged step.

        Infinite if it is not known.
        """
        if not self.weighted_layers:
            return math.inf
        index = self.layers.rows.index(self.weighted_layers[0])
        std = float(self.layers.columns["std"][0, index])
        return std if math.isfinite(std) else math.inf

    @property
    def first_layer(self) -> HealthRow | None:
        """The layer that is called first; None if no layer is known."""
        if self.record.health is None:
            return None
        return next(iter(self.record.health.rows), None)

    @property
    def lowest_at_end(self) -> float:
        """The smallest value that the last layer returns at any step; NaN if it is not known."""
        return float(np.nanmin(self.layers.columns["minimum"][:, -1]))

    @cached_property
    def loses_inputs(self) -> HealthRow | None:
        """The first layer with weights whose channels hardly vary at the first logged step.

        Over images and positions, relative to their magnitude, in a network whose outputs hardly
        vary from image to image then. None if all layers vary: maps of images that are all alike
        do at their borders.
        """
        alike = thresholds.ALIKE_AT_START.value
        spreads = [output.spread for output in self.first_outputs]
        if not spreads or any(spread is None or spread > alike for spread in spreads):
            return None
        for row in self.layers.rows:
            statistics = self.record.first.get(row.facts.label)
            if statistics is None or not is_weighted(row):
                continue
            size = np.fmax(np.abs(statistics["minimum"]), np.abs(statistics["maximum"]))
            if row.facts.values > 1 and statistics["std"].mean() <= alike * size.mean():
                return row
        return None

    def dead_layers(
        self,
        share: float = thresholds.DEAD_SHARE.value,
        share_at_start: float = thresholds.DEAD_SHARE_AT_START.value,
    ) -> list[DeadLayer]:
        """The layers with enough dead channels, and the step since which that holds.

        Args:
            share: share of the channels, 0 to 1, from which a layer counts.
            share_at_start: the same of channels that are dead since the first logged step, and of
                networks that learn, whose small maps (`thresholds.DEAD_VALUES`) do not count.

        Raises:
            NotRecorded: the run has no overview series.
        """
        table = self.layers
        learns = self.falls()
        layers = []
        for layer in dead_layers(table):
            since = since_share(table, layer.spell.row, share, layer.spell.since)
            least = share_at_start
            if since > table.steps[0] and not learns:
                least = share
            is_lasting = since < table.steps[-1] or len(table.steps) == 1
            if learns and table.rows[layer.spell.row].facts.values < thresholds.DEAD_VALUES.value:
                continue
            if is_lasting and layer.share >= least - thresholds.SHARE_ROUNDING.value:
                layers.append(layer._replace(spell=layer.spell._replace(since=since)))
        return layers

    def growth_over_steps(
        self,
        growth: float = thresholds.GROWTH.value,
        size: float = thresholds.GROWN_SIZE.value,
    ) -> Growth | None:
        """The first layer whose magnitudes have grown since the first logged step.

        Args:
            growth: factor from which they have, see `Growth`.
            size: largest magnitude from which a layer counts.

        Raises:
            NotRecorded: the run has no overview series.
        """
        table = self.layers
        if table.is_of_images:
            return None
        magnitude = table.magnitudes
        with np.errstate(all="ignore"):
            grown = magnitude.astype(np.float64) / _usual(magnitude[0])  # [steps, layers]
            grown[~np.isfinite(grown)] = 0.0
        is_large = (grown >= growth) & (magnitude >= size)
        if not is_large.any():
            return None
        step = int(is_large.any(1).argmax())
        row = int(is_large[step].argmax())
        return Growth(
            row=row,
            step=table.steps[step],
            last=table.steps[int(np.flatnonzero(is_large[:, row])[-1])],
            factor=float(grown[:, row].max()),
            largest=float(np.nanmax(magnitude[:, row])),
        )

    @cached_property
    def lost_since(self) -> int | None:
        """First step at which channels died, or values exploded or were not finite; None if none.

        Channels that died with images without content are not counted.
        """
        if self.record.health is None:
            return None
        table = self.layers
        is_lost = (table.columns["nonfinite"] > 0).any(1)  # [steps]
        lost = np.array(table.steps)[is_lost].tolist()
        if not self._has_constant_images:
            lost += [layer.spell.since for layer in self.dead_layers()]
        grown = self.growth_over_steps()
        if grown is not None:
            lost.append(grown.step)
        return min((step for step in lost if step), default=None)

    @property
    def _has_constant_images(self) -> bool:
        try:
            return self.faulty_batches(are_all_constant) is not None
        except NotRecorded:
            return False

    @cached_property
    def without_gradient(self) -> dict[int, set[str]]:
        """Logged step at which an optimizer stepped -> the parameters without a gradient.

        Raises:
            NotRecorded: nothing of the training process was recorded.
        """
        found = {}
        for step, facts in self.facts.items():
            if facts.no_gradient is not None:
                found[step] = set(facts.no_gradient)
        return found

    weights_change = "each weight changes at each optimizer step"
    """What healthy runs have."""

    @property
    def has_batchnorm_gaps(self) -> bool:
        """True if the gaps of BatchNorm layers are recorded; False if there is no such layer.

        Raises:
            NotRecorded: the network has one, or its layers are not known.
        """
        if self.record.scalars.get(tags.BATCHNORM_GAP):
            return True
        if self.record.has_module("batchnorm") is False:
            return False
        raise NotRecorded(
            f"the scalars {tags.BATCHNORM_GAP}/…, of BatchNorm layers in training mode"
        )


BINARY = "BCE with logits"
"""Kind of the loss of binary labels."""
_OF_CLASSES = ("cross-entropy", "NLL")
"""Starts of the kinds of losses over classes, one label or a mixture of labels per row."""


def is_over_classes(output: OutputFacts) -> bool:
    """True if the loss of an output was read, and is one over classes."""
    return output.kind.startswith(_OF_CLASSES) and not output.given


def with_known_loss(steps: OutputSteps) -> OutputSteps:
    """The steps at which the loss is known: where a network has diverged, it cannot be read."""
    return {step: output for step, output in steps.items() if output.kind != "not certain"}


def quoted(name: str) -> str:
    """The name of an output in a sentence, with a space in front of it; "" if it has none."""
    return f" `{name}`" if name else ""


def _is_one(output: OutputFacts) -> bool:
    return output.low == output.high == 1 == math.prod(output.shape[1:])


def stays(losses: Sequence[float], share: float = thresholds.STAYS.value) -> bool:
    """True if a loss that is known at two steps or more never fell to this share of the first."""
    return len(losses) > 1 and min(losses[1:]) > share * losses[0] > 0


def late_loss(losses: Sequence[float]) -> float:
    """The loss late in a run: the median of the second half or of the last third, the lower one.

    A loss that stays for long may fall in the last third only.
    """
    half = median(losses[len(losses) // 2 :])
    third = median(losses[2 * len(losses) // 3 :])
    return min(half, third)


def lasting(steps: OutputSteps, is_so: Callable[[OutputFacts], bool], least: int) -> int | None:
    """First of the newest steps at which something is so; None if they are fewer than ``least``."""
    since = None
    count = 0
    for step, output in reversed(list(steps.items())):
        if not is_so(output):
            break
        since = step
        count += 1
    return since if count >= least else None


def spell(steps: OutputSteps, is_so: Callable[[OutputFacts], bool]) -> tuple[int, str]:
    """The first step of those at which something is so, and all of them in words.

    "since step 3" if it is so up to the newest step, otherwise "from step 3 to 7", the last one at
    which it is.

    Args:
        steps: at one of which it is so.
        is_so: tells whether.
    """
    since = lasting(steps, is_so, 1)
    if since is not None:
        return since, f"since step {since}"
    found = [step for step, output in steps.items() if is_so(output)]
    if len(found) == 1:
        return found[0], f"at step {found[0]}"
    return found[0], f"from step {found[0]} to {found[-1]}"


def over_steps(series: Iterable[Series]) -> tuple[Steps, Floats]:
    """The steps of any of several series [S], and their values at these, [S, series].

    The values are NaN where a series has none.
    """
    listed = list(series)
    steps = np.unique(np.concatenate([own_steps for own_steps, _ in listed]))
    values = np.full((len(steps), len(listed)), np.nan)
    for column, (own_steps, own_values) in enumerate(listed):
        values[np.searchsorted(steps, own_steps), column] = own_values
    return steps, values


def are_all_constant(facts: TrainingFacts) -> bool:
    """True if each image of the batch has one value."""
    return facts.count("constant_images") == facts.batch


def are_all_identical(facts: TrainingFacts) -> bool:
    """True if all images of the batch are the same, and not constant."""
    firsts = {first for first, _ in facts.identical_images or ()}
    others = facts.count("identical_images")
    is_same = firsts == {0} and others == (facts.batch or 0) - 1
    return is_same and not are_all_constant(facts)


def _image_scale(every: Sequence[Mapping[str, float]], since: int) -> ImageScale:
    """The scale of images, given their numbers at each step."""
    low = median([numbers["minimum"] for numbers in every])
    high = median([numbers["maximum"] for numbers in every])
    magnitudes = [max(abs(numbers["minimum"]), abs(numbers["maximum"])) for numbers in every]
    varied = [numbers for numbers in every if numbers["maximum"] > numbers["minimum"]]
    stds = [numbers["std"] for numbers in varied]
    return ImageScale(
        since=since,
        steps=len(every),
        low=low,
        high=high,
        magnitude=median(magnitudes),
        spread=median(stds) if stds else math.inf,
    )


def is_weighted(row: HealthRow) -> bool:
    """True for layers with kernels and linear layers."""
    return row.facts.kernel_shape is not None or row.facts.type == "Linear"


def since_share(table: HealthTable, row: int, least: float, since: int) -> int:
    """First of the consecutive last steps at which this share of a layer's channels is dead.

    Args:
        table: the layers.
        row: index of the layer.
        least: the share, 0 to 1.
        since: what is returned if it is so at none of them.
    """
    shares = table.columns["dead"][:, row].tolist()
    for step, share in zip(reversed(table.steps), reversed(shares), strict=True):
        if share < least - thresholds.SHARE_ROUNDING.value:
            break
        if math.isfinite(share):
            since = step
    return since


def _usual(magnitudes: Floats) -> Floats:
    """The larger of each layer's magnitude and the median layer's; NaN where it is 0 or unknown."""
    known = magnitudes[np.isfinite(magnitudes) & (magnitudes > 0)]
    median = float(np.median(known)) if known.size else math.nan
    return np.where(magnitudes > 0, np.fmax(magnitudes, median), np.nan).astype(np.float64)
