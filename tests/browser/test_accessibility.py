"""axe-core, with its default rules, finds no violation in any view of the tab, light or dark, and
the Tab key reaches all controls.

To add a view, add the state of its address to ``VIEWS``, or to ``OPENED`` what opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_visitor import Person

AXE = Path(__file__).parents[1] / "js" / "node_modules" / "axe-core" / "axe.min.js"

MAPS = {"run": "good", "layer": "fmapboard/stem.0"}
VIEWS: dict[str, dict[str, Any]] = {
    "the overview": {"run": "bad", "view": "overview"},
    "one scale per row": {"run": "bad", "view": "overview", "sheet_scale": "row"},
    "findings": {"run": "bad", "view": "overview", "findings": "open"},
    "states": {"run": "bad", "view": "overview", "front": "states"},
    "maps": MAPS,
    "a channel": {**MAPS, "channel": 1, "overlay": 60},
    "faults": {"run": "bad", "layer": "fmapboard/block.0", "channel": 1, "flagged": 1},
    "two steps": {**MAPS, "channel": 1, "compare": "@0", "show": "all"},
    "two runs": {**MAPS, "compare": "bad@"},
    "two steps on scales of their own": {**MAPS, "compare": "@0", "own_scale": 1},
    "ranked layers": {**MAPS, "compare": "bad@", "rank": 1},
    "weights": {**MAPS, "channel": 1, "histogram": "weights"},
    "inputs": {**MAPS, "role": "inputs"},
    "kernels": {**MAPS, "role": "kernels"},
    "gradients": {**MAPS, "role": "gradients_of_maps", "colours": "signed"},
    "a film strip": {**MAPS, "view": "film", "channels": "1,2"},
    "a film strip of kernels": {**MAPS, "view": "film", "role": "kernels"},
    "film strips of two runs": {**MAPS, "view": "film", "channels": "1", "compare": "bad@"},
    "a point": {**MAPS, "channel": 1, "pixel": "0.5,0.5"},
    "what is gone": {"run": "no such run", "layer": "fmapboard/none"},
}
"""The state of each view of the runs of ``striped_training``."""
OFTEN = {"the overview", "maps", "a channel", "two runs", "kernels", "help", "a column"}
"""Views that CI looks at; `pytest -m sweep` looks at the others."""

OPENED: dict[str, Callable[[Person], None]] = {
    "help": lambda person: person.press("?"),
    "a column": lambda person: person.see("[aria-label='Change column B']").click(),
    "the runs of a column": lambda person: open_runs(person),
    "the ranked layers": lambda person: rank(person),
}
"""What opens a view that has no address, over a comparison."""

SMALL: dict[str, Callable[[Person], None]] = {
    "a menu": lambda person: person.see(".fold:visible").first.click(),
    "the layers": lambda person: person.see(".drawer-button:visible").first.click(),
    "the details": lambda person: person.see(".drawer-button:visible").last.click(),
}
"""What opens a view in a small window."""


def rank(person: Person) -> None:
    person.menu("Compare")
    person.see("button:text-is('Rank layers')").click()


def open_runs(person: Person) -> None:
    if not person.see(".column-panel").is_visible():  # as a view before may have left it
        person.see("[aria-label='Change column B']").click()
    person.see(".column-panel .picker:visible").click()


FOUND = """async () => {
  const { violations } = await axe.run(document);
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) =>
    `${id} at ${target.join(" ")}: ${failureSummary.replaceAll("\\n", " ")}`));
}"""


# Numbers the controls in sight, or under a scroll bar; their labels, by number.
CONTROLS = """() => {
  const found = {};
  const chosen = "a[href], button, input, select, summary, [tabindex='0']";
  for (const each of document.querySelectorAll(chosen)) {
    const { width, height } = each.getBoundingClientRect();
    const isHidden = getComputedStyle(each).visibility === "hidden" || !(width && height);
    if (isHidden || each.disabled || each.tabIndex < 0) continue;
    each.dataset.number = Object.keys(found).length;
    found[each.dataset.number] = each.getAttribute("aria-label") || each.textContent;
  }
  return found;
}"""
# The number of the control that has the focus, and whether that can be seen.
FOCUSED = """() => {
  const { activeElement: focused } = document;
  const { outlineStyle, outlineWidth } = getComputedStyle(focused);
  const { left, right, top, bottom } = focused.getBoundingClientRect();
  const isIn = right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
  return [focused.dataset.number, isIn && outlineStyle !== "none" && parseFloat(outlineWidth) > 0];
}"""


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core; CI installs it, and a skipped test fails there."""
    if not AXE.exists():
        pytest.skip("axe-core is missing: npm ci --prefix tests/js")
    return AXE.read_text()


