"""Cost of a logged step of transformers: ``python benchmarks/transformer_step.py``.

ViT-B/16 on 8 images of 224², GPT-2 small on 4 texts of 256 tokens, and ResNet-50 on 8 images of
224². With ``--beside SRC``, the package in another folder, such as ``src`` of a worktree of an
older commit, is measured too, with ``layers=`` that name *by hand* the layers that are watched
by default. With ``--rounds``, rows take turns. Values are medians. All are CPU times on one torch
thread, since a step takes long and other programs may run.

*Training thread*: what fmapboard does there in a logged step. *Worker*: from the end of the step
until everything is on disk, while the training waits. *Watched*: bytes that the watched layers
return; what attention reads for its rows is not among them. *Ratio*: time per watched byte,
compared with that of ResNet-50.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torchvision
from logged_step import Noting
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from workloads import Training, cpu_seconds, machine

import fmapboard
from fmapboard.capture import guard

BY_HAND: Mapping[str, list[str] | None] = {
    "ResNet-50": None,
    "ViT-B/16": [
        "conv_proj",
        *(
            f"encoder.layers.encoder_layer_{block}{part}"
            for block in range(12)
            for part in ("", ".self_attention", ".mlp.1")
        ),
    ],
    "GPT-2": [
        *("transformer.wte", "transformer.wpe", "transformer.ln_f", "lm_head"),
        *(
            f"transformer.h.{block}{part}"
            for block in range(12)
            for part in ("", ".attn", ".mlp.act")
        ),
    ],
}  # fmt: skip
"""Workload -> the layers that are watched of it; None for all convolutions."""
OWN = str(Path(fmapboard.__file__).parents[1])
"""The folder of the package that is measured."""


class Texts(Training):
    """A training step of GPT-2 on random tokens."""

    def __init__(self) -> None:
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model, self.device = GPT2LMHeadModel(GPT2Config()), "cpu"
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.x = self.y = torch.randint(0, 50257, (4, 256))

    def __call__(self) -> Tensor:
        self.optimizer.zero_grad()
        loss: Tensor = self.model(self.x, labels=self.y).loss
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
        self.optimizer.step()
        return loss


def training(name: str) -> Training:
    torch.manual_seed(0)
    if name == "GPT-2":
        return Texts()
    models = torchvision.models
    model = models.vit_b_16() if name == "ViT-B/16" else models.resnet50()
    return Training(model, (8, 3, 224, 224))


def watched_bytes(train: Training, names: list[str] | None) -> int:
    """Bytes that the watched layers return in a step."""
    modules: Mapping[str, nn.Module] = dict(train.model.named_modules())
    if names is None:
        names = [name for name, module in modules.items() if isinstance(module, nn.Conv2d)]
    found = list[int]()

    def add(module: nn.Module, args: Any, output: Any) -> None:
        found.append((output if isinstance(output, Tensor) else output[0]).nbytes)

    handles = [modules[name].register_forward_hook(add) for name in names]
    with torch.no_grad():
        train.model(train.x)
    for handle in handles:
        handle.remove()
    return sum(found)


Costs = dict[str, list[float]]
"""Column -> its values, ms and bytes."""


def measure(name: str, steps: int, *, by_hand: bool) -> Costs:
    """Costs of some logged steps of a workload, in this process."""
    names = BY_HAND[name]
    train = training(name)
    found: Costs = {"bytes": [float(watched_bytes(train, names))], "held": [], "worker": []}
    # The stopwatch of logged steps reads the CPU time of the training thread.
    guard.time = SimpleNamespace(perf_counter=time.thread_time)  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        writer = Noting(Path(folder))
        layers = names if by_hand else None
        with fmapboard.watch(
            train.model, writer=writer, every=1, kernels=False, layers=layers
        ) as board:
            for number in range(steps + 1):  # the first stores pictures twice, allocates memory
                with board.step(number):
                    train()
                before = cpu_seconds()
                board.flush()
                if number:
                    found["worker"].append((cpu_seconds() - before) * 1e3)
                    found["held"].append(writer.held)
    return found


def measured_apart(source: str, name: str, steps: int) -> Costs:
    """The same in a process of its own, with the package of a folder."""
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--measure", name, "--steps", str(steps)]
    if source != OWN:
        command.append("--by-hand")
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: Costs = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3, help="logged steps of a row in a round")
    parser.add_argument("--beside", metavar="SRC", help="the folder of another fmapboard package")
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a process does
    parser.add_argument("--by-hand", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.steps, by_hand=options.by_hand)))
        return
    sources = {"default": OWN}
    if options.beside:
        sources["by hand, beside"] = str(Path(options.beside).resolve())
    found: dict[tuple[str, str], Costs] = {}
    for _ in range(options.rounds):
        for name in filter(lambda name: options.only in name, BY_HAND):
            for how, source in sources.items():
                row = found.setdefault((name, how), {})
                for column, values in measured_apart(source, name, options.steps).items():
                    row.setdefault(column, []).extend(values)
    report(found)


def report(found: Mapping[tuple[str, str], Costs]) -> None:
    """Print the table."""
    table = Table(title="CPU time of a logged step")
    for column in ("", "layers", "watched", "training thread", "ratio", "worker", "ratio"):
        table.add_column(column)
    first: dict[str, float] = {}
    for (name, how), columns in found.items():
        middle = {column: statistics.median(values) for column, values in columns.items()}
        megabytes = middle["bytes"] / 1e6
        cells = [name, how, f"{megabytes:.0f} MB"]
        for column in ("held", "worker"):
            per_byte = middle[column] / megabytes
            first.setdefault(column, per_byte)
            cells += [f"{middle[column]:.0f} ms", f"{per_byte / first[column]:.2f}"]
        table.add_row(*cells)
    console = Console(width=None if os.isatty(1) else 140)
    console.print(machine("transformers"))
    console.print(table)


if __name__ == "__main__":
    main()
