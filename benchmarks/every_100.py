"""What ``every=100`` costs over 100 steps of W2: ``python benchmarks/every_100.py``.

CPU seconds of the whole process, since what is looked for (0.15 %) is less than the noise of the
wall clock. Two ways, so that noise can be told from effect:

* in parts: the CPU that one logged step adds, until all of it is on disk, over many pairs of a
  logged and a bare step beside each other; and what a step that is not logged adds, over 100,000
  calls of the hook alone. Their sum over 100 bare steps, with the standard error of the mean.
* directly: blocks of 100 steps, watched and bare in turn (bare, watched, watched, bare, …).
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
from fmapboard.writers.memory import MemoryWriter

STEPS = 100


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean without the lowest and the highest tenth, and its standard error."""
    cut = len(values) // 10
    kept = sorted(values)[cut : len(values) - cut]
    spread = statistics.stdev(kept) if len(kept) > 1 else math.nan
    return statistics.mean(kept), spread / math.sqrt(len(kept))


def logged_step(train: Training, pairs: int) -> tuple[list[float], list[float]]:
    """CPU ms that a logged step adds to a bare one, and of bare steps."""
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
            if number >= 2:  # the first ones draw kernels and write grids twice
                beside = before.between(after).cpu
                extra.append(with_log.cpu - beside)
                bare.append(beside)
        board.close()
    return extra, bare


def unlogged_step(train: Training, calls: int = 100_000) -> float:
    """CPU ms of what runs at a step that is not logged: the optimizer's hook."""
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
    """CPU seconds of 100 steps."""
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
    parser.add_argument("--blocks", type=int, default=4, help="of each kind; 0 leaves them out")
    parser.add_argument("--only", default="W2", help="the workload whose name holds this text")
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
            f"{error:.1f} ms until on disk, one that is not {hook * 1e3:.2f} µs"
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
            f"  directly: {direct:+.3%} ± {error:.3%} ({options.blocks} blocks of {STEPS} "
            f"watched, as many bare; watched includes opening and closing the run)"
        )


if __name__ == "__main__":
    main()
