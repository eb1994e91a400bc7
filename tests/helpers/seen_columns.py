"""What a user sees of a comparison: headings, remarks, input images, texts on canvases."""

from __future__ import annotations

from collections.abc import Callable

from browser_visitor import Person


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
