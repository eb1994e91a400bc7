"""Comparisons in a real browser say what they compare: run, step, input image, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from compared_runs import IMAGES, network

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


def written(person: Person, act: Callable[[], object]) -> list[str]:
    """The texts that stand on canvases drawn during ``act``, each canvas as it was drawn last."""
    person.frame.evaluate(
        """() => { const drawn = (window.drawn = new Map());
        const canvas = CanvasRenderingContext2D.prototype;
        const { fillText, fillRect } = canvas;
        canvas.fillText = function (text, ...rest) {
          drawn.set(this.canvas, [...(drawn.get(this.canvas) ?? []), text]);
          return fillText.call(this, text, ...rest); };
        canvas.fillRect = function (x, y, width, height) {
          const whole = this.canvas.width / devicePixelRatio - 1;
          if (x === 0 && y === 0 && width >= whole) drawn.delete(this.canvas);
          return fillRect.call(this, x, y, width, height); }; }"""
    )
    act()
    person.settle()
    texts: list[str] = person.frame.evaluate("[...window.drawn.values()].flat()")
    return texts


def save(person: Person) -> None:
    with person.page.expect_download():
        person.press("p")


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


def largest_difference(channel: int) -> float:
    """Of ``probed`` at steps 20 and 0, whose weights differ by a factor of 1.21."""
    conv = network()[0]
    with torch.no_grad():
        conv.bias.zero_()
        return float(0.21 * conv(IMAGES[:1])[0, channel].abs().max())


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_captions_and_colour_bars_of_a_difference_are_its_own(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(
        visit, compared, run="probed", compare="step", other=0, show="difference", channel=2
    )
    expected = pytest.approx(largest_difference(2), rel=0.1)
    texts = written(person, lambda: person.press("c"))
    captions = [text for text in texts if text.startswith("Δ ±")]
    assert len(captions) == 6
    assert number(captions[2].removeprefix("Δ ±")) == expected
    assert not [text for text in texts if "…" in text]  # the range of a map
    ends = person.see("figure:visible .bar .ramp-scale span").all_text_contents()
    assert -number(ends[0]) == number(ends[-1]) == expected
    person.see("button:text-is('Both')").click()
    texts = written(person, lambda: person.press("c"))
    assert len([text for text in texts if text.startswith("Δ ±")]) == 6
    assert len([text for text in texts if "…" in text]) == 10  # of both; channel 1 is dead


@pytest.mark.parametrize(("show", "ranges"), [("difference", 0), ("all", 10)])
def test_a_saved_difference_has_its_own_captions_bar_and_inputs(
    compared: str, visit: Callable[..., Person], show: str, ranges: int
) -> None:
    person = open_compared(visit, compared, run="batches", compare="step", other=0, show=show)
    person.see(".sides[data-inputs=different]").wait_for()
    texts = written(person, lambda: save(person))
    assert len([text for text in texts if text.startswith("Δ ±")]) == 6
    assert len([text for text in texts if "…" in text]) == ranges
    title = "batches · step 20 · sample 0"
    assert any(text.startswith(f"0 · {title}") for text in texts)
    assert any(text.startswith("Different input images") for text in texts)
    assert any(text.startswith("difference, of different inputs: each") for text in texts)


def test_another_run_at_another_step_is_said_on_the_picture(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(
        visit, compared, run="batches", compare="run", other="late", show="all", channel=2
    )
    assert headings(person) == ["batches · step 20 · sample 0", "late · step 14 · sample 0"]
    assert "Different steps, 20 and 14" in person.see(".differs").text_content()
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert titles[:2] == ["batches · step 20", "late · step 14"]
    table = person.see(".numbers th[scope=col]").all_text_contents()
    assert table == ["batches · step 20", "late · step 14"]
    bars = person.see(".legend .bar:visible .ramp-title").all_text_contents()
    assert bars[-1].startswith("batches · step 20 − late · step 14")
    assert "late · step 14" in " ".join(written(person, lambda: save(person)))


def test_a_run_without_the_layer_says_so(compared: str, visit: Callable[..., Person]) -> None:
    person = open_compared(visit, compared, run="wide", compare="run", other="batches")
    assert "Nothing to compare" not in person.see(".sides").text_content()
    person.see(".layer .name:text-is('2')").click()
    person.drawn(20, "2")
    assert person.see(".differs").text_content() == (
        "Nothing to compare with: no layer 2 in run batches."
    )
    person = open_compared(
        visit, compared, run="wide", role="gradients_of_maps", compare="run", other="batches"
    )
    note = person.see(".grid-room > .note").text_content()
    assert (
        note == "batches · step 20 · sample 0 · Gradients: not logged for this layer at this step"
    )


def test_the_run_itself_is_not_offered_and_the_likeliest_partner_is_the_default(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(visit, compared, run="probed")
    person.see("select[aria-label='Compare with']").select_option("run")
    person.settle()
    other = person.see("select[aria-label='Compare with which run']")
    assert other.locator("option").all_text_contents() == ["batches", "late", "wide"]
    assert other.input_value() == "late"  # the last before it with as many layers
    person.see("select[aria-label=Run]").select_option("late")
    person.settle()
    assert other.input_value() == "probed"
    assert "late" not in other.locator("option").all_text_contents()


def test_a_picture_of_an_earlier_step_than_the_slider_says_so(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(visit, compared, run="batches", role="kernels", step=10)
    assert person.see(".step").text_content() == "10"
    assert headings(person) == ["batches · step 0 · Kernels"]
    assert person.see(".differs").text_content() == (
        "The slider is at step 10; this picture is of step 0."
    )
