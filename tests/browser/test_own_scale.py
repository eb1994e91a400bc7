"""A run whose values exploded beside a healthy one is shown on a scale of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_visitor import Person
from compared_runs import IMAGES, log
from seen_columns import notes, saved_texts

ENLARGED = ".channel figure canvas"


@pytest.fixture(scope="module")
def runs(serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """``healthy``, and ``exploded`` with weights 3000 times as large."""
    root = tmp_path_factory.mktemp("exploded")
    for run, gain in (("healthy", 1.0), ("exploded", 3000.0)):
        log(root / run, [0], [IMAGES], gain=gain)
    return serve(root)


def test_a_column_that_cannot_be_read_on_the_scale_of_a_gets_its_own_which_a_button_changes(
    runs: str, visit: Callable[..., Person]
) -> None:
    person = visit(runs, width=1366, run="healthy", compare="exploded@0", rank=1, channel=0)
    person.see(".sides[data-inputs=same]").wait_for()
    person.see(".ranks button").wait_for()
    (said,) = notes(person)
    assert said.startswith("Each on its own scale: A\u00a0−")
    ranked = person.see(".ranks").inner_text().splitlines()
    assert ranked[0].startswith("By how many times larger one column's values are")
    assert "B 3,000 × A" in ranked
    bars = person.see(".legend .bar:visible .ramp-title")
    assert bars.all_text_contents() == ["A: channel 0 only", "B: channel 0 only"]
    assert "own_scale" not in person.page.url
    readable = person.canvas(ENLARGED)
    ends = person.see("figure:visible .bar:visible .ramp-scale").all_inner_texts()
    assert len(set(ends)) == 2
    texts = saved_texts(person)
    assert any(text.startswith("Each on its own scale: A") for text in texts)
    assert any(text.startswith("each channel between its own extremes") for text in texts)

    person.see(".own-scale").click()
    person.settle()
    assert bars.all_text_contents() == ["channel 0 only, A's map"]
    (said,) = notes(person)
    assert said.startswith("Both on A's scale: A\u00a0−")
    assert "p.feature_maps.own_scale=0" in person.page.url
    person.see(".own-scale").click()
    person.settle()
    assert person.canvas(ENLARGED) == readable
    assert "p.feature_maps.own_scale=1" in person.page.url
