"""The browser's Back button leads through the places that a user went to, inside the tab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser_visitor import Person
from overview_runs import NAN_FROM


@pytest.fixture(scope="module")
def runs(serve_shared: Callable[[Path], str], overview_runs: Path) -> str:
    return serve_shared(overview_runs)


@pytest.fixture(params=["in TensorBoard", "alone"])
def person(request: pytest.FixtureRequest, runs: str, visit: Callable[..., Person]) -> Person:
    """A user at the overview of ``ill``, in TensorBoard's frame or on the tab's own page."""
    is_inside = request.param == "in TensorBoard"
    there = visit(runs, inside=is_inside, anew=True, view=None, run="ill")
    there.settle()
    return there


ALONE = pytest.mark.parametrize(
    "person", ["alone", pytest.param("in TensorBoard", marks=pytest.mark.sweep)], indirect=True
)


def entries(person: Person) -> int:
    return int(person.page.evaluate("history.length"))


def views(person: Person, view: str) -> None:
    person.wait(f"document.documentElement.dataset.view === '{view}'")


def test_back_leads_from_a_finding_to_the_overview_and_forward_to_it_again(person: Person) -> None:
    before = entries(person)
    person.see(".verdict .go").click()
    person.drawn(NAN_FROM, "block.0")
    assert entries(person) == before + 1
    person.page.go_back()
    views(person, "overview")
    assert person.see("main.overview").is_visible()
    person.page.go_forward()
    views(person, "maps")
    person.drawn(NAN_FROM, "block.0")


@ALONE
def test_steps_channels_and_the_pointer_leave_no_entries_and_back_keeps_the_last_step(
    person: Person,
) -> None:
    person.see(".verdict .go").click()
    person.drawn(NAN_FROM, "block.0")
    before = entries(person)
    person.press("ArrowRight", "ArrowRight", "]", "]", "c")
    person.drawn(NAN_FROM + 10)
    person.see(".grid canvas").hover()
    assert entries(person) == before
    person.see(".layer:not([aria-selected=true])").first.click()
    person.wait("document.documentElement.dataset.layer === 'fmapboard/stem.0'")
    assert entries(person) == before + 1
    person.page.go_back()
    person.drawn(NAN_FROM + 10, "block.0")
    assert "p.feature_maps.channel=1" in person.page.url


PRESS_IN_ONE_FRAME = """(keys) => {
  for (const key of keys) {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
}"""


@pytest.fixture
def at_maps(person: Person) -> Person:
    """The same user at the maps of the first layer."""
    person.press("v")
    views(person, "maps")
    person.wait("document.documentElement.dataset.layer")
    person.settle()
    assert "view=maps" in person.page.url
    return person


def layer_of(person: Person) -> str:
    return str(person.frame.evaluate("document.documentElement.dataset.layer"))


@ALONE
@pytest.mark.parametrize("frames", [5 * [1], [2, 3]], ids=["each drawn", "there and back at once"])
def test_layers_passed_with_the_keys_share_one_entry(at_maps: Person, frames: list[int]) -> None:
    person = at_maps
    first, before = layer_of(person), entries(person)
    keys = ["ArrowDown", "ArrowUp", "ArrowDown", "ArrowUp", "ArrowDown"]
    for count in frames:  # a busy browser handles several keys before it draws
        person.frame.evaluate(PRESS_IN_ONE_FRAME, keys[:count])
        person.settle()
        keys = keys[count:]
    assert entries(person) == before + 1
    person.page.go_back()
    person.wait(f"document.documentElement.dataset.layer === '{first}'")


@ALONE
def test_layers_passed_after_going_back_get_an_entry_again(at_maps: Person) -> None:
    person = at_maps
    first = layer_of(person)
    for _ in range(2):
        person.press("ArrowDown")
        person.wait(f"document.documentElement.dataset.layer !== '{first}'")
        person.settle()
        person.page.go_back()
        person.wait(f"document.documentElement.dataset.layer === '{first}'")
        person.settle()
