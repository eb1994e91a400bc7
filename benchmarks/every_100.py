"""Overhead of ``every=100`` over 100 steps of workload W2: ``python benchmarks/every_100.py``.

Measured in CPU time of the whole process, because the effect (0.15 %) is below the noise of wall
time. Two independent methods, so that noise can be distinguished from the effect:

* in parts: the CPU time that a logged step adds until it is on disk (from many logged steps, each
  between two bare ones), plus 99 times the CPU time of the hook at a step that is not logged (from
  100,000 calls); divided by the CPU time of 100 bare steps. With the standard error of the mean.
* directly: blocks of 100 steps, alternately watched and bare (bare, watched, watched, bare, …).
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path

from rich.console import Console
from workloads import Training, cpu_seconds, machine, timed, workloads

import fmapboard
from fmapboard.writers.folder import MemoryWriter

STEPS = 100


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean without the lowest and highest 10 % of the values, and its standard error."""
    cut = len(values) // 10
    kept = sorted(values)[cut : len(values) - cut]
    spread = statistics.stdev(kept) if len(kept) > 1 else math.nan
    return statistics.mean(kept), spread / math.sqrt(len(kept))


def logged_step(train: Training, pairs: int) -> tuple[list[float], list[float]]:
    """CPU time that each logged step adds to a bare one, and that of each bare step, ms."""
    extra, bare = [], []
    with tempfile.TemporaryDirectory() as place:
        board = fmapboard.watch(train.model, place, every=1)
        for number in range(pairs + 2):

            def logged(number: int = number) -> None:
                with board.step(number):
                    train()
                board.flush()

            before = timed(train, train.sync)
            with_log = timed(logged, train.sync)
            after = timed(train, train.sync)
            if number >= 2:  # the first steps also draw kernels and store pictures twice
                baseline = before.between(after).cpu
                extra.append(with_log.cpu - baseline)
                bare.append(baseline)
        board.close()
    return extra, bare


def unlogged_step(train: Training, calls: int = 100_000) -> float:
    """CPU time of the optimizer hook at a step that is not logged, ms."""
    board = fmapboard.watch(
        train.model, writer=MemoryWriter(), optimizer=train.optimizer, every=1 << 60, start_step=1
    )
    (hook,) = train.optimizer._optimizer_step_post_hooks.values()
    begun = time.thread_time()
    for _ in range(calls):
        hook(train.optimizer, (), {})
    spent = time.thread_time() - begun
    board.close()
    return spent / calls * 1e3


def block(train: Training, watched: bool) -> float:
    """CPU time of 100 steps, s; with ``watched``, including opening and closing the run."""
    with tempfile.TemporaryDirectory() as place:
        begun = cpu_seconds()
        if watched:
            with fmapboard.watch(train.model, Path(place), optimizer=train.optimizer, every=STEPS):
                for _ in range(STEPS):
                    train()
        else:
            for _ in range(STEPS):
                train()
        train.sync()
        return cpu_seconds() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--blocks", type=int, default=4, help="per kind; 0 skips this method")
    parser.add_argument("--only", default="W2", help="workloads whose name contains this text")
    options = parser.parse_args()
    console = Console()
    console.print(machine())
    for work in workloads(options.only):
        train = work.training()
        for _ in range(3):
            train()
        hook = unlogged_step(train)
        extras, bares = logged_step(train, options.pairs)
        (extra, error), bare = mean_and_error(extras), statistics.mean(bares)
        share, doubt = (extra + 99 * hook) / (STEPS * bare), error / (STEPS * bare)
        console.print(
            f"{work.name}: bare step {bare:.0f} ms CPU; a logged step adds {extra:.1f} ± "
            f"{error:.1f} ms until it is on disk, a step that is not logged {hook * 1e3:.2f} µs"
        )
        console.print(f"  in parts: {share:+.3%} ± {doubt:.3%} over {STEPS} steps")
        if not options.blocks:
            continue
        spent: dict[bool, list[float]] = {False: [], True: []}
        for number in range(options.blocks):
            for watched in (False, True) if number % 2 == 0 else (True, False):
                spent[watched].append(block(train, watched))
        shares = [w / b - 1 for w, b in zip(spent[True], spent[False], strict=True)]
        direct, error = mean_and_error(shares)
        console.print(
            f"  directly: {direct:+.3%} ± {error:.3%} ({options.blocks} watched and "
            f"{options.blocks} bare blocks of {STEPS} steps; watched ones open and close the run)"
        )


if __name__ == "__main__":
    main()
