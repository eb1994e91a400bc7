"""A variational code that tells nothing of its input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from output_facts import findings_of

from fmapboard.checks import Finding
from fmapboard.formats.training_facts import OutputFacts
from fmapboard.health.rules import EmptyCodeCheck


def test_a_code_that_tells_nothing_beside_the_pictures_made_from_it() -> None:
    picture = OutputFacts("0", (32, 1, 8, 8), low=0.0, high=0.9, spread=0.5)
    mean = OutputFacts("1", (32, 4), low=-0.3, high=0.25, spread=1.0, predictions=4)
    variance = replace(mean, name="2", low=-0.1)

    def found(first: float, last: float, *others: OutputFacts, **changes: Any) -> list[Finding]:
        codes = [replace(variance, high=first), *[replace(variance, high=last, **changes)] * 4]
        return findings_of(EmptyCodeCheck(), *[(*others, mean, code) for code in codes])

    (one,) = found(0.4, 0.3, picture)
    assert (one.class_, one.since_step, one.value) == ("note", None, 0.3)
    assert "the outputs `1` and `2` are within ±0.3 of 0 for all inputs" in one.message
    assert found(0.4, 0.31, picture) == found(0.4, 0.3) == []
    assert found(0.25, 0.29, picture) == []  # it grows
    assert found(0.4, 0.3, picture, shape=(32, 5)) == []
    assert found(0.4, 0.3, replace(picture, shape=(32, 8))) == []  # no larger
    assert found(0.4, 0.3, replace(picture, shape=(8, 1, 8, 8))) == []  # of other images
