"""A learning rate of 0."""

from __future__ import annotations

from dataclasses import replace

from loop_facts import STEPPED, findings_at

from fmapboard.health.rules import ZeroRateCheck


def test_a_rate_of_zero_at_every_logged_step() -> None:
    zero = replace(STEPPED, rates=(0.0, 0.0))
    (found,) = findings_at(ZeroRateCheck(), *[zero] * 8)
    assert found.class_ == "note"
    assert found.message == "the learning rate is 0 at each of 8 logged steps"
    assert findings_at(ZeroRateCheck(), *[zero] * 7) == []
    assert findings_at(ZeroRateCheck(), *[zero] * 7, STEPPED) == []
