"""What outputs that a loss takes for logits look like the output of."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health import thresholds


def source_of(every: Sequence[OutputFacts], known: Sequence[OutputFacts], least: int) -> str | None:
    """What the outputs look like the output of, in words; None if they may be logits.

    Args:
        every: the output at each step.
        known: the same where the loss takes it for logits, two at least.
        least: number of logged steps.
    """
    if _is_tanh(known, least):
        return None if _is_odd_single(every, known) else "a tanh"
    if len(every) < least or any(output.low < 0 for output in every):
        return None
    if _is_odd_single(every, known):
        return None
    if all(output.rows_are == "probabilities" for output in known):
        return "a softmax"
    high = max(output.high for output in every)
    is_single = math.prod(known[-1].shape[1:]) == 1
    is_in_range = thresholds.SIGMOID_HIGH.value <= high <= 1
    if is_in_range or is_single or _may_sum_to_1_over_rows(known):
        return "a sigmoid, or a softmax over another axis than that of the classes,"
    if high > 1 and all(output.low == 0 for output in known):
        return "a ReLU"
    return None


def _is_tanh(known: Sequence[OutputFacts], least: int) -> bool:
    """True if the newest outputs reach from near -1 to near 1, and not further."""
    newest = known[-least:]
    ends = [end for output in newest for end in (-output.low, output.high)]
    return len(newest) == least and thresholds.TANH_END.value <= min(ends) <= max(ends) <= 1


def _is_odd_single(every: Sequence[OutputFacts], known: Sequence[OutputFacts]) -> bool:
    """True for a single unit whose range is not that of a sigmoid."""
    if math.prod(known[-1].shape[1:]) != 1:
        return False
    low = min(output.low for output in every)
    high = max(output.high for output in every)
    is_next_to_0 = low <= thresholds.SIGMOID_NEXT_TO_0.value * high
    is_wide = low <= thresholds.SIGMOID_LOW.value and high >= thresholds.TANH_END.value
    return high > 1 or not (is_next_to_0 or is_wide)


def _may_sum_to_1_over_rows(known: Sequence[OutputFacts]) -> bool:
    """True if many classes are always positive, around the mean of a softmax over the images."""
    for output in known:
        mean = 1 / max(output.shape[0], 1)
        has_few = (output.classes or 0) < thresholds.MANY_CLASSES.value
        if has_few or not 0 < output.low <= mean <= output.high < thresholds.SIGMOID_HIGH.value:
            return False
    return True
