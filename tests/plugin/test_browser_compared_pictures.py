"""Comparisons in a real browser say what they compare: run, step, input image, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_visitor import Person

CONV = "fmapboard/0"


@pytest.fixture(scope="module")
def compared(serve: Callable[[Path], str], compared_runs: Path) -> str:
    return serve(compared_runs)


def open_compared(visit: Callable[..., Person], address: str, **state: object) -> Person:
    person = visit(address, width=1366, layer=CONV, **state)
    person.settle()
    return person


def inputs(person: Person) -> list[str]:
    """Pictures of the input images above the maps, as data URLs."""
    script = "[...document.querySelectorAll('.side:not([hidden]) canvas:not([hidden])')]"
    found: list[str] = person.frame.evaluate(f"{script}.map((canvas) => canvas.toDataURL())")
    return found


def headings(person: Person) -> list[str]:
    found: list[str] = person.see(".side:visible > span").all_text_contents()
    return found


def test_a_difference_of_different_images_is_marked_and_both_are_drawn(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(
        visit, compared, run="batches", compare="step", other=0, show="difference", channel=2
    )
    person.see(".sides[data-inputs=different]").wait_for()
    assert "Different input images" in person.see(".differs").text_content()
    assert headings(person) == ["batches · step 20 · sample 0", "batches · step 0 · sample 0"]
    assert len(set(inputs(person))) == 2
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert "Difference of different inputs" in titles
    assert "different inputs" in person.see(".legend .bar:visible .ramp-title").text_content()


def test_a_difference_of_one_probe_image_is_not_marked(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(
        visit, compared, run="probed", compare="step", other=0, show="difference"
    )
    person.see(".sides[data-inputs=same]").wait_for()
    assert len(inputs(person)) == 2
    assert len(set(inputs(person))) == 1
    assert not person.see(".differs").is_visible()
    # Sample 0 of the two steps is the same image; that of two samples is not.
    person = open_compared(visit, compared, run="batches", compare="sample", other=1)
    person.see(".sides[data-inputs=different]").wait_for()
