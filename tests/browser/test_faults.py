"""Faults of a run in a real browser: which state is shown, where it began, what it means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_visitor import Person
from faulty_runs import INFINITE_AT, LARGE_FROM, STEPS
from tab_client import open_tab

RED, ORANGE = (198, 40, 40), (255, 128, 0)


@pytest.fixture(scope="module")
def faulty(serve_shared: Callable[[Path], str], faulty_runs: Path) -> str:
    return serve_shared(faulty_runs)


def visit_layer(visit: Callable[..., Person], address: str, layer: str, **state: object) -> Person:
    person = visit(address, width=1366, run="faulty", layer=f"fmapboard/{layer}", **state)
    person.settle()
    return person


def marks(person: Person, y: int) -> dict[int, tuple[int, int, int]]:
    """Step -> colour of the mark below the slider, at a height of the canvas in px."""
    pixels = person.frame.evaluate(
        """([y, count]) => { const c = document.querySelector(".step-marks");
        return [...Array(count).keys()].map((i) => [...c.getContext("2d").getImageData(
          Math.round(8 + i / (count - 1) * (c.width - 16)), y, 1, 1).data]); }""",
        [y, len(STEPS)],
    )
    return {s: tuple(p[:3]) for s, p in zip(STEPS, pixels, strict=True) if p[3] == 255}


def outlined(person: Person, canvas: str) -> int:
    """Number of orange pixels: of the line around dead channels, and of their captions."""
    return int(
        person.frame.evaluate(
            """(of) => [...document.querySelectorAll(of)].map((c) => {
            const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let i = 0; i < d.length; i += 4) n += d[i] === 255 &&
              d[i + 1] === 128 && d[i + 2] === 0;
            return n; }).reduce((a, b) => a + b)""",
            canvas,
        )
    )


def test_large_values_take_precedence_over_a_minor_share_of_dead_channels(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "big", step=0)
    badge = person.see(".layer:has(.name:text-is('big')) .badge")
    person.wait("document.querySelector('.layer .badge').textContent === '33 % dead'")
    person = visit_layer(visit, faulty, "big", step=LARGE_FROM, channel=3)
    badge = person.see(".layer:has(.name:text-is('big')) .badge")
    person.wait("document.querySelector('.layer .badge').textContent === 'large, 33 % dead'")
    assert badge.text_content() == "large, 33 % dead"
    assert person.see(".layer[data-severity='2'] .name").first.text_content() == "big"
    assert person.see(".numbers tr").last.text_content() == "Statelarge"


def test_pictures_of_dead_channels_have_an_outline_and_say_so(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "big", step=0)
    assert outlined(person, ".grid canvas") > 2 * 64 + 50  # more than the squares in two captions
    person.press("x")
    entry = person.see(".pixel-list li:has-text('channel 0') .pixel-name")
    assert entry.text_content() == "channel 0 · dead after ReLU"
    strip = visit_layer(visit, faulty, "big", view="film", channels="0", tile=48)
    assert outlined(strip, ".film canvas") > 0
    alive = visit_layer(visit, faulty, "big", view="film", channels="3", step=0)
    assert outlined(alive, ".film canvas") == 0
    front = visit(faulty, view=None, run="faulty", findings="open")
    front.settle()
    tiles = front.see(".line:has-text('have a copy') .tile")
    assert tiles.all_inner_texts() == ["dead", "dead", "", ""]
    assert tiles.first.get_attribute("aria-label").endswith(": dead after ReLU")
    assert outlined(front, ".tile:has(.tile-state) canvas") > 0


def test_large_values_have_a_mark_at_the_steps_they_began_at(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "big")
    own = marks(person, 1)
    before = [step for step in STEPS if step < LARGE_FROM]
    assert {step: own[step] for step in before} == dict.fromkeys(before, ORANGE)
    assert {own[step] for step in STEPS if step >= LARGE_FROM} == {RED}


def test_a_mark_below_the_slider_is_of_the_layer_before_worse_ones_of_the_network(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "many")
    own = marks(person, 5)
    assert set(own.values()) == {ORANGE}  # dead, also at steps of NaN in other layers
    assert list(own) == list(STEPS)
    network = person.see(".step-marks").get_attribute("aria-label")
    assert "step 0: dead in" in network
    assert f"step {LARGE_FROM}: large in big" in network


def test_the_first_bad_value_of_a_layer_without_pictures_is_said_and_leads_there(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "many", step=0)
    said = person.see(".first-fault > span").text_content()
    assert said == f"NaN and +Inf since step {INFINITE_AT}, first in act (call 2)"  # the verdict
    person.see(".first-fault button").click()
    person.drawn(INFINITE_AT)
    assert f"p.feature_maps.step={INFINITE_AT}" in person.page.url


def test_at_its_step_the_button_names_the_layer_that_it_leads_to(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "many", step=INFINITE_AT)
    button = person.see(".first-fault button")
    assert button.text_content() == "Show big, the nearest drawn layer"
    button.click()
    person.drawn(INFINITE_AT, "big")
    assert not button.is_visible()
    person.press("ArrowLeft")
    person.drawn(INFINITE_AT - 3)
    assert button.text_content() == f"Show step {INFINITE_AT}, big, the nearest drawn layer"


def test_the_marks_of_the_slider_name_the_most_severe_fault_of_each_step(
    faulty: str, visit: Callable[..., Person], faulty_runs: Path
) -> None:
    person = visit_layer(visit, faulty, "many", step=STEPS[0])
    person.wait("document.querySelector('.step-marks').ariaLabel?.includes('dead')")
    said = person.see(".step-marks").get_attribute("aria-label")
    assert said.startswith(f"faults of the network: step {STEPS[0]}: dead in big and 4 more; ")
    answer, _ = open_tab(faulty_runs).open("data/health", run="faulty")
    assert answer["first_nonfinite"]["step"] == INFINITE_AT
    assert answer["first_nonfinite"]["label"] == "act.call2"


def test_dead_says_after_which_activation_and_of_how_many_channels(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "many", step=9, channel=2)
    person.wait("[...document.querySelectorAll('.badge')].some((b) => b.textContent)")
    row = person.see(".layer:has(.name:text-is('many'))")
    assert row.locator(".badge").text_content() == "75 % dead"
    assert "60 of 80 channels dead after its activation last" in row.get_attribute("title")
    assert person.see(".numbers tr").last.text_content() == "Statedead after its ReLU"
    assert "dead: 0 after its ReLU" in person.see(".marks").text_content()
    share = person.see(".charts section:has(h3:has-text('channels')) .value").text_content()
    assert "dead 94 % of 64 drawn" in share


def test_a_state_of_more_than_half_of_the_channels_is_said_once_with_their_number(
    faulty: str, visit: Callable[..., Person]
) -> None:
    person = visit_layer(visit, faulty, "many", step=9)
    person.wait("document.querySelector('.marks').textContent.includes('channels')")
    assert "dead: 0 after its ReLU · 60 of 64 channels" in person.see(".marks").text_content()
