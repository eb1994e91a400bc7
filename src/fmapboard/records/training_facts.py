"""What only the training process knows about a logged step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fmapboard.findings_format import Findings


@dataclass(frozen=True, slots=True)
class TrainingFacts:
    """The findings of one step, and what is needed to compare it with others.

    Attributes:
        findings: what the step alone shows; ``unchanged`` is empty.
        rates: parameter -> learning rate at which an optimizer updated it in this step.
        weights: digest of some weights in a step without an optimizer step; None of other steps.
    """

    findings: Findings
    rates: Mapping[str, float] = field(default_factory=dict)
    weights: bytes | None = None
