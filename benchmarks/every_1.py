"""How long ``every=1`` makes tiny networks wait for the writer: ``python benchmarks/every_1.py``.

Steps of a tiny network take less time than it takes to write what is logged of one, so the queue of
eight steps fills. Per network: the mean time of a bare and of a watched step, in wall-clock ms, and
the part of it that training waited for the queue. With one torch thread, which
is faster for tensors as small as these.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time

import torch
from rich.console import Console
from torch import nn
from workloads import machine

import fmapboard
from fmapboard.formats.tags import WAITED_MS
from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import TensorBoardWriter

STEPS, WARM_UP = 400, 100


class Kept(TensorBoardWriter):
    """Writes event files and notes how long training waited."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.waited: dict[int, float] = {}

    def write(self, step: LoggedStep) -> None:
        """Write one step."""
        self.waited[step.step] = step.scalars.get(WAITED_MS, 0.0)
        super().write(step)


def network(layers: int, side: int) -> tuple[nn.Module, torch.Tensor]:
    """Convolutions of 8 channels, and a batch for them."""
    parts: list[nn.Module] = []
    for number in range(layers):
        parts += [nn.Conv2d(8 if number else 3, 8, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*parts), torch.rand(4, 3, side, side)


def step_ms(layers: int, side: int, watched: bool) -> tuple[float, float]:
    """Mean of a step's time, and of the time in it that training waited for the queue, ms."""
    model, batch = network(layers, side)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    times: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        kept = Kept(place)
        watching: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if watched:
            watching = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
        with watching:
            for _ in range(STEPS):
                begun = time.perf_counter()
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
                times.append((time.perf_counter() - begun) * 1e3)
    waits = [kept.waited.get(number + 1, 0.0) for number in range(WARM_UP, STEPS)]
    return statistics.mean(times[WARM_UP:]), statistics.mean(waits)


def main() -> None:
    """Print one line per network."""
    console = Console()
    torch.set_num_threads(1)
    console.print(machine())
    for layers, side in ((1, 8), (4, 16), (8, 32)):
        bare, _ = step_ms(layers, side, watched=False)
        watched, waited = step_ms(layers, side, watched=True)
        console.print(
            f"{layers} convolutions of 8 channels, 4 x {side}²: bare {bare:.2f} ms, watched "
            f"{watched:.2f} ms, {waited:.2f} ms of it waiting"
        )


if __name__ == "__main__":
    main()
