"""The texts that the tab writes on a canvas."""

from __future__ import annotations

from browser_visitor import Person

WATCH = """() => {
  window.saved = null;
  if (window.drawn) return window.drawn.clear();
  const drawn = (window.drawn = new Map());
  const { convertToBlob } = OffscreenCanvas.prototype;
  const add = (to, texts) => drawn.set(to, [...(drawn.get(to) ?? []), ...texts]);
  for (const kind of [CanvasRenderingContext2D, OffscreenCanvasRenderingContext2D]) {
    const canvas = kind.prototype;
    const { fillText, fillRect, drawImage, putImageData } = canvas;
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
  }
  OffscreenCanvas.prototype.convertToBlob = function (...how) {
    window.saved = drawn.get(this) ?? [];
    return convertToBlob.apply(this, how); }; }"""
"""Keeps in ``window.drawn`` the texts of each canvas, as it was painted last."""

_DRAW = """(selector) => new Promise((done) => {
  const canvas = document.querySelector(selector);
  canvas.dispatchEvent(new MouseEvent("mousemove", { clientX: -9, clientY: -9, bubbles: true }));
  window.dispatchEvent(new Event("resize"));
  requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() =>
    done(window.drawn.get(canvas) ?? []))));
})"""


def drawn_texts(person: Person, selector: str) -> list[str]:
    """Draw the tab once more; returns the texts on a canvas in the order that they are drawn."""
    person.settle()
    person.frame.evaluate(WATCH)
    texts: list[str] = person.frame.evaluate(_DRAW, selector)
    return texts
