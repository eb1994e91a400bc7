"""Whether labels belong to images: what is learnt on some batches must hold for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.batches import with_tensors
from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Call, Setup
from fmapboard.rehearsal.training_copy import TrainingCopy

_MANY = 64
"""Labels; with fewer, nothing is judged."""
_MOST_FEATURES = 1024
_MOST_EPOCHS = 30
_SIDE = 8
"""Images are averaged to this many px per side."""
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
    predict nothing. The linear models see the images at 8 × 8 px, counts of tokens, or what the
    last layer of the network gets.

    A fault: the network has learnt some batches by heart, and of the others, the loss is the same
    if their labels are exchanged: labels were shuffled, or belong to other images. Or all labels
    are the same.

    Not judged: one batch alone, fewer than 64 labels, labels that are neither classes nor numbers.

    Attributes:
        certain: standard deviations above guessing, from which labels belong to images.
        learnt: share of the first loss at which batches are learnt by heart.
        gain: share by which exchanged labels raise the loss, above which they may belong to images.
    """

    certain: float = 4.0
    learnt: float = 0.35
    gain: float = 0.08
    kind: ClassVar[str] = "labels_fit_images"
    question: ClassVar[str] = "Do labels belong to images?"
    bound: ClassVar[str] = "better than guessing on other batches"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        if len(setup.batches) < 2:
            return not_judged("it takes several batches: pass the loader in place of one batch")
        classes = setup.classes()
        if classes is not None and len(classes) >= _MANY and len(set(classes.tolist())) == 1:
            return fault(
                f"all {len(classes)} labels are {int(classes[0])}",
                figure=1.0,
                advice="Look at how labels are read, and at the order of the data: shuffle it",
            )
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
        return self._by_network(setup, best)

    def _by_network(self, setup: Setup, linear: _Agreement | None) -> Answer:
        text = "linear models predict nothing" if linear is None else _in_words(linear)
        known = (len(setup.batches) + 1) // 2
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
        if not 0 < fmean(curve[-known:]) <= self.learnt * curve[0]:
            return not_judged(f"{learnt}: not learnt by heart", None, curves)
        return self._held_out(setup, copy, known, learnt, curves)

    def _held_out(
        self,
        setup: Setup,
        copy: TrainingCopy,
        known: int,
        learnt: str,
        curves: dict[str, tuple[float, ...]],
    ) -> Answer:
        own: list[float] = []
        exchanged: list[float] = []
        for batch in setup.batches[known:]:
            pair = _with_exchanged_labels(setup, copy, batch)
            if pair is not None:
                own.append(pair[0])
                exchanged.append(pair[1])
        if len(own) < 2:
            return not_judged(f"{learnt}; labels of the other batches are all alike", None, curves)
        gains = [1 - loss / other for loss, other in zip(own, exchanged, strict=True)]
        gain = fmean(gains)
        error = max(stdev(gains) / sqrt(len(gains)), 1e-6)
        text = (
            f"{learnt}; that of {len(own)} others is {fmean(own):.3g}, and {fmean(exchanged):.3g} "
            "with exchanged labels"
        )
        if gain / error >= self.certain:
            return fine(text, gain, curves)
        if gain > self.gain or gain / error > 2.5:
            return not_judged(f"{text}: too little to tell", gain, curves)
        return fault(
            f"labels do not belong to images: {text}",
            figure=gain,
            advice="Look at what shuffles, sorts or indexes "
            "only one of the two, and at a few pairs",
            curves=curves,
        )


def _with_exchanged_labels(
    setup: Setup, copy: TrainingCopy, batch: Any
) -> tuple[float, float] | None:
    """The loss of a batch, and its mean with labels of other images; None if labels are alike."""
    label = setup.task.parts(batch).label
    if not isinstance(label, Tensor) or len(label) < 3:
        return None
    rolled = [label.roll(shift, 0) for shift in (1, len(label) // 3, len(label) // 2)]
    differs = (rolled[0] != label).reshape(len(label), -1).any(1)
    if float(differs.double().mean()) < 0.3:
        return None
    losses = []
    for given in (label, *rolled):
        changed = with_tensors(batch, {id(label): given})
        loss = setup.forward(copy, changed, needs_loss=True).loss
        losses.append(float("nan") if loss is None else float(loss))
    own, *others = losses
    if not own > 0 or not all(other > 0 for other in others):
        return None
    return own, fmean(others)


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
        found.append(_of_input(torch.cat([tensor.detach().cpu() for tensor in inputs])))
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
