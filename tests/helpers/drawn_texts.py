"""The texts that the tab writes on a canvas."""

from __future__ import annotations

from browser_visitor import Person

_WATCH = """(selector) => new Promise((done) => {
  const kind = CanvasRenderingContext2D.prototype;
  const { fillText: write, fillRect: fill } = kind;
  let found = [];
  const canvas = document.querySelector(selector);
  kind.fillText = function (text, ...place) {
    if (this.canvas === canvas || !this.canvas.isConnected) found.push(text);  // one that is copied
    return write.call(this, text, ...place);
  };
  kind.fillRect = function (...place) {
    const wiped = place[0] === 0 && place[1] === 0 && place[2] >= canvas.width;
    if (this.canvas === canvas && wiped) found = [];
    return fill.apply(this, place);
  };
  canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: -9, clientY: -9, bubbles: true }));
  window.dispatchEvent(new Event("resize"));
  requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => {
    kind.fillText = write;
    kind.fillRect = fill;
    done(found);
  })));
})"""


def drawn_texts(person: Person, selector: str) -> list[str]:
    """Draw the tab once more; returns the texts on a canvas in the order that they are drawn."""
    person.settle()
    texts: list[str] = person.frame.evaluate(_WATCH, selector)
    return texts
