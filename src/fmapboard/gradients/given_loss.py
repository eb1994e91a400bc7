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
        given = torch.as_tensor(loss).detach()
        with aside(given.device.type):
            kept = _evenly_spaced(given)
            if labels is None:
                return cls(kept)
            own = torch.as_tensor(labels).detach()
            # One per image is little, and is needed to find those of the rows that are copied.
            return cls(kept, own.clone() if own.dim() == 1 else _evenly_spaced(own))


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
    number = next((n for n, output in enumerate(outputs) if output.shape), None)
    if number is None:
        return (_with_given(OutputFacts("", ()), None, given), *facts)
    found = _with_given(facts[number], outputs[number], given)
    return (*facts[:number], found, *facts[number + 1 :])


def _with_given(facts: OutputFacts, output: PendingOutput | None, given: GivenLoss) -> OutputFacts:
    loss = float(given.loss.double().mean())
    labels = given.labels
    facts = replace(facts, given=True, loss=loss if isfinite(loss) else None, accuracy=None)
    if labels is None:
        return facts
    counts = Counter(labels.tolist()).most_common(MAX_NAMES)
    changes = int((labels[1:] != labels[:-1]).sum())
    facts = replace(facts, labels=tuple(counts), label_changes=changes)
    if output is None or len(output.shape) != 2 or output.shape[0] != len(labels):
        return facts
    of_rows = labels[:: output.steps[0]]
    is_right = predictions(in_float64(output.values)) == of_rows.numpy()
    return replace(facts, accuracy=float(is_right.mean()))
