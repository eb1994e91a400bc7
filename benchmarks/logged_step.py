"""Cost of one logged step, compared with the classic recipe: ``python benchmarks/logged_step.py``.

The classic recipe writes the same data with torchvision's make_grid and a SummaryWriter. Before
every measurement, one bare step warms caches and threads, and a second one is timed as the
baseline. Values are medians over rounds.

*Wall, until on disk*: time that a logged step adds, including the wait for the worker. *Back to
back*: the same for consecutive logged steps, including the wait after the last one, so that worker
and training share the cores as with ``every=1``. *Training thread*: time for which it is blocked.
*CPU*: CPU time that the step adds to the whole process. *Per step*: bytes on disk for the first
step, whose pictures are stored twice, and for later ones.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torchvision
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from workloads import Cost, Training, machine, timed, workloads

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import TensorBoardWriter


class Recipe:
    """The classic recipe, without the faults that would make it look cheaper."""

    def __init__(self, model: nn.Module, folder: Path) -> None:
        self._model, self._writer = model, SummaryWriter(str(folder))
        self._maps: dict[str, Tensor] = {}

    def arm(self) -> list[torch.utils.hooks.RemovableHandle]:
        convolutions = [(n, m) for n, m in self._model.named_modules() if isinstance(m, nn.Conv2d)]
        return [m.register_forward_hook(self._keep(n)) for n, m in convolutions]

    def _keep(self, name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(module: nn.Module, args: object, output: Tensor) -> None:
            self._maps[name] = output.detach().clone()

        return hook

    def write(self, step: int) -> None:
        for name, maps in self._maps.items():
            tiles = maps[:1].transpose(0, 1)
            rows = int(maps.shape[1] ** 0.5)
            grid = torchvision.utils.make_grid(tiles, normalize=True, scale_each=True, nrow=rows)
            self._writer.add_image(f"maps/{name}", grid, step)
            self._writer.add_histogram(f"activations/{name}", maps, step)
        for name, parameter in self._model.named_parameters():
            self._writer.add_histogram(f"weights/{name}", parameter, step)
            self._writer.add_histogram(f"gradients/{name}", parameter.grad, step)
            self._writer.add_scalar(f"norm/{name}", parameter.grad.norm().item(), step)
        self._writer.flush()


class Noting(TensorBoardWriter):
    """A writer that keeps the time for which the last step blocked the training thread."""

    held = 0.0
    """ms."""

    def write(self, step: LoggedStep) -> None:
        for tag, value in step.scalars.items():  # none with the verdict
            if tag.endswith("fmapboard/logged_step_ms"):  # it begins with the logger's name
                self.held = value
        super().write(step)


VARIANTS: dict[str, dict[str, Any]] = {
    "fmapboard": {},
    # A name, since a second logger of the same name would close the first.
    "fmapboard, no limits": {"max_channels": None, "max_tile": None, "name": "unlimited"},
}


def measure(train: Training, rounds: int) -> list[list[str]]:
    """Rows of the table for one workload."""
    model = train.model

    with tempfile.TemporaryDirectory() as folder:
        recipe = Recipe(model, Path(folder) / "recipe")
        places = {"recipe": Path(folder) / "recipe"}
        boards, writers = {}, {}
        for name, options in VARIANTS.items():
            places[name] = Path(folder) / name
            writers[name] = Noting(places[name])
            boards[name] = fmapboard.watch(
                model, writer=writers[name], every=1, kernels=False, **options
            )

        def logged(name: str, number: int) -> None:
            if name == "recipe":
                handles = recipe.arm()
                train()
                for handle in handles:
                    handle.remove()
                recipe.write(number)
            else:
                with boards[name].step(number):
                    train()

        def flush(name: str) -> None:
            if name != "recipe":
                boards[name].flush()

        spent: dict[str, list[Spent]] = {name: [] for name in places}
        number = 0
        for name in places:  # warm-up: first steps store pictures twice and allocate memory
            logged(name, number)
            flush(name)
        first = {name: size_of(place) for name, place in places.items()}
        for _ in range(rounds):
            for name in places:
                train()
                bare = timed(train)
                one = timed(lambda: (logged(name, number + 1), flush(name)))  # noqa: B023
                held = writers[name].held if name in writers else one.wall - bare.wall
                number += 1
                spent[name].append(Spent(bare, one, held))
        row: dict[str, list[float]] = {name: [] for name in writers}
        for _ in range(rounds):
            for name in writers:
                alone = timed(lambda: [train() for _ in range(IN_A_ROW)])
                numbers = range(number + 1, number + 1 + IN_A_ROW)
                number += IN_A_ROW
                together = timed(lambda: ([logged(name, n) for n in numbers], flush(name)))  # noqa: B023
                row[name].append((together.wall - alone.wall) / IN_A_ROW)
        for board in boards.values():
            board.close()
        steps = {n: rounds * (1 if n == "recipe" else 1 + IN_A_ROW) for n in places}
        later = {n: (size_of(p) - first[n]) / steps[n] for n, p in places.items()}
        return rows(spent, row, first, later)


IN_A_ROW = 5
"""Consecutive logged steps for *back to back*."""


@dataclass
class Spent:
    """Cost of a bare step and of a logged one."""

    bare: Cost
    logged: Cost
    held: float
    """Time for which the logged step blocked the training thread, ms."""


def size_of(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*tfevents*"))


def rows(
    spent: dict[str, list[Spent]],
    row: dict[str, list[float]],
    first: dict[str, int],
    later: dict[str, float],
) -> list[list[str]]:
    middle = statistics.median
    bare = middle(s.bare.wall for all_of in spent.values() for s in all_of)
    found = [["bare step", f"{bare:.0f} ms", *[""] * 6]]
    wall = {n: middle(s.logged.wall - s.bare.wall for s in steps) for n, steps in spent.items()}
    cpu = {n: middle(s.logged.cpu - s.bare.cpu for s in steps) for n, steps in spent.items()}
    held = {n: middle(s.held for s in steps) for n, steps in spent.items()}
    for name in spent:
        own = name != "recipe"
        found.append(
            [
                name,
                f"+{wall[name]:.0f} ms, {wall[name] / bare:.1%}",
                f"+{middle(row[name]):.0f} ms, {middle(row[name]) / bare:.1%}" if own else "",
                f"{held[name]:.1f} ms",
                f"1/{held['recipe'] / held[name]:.0f}" if own else "",
                f"+{cpu[name]:.0f} ms",
                f"1/{cpu['recipe'] / cpu[name]:.0f}" if own and cpu[name] > 0 else "",
                f"{first[name] / 1e6:.2f} MB, then {later[name] / 1e6:.2f} MB",
            ]
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="workloads whose name contains this text")
    options = parser.parse_args()
    console = Console()
    console.print(machine())
    for work in workloads(options.only):
        table = Table(
            "",
            "wall, until on disk",
            "back to back",
            "training thread",
            "vs. recipe",
            "CPU",
            "vs. recipe",
            "per step",
            title=work.name,
        )
        for row in measure(work.training(), options.rounds):
            table.add_row(*row)
        console.print(table)


if __name__ == "__main__":
    main()
