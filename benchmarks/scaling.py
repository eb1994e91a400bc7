"""Scaling of the cost of a logged step: ``python benchmarks/scaling.py``.

Varies the number of layers, the number of channels, the side of the maps and the batch size, one
at a time, in a network of cheap convolutions. Measures the time for which fmapboard blocks the
training thread and the CPU time of its worker thread (medians, ms), once with every pixel drawn and
once with the default limits (64 channels, 64 px). Prints the log-log slope between the two largest
sizes, where 1 is linear in the number of values, and draws ``assets/pictures/scaling.png``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw, ImageFont
from rich.console import Console
from rich.table import Table
from torch import nn
from workloads import Training, machine

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import TensorBoardWriter

PICTURE = Path(__file__).parents[1] / "assets" / "pictures" / "scaling.png"
BASE = {"layers": 8, "channels": 32, "side": 64, "batch": 8}
SIZES = {
    "layers": [2, 4, 8, 16, 32, 64],
    "channels": [8, 16, 32, 64, 128, 256],
    "side": [16, 32, 64, 128, 256],
    "batch": [1, 2, 4, 8, 16, 32, 64],
}
POWER = {"layers": 1, "channels": 1, "side": 2, "batch": 1}
"""The number of values grows with this power of the size."""
TITLES = {
    "layers": "layers",
    "channels": "channels of each layer",
    "side": "side of the maps, px",
    "batch": "images in the batch",
}
DRAWN: dict[str, dict[str, Any]] = {
    "every pixel": {"max_channels": None, "max_tile": None},
    "default limits": {},
}


class Timing(TensorBoardWriter):
    """Collects the time of each step in the training thread, and its CPU time in the worker, ms."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.held: list[float] = []
        self.worked: list[float] = []
        self._before = 0.0

    def write(self, step: LoggedStep) -> None:
        super().write(step)
        if not step.scalars:  # the verdict
            return
        now = time.thread_time() * 1e3
        self.held.append(step.scalars["fmapboard/logged_step_ms"])
        self.worked.append(now - self._before)
        self._before = now


@dataclass(frozen=True)
class Point:
    """Cost of a logged step at one size."""

    size: int
    held: float
    """Time for which the training thread is blocked, ms."""
    worked: float
    """CPU time of the worker thread, ms."""


def network(layers: int, channels: int) -> nn.Module:
    """Depthwise 1×1 convolutions, with BatchNorm so that deep maps do not become constant."""
    first = nn.Conv2d(3, channels, 1)
    others = [
        layer
        for _ in range(layers - 1)
        for layer in (nn.Conv2d(channels, channels, 1, groups=channels), nn.BatchNorm2d(channels))
    ]
    return nn.Sequential(
        first, *others, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)
    )


def measure(sizes: dict[str, int], options: dict[str, Any], rounds: int, size: int) -> Point:
    """The cost for ``sizes``; ``size`` is the one that varies."""
    torch.manual_seed(0)
    shape = (sizes["batch"], 3, sizes["side"], sizes["side"])
    train = Training(network(sizes["layers"], sizes["channels"]), shape)
    with tempfile.TemporaryDirectory() as place:
        writer = Timing(Path(place))
        board = fmapboard.watch(train.model, writer=writer, every=1, kernels=False, **options)
        for _ in range(rounds + 2):
            with board.step():
                train()
            board.flush()
        board.close()
    return Point(size, statistics.median(writer.held[2:]), statistics.median(writer.worked[2:]))


def slope(along: str, points: list[Point], cost: Callable[[Point], float]) -> float:
    """Log-log slope against the number of values, between the two largest sizes."""
    last, before = points[-1], points[-2]
    return math.log(cost(last) / cost(before)) / math.log(last.size / before.size) / POWER[along]


Curves = dict[tuple[str, str], list[Point]]
"""(varied size, what is drawn) -> points."""


def tables(curves: Curves) -> list[Table]:
    """One table per curve, with the slopes in the last row."""
    found = []
    for (along, drawn), points in curves.items():
        table = Table(along, "training thread", "worker, CPU", title=f"{along}, {drawn}")
        for point in points:
            table.add_row(str(point.size), f"{point.held:.2f} ms", f"{point.worked:.2f} ms")
        table.add_row(
            "slope",
            f"{slope(along, points, lambda p: p.held):.2f}",
            f"{slope(along, points, lambda p: p.worked):.2f}",
        )
        found.append(table)
    return found


INK, FAINT, PAPER = "#222222", "#d0d0d0", "#ffffff"
COLOURS = {("every pixel", "worked"): "#b2182b", ("every pixel", "held"): "#2166ac"}
COLOURS |= {("default limits", "worked"): "#ef8a62", ("default limits", "held"): "#67a9cf"}
NAMES = {"worked": "worker, CPU", "held": "training thread"}
PANEL, GAP, TOP = (560, 400), 70, 90