def violations(person: Person, axe: str) -> dict[str, list[str]]:
    """What axe-core finds in the tab's frame, per theme."""
    person.settle()
    person.frame.evaluate(axe)
    found = {}
    for theme in ("dark", "light"):
        person.choose_theme(theme)
        person.settle()
        found[theme] = person.frame.evaluate(FOUND)
    return found


@pytest.mark.parametrize(
    "view",
    [pytest.param(view, marks=() if view in OFTEN else pytest.mark.sweep) for view in VIEWS],
)
def test_axe_finds_no_violation_in(
    address: str, visit: Callable[..., Person], axe: str, view: str
) -> None:
    person = visit(address, width=1366, height=768, **VIEWS[view])
    assert violations(person, axe) == {"dark": [], "light": []}


@pytest.mark.parametrize(
    "view",
    [pytest.param(view, marks=() if view in OFTEN else pytest.mark.sweep) for view in VIEWS],
)
def test_the_tab_key_reaches_every_control_and_the_focus_is_seen_in(
    address: str, visit: Callable[..., Person], view: str
) -> None:
    person = visit(address, width=1366, height=768, **VIEWS[view])
    person.settle()
    controls = person.frame.evaluate(CONTROLS)
    assert len(controls) > 10
    person.frame.evaluate("document.activeElement.blur()")
    unseen = []
    for _ in range(2 * len(controls)):
        person.press("Tab")
        number, is_seen = person.frame.evaluate(FOCUSED)
        label = controls.pop(number, None)
        if label is not None and not is_seen:
            unseen.append(label)
    assert (list(controls.values()), unseen) == ([], [])


def test_axe_finds_no_violation_in_a_small_window(
    address: str, visit: Callable[..., Person], axe: str
) -> None:
    person = visit(address, width=683, height=384, **MAPS, channel=1)
    for act in SMALL.values():
        person.press("Escape")
        act(person)
        assert violations(person, axe) == {"dark": [], "light": []}


@pytest.mark.parametrize(
    "view",
    [pytest.param(view, marks=() if view in OFTEN else pytest.mark.sweep) for view in OPENED],
)
def test_axe_finds_no_violation_with_open(
    address: str, visit: Callable[..., Person], axe: str, view: str
) -> None:
    person = visit(address, width=1366, height=768, **MAPS, compare="bad@")
    person.settle()
    OPENED[view](person)
    assert violations(person, axe) == {"dark": [], "light": []}


def test_axe_finds_no_violation_in_an_empty_directory(
    serve: Callable[[Path], str], visit: Callable[..., Person], axe: str, tmp_path: Path
) -> None:
    person = visit(serve(tmp_path))
    person.see(".empty").wait_for()
    assert violations(person, axe) == {"dark": [], "light": []}


def test_axe_finds_a_violation_that_is_there(
    address: str, visit: Callable[..., Person], axe: str
) -> None:
    person = visit(address, **MAPS)
    person.frame.evaluate("document.querySelector('.slider').removeAttribute('aria-label')")
    assert "label at .slider" in str(violations(person, axe)["light"])
