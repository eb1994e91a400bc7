"""Whether one batch can be learnt by heart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar

import torch

from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Setup, entropy, sweep
from fmapboard.rehearsal.tried import what_helps

FACTORS = (1.0, 10.0, 0.1)


@dataclass(frozen=True, slots=True)
class OneBatchIsLearnt(Experiment):
    """The first batch alone is trained on, at the caller's rate, ten times and a tenth of it.

    It costs up to 40 steps for each of the three rates; the first one that learns ends it. Where
    none does, other rates are tried for 20 steps, then normalized inputs, no weight decay, the
    default settings of the optimizer, and the layers' own initialization for 40.

    A fault: no rate brings the loss down, and the answer says what of these does. With a loss of
    classes, it must fall below that of guessing by the share of each class in the batch, which
    needs nothing but a bias.

    Not judged: losses below zero, where no share of the first one can be told; a loss that falls
    slowly.

    Attributes:
        learnt: the loss as a share of the first one, or of guessing, at which the batch is learnt.
        stuck: the same, above which nothing is learnt.
        helped: the same, below which something that is changed in a copy has helped.
        steps: at each rate.
    """

    learnt: float = 0.7
    stuck: float = 0.97
    helped: float = 0.9
    steps: int = 40
    kind: ClassVar[str] = "one_batch_is_learnt"
    question: ClassVar[str] = "Is one batch learnt by heart?"
    bound: ClassVar[str] = "the loss falls to 0.7 of guessing or of the first loss"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        curves: dict[str, tuple[float, ...]] = {}
        best = inf
        first = inf
        for factor in FACTORS:
            seconds = setup.remaining() * 0.25
            losses = setup.losses(factor, self.steps, seconds=seconds)
            curves[f"rate × {factor:g}"] = tuple(losses)
            first = losses[0]
            best = min(best, lowest(losses))
            reference = self._reference(setup, first)
            if best <= self.learnt * reference and first > 0:
                step = next(i for i, v in enumerate(losses) if v <= self.learnt * reference)
                return fine(
                    f"loss {first:.3g} → {best:.3g}, at the rate × {factor:g} below "
                    f"{self.learnt * reference:.3g} after {step} steps",
                    best / reference,
                    curves,
                )
        if not isfinite(first):
            return not_judged("the first loss is not finite", curves=curves)
        return self._not_learnt(setup, first, best, curves)

    def _not_learnt(
        self, setup: Setup, first: float, best: float, curves: Mapping[str, tuple[float, ...]]
    ) -> Answer:
        reference = self._reference(setup, first)
        text = f"loss {first:.3g} → {best:.3g}"
        if first <= 0 or best < 0:
            return not_judged(f"{text}: no share of such a loss is known", curves=curves)
        share = best / reference
        steps = max(map(len, curves.values()))
        if share < self.stuck:
            return not_judged(f"{text} in {steps} steps: it falls slowly", share, curves)
        if steps < self.steps // 2:
            return not_judged(f"{text}: no time for more than {steps} steps", share, curves)
        others = sweep(setup, steps=20)
        best = min([best, *map(lowest, others.values())])
        if best < self.stuck * reference:
            return fine(f"{text}, and {best:.3g} at another rate", best / reference, curves)
        helped = what_helps(setup, self.helped * reference, self.steps, lowest)
        if helped is not None:
            return fault(
                f"{text} at three rates, and {helped.loss:.3g} {helped.phrase}",
                figure=share,
                advice=helped.advice,
                curves=curves,
            )
        guess = "" if reference == first else f", where guessing has {reference:.3g}"
        return fault(
            f"{text} at three rates in {steps} steps{guess}",
            figure=share,
            advice="Network, loss, labels and optimizer do not fit together: see the other "
            "questions; print the output and the label of one image",
            curves=curves,
        )

    def _reference(self, setup: Setup, first: float) -> float:
        """The loss of guessing by the shares of classes, if the first one is near it."""
        label = setup.task.parts(setup.step_batch).label
        if not isinstance(label, torch.Tensor) or label.is_floating_point() or label.dim() == 0:
            return first
        guess = entropy(label.flatten())
        return guess if 0 < guess < first < 2 * guess else first


def lowest(losses: Sequence[float]) -> float:
    """The lowest mean of five losses in a row: one of a single step may be noise."""
    if not losses:
        return inf
    means = [sum(losses[i : i + 5]) / 5 for i in range(len(losses) - 4)]
    finite = [mean for mean in means or losses if isfinite(mean)]
    return min(finite, default=inf)
