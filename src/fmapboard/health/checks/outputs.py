"""Faults that the network's output and the loss tell: what goes into the loss, labels, collapse.

They read `formats.training_facts.OutputFacts`: the loss and the labels are known only where the
gradient of the output says for certain which loss it is, or where ``board.loss`` was called.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from fmapboard.formats.training_facts import MAX_NAMES, LossKind, OutputFacts
from fmapboard.health.finding import Finding, rounded
from fmapboard.health.record import BuiltInCheck, NotRecorded, RunRecord

Steps = Mapping[int, OutputFacts]
"""Logged step -> what is known of an output, ascending."""
_OF_CLASSES = ("cross-entropy", "NLL")
"""Starts of the kinds of losses over classes, one label or a mixture of labels per row."""
_BINARY = "BCE with logits"
_WITHOUT_LOGARITHM = {
    LossKind.NLL_OF_PROBABILITIES: "The loss is the NLL of probabilities, whose logarithm is "
    "missing: images with a small probability get hardly any gradient",
    LossKind.NLL_OF_LOGITS: "The loss is the NLL of logits, to which no log_softmax was applied: "
    "it has no least value, and the logits grow without end",
}
"""Kinds of losses -> what they mean."""


def outputs(record: RunRecord) -> dict[str, Steps]:
    """Name of an output -> what is known of it, at steps at which it is finite.

    Raises:
        NotRecorded: no output with a gradient is known.
    """
    found: dict[str, dict[int, OutputFacts]] = {}
    for step, facts in record.training_facts().items():
        for output in facts.outputs:
            known = found.setdefault(output.name, {})
            if not output.shape or output.predictions is not None or output.low < output.high:
                known[step] = output
    if not found:
        raise NotRecorded("an output of the network with a gradient")
    return {name: known for name, known in found.items() if known}


def lasting(steps: Steps, is_so: Callable[[OutputFacts], bool], least: int) -> int | None:
    """First of the newest steps at which something is so; None if they are fewer than ``least``."""
    since = None
    count = 0
    for step, output in reversed(list(steps.items())):
        if not is_so(output):
            break
        since = step
        count += 1
    return since if count >= least else None


def _read(steps: Steps) -> Steps:
    """The steps at which the loss is known: where a network has diverged, it cannot be read."""
    return {step: output for step, output in steps.items() if output.kind != "not certain"}


def quoted(name: str) -> str:
    """The name of an output in a sentence, with a space in front of it; "" if it has none."""
    return f" `{name}`" if name else ""


def _is_over_classes(output: OutputFacts) -> bool:
    return output.kind.startswith(_OF_CLASSES) and not output.given


@dataclass(frozen=True, slots=True)
class DoubleSoftmaxCheck(BuiltInCheck):
    """The loss applies a softmax to probabilities, at the last two steps at which it is known."""

    kind: ClassVar[str] = "double_softmax"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            known = _read(steps)
            least = min(len(known), 2)
            since = lasting(known, lambda output: output.is_softmax_of_softmax, least)
            if since is None:
                continue
            text = f"two softmaxes follow the output{quoted(name)}"
            if steps[since].rows_are == "probabilities":
                text = f"the output{quoted(name)} is probabilities, and the loss applies a softmax "
                text += "to them again"
            yield Finding(
                class_="warning",
                message=f"{text}, since step {since}",
                since_step=since,
                meaning="Two softmaxes flatten the gradient, and the loss cannot come near 0",
                advice="Give the loss the logits: cross_entropy applies log_softmax itself. "
                "Or use nll_loss on the logarithm of the probabilities",
            )


@dataclass(frozen=True, slots=True)
class ProbabilitiesIntoLossCheck(BuiltInCheck):
    """A loss on logits receives what a sigmoid, a softmax over another axis or a ReLU returned.

    That is never negative, and of the first two within 0 to 1. Logits that are averages of maps
    behind a ReLU, as those of SqueezeNet, do not count, and those of a single unit only if they are
    within 0 to 1 and next to 0, or from 0.2 or less to 0.9 or more. Or a loss on logarithms
    receives probabilities or logits.

    Attributes:
        least: number of logged steps, of which all must have it, and two a known loss.
    """

    least: int = 4
    kind: ClassVar[str] = "probabilities_into_loss"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            other = self._without_logarithm(name, steps)
            if other is not None:
                yield other
                continue
            every = list(steps.values())
            known = [output for output in every if self._is_known(output)]
            if len(known) < 2:
                continue
            source = self._source(every, known)
            if source is None or _averages_activations(record, known[-1]):
                continue
            low = min(output.low for output in every)
            high = max(output.high for output in every)
            yield Finding(
                message=f"the output{quoted(name)} is from {low:.2g} to {high:.2g} at "
                f"{len(every)} {record.steps_called}, and the loss ({known[-1].kind}) takes "
                "it for logits",
                since_step=min(steps),
                value=low,
                healthy="logits of both signs and any size",
                meaning=f"It looks like the output of {source} in front of a loss that "
                "applies a softmax or sigmoid: the gradient is flattened, and the loss cannot "
                "come near 0",
                advice="Return what is computed before it, the logits",
            )

    def _source(self, every: Sequence[OutputFacts], known: Sequence[OutputFacts]) -> str | None:
        """What the outputs look like the output of, in words; None if they may be logits.

        Args:
            every: the output at each step.
            known: the same where the loss takes it for logits, two at least.
        """
        if self._is_tanh(known):
            return None if self._is_odd_single(every, known) else "a tanh"
        if len(every) < self.least or any(output.low < 0 for output in every):
            return None
        if self._is_odd_single(every, known):
            return None
        if all(output.rows_are == "probabilities" for output in known):
            return "a softmax"
        high = max(output.high for output in every)
        is_single = math.prod(known[-1].shape[1:]) == 1
        if 0.5 <= high <= 1 or is_single or _may_sum_to_1_over_rows(known):
            return "a sigmoid, or a softmax over another axis than that of the classes,"
        if high > 1 and all(output.low == 0 for output in known):
            return "a ReLU"
        return None

    def _is_tanh(self, known: Sequence[OutputFacts]) -> bool:
        """True if the newest outputs reach from near -1 to near 1, and not further."""
        newest = known[-self.least :]
        ends = [end for output in newest for end in (-output.low, output.high)]
        return len(newest) == self.least and 0.9 <= min(ends) <= max(ends) <= 1

    def _is_odd_single(self, every: Sequence[OutputFacts], known: Sequence[OutputFacts]) -> bool:
        """True for a single unit whose range is not that of a sigmoid."""
        if math.prod(known[-1].shape[1:]) != 1:
            return False
        low = min(output.low for output in every)
        high = max(output.high for output in every)
        is_wide = low <= 0.01 * high or low <= 0.2 <= 0.9 <= high
        return high > 1 or not is_wide

    def _without_logarithm(self, name: str, steps: Steps) -> Finding | None:
        known = _read(steps)
        since = lasting(known, lambda output: output.kind in _WITHOUT_LOGARITHM, self.least)
        if since is None:
            return None
        kind = list(known.values())[-1].kind
        number = "the output" if kind == LossKind.NLL_OF_LOGITS else "the probability"
        return Finding(
            message=f"the loss of the output{quoted(name)} is linear in {number} of the label "
            f"since step {since}",
            since_step=since,
            healthy="in the logarithm of its probability",
            meaning=_WITHOUT_LOGARITHM[kind],
            advice="Use cross_entropy on the logits; intended if it is the mean absolute error",
        )

    def _is_known(self, output: OutputFacts) -> bool:
        if output.given or output.is_softmax_of_softmax or output.kind.startswith("NLL"):
            return False
        return _is_over_classes(output) or output.kind == _BINARY


def _may_sum_to_1_over_rows(known: Sequence[OutputFacts]) -> bool:
    """True if many classes are always positive, around the mean of a softmax over the images."""
    for output in known:
        mean = 1 / max(output.shape[0], 1)
        if (output.classes or 0) < 6 or not 0 < output.low <= mean <= output.high < 0.5:
            return False
    return True


def _averages_activations(record: RunRecord, output: OutputFacts) -> bool:
    """True if the last layer has kernels, one channel per class, and an activation behind it."""
    rows = [] if record.health is None else record.health.rows
    layers = [row.facts for row in rows if row.facts.kernel_shape or row.facts.type == "Linear"]
    if not layers:
        return False
    last = layers[-1]
    return bool(last.kernel_shape and last.activation) and last.channels == output.classes


@dataclass(frozen=True, slots=True)
class LossClimbedCheck(BuiltInCheck):
    """Training makes the loss larger: the gradient has the wrong sign at the last two steps.

    Or labels of BCE with logits are beyond 1, so that it falls below 0 without end.
    """

    kind: ClassVar[str] = "loss_climbed"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            # A model that returns a log-likelihood is trained to make it larger.
            since = lasting(_read(steps), _is_climbed, 2)
            if since is None:
                yield from self._endless(name, steps)
                continue
            later = [output.loss for step, output in steps.items() if step >= since]
            known = [loss for loss in later if loss is not None]
            if known and known[-1] < known[0]:
                continue  # something else makes it fall
            grew = f": it went from {known[0]:.3g} to {known[-1]:.3g}" if known else ""
            yield Finding(
                class_="warning",
                message=f"the optimizer makes the loss of the output{quoted(name)} larger "
                f"since step {since}{grew}",
                since_step=since,
                value=known[-1] if known else None,
                meaning="The sign is wrong: a minus too many, or a log-likelihood is minimized",
                advice="Minimize the loss itself; to maximize on purpose, silence this check with "
                'checks={"loss_climbed": False}',
            )

    def _endless(self, name: str, steps: Steps) -> Iterator[Finding]:
        begins = None
        largest = 0
        count = 0
        for step, output in steps.items():
            if output.kind != LossKind.BEYOND_1:
                continue
            if begins is None:
                begins = step
            count += 1
            labels = [label for label, _ in output.labels or ()]
            largest = max([largest, *labels] if labels else [largest, 2])
        if begins is None or count < 2:
            return
        yield Finding(
            class_="warning",
            message=f"labels of the output{quoted(name)} are up to {largest} since step "
            f"{begins}, and the loss ({_BINARY}) expects 0 to 1",
            since_step=begins,
            value=largest,
            healthy="0 to 1",
            meaning="The loss has no least value: it falls below 0 while the logits grow",
            advice=f"Divide a mask by {largest}; for several classes, use cross_entropy",
        )


def _is_climbed(output: OutputFacts) -> bool:
    return output.is_climbed and bool(output.shape)


_COLLAPSED = (
    "The network has collapsed, or nothing of the image reaches its end: dead or saturated "
    "layers, a vanishing signal, or labels that do not depend on the image",
    "Look for the first layer whose maps are all alike, and check the labels",
)
_SOFTMAX_OF_ONE = (
    "A softmax over a single class is always 1, and passes no gradient",
    "Use a sigmoid, or two classes",
)
"""Meaning and advice."""


def _is_one(output: OutputFacts) -> bool:
    return output.low == output.high == 1 == math.prod(output.shape[1:])


@dataclass(frozen=True, slots=True)
class ConstantOutputCheck(BuiltInCheck):
    """The same output for every image, at the last two logged steps, the first not counted.

    Outputs of one unit do not count, since the answers of a critic to a batch of one kind are
    alike, unless they are maps as large as the images, labels of both kinds are known, the loss
    pulls them apart, or all are 1, as those of a softmax. But they do if a loss pulls all of them
    to one value that is no round number, or another one at each step. So do mean and log-variance
    of a code next to 0 for every image, beside pictures made from it.

    Attributes:
        spread: mean over the units of (standard deviation over the images) / (mean magnitude), of
            every output, up to which it is reported.
        images: least number of images.
        code: magnitude up to which the values of mean and log-variance of a code tell nothing.
        least: number of logged steps at the end of the run at which they must be so.
    """

    spread: float = 5e-3
    images: int = 4
    code: float = 0.3
    least: int = 4
    kind: ClassVar[str] = "constant_output"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        every = outputs(record)
        yield from self._empty_code(every)
        for name, steps in every.items():
            targets: dict[int, float] = {}
            for step, output in steps.items():
                if output.target is not None:
                    targets[step] = output.target
            if len(targets) < 3 or _are_of_critic(list(targets.values())):
                continue
            first, second = list(targets)[:2]
            yield Finding(
                message=f"the loss pulls all outputs{quoted(name)} to one value, to "
                f"{rounded(targets[first])} at step {first} and to {rounded(targets[second])} "
                f"at step {second}",
                since_step=first,
                value=len(targets),
                healthy="a target for each image",
                meaning="Outputs of shape [N, 1] and targets of shape [N], or the reverse, "
                "are broadcast to [N, N]: the network learns the mean of the targets",
                advice="Give both the same shape, such as output.squeeze(1)",
            )
            return
        yield from self._constant(record, every)

    def _constant(self, record: RunRecord, every: Mapping[str, Steps]) -> Iterator[Finding]:
        """All outputs nearly the same for all images."""
        begins = []
        for steps in every.values():
            later = dict(list(steps.items())[1:])
            since = lasting(later, lambda output: self._is_constant(record, output), 2)
            if since is None:
                return
            begins.append(since)
        if not begins:
            return
        last = [list(steps.values())[-1] for steps in every.values()]
        value = max(output.spread or 0.0 for output in last)
        if all(map(_is_one, last)):
            begin = None
            text = "exactly 1 for every image"
            meaning, advice = _SOFTMAX_OF_ONE
        else:
            begin = max(begins)
            text = f"nearly the same for all images since step {begin}: it varies by "
            text += f"{rounded(value)} of its magnitude"
            meaning, advice = _COLLAPSED
        yield Finding(
            message=f"the output is {text}",
            since_step=begin,
            value=value,
            healthy="0.03 or more",
            meaning=meaning,
            advice=advice,
        )

    def _empty_code(self, every: Mapping[str, Steps]) -> Iterator[Finding]:
        """Two outputs of the same few units next to 0, beside a larger one: a variational code."""
        shapes = {name: list(steps.values())[-1].shape for name, steps in every.items()}
        small = {name: shape for name, shape in shapes.items() if len(shape) == 2}
        for (name, shape), (other, same) in pairwise(small.items()):
            pictures = [
                larger
                for larger in shapes.values()
                if larger[:1] == shape[:1] and math.prod(larger) > 2 * math.prod(shape)
            ]
            sizes = [_magnitudes(every[name]), _magnitudes(every[other])]
            is_code = shape == same and bool(pictures)
            if not is_code or not all(map(self._tells_nothing, sizes)):
                continue
            largest = max(magnitudes[-1] for magnitudes in sizes)
            yield Finding(
                message=f"an empty code: the outputs `{name}` and `{other}` are within "
                f"±{rounded(largest)} of 0 for all images",
                value=largest,
                healthy=f"some beyond ±{self.code}",
                meaning="If they are mean and log-variance of an autoencoder's code, it tells "
                "nothing of the image: its divergence outweighs the error of the output",
                advice="Weigh the divergence less, or sum the error over the pixels as well",
            )

    def _tells_nothing(self, magnitudes: Sequence[float]) -> bool:
        """True if values, of which these are the magnitudes at each step, stay near 0."""
        return max(magnitudes[-self.least :]) <= self.code and magnitudes[-1] <= magnitudes[0]

    def _is_constant(self, record: RunRecord, output: OutputFacts) -> bool:
        is_one_unit = output.shape[1:2] in ((), (1,)) and not is_full(record, output)
        may_be_critic = len(output.labels or ()) < 2 and not output.is_pulled_apart
        if is_one_unit and may_be_critic and not _is_one(output):
            return False
        is_same = output.spread is not None and output.spread <= self.spread
        return is_same and output.shape[0] >= self.images and (output.predictions or 1) == 1


def _are_of_critic(targets: Sequence[float]) -> bool:
    """True for the same round number, of one decimal, at each step: the label of a batch."""
    values = np.array(targets)
    tenths = abs(values[0]) * 10
    is_round = abs(tenths - round(tenths)) < 0.01
    return bool(np.ptp(values) < 1e-3 * np.abs(values).max() and is_round)


def _magnitudes(steps: Steps) -> list[float]:
    """The largest magnitude of an output at each step."""
    return [max(-output.low, output.high) for output in steps.values()]


def has_constant_output(record: RunRecord) -> bool:
    """True if `ConstantOutputCheck` finds something."""
    try:
        return bool(ConstantOutputCheck()(record))
    except NotRecorded:
        return False


class Labels(NamedTuple):
    """The hard labels of the images, or of their pixels, of several logged steps.

    Attributes:
        classes: size of the class axis.
        first: the first of the steps.
        counts: label -> number of images, of each step.
        is_per_image: False for those of pixels, which are not independent of each other.
    """

    classes: int
    first: int
    counts: tuple[Mapping[int, int], ...]
    is_per_image: bool

    @property
    def total(self) -> Counter[int]:
        """Label -> number of images."""
        return sum(map(Counter, self.counts), Counter[int]())


def labels_of(steps: Steps) -> Labels | None:
    """The labels of an output; None if there is no hard label per image or per pixel.

    Not read are losses against more candidates than there are images, whose label is the place of
    the right one: 0.
    """
    known = {step: output for step, output in steps.items() if output.labels and output.classes}
    if not known:
        return None
    last = list(known.values())[-1]
    counts = tuple(dict(output.labels or ()) for output in known.values())
    is_per_image = last.label_changes is not None
    classes = last.classes or 0
    if classes > last.rows and all(set(by_label) == {0} for by_label in counts):
        return None
    return Labels(classes, min(known), counts, is_per_image)


@dataclass(frozen=True, slots=True)
class OneLabelCheck(BuiltInCheck):
    """All images have the same label.

    Attributes:
        steps: least number of logged steps.
        images: least number of labels.
        pixels: least number of labels if they are pixels of nothing but background, of at least
            ``images`` images.
        loss: that of two classes up to which it counts; a critic is not as sure of a batch.
    """

    steps: int = 4
    images: int = 64
    pixels: int = 20_000
    loss: float = 0.01
    kind: ClassVar[str] = "one_label"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            labels = labels_of(steps)
            if labels is None or len(labels.counts) < self.steps or len(labels.total) > 1:
                continue
            label, count = labels.total.most_common(1)[0]
            is_empty = label == 0 and not labels.is_per_image
            images = sum(output.shape[0] for output in steps.values() if output.labels)
            if count < self.images:
                continue
            if is_empty and (images < self.images or count < self.pixels):
                continue
            last = list(steps.values())[-1]
            may_be_critic = labels.classes == 1 and not (is_empty and is_full(record, last))
            if labels.is_per_image:
                may_be_critic = labels.classes < 3 and (last.loss is None or last.loss > self.loss)
            if may_be_critic:
                continue  # its batch has one label
            yield Finding(
                message=f"all {count:,} labels of the output{quoted(name)} at "
                f"{len(labels.counts)} {record.steps_called} are {label}, of "
                f"{max(labels.classes, 2)} classes",
                since_step=labels.first,
                value=label,
                healthy="several labels",
                meaning="The network learns to give one answer, whatever the image: the "
                "labels are lost on their way, or the data are sorted by class and not "
                "shuffled",
                advice="Print the labels of a few batches; shuffle the data",
            )


def is_full(record: RunRecord, output: OutputFacts) -> bool:
    """True if an output is maps as large as the largest maps of the network."""
    if len(output.shape) <= 2 or record.health is None:
        return False
    values = output.shape[0] * math.prod(output.shape[2:])  # per channel
    return not values < np.nanmax(record.health.columns["values"])


@dataclass(frozen=True, slots=True)
class SortedLabelsCheck(BuiltInCheck):
    """Batches of nearly one class each, and other classes at other steps.

    Attributes:
        steps: least number of logged steps.
        images: least number of labels per step.
        share: median share of the most frequent label in a batch from which it is reported, if that
            of all steps together is below 0.75 times it.
        in_order: the same where equal labels are neighbours in each batch.
    """

    steps: int = 4
    images: int = 8
    share: float = 0.8
    in_order: float = 0.5
    kind: ClassVar[str] = "sorted_labels"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            labels = labels_of(steps)
            if labels is None or not labels.is_per_image or labels.classes < 3:
                continue
            sizes = [sum(by_label.values()) for by_label in labels.counts]
            if len(sizes) < self.steps or min(sizes) < self.images:
                continue
            shares = [
                max(by_label.values()) / size
                for by_label, size in zip(labels.counts, sizes, strict=True)
            ]
            share = float(np.median(shares))
            total = labels.total
            least = self.in_order if all(map(_is_in_order, steps.values())) else self.share
            if share < least or max(total.values()) / total.total() > 0.75 * share:
                continue
            yield Finding(
                message=f"{100 * share:.0f} % of the labels of a batch are the same (median "
                f"of {len(sizes)} {record.steps_called}), and {len(total)} labels occur at "
                f"these steps, in the output{quoted(name)}",
                since_step=labels.first,
                value=share,
                healthy="batches of several classes",
                meaning="The data are sorted: each batch teaches one answer and forgets the others",
                advice="Shuffle the data: DataLoader(..., shuffle=True)",
            )


def _is_in_order(output: OutputFacts) -> bool:
    """True if equal labels of a batch are neighbours, or none is known."""
    return not output.labels or output.label_changes == len(output.labels) - 1


@dataclass(frozen=True, slots=True)
class UnusedClassesCheck(BuiltInCheck):
    """Classes of the output that no label names.

    Reported only if a class half as frequent as the rarest of those that occur, and one of a fifth
    of their mean frequency, would be missing with less than this chance, and not of batches that
    are the same or sorted by class, nor of pixels or words, most of which are rare.

    Attributes:
        chance: 0 to 1.
        many: the same, by the rarest alone, where three quarters or more are missing.
    """

    chance: float = 1e-3
    many: float = 0.02
    kind: ClassVar[str] = "unused_classes"
    unless: ClassVar[tuple[str, ...]] = ("sorted_labels",)

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        every = record.facts.values()
        digests = [facts.batch_digest for facts in every if facts.batch_digest is not None]
        if len(set(digests)) < len(digests):
            return
        for name, steps in outputs(record).items():
            labels = labels_of(steps)
            if labels is None or len(labels.total) < 2 or not labels.is_per_image:
                continue
            if max(map(len, labels.counts)) >= MAX_NAMES:
                continue  # of more labels than these, not all are known
            count = labels.total.total()
            used = len(labels.total)
            least = min(labels.total.values()) / 2
            chance = self.many
            if used * 4 > labels.classes:
                least = min(least, -count * math.log1p(-0.2 / used))
                chance = self.chance
            if used >= labels.classes or math.exp(-least) >= chance:
                continue
            yield Finding(
                message=f"the output{quoted(name)} has {labels.classes} classes, and "
                f"{count:,} labels at {len(labels.counts)} {record.steps_called} name {used} "
                "of them",
                since_step=labels.first,
                value=labels.classes - used,
                healthy="each class occurs",
                meaning="The last layer has more outputs than classes, or classes are lost",
                advice="Compare the number of outputs with the labels of the whole data set; "
                "nothing is wrong if some classes are rare or reserved",
            )


def _loss_at_0(step: int, output: OutputFacts) -> float | None:
    """The loss at step 0 if this step tells it: it may be certain only at a later one."""
    if step == 0:
        return output.loss
    if output.held is not None and output.held.step == 0:
        return output.held.loss
    return None


@dataclass(frozen=True, slots=True)
class InitialLossCheck(BuiltInCheck):
    """A cross-entropy at step 0 far above that of guessing, ln(number of classes).

    Or targets that are all far beyond the outputs at the first logged steps.

    Attributes:
        factor: of ln(classes), from which it is reported, if it is also above ln(classes) + 1.
        away: distance of the targets in units of the largest output, from which it is reported.
        first: least number of logged steps.
        span: of training steps that they cover: a network soon gets to targets like ages.
    """

    factor: float = 2.0
    away: float = 20.0
    first: int = 4
    span: int = 20
    kind: ClassVar[str] = "initial_loss"

    def _found(self, record: RunRecord) -> Iterator[Finding]:
        for name, steps in outputs(record).items():
            far = self._far_targets(name, steps)
            if far is not None:
                yield far
                continue
            classes = 1
            loss = 0.0
            for step, output in steps.items():
                at_0 = _loss_at_0(step, output)
                if _is_over_classes(output) and at_0 is not None:
                    classes = output.classes or 1
                    loss = at_0
                    break
            guessed = math.log(classes)
            if loss < max(self.factor * guessed, guessed + 1) or not guessed:
                continue
            yield Finding(
                message=f"the loss of the output{quoted(name)} is {loss:.3g} at step 0, with "
                f"{classes} classes",
                since_step=0,
                value=loss,
                healthy=f"near ln {classes} = {guessed:.3g}, that of guessing",
                meaning="The initial logits are large, so the network starts out sure of "
                "wrong answers: the last layer's weights or the images are not scaled, or the "
                "labels are not those that loaded weights were trained on",
                advice="Initialize the last layer with small weights, and scale the images",
            )

    def _far_targets(self, name: str, steps: Steps) -> Finding | None:
        """Targets that are far beyond the outputs, at all of the first steps but one."""
        start = min(steps)
        early = [
            step
            for index, step in enumerate(steps)
            if index < self.first or step <= start + self.span
        ]
        if len(early) < self.first or early[-1] < start + self.span:
            return None
        far = sorted(steps[step].away for step in early)[1:]  # at one it may not be certain
        if far[0] < self.away:
            return None
        return Finding(
            message=f"the targets of the output{quoted(name)} are far beyond all of its "
            f"values, {rounded(far[0])} times as far as the largest or more at {len(far)} of "
            f"the first {len(early)} logged steps (taken for a mean squared error)",
            since_step=start,
            value=far[0],
            healthy="targets around the outputs",
            meaning="The network needs very long to get there: the targets are not scaled",
            advice="Subtract the mean of the targets and divide by their deviation",
        )
