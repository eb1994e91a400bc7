"""Comparisons in a real browser say what they compare: run, step, input image, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from browser_visitor import Person
from compared_runs import IMAGES, network
from seen_columns import headings, inputs, notes, saved_texts, written

CONV = "fmapboard/0"
PAINTS_ALWAYS = """() => { const again = () => { window.dispatchEvent(new Event("resize"));
  requestAnimationFrame(again); }; again(); }"""
"""Script: the page paints in every frame, as it may when an answer arrives or it reloads."""


@pytest.fixture(scope="module")
def compared(serve: Callable[[Path], str], compared_runs: Path) -> str:
    return serve(compared_runs)


def open_compared(visit: Callable[..., Person], address: str, **state: object) -> Person:
    person = visit(address, width=1366, layer=CONV, **state)
    person.settle()
    return person


def test_a_difference_of_different_images_is_marked_and_both_are_drawn(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(
        visit, compared, run="batches", compare="@0", show="difference", channel=2
    )
    person.see(".sides[data-inputs=different]").wait_for()
    assert notes(person) == ["The input images differ."]
    assert headings(person) == ["A batches · step 20 · sample 0", "B batches · step 0 · sample 0"]
    assert len(set(inputs(person))) == 2
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert "A − B: Difference of different inputs" in titles
    title = person.see(".legend .bar:visible .ramp-title").text_content()
    assert title == "A − B, channel 2 only"


def test_a_difference_of_one_probe_image_is_not_marked(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(visit, compared, run="probed", compare="@0", show="difference")
    person.see(".sides[data-inputs=same]").wait_for()
    assert len(inputs(person)) == 2
    assert len(set(inputs(person))) == 1
    assert notes(person) == []
    # Sample 0 of the two steps is the same image; that of two samples is not.
    person = open_compared(visit, compared, run="batches", compare="@:1")
    person.see(".sides[data-inputs=different]").wait_for()


def least_and_most(channel: int) -> list[float]:
    """Of ``probed`` at steps 20 and 0, whose weights differ by a factor of 1.21."""
    conv = network()[0]
    with torch.no_grad():
        conv.bias.zero_()
        between = 0.21 * conv(IMAGES[:1])[0, channel]
    return [float(between.min()), float(between.max())]


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def ranges_in(texts: list[str]) -> list[str]:
    """The captions that are ranges."""
    return [text for text in texts if re.fullmatch("[−0-9.e]+ … [−0-9.e]+", text)]


def test_captions_and_colour_bars_of_a_difference_are_its_own(
    compared: str, visit: Callable[..., Person]
) -> None:
    state = {"run": "probed", "compare": "@0", "show": "difference"}
    person = open_compared(visit, compared, height=1300, tile=128, channel=2, **state)
    least, most = least_and_most(2)
    texts = written(person, lambda: person.press("c"))
    captions = ranges_in(texts)
    assert len(captions) == 6
    ends = [number(end) for end in captions[2].split(" … ")]
    assert ends == pytest.approx([least, most], rel=0.1)
    ends = person.see("figure:visible .bar:visible .ramp-scale span").all_text_contents()
    assert -number(ends[0]) == number(ends[-1]) == pytest.approx(max(-least, most), rel=0.1)
    person.menu("Compare")
    person.see("button:text-is('Both')").click()
    person.settle()  # its own painting is over
    texts = written(person, lambda: person.press("c"))
    assert len(ranges_in(texts)) > 10  # of both, too, where they fit; channel 1 is dead


@pytest.mark.parametrize(("show", "ranges"), [("difference", 0), ("all", 10)])
def test_a_saved_difference_has_its_own_captions_bar_and_inputs(
    compared: str, visit: Callable[..., Person], show: str, ranges: int
) -> None:
    person = open_compared(visit, compared, run="batches", compare="@0", show=show)
    person.see(".sides[data-inputs=different]").wait_for()
    person.frame.evaluate(PAINTS_ALWAYS)
    texts = saved_texts(person)
    assert len(ranges_in(texts)) == 6 + ranges
    assert "0" in texts
    assert "A · batches · step 20 · sample 0" in texts
    assert "B · batches · step 0 · sample 0 · pinned" in texts
    assert any(text == "The input images differ." for text in texts)
    assert any(text.startswith("difference, of different inputs: each") for text in texts)


def test_another_run_at_another_step_is_said_on_the_picture(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(visit, compared, run="batches", compare="late@", show="all", channel=2)
    assert headings(person) == ["A batches · step 20 · sample 0", "B late · step 14 · sample 0"]
    assert notes(person)[0].startswith("B: no pictures at step 20. The input images differ. ")
    titles = person.see("figcaption:visible > span:first-child").all_text_contents()
    assert titles[:2] == ["A: batches · step 20", "B: late · step 14"]
    table = person.see(".numbers th[scope=col]").all_text_contents()
    assert table == ["A: batches · step 20", "B: late · step 14"]
    bars = person.see(".legend .bar:visible .ramp-title").all_text_contents()
    assert bars[-1] == "A − B, channel 2 only"
    saved = saved_texts(person)
    assert "B · late · step 14 · sample 0" in saved


def test_a_run_without_the_layer_says_so(compared: str, visit: Callable[..., Person]) -> None:
    person = open_compared(visit, compared, run="wide", compare="batches@")
    assert "no layer" not in person.see(".sides").text_content()
    person.see(".layer .name:text-is('2')").click()
    person.drawn(20, "2")
    assert notes(person) == ["B: no layer 2 in run batches."]
    person = open_compared(
        visit, compared, run="wide", role="gradients_of_maps", compare="batches@"
    )
    assert headings(person)[1] == "B batches · step 20 · sample 0 · Gradients"
    assert notes(person) == ["B: not logged for this layer at this step."]


def test_the_likeliest_partner_is_the_default_and_swapped_when_it_becomes_the_main_run(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = visit(compared, run="probed")
    person.menu("Compare")
    person.see("select[aria-label='Compare with']").select_option("run")
    person.settle()
    assert "p.feature_maps.compare=late%40" in person.page.url  # the last with as many layers
    person.choose_run("late")
    assert "p.feature_maps.compare=probed%40" in person.page.url
    assert [text.split(" · ")[0] for text in headings(person)] == ["A late", "B probed"]


def test_a_picture_of_an_earlier_step_than_the_slider_says_so(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(visit, compared, run="late", role="kernels", step=14)
    assert person.see(".step").text_content() == "14"
    assert headings(person) == ["late · step 4 · Kernels"]
    assert notes(person) == ["The slider is at step 14; this picture is of step 4."]


def test_update_ratios_of_0_are_marked_on_their_logarithmic_axis(
    compared: str, visit: Callable[..., Person]
) -> None:
    person = open_compared(visit, compared, run="probed")  # trained at a rate of 0
    key = person.see(".charts .value:has-text('healthy 1e−4')").last.inner_text()
    assert "weight 0" in key
    assert "▾ = 0" in key
    assert (
        "▾" not in person.see(".charts .value:has-text('bias')").first.inner_text()
    )  # gradient norms
