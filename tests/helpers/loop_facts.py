"""What the training process knows at a logged step of a healthy loop, and checks of it."""

from __future__ import annotations

from dataclasses import replace

from check_records import LAST, record

from fmapboard.checks import Check, Finding
from fmapboard.formats.training_facts import TrainingFacts

LOOP = TrainingFacts(
    not_in_optimizer=(), not_cleared=(), eval_mode=False, batch=4, constant_images=(),
    identical_images=(), rates=(0.1, 0.1),
)  # fmt: skip
"""Every fault of a loop is known to be absent."""
STEPPED = TrainingFacts(batch=4, rates=(0.1, 0.1), no_gradient=())
"""An optimizer stepped, and every parameter had a gradient."""
ALONE = replace(STEPPED, no_gradient=("conv1.weight",))
"""An optimizer stepped, and one weight had no gradient."""
LATER = {f"gradient_norm/conv{i}.weight": [1.0] * LAST for i in range(2, 6)}
"""Gradients of the layers behind it."""


def findings_at(check: Check, *facts: TrainingFacts, **scalars: list[float]) -> list[Finding]:
    """What a check finds in a run of healthy layers, given facts and scalars per logged step."""
    return list(check(record(facts=facts, scalars=scalars)))


def only_finding(check: Check, *facts: TrainingFacts) -> Finding:
    """The one finding of `findings_at`, which is a warning of the check's kind."""
    (found,) = findings_at(check, *facts)
    assert found.class_ == "warning"
    assert found.kind == check.kind
    return found
