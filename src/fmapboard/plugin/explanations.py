"""What the findings that follow from a run's health table may mean, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from fmapboard.checks.finding import Finding
from fmapboard.checks.layer_findings import LayerFinding
from fmapboard.checks.layer_values import DEAD_ADVICE, DEAD_MEANING

_OF_KIND = {
    "large": "The weights grow, or the inputs are not scaled; float16 overflows at 65,504. Lower "
    "the learning rate, clip the gradients, or add normalization layers.",
    "dead": f"{DEAD_MEANING}. {DEAD_ADVICE}.",
    "constant": "These channels tell nothing about the input. Look at the layer's weights, and at "
    "what it receives.",
    "unchanged": "The layer is frozen, or its updates are too small for its number format. Nothing "
    "is wrong if that is intended.",
}


def explanation(found: LayerFinding, stored: Sequence[Finding]) -> str:
    """Sentences on a finding of the table; "" if nothing is known.

    Args:
        found: the finding.
        stored: what the checks found while the run was logged; they know the cause of a non-finite
            value.
    """
    if found.kind != "nonfinite":
        return _OF_KIND.get(found.kind, "")
    place = (found.kind, found.name, found.since, found.label)
    same = (
        each
        for each in stored
        if (each.kind, each.model, each.since_step, each.layer or "") == place
    )
    return next((each.explanation for each in same), "")