class Panel:
    """One log-log plot."""

    def __init__(
        self, draw: ImageDraw.ImageDraw, corner: tuple[int, int], low: float, high: float
    ) -> None:
        self._draw, self._corner, self._low, self._high = draw, corner, low, high
        self._font = ImageFont.load_default(16)
        self._sizes: list[int] = []

    def frame(self, title: str, sizes: list[int]) -> None:
        self._sizes = sizes
        left, top = self._corner
        self._draw.rectangle((left, top, left + PANEL[0], top + PANEL[1]), outline=INK)
        self._draw.text((left, top - 26), title, INK, ImageFont.load_default(20))
        for size in sizes:
            x, y = self._at(size, self._low)
            self._draw.line((x, top, x, y), FAINT)
            self._draw.text((x, y + 6), str(size), INK, self._font, anchor="ma")
        for power in range(
            math.floor(math.log10(self._low)), math.ceil(math.log10(self._high)) + 1
        ):
            if self._low <= 10.0**power <= self._high:
                _, y = self._at(sizes[0], 10.0**power)
                self._draw.line((left, y, left + PANEL[0], y), FAINT)
                self._draw.text((left - 6, y), f"{10.0**power:g} ms", INK, self._font, anchor="rm")

    def curve(self, points: list[tuple[int, float]], colour: str) -> None:
        dots = [self._at(*point) for point in points]
        self._draw.line(dots, colour, 3)
        for x, y in dots:
            self._draw.ellipse((x - 4, y - 4, x + 4, y + 4), fill=colour)

    def linear(self, through: tuple[int, float], power: int) -> None:
        """A dashed line through a point, linear in the number of values."""
        (last, cost), first, steps = through, self._sizes[0], 60
        for number in range(0, steps, 2):
            ends = [first * (last / first) ** ((number + part) / steps) for part in (0, 1)]
            costs = [cost * (end / last) ** power for end in ends]
            if min(costs) >= self._low:
                self._draw.line([self._at(*end) for end in zip(ends, costs, strict=True)], INK, 1)

    def _at(self, size: float, cost: float) -> tuple[float, float]:
        left, top = self._corner
        first, last = self._sizes[0], self._sizes[-1]
        across = math.log(size / first) / math.log(last / first)
        up = math.log(max(cost, self._low) / self._low) / math.log(self._high / self._low)
        return left + 20 + across * (PANEL[0] - 40), top + PANEL[1] - up * PANEL[1]


def picture(curves: Curves, said: str) -> Image.Image:
    """Draw all curves; ``said`` is the subtitle."""
    width, height = 2 * PANEL[0] + 3 * GAP + 20, 2 * PANEL[1] + 3 * GAP + TOP + 60
    image = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((GAP, 14), "Cost of a logged step, by size", INK, ImageFont.load_default(26))
    draw.text((GAP, 50), said, INK, ImageFont.load_default(14))
    costs = [cost for points in curves.values() for p in points for cost in (p.held, p.worked)]
    low, high = 10 ** math.floor(math.log10(min(costs))), max(costs) * 1.6
    for number, along in enumerate(SIZES):
        corner = (
            GAP + 20 + (number % 2) * (PANEL[0] + GAP),
            TOP + 40 + (number // 2) * (PANEL[1] + GAP + 10),
        )
        panel = Panel(draw, corner, low, high)
        panel.frame(TITLES[along], SIZES[along])
        whole = curves[along, "every pixel"]
        panel.linear((whole[-1].size, whole[-1].worked), POWER[along])
        for drawn in DRAWN:
            for cost in NAMES:
                points = [(p.size, float(getattr(p, cost))) for p in curves[along, drawn]]
                panel.curve(points, COLOURS[drawn, cost])
    x = GAP
    for (drawn, cost), colour in COLOURS.items():
        draw.line((x, height - 30, x + 30, height - 30), colour, 4)
        text = f"{NAMES[cost]}, {drawn}"
        draw.text((x + 38, height - 30), text, INK, ImageFont.load_default(16), anchor="lm")
        x += 60 + int(draw.textlength(text, ImageFont.load_default(16)))
    draw.text(
        (x, height - 30), "- -  linear in values", INK, ImageFont.load_default(16), anchor="lm"
    )
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    console = Console()
    console.print(machine())
    curves: Curves = {}
    for along, sizes in SIZES.items():
        for drawn, limits in DRAWN.items():
            curves[along, drawn] = [
                measure({**BASE, along: size}, limits, options.rounds, size) for size in sizes
            ]
    for table in tables(curves):
        console.print(table)
    base = ", ".join(f"{size} {name}" for name, size in BASE.items())
    threads = torch.get_num_threads()
    said = f"Base: {base}; medians of {options.rounds} rounds; {threads} torch threads."
    picture(curves, said).save(options.picture, optimize=True)
    console.print(f"wrote {options.picture}")


if __name__ == "__main__":
    main()
