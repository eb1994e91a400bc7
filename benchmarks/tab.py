"""Speed of the Feature maps tab in a real browser: time until usable, and to draw a step.

The tab has two pages: the overview, which opens first, and the maps beside the list of layers.

    python benchmarks/tab.py                 # ResNet-50, 53 layers, 50 steps, at most 64 channels
    python benchmarks/tab.py --all-channels  # the same with all channels, up to 2048
    python benchmarks/tab.py --network plain12      # 12 layers, 10 steps
    python benchmarks/tab.py --network densenet121  # 120 layers, 50 steps, defaults
    python benchmarks/tab.py --network plain12 --load_fast=false  # with TensorBoard's Python loader
    python benchmarks/tab.py --layers 3000 --runs 500 --kept 200  # synthetic runs
    python benchmarks/tab.py --layers 50 --runs 100 --alike  # 100 runs of 50 layers and 50 steps

Trains a network with random weights at 224 px (or uses --run), starts TensorBoard on the run
and drives headless Chromium. With --layers it writes one run of that many layers and --kept
steps, and others beside it, without training, and also reports the server's answers and memory;
with --run too, it uses the runs that it wrote there before. The page's memory is that of the
DevTools protocol after a garbage collection.
Needs `pip install playwright`, and a browser: chromium or google-chrome on PATH, or playwright's.

Columns of the table: wall times, and the CPU times of TensorBoard and browser together, which
also mean something if other programs use the machine.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from synthetic_runs import LARGE, write_runs
from tab_cost import Row, memory
from tab_page import measure, page_sizes
from tab_server import answers, serve, wait_until_loaded

STEPS = 50
NETWORKS = {
    "resnet50": (STEPS, ("conv1", "layer1.0.conv3", "layer4.2.conv3")),
    "plain12": (10, ()),
    "densenet121": (STEPS, ("features.conv0", "features.denseblock4.denselayer16.conv2")),
}
"""Name -> steps that are logged, and the layers whose steps are changed, of 50 steps."""


def network(name: str) -> Any:
    """A network with random weights."""
    from torch import nn
    from torchvision import models

    if name != "plain12":
        return getattr(models, name)()
    layers: list[nn.Module] = []
    for i in range(12):
        channels = 3 if i == 0 else 32
        layers += [nn.Conv2d(channels, 32, 3, 2 if i % 3 == 2 else 1, 1), nn.BatchNorm2d(32)]
        layers.append(nn.ReLU())
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def train(run: Path, name: str, all_channels: bool) -> None:
    """Log some steps on noise; the content of the maps does not matter here."""
    import torch

    import fmapboard

    torch.manual_seed(0)
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    settings = {"max_channels": None if all_channels else 64} if name == "resnet50" else {}
    with fmapboard.watch(model, run, every=1, **settings) as board:
        for step in range(NETWORKS[name][0]):
            with board.step(step):
                model(torch.randn(2, 3, 224, 224)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()


def report(rows: Sequence[Row], what: str) -> None:
    """Print the table."""
    load = os.getloadavg()[0]
    title = f"{what}; {platform.machine()}, {os.cpu_count()} cores, load {load:.1f}"
    table = Table(title=title)
    for name in ("", "median ms", "slowest ms", "CPU ms", "times", "target ms"):
        table.add_column(name, justify="left" if not name else "right")
    for row in rows:
        cpu = f"{statistics.median(row.cpu):.0f}" if row.cpu else ""
        middle, slowest = statistics.median(row.ms), max(row.ms)
        table.add_row(
            row.name, f"{middle:.0f}", f"{slowest:.0f}", cpu, str(len(row.ms)), f"{row.target:.0f}"
        )
    Console(width=None if os.isatty(1) else 140).print(table)


def print_page_sizes(address: str, layer: str) -> None:
    """Print the memory of the tab's pages, and of the maps before and after many steps of play."""
    for name, size in page_sizes(address, layer).items():
        print(f"page of {name}: JavaScript heap {size['heap']:.1f} MB, array buffers "
              f"{size['buffers']:.1f} MB, {size['nodes']:.0f} DOM nodes")  # fmt: skip


def large(logdir: Path, runs: int, kept: int, rounds: int, loader: str) -> None:
    """Measure on synthetic runs: pages, memory, then the answers of another fresh server."""
    with serve(logdir, kept, loader) as (address, server):
        steps = wait_until_loaded(address, runs)
        before = memory(server)
        rows = measure(address, server, rounds, ["block0.conv3"], steps, runs)
        after = memory(server)
        print_page_sizes(address, "block0.conv3")
    with serve(logdir, kept, loader) as (address, server):
        wait_until_loaded(address, runs)
        rows += answers(address, server, rounds)
    for name, used in after.items():
        print(f"memory of {name}: {before.get(name, 0):.0f} MB before the first visit, "
              f"{used:.0f} MB after the last")  # fmt: skip
    report(rows, f"Feature maps tab, {runs} runs, {steps} steps")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="log directory that already contains such a run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--network", choices=NETWORKS, default="resnet50")
    parser.add_argument("--all-channels", action="store_true", help="of resnet50")
    parser.add_argument("--layers", type=int, help="layers of a synthetic run")
    parser.add_argument("--runs", type=int, default=1, help="runs, with --layers")
    parser.add_argument("--alike", action="store_true", help="all runs as large as the first")
    parser.add_argument("--kept", type=int, default=STEPS, help="steps that TensorBoard keeps")
    parser.add_argument("--load_fast", default="auto", help="TensorBoard's loader, as its own flag")
    options = parser.parse_args()
    loader = f"--load_fast={options.load_fast}"
    with tempfile.TemporaryDirectory() as folder:
        logdir = options.run or Path(folder)
        if options.layers:
            if not (logdir / LARGE).is_dir():
                write_runs(logdir, layers=options.layers, runs=options.runs, steps=options.kept,
                           alike=options.alike)  # fmt: skip
            large(logdir, options.runs, options.kept, options.rounds, loader)
            return
        steps, layers = NETWORKS[options.network]
        if options.run is None:
            train(logdir / options.network, options.network, options.all_channels)
        with serve(logdir, options.kept, loader) as (address, server):
            rows = measure(address, server, options.rounds, layers, steps)
            print_page_sizes(address, layers[0] if layers else "0")
    report(rows, f"Feature maps tab, {options.network}, {steps} steps, {loader}")


if __name__ == "__main__":
    main()
