"""What takes a cause away from a copy of the network, and what the copy's training showed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fmapboard.formats.checks import Proof

PROVEN: Final = "proven"
REFUTED: Final = "refuted"
INCONCLUSIVE: Final = "inconclusive"
NOT_TRIED: Final = "not tried"
"""Outcomes of an experiment, see `Proof`."""


class Cure(NamedTuple):
    """A change of a copy of the network, of its optimizer, loss or inputs.

    Attributes:
        phrase: what the copy is trained with, as it ends a sentence.
        change: what is changed, for the docs; "" for a variant of the one before.
    """

    phrase: str
    change: str = ""


CURES: Mapping[str, Cure] = {
    "lower_rate": Cure(
        "with the rate ÷ 10", "the learning rate is divided by 10, by 100 or by 10,000"
    ),
    "lower_rate_100": Cure("with the rate ÷ 100"),
    "lower_rate_10000": Cure("with the rate ÷ 10,000"),
    "higher_rate": Cure(
        "with the rate × 10", "the learning rate is multiplied by 10, by 100 or by 10,000"
    ),
    "higher_rate_100": Cure("with the rate × 100"),
    "higher_rate_10000": Cure("with the rate × 10,000"),
    "all_parameters": Cure(
        "with the missing parameters in the optimizer",
        "the parameters that no optimizer holds join its first group",
    ),
    "no_activation": Cure(
        "without the activation at the end",
        "the softmax, sigmoid or other activation in front of the loss is taken away",
    ),
    "turned_sign": Cure("with the sign of the loss turned", "the sign of the loss is turned"),
    "zero_grad": Cure("with zero_grad() in each step", "gradients are cleared in each step"),
    "train_mode": Cure("in training mode", "all modules are in training mode"),
    "normalized_inputs": Cure(
        "with normalized inputs",
        "each channel of the inputs is shifted to a mean of 0 and scaled to a deviation of 1",
    ),
    "new_weights": Cure(
        "with the weights initialized anew",
        "the weights start from the layers' own initialization",
    ),
    "usual_dropout": Cure("with a dropout of 0.1", "the probability of each dropout is 0.1"),
    "usual_momentum": Cure(
        "with a BatchNorm momentum of 0.1",
        "the momentum of each BatchNorm is 0.1, and the losses are those in eval mode",
    ),
}
"""Name, as in `Rule.cure` -> what it is; `rehearsal.cures` has the code."""


def variants(cure: str) -> list[str]:
    """A cure and its stronger variants, which are tried in this order until one helps."""
    return [name for name in CURES if name == cure or name.startswith(f"{cure}_")] or [cure]


def proof_text(proof: Proof) -> str:
    """The outcome of an experiment and its figures, as a sentence without its full stop.

    Example:
        >>> proof_text(Proof("proven", "lower_rate", 50, (2.3, 2.29), (2.3, 0.912)))
        'proven: as it is 2.30 → 2.29; with the rate ÷ 10 2.30 → 0.912 (50 steps)'
        >>> proof_text(Proof("not tried", "lower_rate", why="no batch was kept"))
        'not tried: no batch was kept'
        >>> proof_text(Proof("inconclusive", "zero_grad", 50, (2.3, 0.4), (2.3, 0.3)))
        'inconclusive: as it is 2.30 → 0.400; with zero_grad() in each step 2.30 → 0.300 (50 steps)'
    """
    if not proof.as_it_is:
        return f"{proof.outcome}: {proof.why}"
    as_it_is = "as it is"
    if proof.without:
        as_it_is = f"without {' and '.join(proof.without)}"
    known = CURES.get(proof.cure)
    phrase = known.phrase if known is not None else f"with {proof.cure}"
    steps = f"{proof.steps} steps"
    if proof.why:
        steps += f", {proof.why}"
    before = f"{as_it_is} {_change(proof.as_it_is)}"
    return f"{proof.outcome}: {before}; {phrase} {_change(proof.cured)} ({steps})"


def _change(losses: tuple[float | None, ...]) -> str:
    return " → ".join("NaN" if loss is None else _loss(loss) for loss in losses)


def _loss(loss: float) -> str:
    """A loss with three digits: "2.30", "0.912", "1.20e+08"."""
    digits = f"{loss:#.3g}"
    return digits.rstrip(".")
