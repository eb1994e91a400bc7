"""Outputs and targets that are broadcast against each other."""

from __future__ import annotations

from dataclasses import replace

from output_facts import findings_of

from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.rules import AveragedTargetsCheck


def test_one_target_for_all_images() -> None:
    one = OutputFacts("", (32, 1), rows=32, low=-1.0, high=2.0, spread=1.0, predictions=2)
    means = [replace(one, target=target) for target in (0.31, 0.42, 0.42)]
    (found,) = findings_of(AveragedTargetsCheck(), one, *means)
    assert (found.class_, found.since_step) == ("note", 10)
    assert "to 0.31 at step 10 and to 0.42 at step 20" in found.message
    critics = [
        [replace(one, target=of + n * 1e-6) for n in range(-4, 5)] for of in (0.9, 1, -1, 1.4942)
    ]
    for silent in (means[:2], *critics, [one] * 8):
        assert findings_of(AveragedTargetsCheck(), *silent) == []
