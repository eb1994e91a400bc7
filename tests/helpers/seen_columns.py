"""What a user sees of a comparison: headings, remarks, input images, texts on canvases."""

from __future__ import annotations

from collections.abc import Callable

from browser_visitor import Person
from drawn_texts import WATCH


def inputs(person: Person) -> list[str]:
    """Pictures of the input images above the maps, as data URLs."""
    script = "[...document.querySelectorAll('.side:not([hidden]) canvas:not([hidden])')]"
    found: list[str] = person.frame.evaluate(f"{script}.map((canvas) => canvas.toDataURL())")
    return found


def headings(person: Person) -> list[str]:
    """Letter and origin of each column, as they are read out."""
    script = "(sides) => sides.map((side) => side.getAttribute('aria-label'))"
    found: list[str] = person.see(".side:visible").evaluate_all(script)
    return found


def notes(person: Person) -> list[str]:
    """The remarks on columns, then those on the whole comparison."""
    found: list[str] = person.see(".sides .differs:visible").all_text_contents()
    return found


def written(person: Person, act: Callable[[], object]) -> list[str]:
    """The texts on the page's canvases painted during ``act``, each canvas as it was painted last.

    The canvases of a picture that is saved meanwhile do not count: see `saved_texts`.
    """
    person.frame.evaluate(WATCH)
    act()
    person.settle()
    texts: list[str] = person.frame.evaluate(
        "[...window.drawn].filter(([canvas]) => canvas.isConnected).flatMap(([, texts]) => texts)"
    )
    return texts


def saved_texts(person: Person) -> list[str]:
    """The texts in the picture that ``p`` saves, whatever the page paints meanwhile."""
    person.frame.evaluate(WATCH)
    with person.page.expect_download():
        person.press("p")
    texts: list[str] = person.frame.evaluate("window.saved")
    return texts
