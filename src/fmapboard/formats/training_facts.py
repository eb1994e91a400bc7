"""Stored format of the training facts, shared by writer, plugin and ``fmapboard check``.

One record per logged step of a training in the series ``tags.TRAINING_FACTS``: what only the
training process can know. A record is one JSON blob with the keys of `TrainingFacts` and
``format``. Lists of names are limited to `MAX_NAMES` entries; ``left_out`` says how many more each
had. Readers ignore keys that they do not know, such as ``frozen``, ``accumulated`` and
``is_next_token`` of earlier writers; a missing key has the default of `TrainingFacts`.

The series ``tags.FIRST_NONFINITE_RECORD`` has one record, of the first step with a non-finite
value: a JSON blob with the keys of `FirstNonfinite` and ``format``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

from fmapboard.formats.tab_records import (
    Signed,
    read_json,
    reading,
    stored,
    typed,
    write_json,
)

MAX_NAMES = 64
"""Maximum number of names and of images that are stored per list."""
MAX_EVAL_MODULES = 20
"""Maximum number of modules in eval mode that are stored."""
MAX_OUTPUTS = 8
"""Maximum number of outputs of the network that are recorded."""


OUTSIDE = "outside the model, of shape "
"""Start of what a parameter is called that the model uses, but does not have."""


class LossKind:
    """Kinds of losses that are mistakes, as in ``OutputFacts.kind``."""

    NLL_OF_PROBABILITIES = "NLL of probabilities"
    """Minus the probability of the label, whose logarithm is missing."""
    NLL_OF_LOGITS = "NLL of logits"
    """Minus the logit of the label, without a softmax."""
    BEYOND_1 = "BCE with logits, labels above 1"
    """BCE whose labels are 0 and other whole numbers, such as 255."""
    BELOW_0 = "BCE with logits, labels below 0"
    """BCE whose labels are -1 and 1."""
    SOFTMAX_TWICE = "cross-entropy, softmax twice"
    """The rows are logits, and two softmaxes follow."""


class NoLoss:
    """Why no loss was read of an output, as in ``TrainingFacts.no_loss``."""

    FEW_ROWS = "too few rows"
    """Fewer than eight rows have had a gradient so far."""
    NO_GRADIENT = "no gradient"
    """No gradient has reached what the network returned."""
    NOT_CERTAIN = "not certain"
    """The gradient is not for certain that of a loss that can be read."""
    SEVERAL = "several losses"
    """The gradient is the sum of several backward passes, and not that of a single loss."""


class Nonfinite(NamedTuple):
    """Counts of non-finite values, by kind."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0

    @property
    def kinds(self) -> dict[str, int]:
        """The kinds that were found, such as ``+Inf``, and how many of each."""
        kinds = zip(("NaN", "+Inf", "-Inf"), self, strict=True)
        return {kind: count for kind, count in kinds if count}

    def __str__(self) -> str:
        return ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.items())


Place = Literal["feature_maps", "inputs", "gradients_of_maps", "gradients"]
"""A tensor of a layer call, or the gradient of a parameter."""
_PLACES: dict[Place, str] = {
    "feature_maps": "activations",
    "inputs": "input",
    "gradients_of_maps": "gradient of the activations",
    "gradients": "gradient of parameter",
}


@dataclass(frozen=True, slots=True)
class FirstNonfinite:
    """Where the first non-finite value of a run was found.

    Attributes:
        step: the logged step.
        place: which tensor has it.
        owner: name of the layer or, of a parameter's gradient, of the parameter.
        type: the layer's class; "" for a parameter.
        call: number of the layer's call, from 1; 0 for a parameter.
        found: how many values of each kind the tensor has.
        total: number of values of the tensor; 0 if it is not known.
        counted: False if the counts are lower bounds.
        name: name of the model, which is not in the record but in the series' tag; "" for none.
    """

    step: int
    place: Place
    owner: str
    type: str
    call: int
    found: Nonfinite
    total: int
    counted: bool = True
    name: str = ""

    @property
    def label(self) -> str | None:
        """Label of the layer call; None for a parameter."""
        if self.place == "gradients":
            return None
        return f"{self.owner}.call{self.call}" if self.call > 1 else self.owner

    @property
    def tensor(self) -> str:
        """The tensor without its owner, such as ``gradient of the activations``."""
        return _PLACES[self.place]

    @property
    def where(self) -> str:
        """The tensor in markdown, such as ``input of layer `conv1` (Conv2d)``."""
        owner = f"`{plain(f'{self.name}: {self.owner}' if self.name else self.owner)}`"
        if self.place == "gradients":
            return f"{self.tensor} {owner}"
        call = f", call {self.call}" if self.call > 1 else ""
        return f"{self.tensor} of layer {owner} ({self.type}{call})"

    @property
    def text(self) -> str:
        """How many values were found and where, in markdown."""
        least = "" if self.counted else "at least "
        count = f"{least}{self.found}"
        if self.total:
            count += f" of {self.total:,}"
        return f"first non-finite values: {count} in the {self.where}"


