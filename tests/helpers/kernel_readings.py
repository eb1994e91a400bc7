"""What the tab says of kernels under the pointer, read at many places of a canvas."""

from __future__ import annotations

import re
from typing import Any

from browser_visitor import Person
from torch import Tensor
from trained_kernels import DRAWN

_SWEEP = """async ([selector, said, every]) => {
  const canvas = document.querySelector(selector);
  const context = canvas.getContext("2d");
  const text = document.querySelector(said);
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  const found = [];
  const later = window.requestAnimationFrame;
  window.requestAnimationFrame = () => 0; // no frame is painted per event
  for (let y = 1; y < box.height; y += every) {
    for (let x = 1; x < box.width; x += every) {
      const [clientX, clientY] = [Math.ceil(box.left) + x, Math.ceil(box.top) + y];
      canvas.dispatchEvent(new MouseEvent("mousemove", { clientX, clientY, bubbles: true }));
      for (let i = 0; i < 3; i += 1) await null; // the text is drawn in a microtask
      if (!text.textContent.includes(" ± ") || !/[xn] \\d/.test(text.textContent)) continue;
      const [red, , blue] = context.getImageData(x * ratio, y * ratio, 1, 1).data;
      found.push([text.textContent, red - blue]);
    }
  }
  window.requestAnimationFrame = later;
  canvas.dispatchEvent(new MouseEvent("mouseleave"));
  return found;
}"""
_PLACE = re.compile(r"(?:z (\d+), )?y (\d+), x (\d+)|position (\d+)")
_COLOUR = re.compile(r"\w+ \(input (\d+)\) (\S+) ± ([\d.e−]+)")


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def sweep(
    person: Person, selector: str = ".grid canvas", said: str = ".status", every: int = 7
) -> list[tuple[str, int]]:
    """What is said at points of a canvas, and red minus blue of the pixel there."""
    found = person.frame.evaluate(_SWEEP, [selector, said, every])
    return [(text, difference) for text, difference in found]


def weights(text: str) -> list[tuple[tuple[int, ...], float, float]]:
    """(output, input, position …), weight and its uncertainty, of what is said at a point."""
    place = _PLACE.search(text)
    assert place, text
    at = tuple(int(each) for each in place.groups() if each is not None)
    name = re.match(r"channel (\d+)(?: ← input (\d+))?", text)
    assert name, text
    output = int(name[1])
    if name[2] is None:
        return [
            ((output, int(c), *at), number(value), number(error))
            for c, value, error in _COLOUR.findall(text)
        ]
    value, error = re.search(r"· (?:difference )?(\S+) ± (\S+)$", text).groups()  # type: ignore[union-attr]
    return [((output, int(name[2]), *at), number(value), number(error))]


def assert_weights(points: list[tuple[str, int]], expected: Tensor, drawn: int) -> set[Any]:
    """Every weight that is said is the model's; returns the (output, input) of those read."""
    read = set()
    peak = float(expected.abs().max())
    for text, red_minus_blue in points:
        for at, value, error in weights(text):
            true = float(expected[at])
            assert abs(value - true) <= 1.06 * error + 6e-3 * abs(true), (text, true)
            assert error <= 0.0125 * peak * 1.06  # 1.5 of 255 steps of the range
            read.add(at[:2])
        if "input)" not in text and "(" not in text and abs(true) > 0.2 * peak:
            assert (red_minus_blue > 0) == (true > 0), text
    assert len(read) == drawn, sorted(read)
    return read


COUNTS = {
    "rgb": 6 * 3, "plain": DRAWN * 6, "depthwise": DRAWN, "grouped": DRAWN * 4,
    "grouped_rgb": 8 * 3, "up": 6 * 8, "up_grouped": 2 * 6, "last": 4,
    "sequence": 5 * 2, "sequence_up": 4 * 5, "volume": 3 * 2,
}  # fmt: skip
