"""Cost of a logged step with fmapboard and with other loggers: ``python benchmarks/peers.py``.

Needs ``pip install wandb pytorch-ignite tensorboardX``. Every tool trains its own copy of the
model. Tools alternate, every logged step is between two bare ones, and values are medians of what a
logged step adds to them. *Training blocked*: time until training can continue. *Until on disk*:
that time plus the wait until everything is written. *CPU*: CPU time of all threads, and of the
processes that the tool started.

fmapboard writes grids of all convolutions, histograms of activations, weights and gradients, and
all gradient norms; each of the others writes only what its row says. ``--markdown FILE`` writes the
table in README.md.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from peer_tools import tools
from rich.console import Console
from rich.table import Table
from workloads import Cost, Workload, bytes_below, machine, timed, workloads

PEERS = ("wandb", "pytorch-ignite", "tensorboardX")


@dataclass(frozen=True)
class Row:
    """What a logged step of one tool adds, as medians over the rounds."""

    tool: str
    writes: str
    held: float
    """Time for which training is blocked, ms."""
    whole: Cost
    """Cost until everything is on disk."""
    bare: Cost
    """Cost of a bare step."""
    bytes_per_step: float
    """Bytes on disk per step."""


def measure(work: Workload, rounds: int) -> list[Row]:
    """One row per tool."""
    train, rows = work.training(), []
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / str(n) for n, name in enumerate(tools())}
        made = {name: make(train.copy(), folders[name]) for name, make in tools().items()}
        held: dict[str, list[Cost]] = {name: [] for name in made}
        whole: dict[str, list[Cost]] = {name: [] for name in made}
        bares = []
        for number in range(rounds + 1):
            for name, tool in made.items():
                train()  # so that every tool starts with the same state of caches and threads
                bare = timed(train, train.sync)
                log = timed(lambda t=tool, n=number: t.logged(n), train.sync)
                flush = timed(tool.flush, train.sync)
                bare = bare.between(timed(train, train.sync))
                if number:  # the first logged step of a tool includes its start-up
                    bares.append(bare)
                    held[name].append(log - bare)
                    whole[name].append(log - bare + flush)
        for tool in made.values():
            tool.close()
        middle = Cost(*(statistics.median(getattr(b, k) for b in bares) for k in ("wall", "cpu")))
        for name, tool in made.items():
            rows.append(
                Row(
                    name,
                    tool.writes,
                    statistics.median(cost.wall for cost in held[name]),
                    Cost(
                        statistics.median(cost.wall for cost in whole[name]),
                        statistics.median(cost.cpu for cost in whole[name]),
                    ),
                    middle,
                    bytes_below(folders[name]) / (rounds + 1),
                )
            )
    return rows


def cells(row: Row) -> list[str]:
    return [
        row.tool,
        row.writes,
        f"{row.held:.1f} ms, {row.held / row.bare.wall:.0%}",
        f"{row.whole.wall:.0f} ms, {row.whole.wall / row.bare.wall:.0%}",
        f"{row.whole.cpu:.0f} ms",
        f"{row.bytes_per_step / 1e6:.2f} MB",
    ]


HEAD = ["tool", "writes", "training blocked", "until on disk", "CPU", "bytes per step"]


def markdown(found: dict[str, list[Row]], rounds: int) -> str:
    """Markdown table of what a logged step adds, with one column per workload."""
    lines = [
        "What one logged step adds: time for which it blocks training (relative to a bare step), "
        f"and CPU time. Medians of {rounds} interleaved rounds of `python benchmarks/peers.py` on "
        f"{machine(*PEERS)}.",
        "",
        "| | writes | " + " | ".join(found) + " |",
        "|---" * (len(found) + 2) + "|",
        "| bare step | | "
        + " | ".join(f"{rows[0].bare.wall:.0f} ms" for rows in found.values())
        + " |",
    ]
    for rows in zip(*found.values(), strict=True):
        name = f"**{rows[0].tool}**" if rows[0].tool == "fmapboard" else rows[0].tool
        costs = [
            f"{r.held:.1f} ms ({r.held / r.bare.wall:.0%}); CPU {r.whole.cpu:.0f} ms" for r in rows
        ]
        lines.append(f"| {name} | {rows[0].writes} | " + " | ".join(costs) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    parser.add_argument("--markdown", type=Path, help="write the table of README.md to this file")
    options = parser.parse_args()
    os.environ.setdefault("WANDB_SILENT", "true")
    console = Console(width=None if sys.stdout.isatty() else 140)
    try:
        tools()
        import ignite  # noqa: F401
        import wandb  # noqa: F401
    except ImportError as error:
        sys.exit(f"peers.py: {error}. Run: pip install {' '.join(PEERS)}")
    console.print(machine(*PEERS))
    found = {}
    for work in workloads(options.only):
        found[work.name] = rows = measure(work, options.rounds)
        bare = rows[0].bare
        table = Table(*HEAD, title=f"{work.name}: bare step {bare.wall:.0f} ms, CPU {bare.cpu:.0f}")
        for row in rows:
            table.add_row(*cells(row))
        console.print(table)
    if options.markdown is not None:
        options.markdown.write_text(markdown(found, options.rounds))


if __name__ == "__main__":
    main()
