"""Train healthy and faulty networks on the bundled photographs, and tabulate what is said of them.

    python benchmarks/check_sweep.py --seeds 3 --out benchmarks/results/check_sweep.tsv
    python benchmarks/check_sweep.py --only 'rate*' --seeds 1      # some; raw table on stdout

One row per finding, and one with an empty kind for a run without any; then a summary on stderr.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import torch
from check_faults import FAULTS, Training
from check_networks import NETWORKS
from torch import nn
from torch.nn import functional
from torch.optim import SGD

import fmapboard
from fmapboard.checks import run_checks
from fmapboard.cli.run_files import read_run
from fmapboard.demo.photographs import Photographs

BATCH = 16


class Row(NamedTuple):
    """One line of the raw table."""

    group: str
    name: str
    seed: int
    class_: str
    kind: str
    since: int | None
    value: float | None
    message: str


def train(training: Training, run: Path, seed: int, steps: int, every: int) -> None:
    """Train on crops of the photographs, and log every n-th step."""
    torch.manual_seed(seed)
    photographs = Photographs.load()
    source = torch.Generator().manual_seed(seed)
    model = training.make(len(photographs.names))
    training.build(model)
    optimizer = training.optimize(model)
    training.late(model)
    if training.evaluates:
        model.eval()
    with fmapboard.watch(model, run, optimizer=optimizer, every=every):
        for step in range(steps):
            images, labels = photographs.training_batch(BATCH, source)
            images, labels = training.images(images), training.labels(labels)
            if training.clears:
                optimizer.zero_grad()
            output = model(images)
            if output.ndim == 4:
                loss = functional.mse_loss(output, images)
            else:
                loss = functional.cross_entropy(output, labels)
            loss.backward()
            optimizer.step()
            if step in training.at:
                training.at[step](model, optimizer)


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return SGD(model.parameters(), lr=0.02, momentum=0.9)


def trainings() -> Iterator[tuple[str, str, Training]]:
    """Group, name and training: each healthy network with two optimizers, then the faults."""
    for name, make in NETWORKS.items():
        yield "healthy", f"{name}, Adam", Training(make)
        yield "healthy", f"{name}, SGD", Training(make, optimize=_sgd)
    for name, fault in FAULTS.items():
        yield "faulty", name, fault.training


def rows(group: str, name: str, seed: int, run: Path) -> list[Row]:
    """What the checks say of a run."""
    found = [f for record in read_run(run).records for f in run_checks(record).findings]
    said = [
        Row(group, name, seed, f.class_, f.kind, f.since_step, f.value, f.message) for f in found
    ]
    return said or [Row(group, name, seed, "", "", None, None, "")]


def summary(table: list[Row]) -> Iterator[str]:
    """Lines that say how often the checks were right."""
    healthy = {(row.name, row.seed) for row in table if row.group == "healthy"}
    warned = [row for row in table if row.group == "healthy" and row.class_ == "warning"]
    noted = {(row.name, row.seed) for row in table if row.group == "healthy" and row.class_}
    yield f"healthy: {len(healthy)} runs, {len(warned)} warnings, warnings or notes in {len(noted)}"
    tried = sorted({row.name for row in table if row.group == "faulty"})
    named = 0
    for name in tried:
        seeds = {row.seed for row in table if row.name == name}
        right = {r.seed for r in table if r.name == name and r.kind in FAULTS[name].kinds}
        named += right == seeds
        if right != seeds:
            other = sorted({row.kind for row in table if row.name == name} - {""})
            yield f"not named at {len(seeds - right)} of {len(seeds)} seeds: {name}; said: {other}"
    yield f"faulty: {named} of {len(tried)} named at every seed"


def main() -> None:
    """Parse the arguments, run the sweep, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="a glob on the names")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--every", type=int, default=16)
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("fmapboard").setLevel(logging.ERROR)
    table: list[Row] = []
    print(*Row._fields, sep="\t", file=arguments.out)
    for group, name, training in trainings():
        for seed in range(arguments.seeds) if fnmatchcase(name, arguments.only) else ():
            with tempfile.TemporaryDirectory() as folder:
                train(training, Path(folder), seed, arguments.steps, arguments.every)
                said = rows(group, name, seed, Path(folder))
            for row in said:
                print(
                    *("" if v is None else v for v in row), sep="\t", file=arguments.out, flush=True
                )
            table += said
    for line in summary(table):
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
