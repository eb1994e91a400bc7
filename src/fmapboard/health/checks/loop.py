"""Faults of the training loop: what the optimizer holds, in which mode, and which images."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.tab_records import Floats
from fmapboard.formats.training_facts import OUTSIDE, TrainingFacts
from fmapboard.health.finding import Finding, named, rounded
from fmapboard.health.record import (
    REDUCED,
    VANISHED,
    BuiltInCheck,
    LowRate,
    NotRecorded,
    RateHistory,
    RunRecord,
    first_of,
    largest_output,
    over_steps,
)
from fmapboard.health.table import HealthRow, is_normalized

_LASTING = 2
"""Logged steps at the end of the run that must all have a fault of the loop."""
_NO_BATCH = "a batch of images with 1 or 3 channels as an argument of the model that is watched"
"""What the checks of batches lack."""
_RESCALED = 3.0
"""Factor between the magnitudes of a layer and of its activation from which a normalization must be
between the two; activations themselves hardly enlarge anything."""


@dataclass(frozen=True, slots=True)
class NotInOptimizerCheck(BuiltInCheck):
    """Trainable parameters that no optimizer holds, at each of the last two logged steps."""

    kind: ClassVar[str] = "not_in_optimizer"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        since = _since(record, lambda facts: bool(facts.not_in_optimizer))
        if since is None:
            return
        last = newest(record)
        names = last.not_in_optimizer or ()
        count = last.count("not_in_optimizer")
        meaning = (
            "The optimizer was created before these layers, or from another model, or its "
            "parameter groups leave them out, so they keep their initial values"
        )
        advice = "Pass them to the optimizer, or set requires_grad=False if that is intended"
        is_outside = names[0].startswith(OUTSIDE)
        if is_outside:
            meaning = "Layers in a Python list or dict are not part of the model, and not trained"
            advice = "Keep them in an nn.ModuleList or nn.ModuleDict"
        parameters = "parameter is" if count == 1 else "parameters are"
        yield Finding(
            class_="warning",
            message=f"{count} trainable {parameters} in no optimizer "
            f"since step {since}: {named(names, count)}",
            since_step=since,
            parameter=None if is_outside else names[0],
            value=count,
            meaning=meaning,
            advice=advice,
        )


@dataclass(frozen=True, slots=True)
class GradientsNotClearedCheck(BuiltInCheck):
    """Gradients that still held those of an earlier optimizer step when a backward pass began.

    Reported if two logged steps besides the first have it; one, if only two steps are logged.
    """

    kind: ClassVar[str] = "gradients_not_cleared"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        later = list(record.training_facts().items())[1:]
        found = [(step, facts) for step, facts in later if facts.not_cleared]
        if not found or len(found) < min(_LASTING, len(later)):
            return
        since = found[0][0]
        last = found[-1][1]
        names = last.not_cleared or ()
        count = last.count("not_cleared")
        parameters = "parameter" if count == 1 else "parameters"
        yield Finding(
            class_="warning",
            message=f"gradients of {count} {parameters} were not cleared "
            f"before the backward pass at {len(found)} of {len(later)} {record.steps_called} "
            f"after the first, since step {since}: {named(names, count)}",
            since_step=since,
            parameter=names[0],
            value=count,
            meaning="Each step then adds the gradients of all steps before it",
            advice="Call optimizer.zero_grad() in every step, for all parameters of the model",
        )


@dataclass(frozen=True, slots=True)
class EvalModeCheck(BuiltInCheck):
    """The model was in eval mode in steps whose gradients were applied: the last two logged."""

    kind: ClassVar[str] = "eval_mode"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        since = _since(record, lambda facts: facts.eval_mode is True)
        if since is None:
            return
        modules = [name or "the model" for name in newest(record).eval_modules]
        listed = f": {named(modules)}" if modules else ""
        yield Finding(
            class_="warning",
            message=f"the model is in eval mode while it trains, since step {since}{listed}",
            since_step=since,
            meaning="Dropout is off, and BatchNorm uses and keeps its running statistics",
            advice="Call model.train() before the training steps, also after each validation",
        )


@dataclass(frozen=True, slots=True)
class ConstantImagesCheck(BuiltInCheck):
    """All images of the batch have one value only, at most logged steps; two images at least."""

    kind: ClassVar[str] = "constant_images"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        found = _batches(record, _all_constant)
        if found is None:
            return
        yield Finding(
            class_="warning",
            message=f"all {found.size} images of the batch are constant, each of one value "
            f"only, {found.text}",
            since_step=found.since,
            value=found.size,
            meaning="The network is trained on images without content: they are not loaded, "
            "or lost by a conversion or a normalization",
            advice="Look at the input in the Feature maps tab, and check the dataset",
            picture=_drawn_input(record),
        )


@dataclass(frozen=True, slots=True)
class IdenticalImagesCheck(BuiltInCheck):
    """All images of the batch are the same, at most logged steps; two images at least.

    A note: some images that are not constant are the same, at the same places in each batch.

    Attributes:
        least: number of logged steps of which all must have the same places, for a note.
    """

    least: int = 4
    kind: ClassVar[str] = "identical_images"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        found = _batches(record, _all_identical)
        if found is None:
            yield from first_of([self._at_same_places(record)])
            return
        yield Finding(
            class_="warning",
            message=f"all {found.size} images of the batch are the same {found.text}",
            since_step=found.since,
            value=found.size,
            meaning="The dataset returns one image for every index, or one image is repeated",
            advice="Check the dataset and its sampler; if you overfit on one image on purpose, "
            'silence this check with checks={"identical_images": False}',
            picture=_drawn_input(record),
        )

    def _at_same_places(self, record: RunRecord) -> Finding | None:
        """Images that are the same as another one of their batch, at the same places each time."""
        every = record.training_facts().items()
        batches = {step: facts for step, facts in every if (facts.batch or 0) >= 2}
        if len(batches) < self.least:
            return None
        constant: set[int] = set()
        for facts in batches.values():
            constant.update(facts.constant_images or ())
        alike = [set(facts.identical_images or ()) for facts in batches.values()]
        pairs = {pair for pair in set.intersection(*alike) if not constant & set(pair)}
        if not pairs:
            return None
        places = {index for pair in pairs for index in pair}
        first, second = min(pairs)
        is_cut = any(facts.left_out.get("identical_images") for facts in batches.values())
        least = "at least " if is_cut else ""
        return Finding(
            message=f"{least}{len(places)} images of the batch are the same as "
            f"another one, at the same places of the batch at each of {len(batches)} logged "
            f"steps, such as images {first} and {second} (counted from 0)",
            since_step=min(batches),
            value=len(places),
            healthy="no image twice at the same places",
            meaning="Intended if the loss compares or averages over copies, such as the pairs "
            "of contrastive learning or several samples of one image. Otherwise images are "
            "repeated when the batch is put together: a cache that returns one image for "
            "several indices, or augmentation that is not applied",
            advice="Unless the copies are intended, check the dataset and its collate function",
            picture=_drawn_input(record),
        )


@dataclass(frozen=True, slots=True)
class InputScaleCheck(BuiltInCheck):
    """Input images whose values are far from the usual range: not normalized, or twice.

    Attributes:
        largest: median over the logged steps of the largest magnitude from which it is reported.
        widest: the same of the standard deviation.
        response: standard deviation of the first layer's output at the first logged step up to
            which large images are not reported: the network scales them itself. Nor are they if a
            normalization follows the first layer, except images from 0 to 255 in front of a
            BatchNorm or LayerNorm: forgotten more often than left to it.
        spread: median over the logged steps of the standard deviation up to which it is reported,
            unless a normalization follows the first layer.
        range: the same of (largest - smallest value) / |mean|.
        interleaved: the same of how neighbours in a row differ by their place modulo 3, the least
            over the largest, up to which red, green and blue take turns.
        low: magnitude, up to which it is reported, of inputs that are no images (see
            `_input_magnitudes`), at the first logged step and in the median.
        high: the same at the first logged step, from which it is reported; later such inputs may
            have killed the network, and its gradients tell nothing.
        noise: the same, from which the gradient of the bias is rounding noise: it cancels.
        beyond: largest magnitude of an output of classes at the first logged step from which the
            network does not scale large images by itself.
    """

    largest: float = 30.0
    widest: float = 5.0
    response: float = 2.0
    spread: float = 0.03
    range: float = 0.3
    interleaved: float = 0.6
    low: float = 0.04
    high: float = 180.0
    noise: float = 1e5
    beyond: float = 20.0
    kind: ClassVar[str] = "input_scale"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        needed = {"minimum", "maximum", "std"}
        every = [numbers for numbers in record.network_input.values() if needed <= numbers.keys()]
        if not every:
            yield from first_of([self._of_rows(record)])
            return
        yield from self._scrambled(record, every)
        images = _image_scale(every)
        low = images.low
        high = images.high
        spread = images.spread
        is_wide = self.widest < spread < math.inf
        is_flat = spread < self.spread or images.contrast < self.range
        value = spread
        text = f"input images have a standard deviation of {spread:.2g}"
        if (images.magnitude > self.largest or is_wide) and not self._is_scaled(record, low, high):
            meaning = "The images are not scaled: 0 to 255 instead of 0 to 1"
            if not _is_bytes(low, high):
                meaning = f"The images are not scaled: values from {low:.3g} to {high:.3g}"
            if images.magnitude > self.largest:
                value = images.magnitude
                text = f"the largest magnitude of the input images is {value:.3g}"
        elif is_flat and not _is_normalized(record):
            meaning = "The images were scaled twice, or have hardly any contrast"
            if spread >= self.spread:
                text = f"the values of the input images are all within {low:.3g} to {high:.3g}"
        else:
            return
        since = min(record.network_input)
        yield Finding(
            message=f"{text} (median of {len(every)} logged steps) "
            f"{record.layers().since_text(since)}",
            since_step=since,
            value=value,
            healthy="magnitudes up to 5, standard deviation 0.2 to 1.5",
            meaning=meaning,
            advice="Normalize the images once, to a standard deviation near 1",
            picture=_drawn_input(record),
        )

    def _scrambled(
        self, record: RunRecord, every: Sequence[Mapping[str, float]]
    ) -> Iterator[Finding]:
        """Images in which red, green and blue take turns in each row."""
        turns = [numbers["interleaved"] for numbers in every if "interleaved" in numbers]
        if not turns:
            return
        ratio = float(np.median(turns))
        if not ratio < self.interleaved:
            return
        yield Finding(
            message="the input images look scrambled, as if red, green and blue took turns in "
            f"each row: every third difference between neighbours is {rounded(ratio)} times the "
            f"largest (median of {len(record.network_input)} logged steps)",
            since_step=min(record.network_input),
            value=ratio,
            healthy="near 1",
            meaning="Images of shape [H, W, 3] were made [3, H, W] with view or reshape",
            advice="Use permute(2, 0, 1) in place of view or reshape, and look at the "
            "input's picture",
            picture=_drawn_input(record),
        )

    def _of_rows(self, record: RunRecord) -> Finding | None:
        """What the gradients of the first layer tell of other inputs, such as tables.

        Raises:
            NotRecorded: they do not tell anything.
        """
        found = _input_magnitudes(record)
        if found is None and _is_embedding(_first_row(record)):
            return None  # words have no magnitude
        if found is None or min(found.ratios[0], np.median(found.ratios)) > self.noise:
            raise NotRecorded(f"the input's range (key input of {tags.OVERVIEW})")
        value = float(found.ratios[0])
        most = max(value, float(np.median(found.ratios)))
        if self.low < most and value < self.high:
            return None
        row = found.row
        return Finding(
            message=f"the network's inputs have a magnitude of about {rounded(value)} since "
            f"step {found.since}, estimated from its first layer, `{row.facts.layer}`",
            since_step=found.since,
            layer=row.facts.label,
            value=value,
            healthy="0.1 to 100",
            meaning="They are not scaled" if value > 1 else "They are scaled twice, or zeros",
            advice="Subtract the mean of each input and divide by its standard deviation",
        )

    def _is_scaled(self, record: RunRecord, low: float, high: float) -> bool:
        """True if the network scales large images by itself."""
        if not largest_output(record) <= self.beyond:
            return False
        if _response(record) <= self.response:
            return True
        rows = record.weighted_layers()
        kinds = [kind.lower() for kind in rows[0].facts.followed_by] if rows else []
        norms = [kind for kind in kinds if "norm" in kind]
        if _is_bytes(low, high):
            norms = [kind for kind in norms if not kind.startswith(("batch", "layer"))]
        return bool(norms)


@dataclass(frozen=True, slots=True)
class SameBatchCheck(BuiltInCheck):
    """The same batch of images at every logged step.

    Attributes:
        least: number of logged steps.
    """

    least: int = 4
    kind: ClassVar[str] = "same_batch"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        every = record.training_facts()
        batches = {}
        for step, facts in every.items():
            if facts.batch_digest is not None:
                batches[step] = facts.batch_digest
        if not batches:
            _raise_if_for_images(record)
        if len(batches) < self.least or len(set(batches.values())) > 1:
            return
        if "constant_images" not in record.off and any(map(_all_constant, every.values())):
            return
        if "identical_images" not in record.off and any(map(_all_identical, every.values())):
            return
        if newest(record).rates is None:
            return  # L-BFGS, whose line search needs one batch
        steps = list(batches)
        causes = "One batch is kept and used at each step"
        if min(later - step for step, later in pairwise(steps)) > 1:
            causes += (
                ", or the batches come in the same order in each epoch and every= is a "
                "multiple of their number, so that the same one is logged each time"
            )
        yield Finding(
            message=f"the batch of {newest(record).batch} images is the same at each of "
            f"{len(steps)} {record.steps_called}, since step {steps[0]}",
            since_step=steps[0],
            value=len(steps),
            healthy="other images at each step",
            meaning=causes,
            advice="Take the batch from the loader inside the loop, with shuffle=True; "
            "intended if you overfit one batch, or if all images fit into one",
            picture=_drawn_input(record),
        )


@dataclass(frozen=True, slots=True)
class NeverCalledCheck(BuiltInCheck):
    """Trainable parameters that never had a gradient, in watched layers that never ran.

    Attributes:
        least: number of logged steps.
        span: number of training steps between the first and the last of them.
        share: their number over that of the layers with gradients, from which they are reported;
            fewer may be spare parts of a library's network.
    """

    least: int = 4
    span: int = 20
    share: float = 0.06
    kind: ClassVar[str] = "never_called"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        every = record.training_facts().items()
        steps = {step: facts for step, facts in every if facts.no_gradient is not None}
        if len(steps) < self.least or max(steps) - min(steps) < self.span:
            return
        last = list(steps.values())[-1]
        lost = set.intersection(*(set(facts.not_called) for facts in steps.values()))
        names = [name for name in last.not_called if name in lost]
        layers = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
        norms = record.scalars.get(tags.GRADIENT_NORM, {})
        trained = {name.rpartition(".")[0] for name in norms if name != tags.TOTAL}
        if not names or len(layers) < self.share * len(trained):
            return
        noun = "layer"
        pronoun = "it"
        if len(layers) > 1:
            noun = "layers"
            pronoun = "them"
        yield Finding(
            message=f"{len(layers)} {noun} with trainable parameters never ran and never had "
            f"a gradient at {len(steps)} {record.steps_called}, and nothing has changed "
            f"{pronoun}: {named(layers)}",
            since_step=min(steps),
            parameter=names[0],
            parameters=tuple(names),
            value=len(names),
            healthy="each layer runs",
            meaning="The network's forward does not call them, or calls another layer twice "
            "instead; they keep their initial values",
            advice="Call them in forward(), or remove them, unless a later phase uses them",
        )


@dataclass(frozen=True, slots=True)
class RateVanishedCheck(BuiltInCheck):
    """A learning rate below `health.record.VANISHED` times its maximum, in every parameter group.

    Or below `health.record.REDUCED` times it for most of the run.

    Attributes:
        share: share of the run for which it must be so, up to the newest logged step.
        long: the same below `REDUCED`.
        least: number of logged steps at which it must be so.
    """

    share: float = 0.1
    long: float = 0.6
    least: int = 4
    kind: ClassVar[str] = "rate_vanished"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        if not record.rates:
            raise NotRecorded(f"the scalars {tags.LEARNING_RATE}/…")
        moved = [rate for rate in record.rates.values() if rate.peak > 0]
        if not moved:
            return
        share = VANISHED
        since, part = self._low_since(moved, share)
        if part <= self.share:
            share = REDUCED
            since, part = self._low_since(moved, share)
            if part <= self.long:
                return
        highest = max(moved, key=lambda rate: rate.peak)
        yield Finding(
            message=f"the learning rate has been below {share:.0e} times its maximum of "
            f"{highest.peak:.2g} since step {since}, for {100 * part:.0f} % of the run; it is "
            f"{highest.rate:.1e}",
            since_step=since,
            value=highest.rate / highest.peak,
            healthy=f"{VANISHED:.0e} times the maximum or more until the last tenth of the run",
            meaning="The weights hardly move any more: the scheduler steps more often than "
            "its arguments count, such as per batch instead of per epoch, or its decay is too "
            "fast",
            advice="Call scheduler.step() once per epoch, or give its arguments in batches, "
            "and look at the scalars learning_rate/…",
        )

    def _low_since(self, rates: Sequence[RateHistory], share: float) -> tuple[int, float]:
        """The step since which all rates are below a share of their maximum, and for how long.

        That is a share of the run, 0 to 1; 0 if it is so at too few steps.
        """
        first = min(rate.first for rate in rates)
        last = max(rate.last for rate in rates)
        low = [rate.low.get(share, LowRate(last, 0)) for rate in rates]
        since = max(spell.since for spell in low)
        if min(spell.steps for spell in low) < self.least:
            return since, 0.0
        return since, (last - since) / max(last - first, 1)


def _drawn_input(record: RunRecord) -> str:
    """Tag of the Images series that shows what the model receives."""
    return tags.prefix(record.name) + tags.network_input(0)


def newest(record: RunRecord) -> TrainingFacts:
    """What was recorded at the last logged step."""
    return list(record.training_facts().values())[-1]


def _since(record: RunRecord, is_faulty: Callable[[TrainingFacts], bool]) -> int | None:
    """First of the steps at the end of the run that all have a fault; None if too few have."""
    every = list(record.training_facts().items())
    since = None
    count = 0
    for step, facts in reversed(every):
        if not is_faulty(facts):
            break
        since = step
        count += 1
    return since if count >= min(_LASTING, len(every)) else None


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


def _batches(record: RunRecord, is_faulty: Callable[[TrainingFacts], bool]) -> FaultyBatches | None:
    """The batches of two images or more that have a fault; None if most have not.

    Raises:
        NotRecorded: at no step the network received a batch of images.
    """
    every = record.training_facts()
    if all(facts.batch is None for facts in every.values()):
        _raise_if_for_images(record)
    batches = [(step, facts) for step, facts in every.items() if (facts.batch or 0) >= 2]
    faulty = [(step, facts) for step, facts in batches if is_faulty(facts)]
    least = max(min(_LASTING, len(batches)), len(batches) / 2)
    if not faulty or len(faulty) < least:
        return None
    since = faulty[0][0]
    size = faulty[-1][1].batch or 0
    text = f"at {len(faulty)} of {len(batches)} {record.steps_called}, since step {since}"
    return FaultyBatches(since, size, text)


def _raise_if_for_images(record: RunRecord) -> None:
    """Do nothing if the network is known to have no layer for images.

    Raises:
        NotRecorded: it has a layer with kernels of two dimensions or more, or none is known.
    """
    rows = [] if record.health is None else record.health.rows
    shapes = [row.facts.kernel_shape or () for row in rows]
    if not shapes or max(map(len, shapes)) >= 4:  # out, in, height, width
        raise NotRecorded(_NO_BATCH)


def _all_constant(facts: TrainingFacts) -> bool:
    return facts.count("constant_images") == facts.batch


def _all_identical(facts: TrainingFacts) -> bool:
    firsts = {first for first, _ in facts.identical_images or ()}
    others = facts.count("identical_images")
    is_same = firsts == {0} and others == (facts.batch or 0) - 1
    return is_same and not _all_constant(facts)


def _is_bytes(low: float, high: float) -> bool:
    return low > -0.2 * high and 100 <= high <= 400


def _response(record: RunRecord) -> float:
    """Standard deviation of the first layer with kernels at the first logged step.

    Infinite if it is not known.
    """
    rows = record.weighted_layers()
    if not rows:
        return math.inf
    table = record.layers()
    std = float(table.columns["std"][0, table.rows.index(rows[0])])
    return std if math.isfinite(std) else math.inf


class ImageScale(NamedTuple):
    """The scale of the input images, medians over the logged steps.

    Attributes:
        low: smallest value.
        high: largest value.
        magnitude: the larger magnitude of the two.
        spread: standard deviation where the values differ; infinite if they never do.
        contrast: ``high`` - ``low`` in units of the mean's magnitude; infinite without a mean.
    """

    low: float
    high: float
    magnitude: float
    spread: float
    contrast: float


def _image_scale(every: Sequence[Mapping[str, float]]) -> ImageScale:
    """The scale of images, given their numbers at each step."""
    low = float(np.median([numbers["minimum"] for numbers in every]))
    high = float(np.median([numbers["maximum"] for numbers in every]))
    magnitudes = [max(abs(numbers["minimum"]), abs(numbers["maximum"])) for numbers in every]
    varied = [numbers for numbers in every if numbers["maximum"] > numbers["minimum"]]
    means = [abs(numbers["mean"]) for numbers in varied if numbers.get("mean")]
    stds = [numbers["std"] for numbers in varied]
    return ImageScale(
        low=low,
        high=high,
        magnitude=float(np.median(magnitudes)),
        spread=float(np.median(stds)) if stds else math.inf,
        contrast=(high - low) / float(np.median(means)) if means else math.inf,
    )


class InputMagnitudes(NamedTuple):
    """About the magnitude of the network's inputs, as the gradients of its first layer tell it.

    Attributes:
        row: the layer.
        since: the first logged step.
        ratios: one per logged step at which it is known, at least one.
    """

    row: HealthRow
    since: int
    ratios: Floats


def _input_magnitudes(record: RunRecord) -> InputMagnitudes | None:
    """The norm of the gradient of the first layer's weight over that of its bias.

    It is about the magnitude of the network's inputs, as the layer multiplies them by its weight.

    It is not known where the gradient of the bias is 0. None if it is at no step, for an embedding,
    or if a normalization follows.
    """
    row = _first_row(record)
    if row is None or is_normalized(row) or _is_embedding(row):
        return None
    own = "_ih_l0" if row.facts.type in ("RNN", "LSTM", "GRU") else ""
    norms = record.scalars.get(tags.GRADIENT_NORM, {})
    weight = norms.get(f"{row.facts.layer}.weight{own}")
    bias = norms.get(f"{row.facts.layer}.bias{own}")
    if weight is None or bias is None:
        return None
    steps, values = over_steps([weight, bias])  # values [S, 2]
    values = values[values[:, 1] > 0]
    if not len(values):
        return None
    return InputMagnitudes(row, int(steps[0]), values[:, 0] / values[:, 1])


def _first_row(record: RunRecord) -> HealthRow | None:
    """The first layer; None if it is not known."""
    return next(iter(record.health.rows), None) if record.health else None


def _is_embedding(row: HealthRow | None) -> bool:
    return row is not None and row.facts.type == "Embedding"


def _is_normalized(record: RunRecord) -> bool:
    """True if a normalization is defined behind the first layer with kernels, or must be there.

    Then the activation behind it has much larger magnitudes than the layer itself, and larger than
    1, which is as far as a sigmoid can lift small values.
    """
    rows = record.weighted_layers()
    if not rows:
        return False
    first = rows[0]
    if is_normalized(first):
        is_fixed = not record.scalars.get(tags.BATCHNORM_GAP)  # BatchNorm in eval mode
        return not (is_fixed and is_normalized(first, "batchnorm"))
    table = record.layers()
    activation = table.index(first.name, first.facts.activation)
    if activation is None:
        return False
    magnitudes = table.magnitudes[0]
    after = float(magnitudes[activation])
    return after > 1 and after > _RESCALED * float(magnitudes[table.rows.index(first)])
