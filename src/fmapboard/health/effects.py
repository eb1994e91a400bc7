"""What a run comes to, in the order in which it arises, and what may lead to it."""

from __future__ import annotations

RESULTS = (
    "initial_loss",
    "large_activations",
    "growing_signal",
    "updates_too_large",
    "attention_logits",
    "exploding",
    "nonfinite",
    "fading_signal",
    "saturated",
    "saturated_output",
    "dead",
    "dead_heads",
    "zero_output",
    "vanishing",
    "unchanged_weights",
    "no_gradient",
    "cut_off_layers",
    "updates_too_small",
    "batchnorm_gap",
    "one_prediction",
    "constant_output",
)
"""Kinds of findings that may follow from others: numbers of a run, and nothing that code does."""
GROWN = RESULTS[: RESULTS.index("fading_signal")]
"""Results of values that grow; the others are of values that fade or are all alike."""


def anything(after: str = "") -> tuple[str, ...]:
    """Every result, or every one that arises behind another one."""
    return RESULTS[RESULTS.index(after) + 1 :] if after else RESULTS


def fading(after: str = "") -> tuple[str, ...]:
    """Signals, gradients, updates or answers that fade or are all alike, like `anything`."""
    return tuple(kind for kind in anything(after) if kind not in GROWN)
