"""Line charts for the documentation, drawn with Pillow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw, ImageFont

WIDTH, HEIGHT = 400, 210
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 24, 34
COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#666666")
INK, LINE, THRESHOLD = "#333333", "#dddddd", "#c00000"

Curve = Sequence[tuple[float, float]]
"""Points (step, value)."""


@dataclass(frozen=True)
class Axis:
    """The vertical axis of charts that are compared.

    Attributes:
        low: its lower end, above 0 if ``logarithmic``.
        high: its upper end.
        logarithmic: a decade per tick.
        thresholds: values at which a line is drawn.
    """

    low: float
    high: float
    logarithmic: bool = False
    thresholds: tuple[float, ...] = ()

    def place(self, value: float) -> float:
        """Position between the ends, 0 … 1."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return (at - low) / (high - low)

    def ticks(self) -> list[float]:
        """At most six values to label."""
        if not self.logarithmic:
            return [self.low + (self.high - self.low) * k / 4 for k in range(5)]
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**k for k in range(first, last + 1, max(1, (last - first + 4) // 5))]


def draw(title: str, curves: Mapping[str, Curve], axis: Axis) -> Image.Image:
    """A chart of curves over steps; at most eight have a colour of their own."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(size=11)
    last = max((step for curve in curves.values() for step, _ in curve), default=1) or 1

    def at(step: float, value: float) -> tuple[float, float]:
        across = LEFT + (WIDTH - LEFT - RIGHT) * step / last
        return across, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * axis.place(value)

    pen.text((LEFT, 4), title, INK, font)
    for value in axis.ticks():
        _, down = at(0, value)
        pen.line([(LEFT, down), (WIDTH - RIGHT, down)], LINE)
        pen.text((LEFT - 5, down), f"{value:.2g}", INK, font, "rm")
    for step in (0, last / 2, last):
        pen.text((at(step, axis.low)[0], HEIGHT - BOTTOM + 3), f"{step:.0f}", INK, font, "mt")
    pen.text(((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 3), "step", INK, font, "mb")
    for value in axis.thresholds:
        _, down = at(0, value)
        for across in range(LEFT, WIDTH - RIGHT, 8):
            pen.line([(across, down), (across + 4, down)], THRESHOLD)
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        pen.line([at(*point) for point in curve], colour, 2)
        pen.text((WIDTH - RIGHT - 4, TOP + 12 * number), name, colour, font, "rt")
    return image


def beside(left: Image.Image, right: Image.Image, gap: int = 16) -> Image.Image:
    """Two pictures in a row."""
    sheet = Image.new(
        "RGB", (left.width + gap + right.width, max(left.height, right.height)), "white"
    )
    sheet.paste(left, (0, 0))
    sheet.paste(right, (left.width + gap, 0))
    return sheet
