"""Cost of logging, and steps lost, on a busy machine: ``python benchmarks/busy_machine.py``.

A small CNN trains in one thread and logs every step, while one other process per core keeps all
cores busy. At the end the training process is killed in one run and closed in another. Variants
alternate; values are medians over rounds, for *steps lost* the maximum.

*Idle priority, unlimited*: the queue has no limit in steps, and the worker thread always stays at
the lowest priority. *Steps lost*: steps that were trained but not on disk when the process was
killed; the documented limit is 8. *Waited*: fraction of the training time spent waiting for the
queue.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import nn
from workloads import Training, machine

import fmapboard
from fmapboard.writers import pipeline, worker
from fmapboard.writers.worker import Worker

VARIANTS = ("idle priority, unlimited", "fmapboard", "no logging")


def train(variant: str, end: str, folder: str, steps: int, threads: int) -> None:
    """Train in this process, which `measure` has started, and print the results for it.

    Args:
        variant: one of `VARIANTS`.
        end: ``"kill"`` to wait for the signal at the end, ``"close"`` to close the logger.
        folder: run directory.
        steps: number of training steps.
        threads: number of torch threads.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    if variant == VARIANTS[0]:
        worker.MAX_STEPS = 10**9
        Worker._start_normal = lambda self: None  # type: ignore[method-assign]
    waited: list[float] = []  # s, per logged step

    class Timed(Worker[Any]):
        def put(self, item: Any, nbytes: int) -> float:
            waited.append(super().put(item, nbytes))
            return waited[-1]

    pipeline.Worker = Timed  # type: ignore[misc]
    layers = (nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    step = Training(model, (32, 3, 32, 32))
    for _ in range(10):
        step()
    every = 1 if variant != VARIANTS[2] else 10**9
    board = fmapboard.watch(model, folder, every=every, start_step=1, optimizer=step.optimizer)
    began = time.perf_counter()
    for _ in range(steps):
        step()
    seconds = time.perf_counter() - began
    print(seconds / steps, sum(waited) / seconds, flush=True)
    if end == "kill":
        sys.stdin.read()  # until the signal arrives the worker keeps writing, as during training
    began = time.perf_counter()
    board.close()
    print(time.perf_counter() - began, flush=True)


@dataclass
class Found:
    """Result of one round of a variant."""

    step: float
    """Time per step, s."""
    waited: float
    """Fraction of the training time spent waiting for the queue, 0 to 1."""
    lost: int
    """Steps not on disk when the process was killed."""
    close: float
    """Time that `close` took, s."""


def measure(variant: str, steps: int, threads: int) -> Found:
    """Train twice, once killed and once closed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        with started("train", variant, "kill", folder, str(steps), str(threads)) as training:
            step, waited = map(float, training.stdout.readline().split())
            training.kill()
            training.wait()
        lost = steps - on_disk(Path(folder)) if variant != VARIANTS[2] else 0
    with (
        tempfile.TemporaryDirectory() as folder,
        started("train", variant, "close", folder, str(steps), str(threads)) as training,
    ):
        again, waited_again = map(float, training.stdout.readline().split())
        close = float(training.stdout.readline())
    return Found((step + again) / 2, (waited + waited_again) / 2, lost, close)


def started(*arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, __file__, *arguments], stdin=pipe, stdout=pipe, text=True
    )


def on_disk(folder: Path) -> int:
    (path,) = folder.glob("*tfevents*")
    return len({event.step for event in EventFileLoader(str(path)).Load() if event.summary.value})


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def main() -> None:
    if sys.argv[1:2] == ["train"]:
        variant, end, folder, steps, threads = sys.argv[2:]
        train(variant, end, folder, int(steps), int(threads))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="torch threads of the training")
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="number of busy processes")
    options = parser.parse_args()
    console = Console()
    console.print(machine(), f"{options.busy} busy processes, {options.threads} training thread(s)")
    found: dict[str, list[Found]] = {variant: [] for variant in VARIANTS}
    with busy_cores(options.busy):
        for _ in range(options.rounds):
            for variant, rounds in found.items():
                rounds.append(measure(variant, options.steps, options.threads))
    middle = statistics.median
    idle = middle(one.step for one in found[VARIANTS[0]])
    table = Table("", "per step", "relative", "waited", "steps lost", "close")
    for variant, rounds in found.items():
        step = middle(one.step for one in rounds)
        table.add_row(
            variant,
            f"{step * 1e3:.1f} ms",
            f"{step / idle:.2f}×",
            f"{middle(one.waited for one in rounds):.1%}",
            f"{max(one.lost for one in rounds)} of {options.steps}",
            f"{middle(one.close for one in rounds):.1f} s",
        )
    console.print(table)


if __name__ == "__main__":
    main()
