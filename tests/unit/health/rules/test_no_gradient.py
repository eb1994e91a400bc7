"""Optimizer steps without any gradient."""

from __future__ import annotations

from check_records import LAST, Rules
from loop_facts import ALONE, LATER, STEPPED, findings_at

from fmapboard.health.rules import NoGradientCheck


def test_optimizer_steps_without_any_gradient() -> None:
    (found,) = findings_at(NoGradientCheck(), *[ALONE] * 4)
    assert (found.class_, found.since_step, found.value) == ("note", 0, 4)
    assert "no parameter has a gradient other than 0 at any of 4 logged steps" in found.message
    zero = {name: [0.0] * LAST for name in LATER}
    assert len(findings_at(NoGradientCheck(), *[STEPPED] * LAST, **zero)) == 1
    assert findings_at(Rules("unchanged_weights"), *[ALONE] * 3) == []
    assert findings_at(Rules("unchanged_weights"), *[STEPPED] * LAST) == []
    for other in (1e-30, float("nan")):
        once = {"gradient_norm/conv2.weight": [0.0] * (LAST - 1) + [other]}
        (found,) = findings_at(Rules("unchanged_weights"), *[STEPPED] * LAST, **zero | once)
        assert found.kind == "cut_off_layers"  # those of the others
        assert found.parameters == ("conv3.weight", "conv4.weight", "conv5.weight")
