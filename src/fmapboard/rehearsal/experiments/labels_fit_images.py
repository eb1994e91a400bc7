"""Whether labels belong to images: what is learnt on some batches must hold for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.batches import labels_of, with_tensors
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.orientation import misplaced
from fmapboard.rehearsal.setup import Call, Setup
from fmapboard.rehearsal.training_copy import TrainingCopy

_REPEATED = 3
"""Batches that are the same by mistake; two may be given twice on purpose."""
_MANY = 64
"""Labels; with fewer, nothing is judged."""
_LEAST_BATCHES = 3
"""Of which a standard error is known."""
_PER_CLASS = 8
"""Labels of a class in the batches that are learnt; with fewer, others cannot be predicted."""
_MOST_FEATURES = 1024
_MOST_EPOCHS = 30
_SIDE = 8
"""Images are averaged to this many px per side."""
_PLACES = 8
"""Tokens at this many places at each end are told apart."""
_KINDS = 64
"""Tokens at a place are told apart by their number modulo this."""
_WORDS = 512
"""Tokens are counted by their number modulo this."""


class _Agreement(NamedTuple):
    """How well labels of other batches are predicted.

    Attributes:
        share: accuracy, or correlation.
        chance: what guessing has.
        deviations: the difference, in standard deviations of guessing.
        samples: over how many.
    """

    share: float
    chance: float
    deviations: float
    samples: int


@dataclass(frozen=True, slots=True)
class LabelsFitImages(Experiment):
    """A linear model, and if that does not, the network, learn some batches and predict the others.

    It costs one forward pass of each batch that was drawn, and up to 240 steps if the linear models
    predict nothing. The linear models see the images at 8 × 8 px, their extremes and
    frequencies, counts of tokens and the tokens at both ends, or what the last layer of the network
    gets.

    A suspicion: exchanged labels raise the loss of the batches that the network has learnt, and
    leave that of the others as it is, as far as their standard error tells. Labels were shuffled,
    or belong to other images, or the task takes more images than were drawn, or its labels are
    mostly noise. All batches are the same, and each was read anew. A
    fault: all labels are the same, or come in the order of classes; a linear model predicts the
    label of the next image, and not its own; masks whose edges lie on those of the images only once
    they are transposed, flipped or turned.

    Not judged: one batch alone, fewer than 64 labels, or 8 to learn of each class; labels that are
    neither classes nor numbers; losses that compare sets, of which each order is as good.

    Attributes:
        certain: standard deviations above guessing, from which labels belong to images.
        certain_of_others: the same, from which they belong to other images of the batch.
        doubtful: standard errors above which exchanged labels may raise a loss.
        learnt: share of the first loss at which batches are learnt by heart, and training ends.
        holds: share of the rise of learnt batches that others must have, if labels belong to them.
    """

    certain: float = 4.0
    certain_of_others: float = 7.0
    doubtful: float = 2.5
    learnt: float = 0.35
    holds: float = 0.15
    kind: ClassVar[str] = "labels_fit_images"
    question: ClassVar[str] = "Do labels belong to images?"
    bound: ClassVar[str] = "better than guessing on other batches"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        turned = _misplaced(setup)
        if turned is not None:
            return turned
        if len(setup.batches) < 2:
            return not_judged("it takes several batches: pass the loader in place of one batch")
        classes = setup.classes()
        if classes is not None and len(classes) >= _MANY and len(set(classes.tolist())) == 1:
            return fault(
                f"all {len(classes)} labels are {int(classes[0])}",
                figure=1.0,
                advice="Look at how labels are read, and at the order of the data: shuffle it",
            )
        repeated = _repeated(setup) or _in_order(setup)
        if repeated is not None:
            return repeated
        targets = _targets(setup)
        if targets is None:
            return not_judged("the labels are neither classes nor numbers per image")
        if len(targets) < _MANY:
            return not_judged(f"there are {len(targets)} labels, and it takes {_MANY}")
        best: _Agreement | None = None
        for features in _features(setup, len(targets)):
            found = _linear(features, targets)
            if best is None or found.deviations > best.deviations:
                best = found
            if found.deviations >= self.certain:
                return fine(
                    f"a linear model predicts other batches: {_in_words(found)}", found.share
                )
        moved = self._moved(setup, targets)
        return moved or self._by_network(setup, best)

    def _moved(self, setup: Setup, targets: Tensor) -> Answer | None:
        """A fault if labels belong to the next image, the one before, or to the reverse order."""
        sizes = [len(tensors(setup.task.parts(batch).label)[0]) for batch in setup.batches]
        parts = torch.split(targets, sizes)
        ways = {
            "the next image": torch.cat([part.roll(-1, 0) for part in parts]),
            "the image before": torch.cat([part.roll(1, 0) for part in parts]),
            "the image at the same place from the end": torch.cat([p.flip(0) for p in parts]),
        }
        for features in _features(setup, len(targets)):
            for name, other in ways.items():
                found = _linear(features, other)
                if found.deviations >= self.certain_of_others:
                    return fault(
                        f"a linear model predicts the label of {name} ({_in_words(found)}), and "
                        "not that of the image",
                        figure=found.share,
                        advice="Look at the index of images and labels where they are read",
                    )
        return None

    def _by_network(self, setup: Setup, linear: _Agreement | None) -> Answer:
        text = "linear models predict nothing" if linear is None else _in_words(linear)
        known = (len(setup.batches) + 1) // 2
        classes = setup.classes()
        if classes is not None and len(classes) < 2 * _PER_CLASS * len(set(classes.tolist())):
            return not_judged(f"there are too few labels of each class; linear models: {text}")
        copy = setup.make_copy()
        batches = setup.batches[:known]
        curve: list[float] = []
        for _ in range(_MOST_EPOCHS):
            if setup.remaining() <= setup.step_seconds * known:
                return not_judged(f"no time to train on {known} batches; linear models: {text}")
            curve += copy.train(batches, setup.task, known)
            if fmean(curve[-known:]) <= self.learnt * curve[0]:
                break
        curves = {f"{known} batches": tuple(curve)}
        learnt = f"loss of {known} batches {curve[0]:.3g} → {fmean(curve[-known:]):.3g}"
        return self._judged(setup, copy, known, learnt, curves)

    def _judged(
        self,
        setup: Setup,
        copy: TrainingCopy,
        known: int,
        learnt: str,
        curves: dict[str, tuple[float, ...]],
    ) -> Answer:
        own = _exchange(setup, copy, setup.batches[:known])
        others = _exchange(setup, copy, setup.batches[known:])
        if own is None or others is None:
            return not_judged(f"{learnt}; there are too few batches of labels", None, curves)
        text = (
            f"{learnt}, {own.exchanged:.3g} with exchanged labels; that of {others.batches} others "
            f"is {others.loss:.3g}, and {others.exchanged:.3g} with exchanged labels"
        )
        if own.deviations < self.doubtful:
            return not_judged(f"{text}: nothing is learnt by heart", None, curves)
        share = others.gain / own.gain
        if others.deviations >= self.certain:
            return fine(text, share, curves)
        highest = others.gain + others.error
        if highest > self.holds * own.gain or others.deviations > self.doubtful:
            return not_judged(f"{text}: too little to tell", share, curves)
        return Answer(
            "suspicion",
            f"labels may not belong to images: {text}",
            share,
            "Look at what shuffles, sorts or indexes only one of the two, and at a few pairs. If "
            "these are right, the task takes more images than were drawn",
            curves=curves,
        )


def _misplaced(setup: Setup) -> Answer | None:
    """A fault if masks lie on their images in another way."""
    labels = setup.labels()
    inputs = [setup.inputs(batch)[0] for batch in setup.batches]
    if labels is None or len({tensor.shape[1:] for tensor in inputs}) != 1:
        return None
    if labels.is_complex() or any(not tensor.is_floating_point() for tensor in inputs):
        return None
    return misplaced(torch.cat([tensor.detach() for tensor in inputs]), labels)


def _repeated(setup: Setup) -> Answer | None:
    """A suspicion if all batches hold the same images, and each was read anew."""
    if len(setup.batches) < _REPEATED:
        return None
    first = tensors(setup.batches[0])
    is_read_again = False
    for batch in setup.batches[1:]:
        others = tensors(batch)
        if len(first) != len(others) or not all(map(_are_equal, first, others)):
            return None
        is_read_again |= any(map(_is_copy, first, others))
    if not is_read_again:  # the same tensors are given again on purpose
        return not_judged("all batches are one and the same")
    return Answer(
        "suspicion",
        f"all {len(setup.batches)} batches are the same",
        float(len(setup.batches)),
        "Look at how batches are drawn, unless each one is the whole data set: next(iter(loader)) "
        "begins anew each time",
    )


def _is_copy(tensor: Tensor, other: Tensor) -> bool:
    return tensor.data_ptr() != other.data_ptr()


def _are_equal(tensor: Tensor, other: Tensor) -> bool:
    return tensor.shape == other.shape and torch.equal(tensor, other)


def _in_order(setup: Setup) -> Answer | None:
    """A fault if labels come in the order of classes, so that batches hold different ones."""
    classes = setup.classes()
    if classes is None or len(classes) < _MANY:
        return None
    steps = classes.diff()
    if not bool((steps >= 0).all() or (steps <= 0).all()):
        return None
    kinds = [set(label.flatten().tolist()) for label in _labels(setup)]
    if all(kind == kinds[0] for kind in kinds):
        return None
    return fault(
        f"labels come in the order of classes: the first batch holds only "
        f"{', '.join(map(str, sorted(kinds[0])))}",
        figure=float(len(kinds[0])),
        advice="Shuffle the data: shuffle=True of the DataLoader",
    )


def _labels(setup: Setup) -> list[Tensor]:
    found = labels_of(setup.batches, setup.task)
    return [label for label in found if label is not None]


class _Exchange(NamedTuple):
    """What exchanged labels make of the loss of some batches.

    Attributes:
        loss: with their labels, the mean.
        exchanged: the same with labels of other images of the batch.
        error: the standard error of the difference.
        batches: how many.
    """

    loss: float
    exchanged: float
    error: float
    batches: int

    @property
    def gain(self) -> float:
        """By how much exchanged labels raise the loss."""
        return self.exchanged - self.loss

    @property
    def deviations(self) -> float:
        """The same in its standard errors."""
        return self.gain / self.error


def _exchange(setup: Setup, copy: TrainingCopy, batches: Sequence[Any]) -> _Exchange | None:
    """Exchange labels of batches; None if there are none to exchange in three batches."""
    own = []
    exchanged = []
    for batch in batches:
        pair = _with_exchanged_labels(setup, copy, batch)
        if pair is not None:
            own.append(pair[0])
            exchanged.append(pair[1])
    if len(own) < _LEAST_BATCHES:
        return None
    gains = [other - loss for loss, other in zip(own, exchanged, strict=True)]
    error = stdev(gains) / sqrt(len(gains))
    scale = max(error, 1e-6 * abs(fmean(own)), 1e-30)
    return _Exchange(fmean(own), fmean(exchanged), scale, len(own))


def _with_exchanged_labels(
    setup: Setup, copy: TrainingCopy, batch: Any
) -> tuple[float, float] | None:
    """The loss of a batch, and its mean with labels of other images; None if labels are alike.

    Labels are all tensors of the batch that the network does not get.
    """
    given = {id(tensor) for tensor in setup.inputs(batch)}
    labels = [tensor for tensor in tensors(batch) if id(tensor) not in given and tensor.dim()]
    size = min(map(len, labels), default=0)
    if size < 3:
        return None
    differs = torch.zeros(size, dtype=torch.bool, device=labels[0].device)
    for label in labels:
        differs |= (label.roll(1, 0) != label)[:size].reshape(size, -1).any(1)
    if float(differs.double().mean()) < 0.3:
        return None
    losses = []
    for shift in (0, 1, size // 3, size // 2):
        rolled = {id(label): label.roll(shift, 0) for label in labels}
        loss = setup.forward(copy, with_tensors(batch, rolled), needs_loss=True).loss
        losses.append(float("nan") if loss is None else float(loss))
    own, *others = losses
    return (own, fmean(others)) if all(map(isfinite, losses)) else None


def _in_words(found: _Agreement) -> str:
    return f"{found.share:.2g} of {found.samples}, where guessing has {found.chance:.2g}"


def _targets(setup: Setup) -> Tensor | None:
    """What is to be predicted, float64 [N, K]: classes one-hot, numbers standardized."""
    classes = setup.classes()
    if classes is not None:
        if int(classes.min()) < 0 or int(classes.max()) >= 2000 or len(set(classes.tolist())) < 2:
            return None
        return functional.one_hot(classes).double()
    labels = setup.labels()
    if labels is None or labels.is_complex():
        return None
    if not labels.is_floating_point() and labels.dim() < 3:
        return None  # tokens
    values = labels.detach().double().cpu()
    if values.dim() > 2:
        values = functional.adaptive_avg_pool1d(values.flatten(1)[:, None], 16)
    values = values.reshape(len(labels), -1)[:, :16]
    return (values - values.mean(0)) / values.std(0).clamp(min=1e-12)


def _features(setup: Setup, count: int) -> list[Tensor]:
    """What linear models see of the images, each float64 [N, F]."""
    found = []
    inputs = [setup.inputs(batch)[0] for batch in setup.batches]
    if len({tensor.shape[1:] for tensor in inputs}) == 1:
        images = torch.cat([tensor.detach().cpu() for tensor in inputs])
        found += [_of_input(images), *_others_of_input(images)]
    copy = setup.make_copy()
    rows: list[Tensor] = []
    for batch in setup.batches:
        if setup.remaining() < 0:
            break
        calls = setup.forward(copy, batch, training=False).calls
        size = len(tensors(setup.task.parts(batch).label)[0])
        own = _before_last(calls, size)
        if own is None:
            break
        rows.append(own)
    if len(rows) == len(setup.batches) and len({row.shape[1] for row in rows}) == 1:
        found.append(torch.cat(rows))
    return [features for features in found if len(features) == count]


def _of_input(images: Tensor) -> Tensor:
    """[N, …] -> float64 [N, F]."""
    if not images.is_floating_point() and images.dim() == 2:
        counts = torch.zeros(len(images), _WORDS, dtype=torch.float64)
        ones = torch.ones(images.shape, dtype=torch.float64)
        return counts.scatter_add_(1, images.long() % _WORDS, ones).sqrt()
    values = images.double().nan_to_num()
    if values.dim() == 4:
        side = (min(_SIDE, values.shape[2]), min(_SIDE, values.shape[3]))
        values = functional.adaptive_avg_pool2d(values, side)
    flat = values.flatten(1)
    step = max(1, flat.shape[1] // _MOST_FEATURES)
    return flat[:, ::step]


def _others_of_input(images: Tensor) -> list[Tensor]:
    """What pixels and counts do not tell a linear model, each float64 [N, F].

    Of tokens, which one is at the first and the last places. Of others, the mean, deviation and
    extremes of each channel, and how strong each frequency along the last axis is.
    """
    if not images.is_floating_point():
        if images.dim() != 2 or images.shape[1] < 2:
            return []
        most = min(images.shape[1], 2 * _PLACES)
        places = torch.cat([images[:, : (most + 1) // 2], images[:, -(most // 2) :]], 1)
        one_hot = functional.one_hot(places.long() % _KINDS, _KINDS)
        return [one_hot.flatten(1).double()]
    if images.dim() < 3:
        return []
    values = images.double().nan_to_num().flatten(2)  # [N, C, ...]
    parts = [values.mean(2), values.std(2), values.amin(2), values.amax(2)]
    found = [torch.cat(parts, 1)]
    along = images.double().nan_to_num().movedim(1, -1) if images.dim() == 3 else images.double()
    strengths = torch.fft.rfft(along, dim=-1).abs().flatten(1)
    step = max(1, strengths.shape[1] // _MOST_FEATURES)
    return [features for features in (*found, strengths[:, ::step]) if features.shape[1]]


def _before_last(calls: Sequence[Call], size: int) -> Tensor | None:
    """What the last layer with weights gets, averaged to one row per image."""
    for call in reversed(calls):
        weight = getattr(call.module, "weight", None)
        if weight is None or weight.dim() < 2 or not call.inputs:
            continue
        held = call.inputs[0].detach().double().cpu()
        if held.shape[0] != size:
            return None
        if held.dim() == 4:
            return held.mean((2, 3))
        return held.flatten(2).mean(1) if held.dim() == 3 else held.flatten(1)
    return None


def _linear(features: Tensor, targets: Tensor) -> _Agreement:
    """How well ridge regression predicts each fifth of the samples from the others."""
    centred = features - features.mean(0)
    deviation = centred.std(0)
    varies = deviation > 1e-9 * deviation.max().clamp(min=1e-300)
    scaled = centred[:, varies] / deviation[varies]
    kernel = scaled @ scaled.T / max(scaled.shape[1], 1)  # [N, N]
    count = len(targets)
    predicted = torch.zeros_like(targets)
    folds = torch.arange(count) * 5 // count
    for fold in range(5):
        others = folds != fold
        own = ~others
        gram = kernel[others][:, others] + 0.3 * torch.eye(int(others.sum()), dtype=torch.float64)
        mean = targets[others].mean(0)
        weights = torch.linalg.solve(gram, targets[others] - mean)
        predicted[own] = kernel[own][:, others] @ weights + mean
    if targets.shape[1] > 1 and bool((targets.sum(1) == 1).all()):
        labels = targets.argmax(1)
        balanced = predicted - targets.mean(0)
        shares = targets.mean(0)
        guessed = balanced.argmax(1)
        right = float((guessed == labels).double().mean())
        chance = float((shares[guessed]).mean())
        error = sqrt(max(chance * (1 - chance), 1e-4) / count)
        return _Agreement(right, chance, (right - chance) / error, count)
    together = torch.stack([predicted.flatten(), targets.flatten()])
    correlation = float(torch.corrcoef(together)[0, 1].nan_to_num())
    return _Agreement(correlation, 0.0, correlation * sqrt(count), count)
