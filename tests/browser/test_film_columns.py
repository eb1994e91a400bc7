"""The film strips of several columns, below each other, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from browser_visitor import Person
from PIL import Image
from stored_maps import stored_maps
from striped_training import STEPS

READY = "document.documentElement.dataset.film === 'ready'"
STEM = {"view": "film", "run": "good", "layer": "fmapboard/stem.0", "channels": "2"}


def extremes(person: Person) -> tuple[float, float]:
    """The locked scale of channel 2 as the page says it."""
    said = person.see(".film-scale").get_attribute("title")
    found = re.search(r"channel 2 (\S+) … (\S+)", said)
    assert found is not None, said
    lo, hi = (float(text.replace("−", "-")) for text in found.groups())
    return lo, hi


def test_the_locked_scale_is_that_of_the_sample_that_is_shown(
    address: str, striped_runs: Path, visit: Callable[..., Person]
) -> None:
    person = visit(address, **STEM, sample=1)
    person.wait(READY)
    values = [maps[2] for maps in stored_maps(striped_runs / "good", "stem.0", sample=1).values()]
    assert extremes(person) == pytest.approx((np.min(values), np.max(values)), rel=0.01)


@pytest.mark.parametrize(("compare", "run", "sample"), [("bad@", "bad", 0), ("@:1", "good", 1)])
def test_a_column_of_other_maps_has_a_strip_on_one_common_scale(
    address: str,
    striped_runs: Path,
    visit: Callable[..., Person],
    compare: str,
    run: str,
    sample: int,
) -> None:
    person = visit(address, **STEM, compare=compare, tile=48)
    person.wait(READY)
    headings = person.see(".film-pane h2:visible").all_text_contents()
    assert headings == ["A · good · sample 0", f"B · {run} · sample {sample}"]
    said = person.see(".film-scale").text_content()
    if run == "good":
        assert said == "One scale for all kept steps of A, B."
    else:  # its channel 2 has faults
        assert said.startswith("One scale for A, B, without ")
    values = [
        maps[2][np.isfinite(maps[2])]
        for shown, number in (("good", 0), (run, sample))
        for maps in stored_maps(striped_runs / shown, "stem.0", number).values()
    ]
    known = np.concatenate(values)
    ends = known.min(), known.max()
    assert extremes(person) == pytest.approx(ends, rel=0.01)
    box = person.see(".film canvas").nth(1).bounding_box()
    person.page.mouse.move(box["x"] + 200, box["y"] + 6)
    assert person.see(".film .status").text_content().startswith("B · step ")


def test_strips_of_columns_with_scales_of_their_own_have_them_too(
    address: str, striped_runs: Path, visit: Callable[..., Person]
) -> None:
    person = visit(address, **STEM, compare="@:1", own_scale=1, tile=48)
    person.wait(READY)
    said = person.see(".film-scale")
    assert said.text_content() == "One scale per strip, for all its steps."
    values = [maps[2] for maps in stored_maps(striped_runs / "good", "stem.0").values()]
    assert extremes(person) == pytest.approx((np.min(values), np.max(values)), rel=0.01)


def test_a_column_of_the_same_maps_has_no_strip_of_its_own(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, **STEM, compare="@10", tile=48)
    person.wait(READY)
    assert person.see(".film-pane").count() == 1
    assert person.see(".film-columns").text_content() == "B is a step of the strip of A."


def test_strips_scroll_together_and_lead_to_the_step_of_their_column(
    address: str, visit: Callable[..., Person]
) -> None:
    person = visit(address, width=900, **STEM, step=STEPS[-1], compare="bad@0", tile=96)
    person.wait(READY)
    strips = person.see(".film-strip")
    strips.nth(0).evaluate("(strip) => { strip.scrollLeft = 208; }")
    person.wait("document.querySelectorAll('.film-strip')[1].scrollLeft === 208")
    strips.nth(1).evaluate("(strip) => { strip.scrollLeft = 0; }")
    person.wait("document.querySelectorAll('.film-strip')[0].scrollLeft === 0")
    strips.nth(1).evaluate("(strip) => { strip.scrollLeft = 208; }")
    person.wait("document.querySelectorAll('.film-strip')[0].scrollLeft === 208")
    box = person.see(".film canvas").nth(1).bounding_box()
    person.page.mouse.click(box["x"] + 156 + 48, box["y"] + 6)
    person.drawn(STEPS[-1], "stem.0")
    assert f"compare=bad%40{STEPS[2]}" in person.page.url


def test_strips_scroll_vertically_together(address: str, visit: Callable[..., Person]) -> None:
    state = {**STEM, "channels": "0,1,2,3,4,5"}
    person = visit(address, width=1000, height=700, **state, compare="bad@0", tile=96)
    person.wait(READY)
    strips = person.see(".film-strip")
    for leading, top in ((0, 300), (1, 120), (0, 0)):
        other = 1 - leading
        strips.nth(leading).evaluate(f"(strip) => {{ strip.scrollTop = {top}; }}")
        person.wait(f"document.querySelectorAll('.film-strip')[{other}].scrollTop === {top}")
        assert strips.nth(leading).evaluate("(strip) => strip.scrollTop") == top
    strips.nth(1).evaluate("(strip) => { strip.scrollTop = 150; strip.scrollLeft = 100; }")
    person.wait("document.querySelectorAll('.film-strip')[0].scrollTop === 150")
    assert strips.nth(0).evaluate("(strip) => strip.scrollLeft") == 100


def test_all_strips_are_saved(address: str, visit: Callable[..., Person], tmp_path: Path) -> None:
    heights = []
    for columns in ({}, {"compare": "bad@"}):
        person = visit(address, **STEM, tile=48, **columns)
        person.wait(READY)
        with person.page.expect_download() as download:
            person.press("p")
        download.value.save_as(tmp_path / "film.png")
        with Image.open(tmp_path / "film.png") as saved:
            heights.append(saved.height)
    assert heights[1] == 2 * heights[0]
