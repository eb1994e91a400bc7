"""A logged step of fmapboard beside its peers': ``python benchmarks/peers.py``.

Needs them installed: ``pip install wandb pytorch-ignite tensorboardX``. Every tool trains a model
of its own, and every logged step stands between two bare ones; tools are interleaved, medians of
what a logged step adds. *Held*: how long training stands still for it. *Until on disk*: that, and
the wait until all of it is written. *CPU*: of all threads and of processes that the tool started.

fmapboard writes grids of all convolutions, histograms of activations, weights and gradients, and
all gradient norms; each peer only what its row says. ``--markdown FILE`` writes the README's table.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torchvision
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from workloads import Cost, Training, Workload, bytes_below, machine, timed, workloads

import fmapboard

PEERS = ("wandb", "pytorch-ignite", "tensorboardX")


class Tool(Protocol):
    """Something that logs training steps."""

    writes: str

    def logged(self, step: int) -> None:
        """Train one step and log it."""

    def flush(self) -> None:
        """Return when it is on disk."""

    def close(self) -> None:
        """End."""


class Fmapboard:
    """With its defaults, kernels left out."""

    writes = "grids, all histograms, norms"

    def __init__(self, train: Training, folder: Path) -> None:
        self._train = train
        self._board = fmapboard.watch(train.model, folder, every=1, kernels=False)

    def logged(self, step: int) -> None:
        with self._board.step(step):
            self._train()

    def flush(self) -> None:
        self._board.flush()

    def close(self) -> None:
        self._board.close()


class Histograms:
    """`add_histogram` of every weight and gradient, by a SummaryWriter of either kind."""

    writes = "histograms of weights, gradients"

    def __init__(self, writer: Callable[[str], Any], train: Training, folder: Path) -> None:
        self._train, self._writer = train, writer(str(folder))

    def logged(self, step: int) -> None:
        self._train()
        for name, parameter in self._train.model.named_parameters():
            self._writer.add_histogram(f"weights/{name}", parameter.detach().cpu().numpy(), step)
            self._writer.add_histogram(f"gradients/{name}", parameter.grad.cpu().numpy(), step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class Grids:
    """The classic recipe's pictures: `make_grid` and `add_image` of every convolution."""

    writes = "grids"

    def __init__(self, writer: Callable[[str], Any], train: Training, folder: Path) -> None:
        self._train, self._writer = train, writer(str(folder))
        self._maps: dict[str, Tensor] = {}
        for name, module in train.model.named_modules():
            if isinstance(module, nn.Conv2d):
                module.register_forward_hook(self._keep(name))

    def _keep(self, name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(module: nn.Module, args: object, output: Tensor) -> None:
            self._maps[name] = output.detach()[:1].clone()

        return hook

    def logged(self, step: int) -> None:
        self._train()
        for name, maps in self._maps.items():
            rows = int(maps.shape[1] ** 0.5)
            tiles = maps.transpose(0, 1)
            grid = torchvision.utils.make_grid(tiles, normalize=True, scale_each=True, nrow=rows)
            self._writer.add_image(f"maps/{name}", grid.cpu().numpy(), step)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class Ignite:
    """Its two handlers of histograms, fired as its engine fires them."""

    writes = "histograms of weights, gradients"

    def __init__(self, train: Training, folder: Path) -> None:
        from ignite.engine import Engine, Events
        from ignite.handlers.tensorboard_logger import (
            GradsHistHandler,
            TensorboardLogger,
            WeightsHistHandler,
        )

        self._logger = TensorboardLogger(log_dir=str(folder))
        self._engine = Engine(lambda engine, batch: train())
        for handler in (WeightsHistHandler(train.model), GradsHistHandler(train.model)):
            self._logger.attach(self._engine, handler, Events.ITERATION_COMPLETED)

    def logged(self, step: int) -> None:
        self._engine.run([0], max_epochs=1)

    def flush(self) -> None:
        self._logger.writer.flush()

    def close(self) -> None:
        self._logger.close()


class Wandb:
    """`wandb.watch(log="all")` at every step, offline."""

    writes = "histograms of weights, gradients"

    def __init__(self, train: Training, folder: Path) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        settings = wandb.Settings(silent=True, console="off", x_disable_stats=True)
        self._run = wandb.init(mode="offline", dir=str(folder), settings=settings)
        self._run.watch(train.model, log="all", log_freq=1)
        self._train = train

    def logged(self, step: int) -> None:
        loss = self._train()
        self._run.log({"loss": loss.item()}, step=step)

    def flush(self) -> None:
        """Another process writes; that it has everything is told only by `finish`."""

    def close(self) -> None:
        self._run.finish()


def tools() -> dict[str, Callable[[Training, Path], Tool]]:
    """Name -> what makes it."""
    from tensorboardX import SummaryWriter as SummaryWriterX
    from torch.utils.tensorboard import SummaryWriter

    return {
        "fmapboard": Fmapboard,
        "wandb.watch, offline": Wandb,
        "ignite handlers": Ignite,
        "torch.utils.tensorboard, histograms": lambda t, f: Histograms(SummaryWriter, t, f),
        "tensorboardX, histograms": lambda t, f: Histograms(SummaryWriterX, t, f),
        "make_grid + torch.utils.tensorboard": lambda t, f: Grids(SummaryWriter, t, f),
        "make_grid + tensorboardX": lambda t, f: Grids(SummaryWriterX, t, f),
    }


@dataclass(frozen=True)
class Row:
    """Medians over the rounds of what one tool's logged step adds."""

    tool: str
    writes: str
    held: float
    whole: Cost
    bare: Cost
    bytes_a_step: float


def measure(work: Workload, rounds: int) -> list[Row]:
    train, rows = work.training(), []
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / str(n) for n, name in enumerate(tools())}
        made = {name: make(train.copy(), folders[name]) for name, make in tools().items()}
        held: dict[str, list[Cost]] = {name: [] for name in made}
        whole: dict[str, list[Cost]] = {name: [] for name in made}
        bares = []
        for number in range(rounds + 1):
            for name, tool in made.items():
                train()  # brings caches and threads to where every tool finds them
                bare = timed(train, train.sync)
                log = timed(lambda t=tool, n=number: t.logged(n), train.sync)
                flush = timed(tool.flush, train.sync)
                bare = bare.between(timed(train, train.sync))
                if number:  # the first logged step of each tool is another one
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
        f"{row.bytes_a_step / 1e6:.2f} MB",
    ]


HEAD = ["tool", "writes", "training held", "until on disk", "CPU", "a step on disk"]


def markdown(found: dict[str, list[Row]], rounds: int) -> str:
    """One table: what a logged step adds, a column a workload."""
    lines = [
        "What one logged step adds: training held still (of a bare step), and CPU. Medians of "
        f"{rounds} interleaved rounds of `python benchmarks/peers.py` on {machine(*PEERS)}.",
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
    parser.add_argument("--only", default="", help="workloads whose name holds this text")
    parser.add_argument("--markdown", type=Path, help="write the README's table into this file")
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
