"""Draws the table of a rehearsal and its curves."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from math import isfinite, log10

from PIL import Image, ImageDraw, ImageFont

from fmapboard.arithmetic import ceil_div

Curves = Mapping[str, tuple[float, ...]]

WIDTH, HEIGHT = 420, 240
"""Size of one chart, px."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 110, 26, 24
_INK = (40, 40, 40)
_GREY = (170, 170, 170)
_COLOURS = (
    *((31, 119, 180), (214, 39, 40), (44, 160, 44), (148, 103, 189)),
    *((255, 127, 14), (23, 190, 207), (140, 86, 75)),
)
_RED = (180, 20, 20)
_COLUMNS = (0, 76, 480)
"""Where judgement, question and answer begin, px."""
_ANSWER = 90
"""Characters per line of an answer."""
_ABOVE = 2.0
"""How far above the first loss a chart reaches, in units of it."""
_SIZE = 13
_LINE = 17


def drawn_curves(
    title: str, rows: Sequence[tuple[str, str, str]], charts: Mapping[str, Curves]
) -> Image.Image:
    """A table above charts, two in a row.

    Args:
        title: the verdict.
        rows: judgement, question and answer of each experiment.
        charts: by their titles.
    """
    font = _font()
    lines = [(title, "", "")]
    for judgement, question, answer in rows:
        first, *others = textwrap.wrap(_plain(answer), _ANSWER) or [""]
        lines.append((judgement, question, first))
        lines += [("", "", other) for other in others]
    width = _COLUMNS[2] + max(font.getlength(line[2]) for line in lines)
    width = max(width, 2.0 * WIDTH, font.getlength(_plain(title))) + 2 * _LINE
    chart_rows = ceil_div(len(charts), 2)
    top = (len(lines) + 2) * _LINE
    page = Image.new("RGB", (int(width), top + chart_rows * HEIGHT), "white")
    draw = ImageDraw.Draw(page)
    is_found = False
    for number, line in enumerate(lines):
        is_found = line[0].startswith(("fault", "suspicion")) or (is_found and not line[0])
        ink = _RED if is_found else _INK
        for left, part in zip(_COLUMNS, line, strict=True):
            gap = _LINE // 2 if number else 0
            draw.text((_LINE + left, _LINE // 2 + gap + number * _LINE), _plain(part), ink, font)
    for number, (title, curves) in enumerate(charts.items()):
        chart = _chart(title, curves)
        column = number % 2
        page.paste(chart, (_LINE + column * WIDTH, top + number // 2 * HEIGHT))
    return page


def _plain(text: str) -> str:
    """Text in characters that Pillow's font has."""
    return text.replace("→", "->").replace("×", "x")


def _chart(title: str, curves: Curves) -> Image.Image:
    page = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(page)
    font = _font()
    draw.text((_LEFT, 4), title, _INK, font)
    firsts = [curve[0] for curve in curves.values() if curve and isfinite(curve[0])]
    if not firsts:
        return page
    most = max(firsts) + _ABOVE * abs(max(firsts))
    values = [min(v, most) for curve in curves.values() for v in curve if isfinite(v)]
    is_log = min(values) > 0 and max(values) > 20 * min(values)
    low, high = min(values), max(values)
    if is_log:
        low, high = log10(low), log10(high)
    span = high - low or 1.0
    steps = max(max(map(len, curves.values())) - 1, 1)
    inner = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def point(step: int, value: float) -> tuple[float, float]:
        scaled = log10(max(value, 1e-300)) if is_log else value
        share = min(max((scaled - low) / span, 0.0), 1.0)
        return _LEFT + step / steps * inner[0], HEIGHT - _BOTTOM - share * inner[1]

    draw.rectangle((_LEFT, _TOP, WIDTH - _RIGHT, HEIGHT - _BOTTOM), outline=_GREY)
    for share in (0.0, 0.5, 1.0):
        value = low + share * span
        label = f"{10**value if is_log else value:.3g}"
        y = HEIGHT - _BOTTOM - share * inner[1]
        draw.text((_LEFT - 6 - font.getlength(label), y - 8), label, _INK, font)
    draw.text((_LEFT, HEIGHT - 20), "step 0", _INK, font)
    last = str(steps)
    draw.text((WIDTH - _RIGHT - font.getlength(last), HEIGHT - 20), last, _INK, font)
    for number, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = [point(step, value) for step, value in enumerate(curve) if isfinite(value)]
        if len(points) > 1:
            draw.line(points, fill=colour, width=3 if name.endswith("× 1") else 1)
        _legend(draw, number, name, colour)
    return page


def _legend(
    draw: ImageDraw.ImageDraw, number: int, name: str, colour: tuple[int, int, int]
) -> None:
    y = _TOP + 4 + number * _LINE
    x = WIDTH - _RIGHT + 8
    draw.line([(x, y + 8), (x + 12, y + 8)], fill=colour, width=2)
    draw.text((x + 16, y), _plain(name), _INK, _font())


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(_SIZE)
