"""How ``fmapboard check`` writes findings in the terminal."""

from __future__ import annotations

from typing import Any

from fmapboard.checks import Finding
from fmapboard.cli.commands.check import finding_lines


def dead(layer: str, since: int = 0, **fields: Any) -> Finding:
    said = {"healthy": "below 50 %", "meaning": "They are off", "advice": "Use less"}
    given = {**said, "docs": "checks#dead", **fields}
    message = f"90 % of channels dead in `{layer}` since step {since}"
    return Finding(kind="dead", class_="note", message=message, since_step=since, **given)


def test_findings_with_one_explanation_are_listed_below_it() -> None:
    other = Finding(
        kind="nonfinite", class_="warning", message="NaN", advice="Stop", docs="checks#nonfinite"
    )
    found = [other, dead("a"), dead("b", 5, picture="maps/b"), dead("c", advice="Use more")]
    assert list(finding_lines(found)) == [
        "warning: nonfinite: NaN. Stop. See `fmapboard docs checks#nonfinite`",
        "note: dead: in 2 places (healthy: below 50 %). They are off. Use less. "
        "See `fmapboard docs checks#dead`",
        "  90 % of channels dead in `a` since step 0",
        "  90 % of channels dead in `b` since step 5. Picture: `maps/b`",
        f"note: dead: {found[3].text}",
    ]


def test_findings_of_several_models_are_not_mixed() -> None:
    found = [dead("a", model="g"), dead("b", model="d"), dead("c", model="d")]
    assert list(finding_lines(found)) == [
        f"note: dead: {found[0].text}",
        "note: dead: in 2 places of `d` (healthy: below 50 %). They are off. Use less. "
        "See `fmapboard docs checks#dead`",
        "  90 % of channels dead in `b` since step 0",
        "  90 % of channels dead in `c` since step 0",
    ]


def test_findings_without_an_explanation_have_a_line_each() -> None:
    found = [dead(name, meaning="", advice="") for name in ("a", "b")]
    assert list(finding_lines(found)) == [f"note: dead: {each.text}" for each in found]
