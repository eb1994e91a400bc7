"""What the tab says of a finding's meaning: of its kind, or the cause that the checks stored."""

from __future__ import annotations

import pytest

from fmapboard.formats.overview import KINDS
from fmapboard.health.finding import Finding
from fmapboard.health.layer_findings import LayerFinding
from fmapboard.plugin.routes.findings import explanation


def found(kind: str, label: str = "conv", since: int = 3, name: str = "") -> LayerFinding:
    return LayerFinding(kind, 3, name, label, None, None, since, None, None, 1.0, 0, "")


STORED = Finding(
    kind="nonfinite", class_="warning", message="NaN", layer="conv", since_step=3,
    meaning="The fault is in the weights", advice="Go back to a checkpoint.",
)  # fmt: skip


def test_every_state_but_nonfinite_has_an_explanation_of_its_own() -> None:
    texts = [explanation(found(kind), []) for kind in KINDS]
    assert texts[KINDS.index("nonfinite")] == ""
    assert len(set(texts)) == len(KINDS)
    assert explanation(found("of_a_later_version"), []) == ""


def test_the_cause_of_a_nonfinite_value_is_that_of_the_stored_finding() -> None:
    text = explanation(found("nonfinite"), [STORED])
    assert text == "The fault is in the weights. Go back to a checkpoint."
    of_parameter = Finding(
        kind="nonfinite", class_="warning", message="", parameter="w", since_step=3, meaning="Lost"
    )
    assert explanation(found("nonfinite", ""), [of_parameter]) == "Lost."


@pytest.mark.parametrize("other", [{"label": "relu"}, {"since": 4}, {"name": "gen"}])
def test_a_stored_finding_of_another_place_is_not_used(other: dict[str, object]) -> None:
    assert explanation(found("nonfinite", **other), [STORED]) == ""  # type: ignore[arg-type]
