"""Where a number is not finite or not recorded, a mark stands in place of an empty bar or cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser_visitor import Person
from overview_runs import packed
from tab_answers import facts_and_parts, unpacked


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], overview_runs: Path) -> str:
    return serve_shared(overview_runs)


def with_changes(route: Any) -> None:
    """The numbers of a step at which the changes of two layers are NaN and not recorded."""
    facts, body = facts_and_parts(route.fetch().body())
    changed = {name: array.copy() for name, array in unpacked(facts["arrays"], body).items()}
    first, second, *_ = (row for row, key in enumerate(facts["keys"]) if key is not None)
    changed["change"][first] = np.nan
    for name in ("change_steps", "weights_steps"):
        changed[name][second] = np.nan
    content = bytearray(body)
    for name, array in changed.items():
        start = facts["arrays"][name]["offset"]
        content[start : start + array.nbytes] = array.tobytes()
    route.fulfill(body=packed(facts, bytes(content)))


def test_the_bar_of_the_change_says_why_it_is_empty(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, routes={"**/data/health_step?*": with_changes}, view=None, run="ill")
    person.press("v")
    person.see(".moved[data-state='nonfinite']").first.wait_for()
    bad = person.see(".moved[data-state='nonfinite']").first
    assert bad.get_attribute("title").endswith(": non-finite")
    assert "repeating-linear-gradient" in bad.evaluate("(e) => getComputedStyle(e).background")
    unknown = person.see(".moved[data-state='unknown']")
    assert unknown.get_attribute("title") == "change: not recorded"
    dash = unknown.evaluate("(e) => getComputedStyle(e, '::after').content")
    assert dash == '"–"'


def test_the_bar_of_a_layer_that_is_not_finite_is_hatched_in_the_ranking(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, run="ill", layer="fmapboard/stem.0", step=0, compare="ill@55", rank=1)
    bar = person.see(".rank-bar[data-state='nonfinite']").first
    bar.wait_for()
    assert bar.get_attribute("title").startswith("non-finite: ")
    assert float(bar.evaluate("(e) => e.style.getPropertyValue('--share')")) > 0
    assert "repeating-linear-gradient" in bar.evaluate("(e) => getComputedStyle(e).background")
