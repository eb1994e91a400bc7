"""Layers that the network's forward pass leaves out."""

from __future__ import annotations

from dataclasses import replace

from check_records import record
from loop_facts import LOOP, findings_at

from fmapboard.health.rules import NeverCalledCheck


def test_layers_that_never_ran() -> None:
    lost = replace(LOOP, no_gradient=("a.weight", "a.bias", "b"), not_called=("a.weight", "a.bias"))
    (found,) = findings_at(NeverCalledCheck(), *[lost] * 4)
    assert (found.class_, found.since_step, found.parameter) == ("note", 0, "a.weight")
    assert found.parameters == ("a.weight", "a.bias")
    assert found.message == (
        "1 layer with trainable parameters never ran and never had a gradient at 4 logged steps, "
        "and nothing has changed it: `a`"
    )
    assert findings_at(NeverCalledCheck(), *[lost] * 3) == []
    ran = replace(LOOP, no_gradient=())
    assert findings_at(NeverCalledCheck(), *[lost] * 7, ran) == []
    assert len(findings_at(NeverCalledCheck(), *[lost] * 7, replace(LOOP, no_gradient=None))) == 1
    assert list(NeverCalledCheck()(record(steps=range(8), facts=[lost] * 8))) == []
    for count, least in ((16, 1), (17, 0)):  # a spare part of a large network
        norms = {
            f"gradient_norm/{i}.{name}": [1.0] for i in range(count) for name in ("weight", "bias")
        }
        one = record(facts=[lost] * 8, scalars={**norms, "gradient_norm/total": [1.0]})
        assert len(NeverCalledCheck()(one)) == least
