"""Error of `update_ratio/<parameter>`, and its time on the training thread.

    python benchmarks/update_ratios.py                      # ResNet-18
    python benchmarks/update_ratios.py convnext_tiny --steps 6
    python benchmarks/update_ratios.py --heads              # of very many classes

Error: trains a network of torchvision on the bundled photographs (crops of 64 pixels) and on noise
with each of several optimizers, and compares every ratio of a weight that is read in part with the
exact one; with `--heads`, those of the last layer of a small network. Time: logs every second step
of workload W2 and sums what reading the parameters takes on the training thread, beside what the
whole logged step takes there.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torchvision
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F
from workloads import machine, workloads

import fmapboard
from fmapboard.demo.photographs import Photographs
from fmapboard.gradients.update_ratios import UpdateReader, rows_of
from fmapboard.writers.folder import MemoryWriter

Optimizers = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Optimizers] = {
    "SGD 0.1": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD 0.02, momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=5e-4),
    "SGD 0.1, Nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "AdamW 0.0005": lambda p: torch.optim.AdamW(p, lr=5e-4),
}
HEADS = (
    (768, 50_000, 16),
    (512, 20_000, 8),
    (512, 20_000, 32),
    (512, 20_000, 512),
    (512, 10_572, 64),
)
"""Features, classes and images per batch of large heads."""
CLASSES = 5
BOUND = 0.15


def noise(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """8 images of 64 pixels whose brightness is the label."""
    labels = torch.randint(CLASSES, (8,), generator=generator)
    small = torch.randn(8, 3, 12, 12, generator=generator) + labels.view(-1, 1, 1, 1)
    return F.interpolate(small, size=64), labels


crops = functools.cache(Photographs.load)


def photographs(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """16 crops of the bundled photographs."""
    images, labels = crops().training_batch(16, generator)
    return F.interpolate(images, size=64, mode="bilinear", antialias=True), labels % CLASSES


def errors(network: str, optimizers: Optimizers, data: Any, steps: int) -> list[float]:
    """Relative errors of the logged ratios of the weights that are read in part."""
    found = []
    for seed in range(2):
        torch.manual_seed(seed)
        model = torchvision.models.get_model(network, weights=None, num_classes=CLASSES)
        in_part = {n: p for n, p in model.named_parameters() if _read_in_part(p)}
        optimizer, kept = optimizers(model.parameters()), MemoryWriter()
        generator = torch.Generator().manual_seed(seed)
        with fmapboard.watch(model, writer=kept, every=1) as board:
            for number in range(steps):
                images, labels = data(generator)
                with board.step(number):
                    optimizer.zero_grad()
                    F.cross_entropy(model(images), labels).backward()
                    before = {name: p.detach().clone() for name, p in in_part.items()}
                    optimizer.step()
                exact = {name: _ratio(in_part[name].detach(), own) for name, own in before.items()}
                board.flush()
                logged = kept.steps.pop().scalars
                found += [
                    abs(logged[f"update_ratio/{name}"] / ratio - 1)
                    for name, ratio in exact.items()
                    if 0 < ratio < float("inf")
                ]
    return found


def head_errors(head: tuple[int, int, int], optimizers: Optimizers, steps: int) -> list[float]:
    """Relative errors of the logged ratios of a large head."""
    features, classes, batch = head
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv2d(3, 64, 4), nn.Flatten(), nn.Linear(64, features), nn.ReLU())
    last, kept = nn.Linear(features, classes), MemoryWriter()
    model = nn.Sequential(body, last)
    optimizer, found = optimizers(model.parameters()), []
    weight = last.weight.detach()
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(steps):
            labels = torch.randint(classes, (batch,))
            before = weight.clone()
            with board.step(number):
                optimizer.zero_grad()
                F.cross_entropy(model(torch.randn(batch, 3, 4, 4)), labels).backward()
                optimizer.step()
            board.flush()
            logged = kept.steps.pop().scalars.get("update_ratio/1.weight")
            if logged is not None:
                found.append(abs(logged / _ratio(weight, before) - 1))
    return found


def print_heads(steps: int, console: Console) -> None:
    """Print the errors of large heads."""
    table = Table(title=f"Error of the ratios of large heads in {steps} steps, in %")
    for column in ("features × classes, images", "optimizer"):
        table.add_column(column)
    for column in ("logged", "largest", "above 15 %"):
        table.add_column(column, justify="right")
    for head in HEADS:
        for name, optimizers in OPTIMIZERS.items():
            found = head_errors(head, optimizers, steps)
            largest = f"{100 * max(found):.2f}" if found else "none"
            above = sum(one > BOUND for one in found)
            text = "{:,} × {:,}, {}".format(*head)
            table.add_row(text, name, f"{len(found)}", largest, f"{above}")
    console.print(table)


def _read_in_part(parameter: Tensor) -> bool:
    rows = rows_of(parameter.detach())
    return rows is not None and rows.numel() < parameter.numel()


def _ratio(after: Tensor, before: Tensor) -> float:
    return float((after - before).double().norm() / before.double().norm())


def milliseconds(steps: int) -> tuple[dict[str, float], float]:
    """Median times of each part of the reading in a step of W2, and of the whole logged step."""
    times: defaultdict[str, list[float]] = defaultdict(list)

    def timed(name: str) -> None:
        real = getattr(UpdateReader, name)

        def wrapper(*args: Any, **options: Any) -> None:
            begun = time.perf_counter()
            real(*args, **options)
            times[name].append((time.perf_counter() - begun) * 1e3)

        setattr(UpdateReader, name, wrapper)

    parts = "announce", "before", "after"
    for part in parts:
        timed(part)
    train, held = workloads("W2", ("cpu",))[0].training(), []
    with (
        tempfile.TemporaryDirectory() as folder,
        fmapboard.watch(train.model, folder, every=1) as board,
    ):
        for number in range(steps):
            train()
            begun = time.perf_counter()
            with board.step(number):
                train()
            held.append((time.perf_counter() - begun) * 1e3)
    warm = slice(3, None)  # the first steps reserve memory
    found = {part: statistics.median(times[part][warm]) for part in parts}
    sums = [sum(one) for one in zip(*(times[part][warm] for part in parts), strict=True)]
    return {**found, "sum": statistics.median(sums)}, statistics.median(held[warm])


def main() -> None:
    """Print the errors and the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("network", nargs="?", default="resnet18", help="name in torchvision")
    parser.add_argument("--steps", type=int, default=12, help="steps of each training")
    parser.add_argument("--logged", type=int, default=30, help="logged steps that are timed")
    parser.add_argument("--heads", action="store_true", help="only heads of very many classes")
    options = parser.parse_args()
    console = Console()
    if options.heads:
        print_heads(options.steps, console)
        return
    times, held = milliseconds(options.logged)
    table = Table(title=f"Error of the ratios, {options.network}, in %")
    for column in ("images", "optimizer"):
        table.add_column(column)
    for column in ("ratios", "median", "95 %", "99 %", "largest", "above 15 %"):
        table.add_column(column, justify="right")
    for data in (noise, photographs):
        for name, optimizers in OPTIMIZERS.items():
            found = sorted(errors(options.network, optimizers, data, options.steps))
            at = (found[int(part * (len(found) - 1))] for part in (0.5, 0.95, 0.99, 1))
            row = (f"{100 * one:.2f}" for one in at)
            above = sum(one > BOUND for one in found)
            table.add_row(data.__name__, name, str(len(found)), *row, str(above))
    console.print(table)
    listed = ", ".join(f"{name} {value:.2f}" for name, value in times.items())
    console.print(f"ms on the training thread, W2: {listed}; whole logged step {held:.0f}")
    console.print(machine("torch"))


if __name__ == "__main__":
    main()
