"""Peak memory of logged steps, and growth over many steps: ``python benchmarks/memory.py``.

*Above bare*: peak resident memory during logged steps and their writing, minus the peak during bare
steps. (Linux resets its high-water mark on request; for a GPU, torch's own peak is read as well.)
It must not exceed the data of one step (drawn samples and histogram subsamples) plus the limit of
the queue. After that, resident memory is printed along 2000 logged steps of a small CNN; it must
stay flat.
"""

from __future__ import annotations

import argparse
import gc
import resource
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from workloads import Training, Workload, machine, workloads

import fmapboard
from fmapboard.writers import pipeline
from fmapboard.writers.pipeline import Pipeline
from fmapboard.writers.tensorboard import TensorBoardWriter

MB = 1e6


def peak_during(act: Callable[[], object]) -> float:
    """Peak resident memory while ``act`` runs, bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    act()
    return _status("VmHWM")


def resident() -> float:
    """Current resident memory, bytes."""
    return _status("VmRSS")


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return float(line.split()[1]) * 1024
    raise ValueError(f"/proc/self/status has no {field}")


@contextmanager
def noting_sizes() -> Iterator[list[int]]:
    """Collect the bytes that each logged step puts into the queue."""
    sizes: list[int] = []
    put = Pipeline.put

    def noted(self: Pipeline, receive: object, nbytes: int) -> None:
        sizes.append(nbytes)
        put(self, receive, nbytes)  # type: ignore[arg-type]

    with mock.patch.object(Pipeline, "put", noted):
        yield sizes


def measure(work: Workload, rounds: int, in_a_row: int, queue: int) -> list[str]:
    """One row of the table; ``queue`` is the limit of the queue in bytes."""
    train = work.training()
    bound = mock.patch.object(pipeline, "MAX_QUEUE_BYTES", queue)
    with tempfile.TemporaryDirectory() as place, noting_sizes() as sizes, bound:
        board = fmapboard.watch(train.model, place, every=1, kernels=False)

        def logged() -> None:
            for _ in range(in_a_row):
                with board.step():
                    train()
            board.flush()

        def bare() -> None:
            for _ in range(in_a_row):
                train()

        for _ in range(3):
            bare()
            logged()
        above, above_gpu = [], []
        for _ in range(rounds):
            gc.collect()
            low, low_gpu = peak_during(bare), gpu_peak(bare)
            above.append(peak_during(logged) - low)
            above_gpu.append(gpu_peak(logged) - low_gpu)
        board.close()
    kept, most = statistics.median(sizes), max(above)
    verdict = "ok" if most <= kept + queue else "EXCEEDED"
    gpu = f"{max(above_gpu) / MB:.1f} MB" if train.device != "cpu" else "–"
    return [
        work.name,
        f"{statistics.median(above) / MB:.1f}, at most {most / MB:.1f} MB",
        gpu,
        f"{kept / MB:.1f} MB",
        f"{queue / MB:.0f} MB",
        verdict,
    ]


def gpu_peak(act: Callable[[], object]) -> float:
    if not torch.cuda.is_available():
        return 0.0
    torch.cuda.reset_peak_memory_stats()
    act()
    torch.cuda.synchronize()
    return float(torch.cuda.max_memory_allocated())


def flatness(steps: int) -> Iterator[tuple[int, float]]:
    """Step and resident memory (bytes), 20 times during a run of logged steps, after a flush."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.LazyLinear(10)
    )
    model(torch.randn(1, 3, 16, 16))
    train = Training(model, (4, 3, 16, 16))
    with tempfile.TemporaryDirectory() as place:
        writer = TensorBoardWriter(place)
        board = fmapboard.watch(train.model, writer=writer, optimizer=train.optimizer, every=1)
        for step in range(steps + 1):
            train()
            if step % (steps // 20) == 0:
                board.flush()
                gc.collect()
                yield step, resident()
        board.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--in-a-row", type=int, default=3, help="logged steps per measurement")
    parser.add_argument("--queue", type=int, default=64, help="limit of the queue, MB")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    options = parser.parse_args()
    if not Path("/proc/self/clear_refs").exists():
        sys.exit("memory.py reads Linux's high-water mark of resident memory in /proc/self")
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(machine())
    head = ("", "above bare", "on the GPU", "data per step", "queue limit", "verdict")
    title = f"{options.in_a_row} consecutive logged steps, {options.rounds} rounds"
    table = Table(*head, title=title)
    for work in workloads(options.only):
        table.add_row(*measure(work, options.rounds, options.in_a_row, options.queue * 10**6))
    console.print(table)
    marks = list(flatness(options.steps))
    for step, size in marks:
        console.print(f"step {step:5}: {size / MB:8.1f} MB resident")
    half = [size for step, size in marks if step >= options.steps // 2]
    growth = (half[-1] - half[0]) / (options.steps / 2) / 1e3
    console.print(f"second half: {growth:+.2f} KB per logged step")
    console.print(
        f"overall peak: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"
    )


if __name__ == "__main__":
    main()
