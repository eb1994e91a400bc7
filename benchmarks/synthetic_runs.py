"""Runs of many layers and steps for `tab.py`, written by fmapboard's own classes, without torch."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from fmapboard.health.run import LiveChecks, chosen
from fmapboard.records import (
    InputImage,
    KernelShape,
    LayerCall,
    LayerMeasurement,
    Planes,
    Statistics,
    StepData,
)
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers.tensorboard import TensorBoardWriter

CHANNELS, SIDE = 4, 6
SMALL_LAYERS, SMALL_STEPS = 20, 4
"""Layers and steps of all runs but the first, unless they are alike."""
LARGE, SMALL = "large", "small"


def write_runs(logdir: Path, *, layers: int, runs: int, steps: int, alike: bool) -> None:
    """Write one run ``large`` with the given layers and steps, and others beside it.

    The others are small or, if they are to be alike, as large as the first.
    """
    logging.getLogger("fmapboard").setLevel(logging.ERROR)  # each run has faults
    write_run(logdir / LARGE, layers, steps)
    others = (layers, steps) if alike else (SMALL_LAYERS, SMALL_STEPS)
    for number in range(1, runs):
        write_run(logdir / f"{SMALL}{number}", *others, seed=number)


def write_run(run: Path, layers: int, steps: int, seed: int = 0) -> None:
    """Write a run in which every tenth layer goes bad in some way after half of the steps."""
    random = np.random.default_rng(seed)
    calls = [
        LayerCall(f"block{n // 50}.conv{n % 50}", "Conv2d", KernelShape((CHANNELS, CHANNELS, 3, 3)),
                  position=n, pictures=True)
        for n in range(layers)
    ]  # fmt: skip
    planes = [_planes(random) for _ in calls]
    image = InputImage(0, random.random((3, 32, 32), np.float32))
    builder, writer = SummaryBuilder(), TensorBoardWriter(run)
    checks = LiveChecks(chosen(True), None, lambda kind, error: print(f"check {kind}: {error}"))
    for step in range(steps):
        is_bad = step >= steps // 2
        measured = tuple(
            LayerMeasurement(call, "feature_maps", plane, _statistics(random, n, is_bad=is_bad),
                             shape=(1, CHANNELS, SIDE, SIDE))
            for n, (call, plane) in enumerate(zip(calls, planes, strict=True))
        )  # fmt: skip
        built = builder(StepData(step, 1.75e9 + step, measured, inputs=(image,)))
        state, checked = checks(built)
        writer.write(checked)
        checks.stored(state, step)
    writer.close()


def _planes(random: np.random.Generator) -> Planes:
    lo = np.zeros((1, CHANNELS))
    pixels = random.integers(0, 250, (1, CHANNELS, SIDE, SIDE), np.uint8)
    flat = np.zeros((1, CHANNELS), bool)
    return Planes(pixels, None, flat, lo, lo + 1, (1, CHANNELS, SIDE, SIDE), CHANNELS)


def _statistics(random: np.random.Generator, layer: int, *, is_bad: bool) -> Statistics:
    faults = np.arange(CHANNELS) < (CHANNELS // 2 if is_bad and layer % 10 == 0 else 0)
    counts, none = np.zeros(CHANNELS, np.int64), np.zeros(CHANNELS, bool)
    maximum = random.random(CHANNELS)
    if layer % 30 == 0:
        counts = counts + faults
    elif layer % 30 == 10:
        maximum[faults] = 1e6
    is_constant = layer % 30 == 20
    return Statistics(
        -maximum, maximum, maximum / 2, maximum / 3, counts, np.zeros_like(counts),
        np.zeros_like(counts), faults if is_constant else none,
    )  # fmt: skip
