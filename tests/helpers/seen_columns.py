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


_WATCH = """() => { const drawn = (window.drawn = new Map());
  window.saved = null;
  const canvas = CanvasRenderingContext2D.prototype;
  const { fillText, fillRect, drawImage, putImageData } = canvas;
  const { toBlob } = HTMLCanvasElement.prototype;
  const add = (to, texts) => drawn.set(to, [...(drawn.get(to) ?? []), ...texts]);
  canvas.fillText = function (text, ...rest) {
    add(this.canvas, [text]);
    return fillText.call(this, text, ...rest); };
  canvas.drawImage = function (image, ...rest) {
    add(this.canvas, drawn.get(image) ?? []);
    return drawImage.call(this, image, ...rest); };
  canvas.putImageData = function (image, ...rest) {
    if (image.width >= this.canvas.width) drawn.delete(this.canvas);
    return putImageData.call(this, image, ...rest); };
  canvas.fillRect = function (x, y, width, height) {
    const whole = this.canvas.width / devicePixelRatio - 1;
    if (x === 0 && y === 0 && width >= whole) drawn.delete(this.canvas);
    return fillRect.call(this, x, y, width, height); };
  HTMLCanvasElement.prototype.toBlob = function (...how) {
    window.saved = drawn.get(this) ?? [];
    return toBlob.apply(this, how); }; }"""


def written(person: Person, act: Callable[[], object]) -> list[str]:
    """The texts on the page's canvases painted during ``act``, each canvas as it was painted last.

    The canvases of a picture that is saved meanwhile do not count: see `saved_texts`.
    """
    person.frame.evaluate(_WATCH)
    act()
    person.settle()
    texts: list[str] = person.frame.evaluate(
        "[...window.drawn].filter(([canvas]) => canvas.isConnected).flatMap(([, texts]) => texts)"
    )
    return texts


def saved_texts(person: Person) -> list[str]:
    """The texts in the picture that ``p`` saves, whatever the page paints meanwhile."""
    person.frame.evaluate(_WATCH)
    with person.page.expect_download():
        person.press("p")
    texts: list[str] = person.frame.evaluate("window.saved")
    return texts
