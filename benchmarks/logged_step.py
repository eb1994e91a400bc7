"""What one logged step costs, beside the classic recipe: ``python benchmarks/logged_step.py``.

Every measured step follows a bare step that settles caches and threads, and is compared with a bare
step beside it; medians over rounds. *Wall, until on disk*: one logged step and the wait for its
worker. *Back to back*: steps in a row, all of them logged, the wait for the last one included, so
that a worker and training share the cores as they do at ``every=1``. *Training thread*: how long
fmapboard holds it. *CPU*: of the whole process, above a bare step. *A step*: bytes on disk, the
first step's among them, whose grids are stored twice; and those of the later ones.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torchvision
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import TensorBoardWriter

WORKLOADS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "W1 ResNet-18 32² ×128": (torchvision.models.resnet18, (128, 3, 32, 32)),
    "W2 ResNet-18 224² ×8": (torchvision.models.resnet18, (8, 3, 224, 224)),
    "W3 AlexNet 224² ×1": (torchvision.models.alexnet, (1, 3, 224, 224)),
    "W4 ResNet-50 224² ×1": (torchvision.models.resnet50, (1, 3, 224, 224)),
}


class Recipe:
    """The classic recipe, its faults repaired where they would make it cheaper."""

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
    """Remembers what the last step cost the training thread, ms."""

    held = 0.0

    def write(self, step: LoggedStep) -> None:
        self.held = step.scalars["fmapboard/logged_step_ms"]
        super().write(step)


VARIANTS: dict[str, dict[str, Any]] = {
    "fmapboard": {},
    "fmapboard, no limits": {"max_channels": None, "max_tile": None},
}


def measure(make: Callable[[], nn.Module], shape: tuple[int, ...], rounds: int) -> list[list[str]]:
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    x, y = torch.randn(shape), torch.randint(0, 1000, shape[:1])

    def train() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()

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
        for name in places:  # warm: first steps write grids twice, and find fresh memory
            logged(name, number)
            flush(name)
        first = {name: size_of(place) for name, place in places.items()}
        for _ in range(rounds):
            for name in places:
                number += 1
                train()
                bare = timed(train)
                one = timed(lambda: (logged(name, number), flush(name)))  # noqa: B023
                held = writers[name].held if name in writers else 0.0
                row = timed(lambda: [train() for _ in range(IN_A_ROW)])
                start = number + 1
                number += IN_A_ROW
                full = row
                if name != "recipe":
                    full = timed(
                        lambda: (
                            [logged(name, start + n) for n in range(IN_A_ROW)],  # noqa: B023
                            flush(name),  # noqa: B023
                        )
                    )
                spent[name].append(Spent(bare, one, held, (full[0] - row[0]) / IN_A_ROW))
        for board in boards.values():
            board.close()
        steps = {n: rounds * (1 if n == "recipe" else 1 + IN_A_ROW) for n in places}
        later = {n: (size_of(p) - first[n]) / steps[n] for n, p in places.items()}
        return rows(spent, first, later)


IN_A_ROW = 5


@dataclass
class Spent:
    """Wall and CPU ms of a bare and of a logged step; ms on the thread; ms a step in a row."""

    bare: tuple[float, float]
    logged: tuple[float, float]
    held: float
    in_a_row: float


def timed(act: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


def size_of(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*tfevents*"))


def rows(
    spent: dict[str, list[Spent]], first: dict[str, int], later: dict[str, float]
) -> list[list[str]]:
    middle = statistics.median
    bare = middle(s.bare[0] for all_of in spent.values() for s in all_of)
    found = [["bare step", f"{bare:.0f} ms", "", "", "", "", "", ""]]
    recipe_ms = middle(s.logged[0] - s.bare[0] for s in spent["recipe"])
    recipe_cpu = middle(s.logged[1] - s.bare[1] for s in spent["recipe"])
    for name, steps in spent.items():
        wall = middle(s.logged[0] - s.bare[0] for s in steps)
        cpu = middle(s.logged[1] - s.bare[1] for s in steps)
        held, row = middle(s.held for s in steps), middle(s.in_a_row for s in steps)
        own = name != "recipe"
        found.append(
            [
                name,
                f"+{wall:.0f} ms, {wall / bare:.1%}",
                f"+{row:.0f} ms, {row / bare:.1%}" if own else "",
                f"{held:.1f} ms" if own else f"{wall:.0f} ms",
                f"1/{recipe_ms / held:.0f}" if own else "",
                f"+{cpu:.0f} ms",
                f"1/{recipe_cpu / cpu:.0f}" if own and cpu > 0 else "",
                f"{first[name] / 1e6:.2f} MB, then {later[name] / 1e6:.2f} MB",
            ]
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="workloads whose name holds this text")
    options = parser.parse_args()
    console = Console()
    console.print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for name, (make, shape) in WORKLOADS.items():
        if options.only not in name:
            continue
        table = Table(
            "",
            "wall, until on disk",
            "back to back",
            "training thread",
            "of the recipe",
            "CPU",
            "of the recipe",
            "a step",
            title=name,
        )
        for row in measure(make, shape, options.rounds):
            table.add_row(*row)
        console.print(table)


if __name__ == "__main__":
    main()