def plain(name: str) -> str:
    """A name without backticks and line breaks, safe inside a markdown code span."""
    return name.replace("`", "'").replace("\n", " ")


@dataclass(frozen=True, slots=True)
class Unchanged:
    """For how long a parameter has not changed.

    Attributes:
        steps: number of logged windows without a change, in each of which an optimizer updated the
            parameter at a learning rate above 0; at least 1.
        since: the logged step whose weight is the same as now.
    """

    steps: int
    since: int


@dataclass(frozen=True, slots=True)
class Idle:
    """Backward passes whose gradients no optimizer uses, at a logged step without optimizer step.

    Attributes:
        steps: number of such steps in a row before this one, over which the weights are the same.
        since: the first of these steps; this one if ``steps`` is 0.
        is_held: some optimizer of the process holds a trainable parameter of the model; None if
            that is not known.
        is_cleared: no parameter had a gradient when the first backward pass of the step began: the
            gradients are not being accumulated.
    """

    steps: int
    since: int
    is_held: bool | None
    is_cleared: bool


class HeldLoss(NamedTuple):
    """What was read at an earlier logged step, and is certain since this one agrees with it.

    Attributes:
        step: the earlier step.
        loss: as in ``OutputFacts``.
        accuracy: as there.
    """

    step: int
    loss: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class OutputFacts:
    """An output of the network in the training pass, and the loss that its gradient is that of.

    A row is one vector over the classes: one per image, or one per pixel of a map of classes.

    Attributes:
        name: of the output, as in tags; "" for the only one.
        shape: of the whole output.
        rows: number of rows that were looked at, evenly spaced.
        low: smallest finite value of them; 0 if there is none.
        high: largest finite value of them; 0 if there is none.
        spread: mean over the units of (standard deviation over the images) / (mean magnitude); a
            unit is one value per image. None for fewer than two images.
        rows_are: what every row is: ``"probabilities"``, ``"log-probabilities"``, ``"never
            negative"`` or ``"any"``.
        predictions: number of different predictions: positions of the largest value or, of one
            unit, signs; None if the class axis is not known.
        kind: the loss: ``"cross-entropy"``, ``"cross-entropy, class weights"``, ``"cross-entropy,
            smoothing"``, ``"cross-entropy, mixed labels"``, ``"NLL of log-probabilities"``, ``"BCE
            with logits"``, one of `LossKind`, ``"weighted per sample"`` (labels are known, the loss
            is not) or ``"not certain"``. Later versions may store others.
        is_climbed: the gradient is that of the loss times -1: training makes the loss larger.
        is_softmax_of_softmax: the rows are probabilities, and the gradient is that of another
            softmax over them.
        loss: mean over the rows with a gradient, without weights; None if it is not known.
        factor: what that mean was multiplied by before ``backward``, such as the number of rows
            for a sum; without the factor of a GradScaler. None if it is not known.
        accuracy: share of these rows whose prediction is the label; None if it is not known.
        labels_ahead: the label of each token of a text that the network receives is the token
            itself (0), the next one (1), or the one behind that (2); None if it is another, or if
            the text does not tell.
        only_text: the network receives that text and, besides, nothing but masks.
        needs_places: equal tokens of a text have different labels.
        ignores_places: their rows are the same all the same; or, of an output [N, T, C], all rows
            of a sample with a gradient are the same, although the gradients and samples differ.
        attends_alike: their rows differ, but the first attention over the text gives equal tokens
            equal logits: it is dropout that makes the difference, or a later layer.
        labels: (label, number of rows) of hard labels, the `MAX_NAMES` most frequent; None if they
            were not read.
        classes: size of the class axis; None if it is not known.
        label_changes: number of neighbouring images whose labels differ; None if there is no hard
            label per image.
        held: what was read at an earlier step, if it is certain from this one on; None otherwise.
        given: loss and labels are those of ``board.loss``, and not read from the gradient.
        pulled: share of the values at one end of their range that an unknown loss pulls beyond it.
        target: the one value that the loss pulls all outputs of one unit to; None if they differ.
        is_pulled_apart: the loss makes some outputs of one unit larger, others smaller.
        away: about how far the targets are, in units of the largest output, if they differ and
            nearly all are on one side of them; 0 otherwise. Taken for a mean squared error.
    """

    name: str
    shape: tuple[int, ...]
    rows: int = 0
    low: float = 0.0
    high: float = 0.0
    spread: float | None = None
    rows_are: str = "any"
    predictions: int | None = None
    kind: str = "not certain"
    is_climbed: bool = False
    is_softmax_of_softmax: bool = False
    loss: float | None = None
    accuracy: float | None = None
    labels: tuple[tuple[Signed, int], ...] | None = None
    classes: int | None = None
    label_changes: int | None = None
    held: HeldLoss | None = None
    given: bool = False
    pulled: float = 0.0
    target: float | None = None
    is_pulled_apart: bool = False
    away: float = 0.0
    factor: float | None = None
    labels_ahead: int | None = None
    only_text: bool = False
    needs_places: bool = False
    ignores_places: bool = False
    attends_alike: bool = False


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """What only the training process knows about a logged step.

    Attributes:
        not_in_optimizer: trainable parameters that no optimizer holds; None if no optimizer of the
            model is known.
        not_cleared: parameters whose gradient still held that of an earlier, completed optimizer
            step when the first backward pass of the step began; None if that is not known.
        eval_modules: names of the modules that compute something else in eval mode, at most
            `MAX_EVAL_MODULES`; empty unless ``eval_mode`` is True. The root's name is empty.
        constant_images: indices in the batch of the images in which all values are equal; None if
            the input is no batch of images.
        identical_images: pairs of indices (i, j), i < j, of equal images, where i is the first of
            its kind; None if the input is no batch of images.
        nonfinite_weights: parameters of which one of the values kept for the histogram (all, up to
            16,384) was NaN or infinite before the optimizer's step; None if no weights were read.
        no_gradient: trainable parameters that an optimizer holds which stepped, without a gradient;
            None if no optimizer stepped.
        idle_group: those among them whose whole parameter group, one of several of an optimizer,
            has none.
        initial_norms: BatchNorm layers whose running variance is still mostly the initial one (see
            `measure.statistics.PendingGaps`).
        unchanged: parameter -> for how long it has not changed, although it has a gradient and its
            learning rate is above 0.
        changed_outside: parameter that an optimizer updates -> 2-norm of the change by other code
            between two optimizer steps, over that of the parameter before it; of those that were
            changed, from a few values of each.
        clamped: those of them of which nothing but the values beyond a range was changed, to its
            ends -> the largest magnitude that this has left of the values changed.
        weights_left: 2-norm of a weight over that at the first logged step, median over the
            weights; None if it is not known, or without weight decay.
        rates: lowest and highest learning rate of the parameter groups; None if it is not known.
        optimizers: names of the classes of the optimizers that stepped, such as ``AdamW``.
        new_optimizers: names of those among them that keep a momentum or averages, and that stepped
            for the first time.
        dtypes: number formats of the trainable parameters, such as ``float32``.
        weight_decays: lowest and highest weight decay of their parameter groups; None if it is not
            known.
        eval_mode: the recorded pass ran in eval mode, and its gradients were applied; None if
            nothing was trained.
        batch: number of images in the batch; None if the input is no batch of images.
        batch_digest: equal for the same images, in any order; None if they are not compared.
        not_called: parameters among ``no_gradient`` of layers that did not run in the recorded
            pass, and that nothing has changed since the first logged step.
        dropouts: module in training mode -> probability, for dropout of at least 0.5.
        idle: what a step without an optimizer step tells; None of others, and if the weights have
            changed since the last such step.
        outputs: the outputs of the network that had a gradient, at most `MAX_OUTPUTS`.
        no_loss: name of an output -> why no loss was read of it, one of `NoLoss`; later versions
            may store others. Without outputs of which it was read or given.
        estimated_updates: parameters whose update ratio is an estimate.
        next_key: rows of attention of self-attention over a text -> the smallest weight of the key
            behind the query's own, of the head in which it is largest; empty unless an output's
            labels are the next tokens.
        padding: rows of attention in which padding has weight -> its mean weight for the other
            tokens, of the head in which it is largest.
        off_one: rows of attention whose softmax is not over the keys -> how far the sum of a row is
            from 1 at most.
        is_causal: whether attention over the tokens of texts hides the next one in each layer; None
            if no such attention was seen. Of layers over texts as long as that of an output whose
            ``labels_ahead`` is known, if there are any.
        between_samples: rows of attention between the samples of the batch; empty if a layer
            attends over anything else.
        left_out: name of a field -> how many entries of it were not stored.
    """

    not_in_optimizer: tuple[str, ...] | None = None
    not_cleared: tuple[str, ...] | None = None
    eval_modules: tuple[str, ...] = ()
    constant_images: tuple[int, ...] | None = None
    identical_images: tuple[tuple[int, int], ...] | None = None
    nonfinite_weights: tuple[str, ...] | None = None
    no_gradient: tuple[str, ...] | None = None
    initial_norms: tuple[str, ...] = ()
    unchanged: Mapping[str, Unchanged] = field(default_factory=dict)
    rates: tuple[float, float] | None = None
    eval_mode: bool | None = None
    batch: int | None = None
    idle: Idle | None = None
    outputs: tuple[OutputFacts, ...] = ()
    batch_digest: str | None = None
    not_called: tuple[str, ...] = ()
    dropouts: Mapping[str, float] = field(default_factory=dict)
    no_loss: Mapping[str, str] = field(default_factory=dict)
    optimizers: tuple[str, ...] = ()
    weight_decays: tuple[float, float] | None = None
    estimated_updates: tuple[str, ...] = ()
    idle_group: tuple[str, ...] = ()
    new_optimizers: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    changed_outside: Mapping[str, float] = field(default_factory=dict)
    clamped: Mapping[str, float] = field(default_factory=dict)
    weights_left: float | None = None
    next_key: Mapping[str, float] = field(default_factory=dict)
    padding: Mapping[str, float] = field(default_factory=dict)
    off_one: Mapping[str, float] = field(default_factory=dict)
    is_causal: bool | None = None
    between_samples: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def count(self, name: str) -> int:
        """Number of entries of a field that is a list, with those that were not stored."""
        return len(getattr(self, name) or ()) + self.left_out.get(name, 0)


