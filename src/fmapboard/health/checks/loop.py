"""Faults of the training loop: what the optimizer holds, in which mode, and which images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fmapboard.formats import tags
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.finding import Finding, named
from fmapboard.health.record import NotRecorded, RunRecord

_LASTING = 2
"""Logged steps at the end of the run that must all have a fault of the loop."""
_RESCALED = 3.0
"""Factor between the magnitudes of a layer and of its activation from which a normalization must be
between the two; activations themselves hardly enlarge anything."""


@dataclass(frozen=True, slots=True)
class NotInOptimizerCheck:
    """Trainable parameters that no optimizer holds, at each of the last two logged steps."""

    kind: ClassVar[str] = "not_in_optimizer"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        since = _since(record, lambda facts: bool(facts.not_in_optimizer))
        if since is None:
            return []
        last = newest(record)
        names = last.not_in_optimizer or ()
        count = len(names) + last.left_out.get("not_in_optimizer", 0)
        are = "parameters are" if count > 1 else "parameter is"
        return [
            Finding(
                kind=self.kind,
                class_="warning",
                message=f"{count} trainable {are} in no optimizer since step {since}: "
                f"{named(names, count)}",
                since_step=since,
                parameter=names[0],
                value=count,
                meaning="The optimizer was created before these layers, or from another model, or "
                "its parameter groups leave them out, so they keep their initial values",
                advice="Pass them to the optimizer, or set requires_grad=False if that is intended",
            )
        ]


@dataclass(frozen=True, slots=True)
class GradientsNotClearedCheck:
    """Gradients that still held those of an earlier optimizer step when a backward pass began.

    Reported if two logged steps besides the first have it; one, if only two steps are logged.
    """

    kind: ClassVar[str] = "gradients_not_cleared"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        later = list(record.training_facts().items())[1:]
        found = [(step, facts) for step, facts in later if facts.not_cleared]
        if not found or len(found) < min(_LASTING, len(later)):
            return []
        (since, _), (_, last) = found[0], found[-1]
        names = last.not_cleared or ()
        count = len(names) + last.left_out.get("not_cleared", 0)
        return [
            Finding(
                kind=self.kind,
                class_="warning",
                message=f"gradients of {count} parameter{'s' * (count > 1)} were not cleared "
                f"before the backward pass at {len(found)} of {len(later)} {record.steps_called} "
                f"after the first, since step {since}: {named(names, count)}",
                since_step=since,
                parameter=names[0],
                value=count,
                meaning="Each step then adds the gradients of all steps before it",
                advice="Call optimizer.zero_grad() in every step, for all parameters of the model",
            )
        ]


@dataclass(frozen=True, slots=True)
class EvalModeCheck:
    """The model was in eval mode in steps whose gradients were applied: the last two logged."""

    kind: ClassVar[str] = "eval_mode"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        since = _since(record, lambda facts: facts.eval_mode is True)
        if since is None:
            return []
        modules = [name or "the model" for name in newest(record).eval_modules]
        return [
            Finding(
                kind=self.kind,
                class_="warning",
                message=f"the model is in eval mode while it trains, since step {since}"
                + (f": {named(modules)}" if modules else ""),
                since_step=since,
                meaning="Dropout is off, and BatchNorm uses and keeps its running statistics",
                advice="Call model.train() before the training steps, also after each validation",
            )
        ]


@dataclass(frozen=True, slots=True)
class ConstantImagesCheck:
    """All images of the batch have one value only, at most logged steps; two images at least."""

    kind: ClassVar[str] = "constant_images"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""

        def all_constant(facts: TrainingFacts) -> bool:
            return _count(facts, "constant_images") == facts.batch

        found = _batches(record, all_constant)
        if found is None:
            return []
        since, batch, text = found
        return [
            Finding(
                kind=self.kind,
                class_="warning",
                message=f"all {batch} images of the batch are constant, each of one value only, "
                f"{text}",
                since_step=since,
                value=batch,
                meaning="The network is trained on images without content: they are not loaded, or "
                "lost by a conversion or a normalization",
                advice="Look at the network's input in the Feature maps tab, and check the dataset",
                picture="network_input/sample_0",
            )
        ]


@dataclass(frozen=True, slots=True)
class IdenticalImagesCheck:
    """All images of the batch are the same, at most logged steps; two images at least.

    A note: some images that are not constant are the same, at the same places in each batch.

    Attributes:
        least: number of logged steps of which all must have the same places, for a note.
    """

    least: int = 4
    kind: ClassVar[str] = "identical_images"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""

        def all_identical(facts: TrainingFacts) -> bool:
            is_constant = _count(facts, "constant_images") == facts.batch
            of_first = {first for first, _ in facts.identical_images or ()} == {0}
            pairs = _count(facts, "identical_images")
            return of_first and pairs == (facts.batch or 0) - 1 and not is_constant

        found = _batches(record, all_identical)
        if found is None:
            return self._at_same_places(record)
        since, batch, text = found
        return [
            Finding(
                kind=self.kind,
                class_="warning",
                message=f"all {batch} images of the batch are the same {text}",
                since_step=since,
                value=batch,
                meaning="The dataset returns one image for every index, or one image is repeated",
                advice="Check the dataset and its sampler; if you overfit on one image on purpose, "
                'silence this check with checks={"identical_images": False}',
                picture="network_input/sample_0",
            )
        ]

    def _at_same_places(self, record: RunRecord) -> list[Finding]:
        """Images that are the same as another one of their batch, at the same places each time."""
        batches = {at: of for at, of in record.training_facts().items() if (of.batch or 0) >= 2}
        if len(batches) < self.least:
            return []
        constant = {index for of in batches.values() for index in of.constant_images or ()}
        pairs = set.intersection(*(set(of.identical_images or ()) for of in batches.values()))
        pairs = {pair for pair in pairs if not constant & set(pair)}
        if not pairs:
            return []
        places = {index for pair in pairs for index in pair}
        one, other = min(pairs)
        return [
            Finding(
                kind=self.kind,
                class_="note",
                message=f"{len(places)} images of the batch are the same as another one, at the "
                f"same places of the batch at each of {len(batches)} logged steps, such as images "
                f"{one} and {other} (counted from 0)",
                since_step=min(batches),
                value=len(places),
                healthy="no image twice at the same places",
                meaning="Images are repeated when the batch is put together: a cache that returns "
                "one image for several indices, or augmentation that is not applied",
                advice="Check the dataset and its collate function, unless the copies are intended",
                picture="network_input/sample_0",
            )
        ]


@dataclass(frozen=True, slots=True)
class InputScaleCheck:
    """Input images whose values are far from the usual range: not normalized, or twice.

    Attributes:
        largest: median over the logged steps of the largest magnitude from which it is reported.
        response: standard deviation of the first layer's output at the first logged step up to
            which large images are not reported: the network scales them itself.
        spread: median over the logged steps of the standard deviation up to which it is reported,
            unless a normalization follows the first layer.
    """

    largest: float = 30.0
    response: float = 2.0
    spread: float = 0.03
    kind: ClassVar[str] = "input_scale"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        needed = {"minimum", "maximum", "std"}
        every = [numbers for numbers in record.network_input.values() if needed <= numbers.keys()]
        if not every:
            raise NotRecorded(f"the input's range (key input of {tags.OVERVIEW})")
        low, high = (float(np.median([n[key] for n in every])) for key in ("minimum", "maximum"))
        magnitude = float(np.median([max(abs(n["minimum"]), abs(n["maximum"])) for n in every]))
        varied = [n["std"] for n in every if n["maximum"] > n["minimum"]]
        spread = float(np.median(varied)) if varied else math.inf
        if magnitude > self.largest and _response(record) > self.response:
            text = (
                f"the largest magnitude of the input images is {magnitude:.3g} (median of "
                f"{len(every)} logged steps)"
            )
            return [self._finding(record, text, magnitude, _of_large(low, high))]
        if spread < self.spread and not _is_normalized(record):
            text = (
                f"input images have a standard deviation of {spread:.2g} (median of "
                f"{len(every)} logged steps)"
            )
            meaning = "The images were scaled twice, or have hardly any contrast"
            return [self._finding(record, text, spread, meaning)]
        return []

    def _finding(self, record: RunRecord, text: str, value: float, meaning: str) -> Finding:
        since = min(record.network_input)
        when = f"since step {since}" if record.health is None else record.health.since_text(since)
        return Finding(
            kind=self.kind,
            class_="note",
            message=f"{text} {when}",
            since_step=since,
            value=value,
            healthy="magnitudes up to 5, standard deviation 0.2 to 1.5",
            meaning=meaning,
            advice="Normalize the images once, to a standard deviation near 1",
            picture=f"{tags.prefix(record.name)}{tags.network_input(0)}",
        )


def newest(record: RunRecord) -> TrainingFacts:
    """What was recorded at the last logged step."""
    return list(record.training_facts().values())[-1]


def _since(record: RunRecord, is_faulty: Callable[[TrainingFacts], bool]) -> int | None:
    """First of the steps at the end of the run that all have a fault; None if too few have."""
    every = list(record.training_facts().items())
    count = 0
    for _, facts in reversed(every):
        if not is_faulty(facts):
            break
        count += 1
    return every[-count][0] if count >= min(_LASTING, len(every)) else None


def _batches(
    record: RunRecord, is_faulty: Callable[[TrainingFacts], bool]
) -> tuple[int, int, str] | None:
    """Since when most batches have a fault, the newest one's size, and how many, in words.

    Raises:
        NotRecorded: at no step the network received a batch of images.
    """
    every = record.training_facts()
    if all(of.batch is None for of in every.values()):
        raise NotRecorded(
            "a batch of images with 1 or 3 channels as an argument of the model that is watched"
        )
    batches = [(at, of) for at, of in every.items() if (of.batch or 0) >= 2]
    faulty = [(at, of) for at, of in batches if is_faulty(of)]
    if not faulty or len(faulty) < max(min(_LASTING, len(batches)), len(batches) / 2):
        return None
    text = f"at {len(faulty)} of {len(batches)} {record.steps_called}, since step {faulty[0][0]}"
    return faulty[0][0], faulty[-1][1].batch or 0, text


def _count(facts: TrainingFacts, name: str) -> int:
    """Number of entries of a list of images, with those that were not stored."""
    return len(getattr(facts, name) or ()) + facts.left_out.get(name, 0)


def _of_large(low: float, high: float) -> str:
    """What the range of images with large values may mean."""
    if low >= 0 and 100 <= high <= 255:
        return "The images are not scaled: 0 to 255 instead of 0 to 1"
    return f"The images are not scaled: their values range from {low:.3g} to {high:.3g}"


def _response(record: RunRecord) -> float:
    """Standard deviation of the first layer with kernels at the first logged step.

    Infinite if it is not known.
    """
    rows = [] if record.health is None else record.weighted_layers()
    if not rows or record.health is None:
        return math.inf
    std = float(record.health.columns["std"][0, record.health.rows.index(rows[0])])
    return std if math.isfinite(std) else math.inf


def _is_normalized(record: RunRecord) -> bool:
    """True if a normalization must follow the first layer with kernels.

    The activation behind it then has much larger magnitudes than the layer itself, and larger than
    1, which is as far as a sigmoid can lift small values.
    """
    table = record.health
    rows = [] if table is None else record.weighted_layers()
    if not rows or table is None:
        return False
    magnitude = np.fmax(np.abs(table.columns["minimum"][0]), np.abs(table.columns["maximum"][0]))
    known = {row.facts.label: float(magnitude[n]) for n, row in enumerate(table.rows)}
    own, after = known[rows[0].facts.label], known.get(rows[0].facts.activation or "", math.nan)
    return after > 1 and after > _RESCALED * own
