"""Loss and labels of ``board.loss``; a file of its own, as the user gives them, not autograd."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import torch
from torch import Tensor

from fmapboard.arithmetic import ceil_div
from fmapboard.capture.isolation import aside
from fmapboard.formats.training_facts import MAX_NAMES, OutputFacts
from fmapboard.gradients.loss import predictions
from fmapboard.gradients.outputs import MAX_ROWS, PendingOutput
from fmapboard.gradients.rounding import in_float64

IGNORED = -100
"""The label that losses of torch ignore by default."""


@dataclass(frozen=True, slots=True)
class GivenLoss:
    """Copies of what the user gave, still on its device.

    Attributes:
        loss: [R], of evenly spaced images; [1] if it is one number.
        labels: [N], of all images; None if there are none.
    """

    loss: Tensor
    labels: Tensor | None = None

    @classmethod
    def copied(cls, loss: Tensor | float, labels: Tensor | None) -> GivenLoss:
        """Copy what the user gave, without waiting for the device.

        Args:
            loss: one number, or one per image.
            labels: one per image.
        """
        loss = torch.as_tensor(loss).detach()
        with aside(loss.device.type):
            kept = _evenly_spaced(loss)
            if labels is None:
                return cls(kept)
            labels = torch.as_tensor(labels).detach()
            if labels.dim() != 1:
                return cls(kept, _evenly_spaced(labels))
            # One per image is little, and the share of right answers is that of all.
            return cls(kept, labels.clone())


def _evenly_spaced(values: Tensor) -> Tensor:
    """A copy of at most `MAX_ROWS` of the values, [R]."""
    flat = values.reshape(-1)
    step = max(1, ceil_div(len(flat), MAX_ROWS))
    return flat[::step].clone()


def with_given(
    facts: tuple[OutputFacts, ...], outputs: Sequence[PendingOutput], given: GivenLoss
) -> tuple[OutputFacts, ...]:
    """The facts with a loss and labels that the user gave, for the first output with rows.

    Args:
        facts: of the outputs.
        outputs: on the CPU.
        given: on the CPU.
    """
    found = list(facts)
    for number, output in enumerate(outputs):
        if output.shape:
            found[number] = _with_given(found[number], output, given)
            return tuple(found)
    unnamed = OutputFacts("", ())
    return (_with_given(unnamed, None, given), *found)


def _with_given(facts: OutputFacts, output: PendingOutput | None, given: GivenLoss) -> OutputFacts:
    loss = float(given.loss.double().mean())
    known_loss = loss if isfinite(loss) else None
    facts = replace(facts, given=True, loss=known_loss, accuracy=None)
    labels = None if given.labels is None else _whole(given.labels)
    if labels is None:
        return facts
    is_counted = labels != IGNORED
    counted = labels[is_counted]
    if not len(counted):
        return facts
    counts = Counter(counted.tolist())
    is_change = counted[1:] != counted[:-1]
    facts = replace(
        facts,
        labels=tuple(counts.most_common(MAX_NAMES)),
        label_changes=int(is_change.sum()),
    )
    if output is None or len(output.shape) != 2:
        return facts
    if output.shape[0] != len(labels):
        return facts
    if output.predicted is None:
        predicted = predictions(in_float64(output.values))
    else:
        predicted = output.predicted.numpy()
    if output.shape[1] == 1:
        labels = labels.clamp_min(0)  # -1 and 1 of a hinge loss are 0 and 1
    is_right = predicted == labels.numpy()
    return replace(facts, accuracy=float(is_right[is_counted.numpy()].mean()))


def _whole(labels: Tensor) -> Tensor | None:
    """The labels as whole numbers; None if they are others, such as the targets of a regression."""
    whole = labels.long()
    return whole if bool((whole == labels).all()) else None
