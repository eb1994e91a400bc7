"""The list of a thousand layers: only the rows in sight are in the document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from browser_visitor import Person

COUNT = 1000


@pytest.fixture
def person(address: str, visit: Callable[..., Person]) -> Person:
    """A user at the maps of a run whose answer lists its first layer and 999 more like it."""

    def many(route: Any) -> None:
        answer = route.fetch().json()
        first = answer["layers"][0]
        labels = [f"many.{i // 100}.conv{i}" for i in range(1, COUNT)]
        more = [{**first, "key": f"fmapboard/{label}", "label": label} for label in labels]
        route.fulfill(body=json.dumps({**answer, "layers": [first, *more]}))

    def as_first(route: Any) -> None:
        url = re.sub(r"key=[^&]*", "key=fmapboard%2Fstem.0", route.request.url)
        route.fulfill(response=route.fetch(url=url))

    routes = {"**/data/layers?*": many, re.compile("key=fmapboard%2Fmany"): as_first}
    person = visit(address, routes=routes, view="overview", run="good")
    person.press("v")
    person.see(".tree .layer").first.wait_for()
    person.settle()
    return person


def rows(person: Person) -> list[dict[str, str]]:
    """Name and attributes of the rows in the document."""
    script = """rows => rows.map((row) => ({
      name: row.dataset.layer ?? "", selected: row.getAttribute("aria-selected"), id: row.id,
      place: `${row.getAttribute("aria-posinset")}/${row.getAttribute("aria-setsize")}`,
    }))"""
    return list(person.see(".tree > [role=treeitem]").evaluate_all(script))


def active(person: Person) -> str | None:
    return person.see(".tree").get_attribute("aria-activedescendant")


def in_sight(person: Person, name: str) -> bool:
    script = f"""() => {{
      const box = document.querySelector(".tree").getBoundingClientRect();
      const row = document.querySelector('.tree [data-layer="{name}"]')?.getBoundingClientRect();
      return Boolean(row) && row.top >= box.top - 1 && row.bottom <= box.bottom + 1;
    }}"""
    return bool(person.frame.evaluate(script))


def test_only_the_rows_in_sight_are_in_the_document_and_the_list_scrolls_through_all(
    person: Person,
) -> None:
    found = rows(person)
    assert 30 < len(found) < 150
    assert (found[0]["name"], found[0]["selected"]) == ("stem.0", "true")
    assert active(person) == found[0]["id"]
    high = person.frame.evaluate("document.querySelector('.tree').scrollHeight")
    assert high == 2 * 4 + 23 * (COUNT + 11)  # with a row for each of 11 groups
    person.frame.evaluate("document.querySelector('.tree').scrollTop = 1e6")
    person.see(f".tree [data-layer='many.9.conv{COUNT - 1}']").wait_for()
    assert in_sight(person, f"many.9.conv{COUNT - 1}")
    found = rows(person)
    assert len(found) < 150
    assert found[-1]["place"] == "100/100"
    assert active(person) is None  # the selected row is not in the document
    assert person.frame.evaluate("document.querySelector('.tree').scrollHeight") == high


def test_the_selected_layer_is_scrolled_to_and_stays_selected(person: Person) -> None:
    person.frame.evaluate("document.querySelector('.tree').scrollTop = 23 * 500")
    person.see(".tree [data-layer='many.4.conv490']").click()
    person.wait("document.querySelector('.tree [aria-selected=true]') !== null")
    (selected,) = [row for row in rows(person) if row["selected"] == "true"]
    assert selected["name"] == "many.4.conv490"
    assert active(person) == selected["id"]
    person.frame.evaluate("document.querySelector('.tree').scrollTop = 0")
    person.see(".tree [data-layer='stem.0']").wait_for()
    person.press("ArrowDown")
    person.see(".tree [data-layer='many.4.conv491'][aria-selected=true]").wait_for()
    assert in_sight(person, "many.4.conv491")
    person.frame.evaluate("document.querySelector('.tree').scrollTop = 1e6")
    person.see(f".tree [data-layer='many.9.conv{COUNT - 1}']").wait_for()
    person.press("ArrowUp")
    person.see(".tree [data-layer='many.4.conv490'][aria-selected=true]").wait_for()
    assert in_sight(person, "many.4.conv490")
    person.settle()


def test_the_filter_and_a_folded_group_leave_the_others(person: Person) -> None:
    person.press("/")
    person.page.keyboard.type("conv99")
    person.wait("document.querySelectorAll('.tree .layer').length === 11")
    person.see(".tree .group").first.click()
    person.wait("document.querySelectorAll('.tree .layer').length === 0")
    person.see(".tree .group").first.click()
    person.wait("document.querySelectorAll('.tree .layer').length === 11")
