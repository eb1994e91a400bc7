"""Plots of spoilt trainings: how much they still learn, by what is said of them first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from spoilt_table import HALF, NEARLY_ALL, Judged, Trained, by_amount, spoilt

LOW, HIGH = -0.5, 1.25
"""Shares of the healthy progress at the left and at the right end; others are drawn there."""
LEFT, WIDTH, RIGHT, ROW, TOP = 230, 640, 150, 46, 74
"""Sizes in px: names, plot, counts, the height of a row, title and legend."""
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, one per amount."""
SILENT = "nothing said"


def plot(rows: Sequence[Trained], directory: Path) -> None:
    """Write ``<group>.png`` for each group of spoilings: a row per kind, a dot per training."""
    directory.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Judged]] = {}
    for run in spoilt(rows):
        groups.setdefault(run.row.group, []).append(run)
    for group, runs in groups.items():
        draw_group(group, runs).save(directory / f"{group}.png", optimize=True)


def draw_group(group: str, runs: Sequence[Judged]) -> Image.Image:
    kinds = Counter(run.first or SILENT for run in runs)
    names = [kind for kind, _ in kinds.most_common() if kind != SILENT] + [SILENT]
    amounts = sorted({run.row.spoiling for run in runs}, key=by_amount)
    height = TOP + ROW * len(names) + 50
    image = Image.new("RGB", (LEFT + WIDTH + RIGHT, height), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(13)
    draw.text((12, 8), f"{group}: {len(runs)} trainings, by what is said first", "black", font)
    for number, amount in enumerate(amounts):
        x = LEFT + number * 135
        draw.ellipse((x, 38, x + 9, 47), COLORS[number % len(COLORS)])
        draw.text((x + 14, 34), amount, "black", font)
    bottom = TOP + ROW * len(names)
    for share in (-0.5, 0.0, HALF, NEARLY_ALL, 1.0):
        x = _place(share)
        draw.line((x, TOP, x, bottom), "#bbbbbb" if share in (HALF, NEARLY_ALL) else "#e4e4e4")
        draw.text((x, bottom + 5), f"{share:g}", "black", font, anchor="mt")
    draw.text(
        (LEFT + WIDTH / 2, bottom + 26),
        "share of the healthy progress that is left",
        "black",
        font,
        anchor="mt",
    )
    for number, name in enumerate(names):
        top = TOP + ROW * number
        chosen = [run for run in runs if (run.first or SILENT) == name]
        draw.line((0, top, LEFT + WIDTH + RIGHT, top), "#e4e4e4")
        draw.text((12, top + ROW / 2), name, "black", font, anchor="lm")
        counts = f"{sum(r.is_lost for r in chosen)} lose half"
        draw.text((LEFT + WIDTH + 12, top + ROW / 2 - 8), counts, "black", font, anchor="lm")
        counts = f"{sum(r.is_kept for r in chosen)} lose nothing"
        draw.text((LEFT + WIDTH + 12, top + ROW / 2 + 8), counts, "black", font, anchor="lm")
        for place, run in enumerate(sorted(chosen, key=lambda run: run.row.key)):
            x = _place(run.row.share)
            y = top + 7 + place * 11 % (ROW - 14)  # spread, so that few dots hide others
            color = COLORS[amounts.index(run.row.spoiling) % len(COLORS)]
            draw.ellipse((x - 4, y - 4, x + 4, y + 4), color if run.kinds else None, color)
    return image


def _place(share: float) -> float:
    inside = min(max(share, LOW), HIGH)
    return LEFT + WIDTH * (inside - LOW) / (HIGH - LOW)