_OPTIONAL = (
    *("idle", "outputs", "batch_digest", "not_called", "dropouts", "no_loss", "optimizers"),
    *(
        "weight_decays",
        "estimated_updates",
        "changed_outside",
        "new_optimizers",
        "dtypes",
        "idle_group",
        "clamped",
        "weights_left",
    ),
    *("next_key", "padding", "off_one", "is_causal", "between_samples"),
    "left_out",
)
"""Fields that are not stored if they are empty or not known; a 0 is stored."""


def pack_training_facts(found: TrainingFacts) -> tuple[bytes, ...]:
    """The blob of a record, cut to the maximum number of entries per list.

    Raises:
        ValueError: a learning rate or a number of an output is not finite.
    """
    raw: dict[str, Any] = {}
    left_out = dict(found.left_out)
    for field_ in fields(found):
        name = field_.name
        value = getattr(found, name)
        most = {"eval_modules": MAX_EVAL_MODULES, "outputs": MAX_OUTPUTS}.get(name, MAX_NAMES)
        if isinstance(value, (tuple, Mapping)):
            kept = value[:most] if isinstance(value, tuple) else dict(list(value.items())[:most])
            if len(kept) < len(value):
                left_out[name] = left_out.get(name, 0) + len(value) - len(kept)
            value = kept
        raw[name] = stored(value)
    if found.rates is not None:
        raw["rates"] = {"lo": found.rates[0], "hi": found.rates[1]}
    raw["left_out"] = left_out
    for name in _OPTIONAL:
        if raw[name] in (None, [], {}):
            del raw[name]
    return (write_json(raw),)


def unpack_training_facts(blobs: Sequence[bytes | None]) -> TrainingFacts:
    """Parse and validate the blobs of a record.

    Raises:
        FormatError: the blob is missing, too large or damaged, or of a newer format.
    """
    with reading("the training facts are"):
        raw = read_json(blobs[0] if blobs else None)
        if raw.get("rates") is not None:
            raw["rates"] = [raw["rates"]["lo"], raw["rates"]["hi"]]
        found: TrainingFacts = typed(TrainingFacts, raw)
        return found


def pack_nonfinite(found: FirstNonfinite) -> tuple[bytes, ...]:
    """The blob of the record of the first non-finite value."""
    raw = stored(found)
    del raw["name"]
    return (write_json(raw),)


def unpack_nonfinite(blobs: Sequence[bytes | None], name: str) -> FirstNonfinite:
    """Parse and validate the blobs of the record of the first non-finite value.

    Args:
        blobs: the blobs.
        name: name of the model; "" for none.

    Raises:
        FormatError: the blob is missing, too large or damaged, or of a newer format.
    """
    with reading("the first non-finite value is"):
        found: FirstNonfinite = typed(FirstNonfinite, read_json(blobs[0] if blobs else None))
        return replace(found, name=name)
