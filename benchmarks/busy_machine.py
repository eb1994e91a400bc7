"""What logging costs and loses while every core is busy: ``python benchmarks/busy_machine.py``.

Beside a process per core that does nothing but compute, a small CNN trains on one thread and logs
each step. It is killed without warning at the end, or closed. *Idle priority, unlimited* is the
same worker without a bound in steps, which never leaves the lowest priority. *Steps lost*: trained
and not on disk when the process was killed; *bound*: 8 steps, or those of the last 2 s. *Waited*:
the part of training that was spent waiting for the queue. Medians over rounds, variants in turn;
steps lost are the most of any round.
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

import torch
from rich.console import Console
from rich.table import Table
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import nn
from workloads import Training, machine

import fmapboard
from fmapboard.writers import backlog
from fmapboard.writers.worker import Worker

VARIANTS = ("idle priority, unlimited", "fmapboard", "no logging")


def train(variant: str, end: str, folder: str, steps: int, threads: int) -> None:
    """The training, in a process of its own; prints what `measure` reads."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    if variant == VARIANTS[0]:
        backlog.MAX_STEPS = 10**9
        Worker._start_normal = lambda self: None  # type: ignore[method-assign]
    layers = (nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU())
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    step = Training(model, (32, 3, 32, 32))
    for _ in range(10):
        step()
    every = 1 if variant != VARIANTS[2] else 10**9
    board = fmapboard.watch(model, folder, every=every, start_step=1, optimizer=step.optimizer)
    began, ends = time.perf_counter(), []
    for _ in range(steps):
        step()
        ends.append(time.perf_counter())
    last = sum(moment > ends[-1] - backlog.MAX_SECONDS for moment in ends)
    waited = board._run.pipeline._worker._waited
    print((ends[-1] - began) / steps, waited / (ends[-1] - began), max(8, last), flush=True)
    if end == "kill":
        sys.stdin.read()  # the worker goes on until the signal arrives, as it does in training
    began = time.perf_counter()
    board.close()
    print(time.perf_counter() - began, flush=True)


@dataclass
class Found:
    """Seconds per step and to close, the part waited, the bound and how many steps were lost."""

    step: float
    waited: float
    bound: float
    lost: int
    close: float


def measure(variant: str, steps: int, threads: int) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        with started("train", variant, "kill", folder, str(steps), str(threads)) as training:
            step, waited, bound = map(float, training.stdout.readline().split())
            training.kill()
            training.wait()
        lost = steps - on_disk(Path(folder)) if variant != VARIANTS[2] else 0
    with (
        tempfile.TemporaryDirectory() as folder,
        started("train", variant, "close", folder, str(steps), str(threads)) as training,
    ):
        again, waited_again, _ = map(float, training.stdout.readline().split())
        close = float(training.stdout.readline())
    return Found((step + again) / 2, (waited + waited_again) / 2, bound, lost, close)


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
    parser.add_argument("--threads", type=int, default=1, help="of torch, in the training")
    parser.add_argument("--busy", type=int, default=os.cpu_count(), help="busy processes")
    options = parser.parse_args()
    console = Console()
    console.print(machine(), f"{options.busy} busy processes, {options.threads} thread(s) train")
    found: dict[str, list[Found]] = {variant: [] for variant in VARIANTS}
    with busy_cores(options.busy):
        for _ in range(options.rounds):
            for variant, rounds in found.items():
                rounds.append(measure(variant, options.steps, options.threads))
    middle = statistics.median
    idle = middle(one.step for one in found[VARIANTS[0]])
    table = Table("", "a step", "of idle", "waited", "steps lost", "bound", "close")
    for variant, rounds in found.items():
        step = middle(one.step for one in rounds)
        table.add_row(
            variant,
            f"{step * 1e3:.1f} ms",
            f"{step / idle:.2f}×",
            f"{middle(one.waited for one in rounds):.1%}",
            f"{max(one.lost for one in rounds)} of {options.steps}",
            f"{middle(one.bound for one in rounds):.0f}",
            f"{middle(one.close for one in rounds):.1f} s",
        )
    console.print(table)


if __name__ == "__main__":
    main()
