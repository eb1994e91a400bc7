"""What one logged step costs, beside the classic recipe: ``python benchmarks/logged_step.py``.

Bare, recipe and fmapboard steps are interleaved; medians. ``extra`` is wall time above a bare step
until everything is on disk, ``thread`` the time that fmapboard holds the training thread, ``cpu``
the whole process's CPU time above a bare step, ``bytes`` what is written.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
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
        spent: dict[str, list[tuple[float, float, float]]] = {}

        def run(name: str, number: int) -> None:
            wall, cpu, held = time.perf_counter(), time.process_time(), 0.0
            if name == "bare":
                train()
            elif name == "recipe":
                handles = recipe.arm()
                train()
                for handle in handles:
                    handle.remove()
                recipe.write(number)
            else:
                with boards[name].step(number):
                    train()
                boards[name].flush()
                held = writers[name].held
            spent.setdefault(name, []).append(
                ((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3, held)
            )

        for number in range(rounds + 1):
            for name in ("bare", *places):
                run(name, number)
        for board in boards.values():
            board.close()
        written = {
            n: sum(f.stat().st_size for f in p.rglob("*tfevents*")) for n, p in places.items()
        }
    return rows(spent, {n: size / (rounds + 1) for n, size in written.items()})


def rows(
    spent: dict[str, list[tuple[float, float, float]]], written: dict[str, float]
) -> list[list[str]]:
    middle = {n: [statistics.median(c) for c in zip(*s[1:], strict=True)] for n, s in spent.items()}
    bare = middle.pop("bare")
    found = [["bare step", f"{bare[0]:.0f} ms", "", "", "", ""]]
    for name, (wall, cpu, held) in middle.items():
        found.append(
            [
                name,
                f"+{wall - bare[0]:.0f} ms",
                f"{(wall - bare[0]) / bare[0]:.1%}",
                f"{held:.1f} ms" if held else "",
                f"+{cpu - bare[1]:.0f} ms",
                f"{written[name] / 1e6:.2f} MB",
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
            "", "wall until on disk", "of a step", "training thread", "CPU", "a step", title=name
        )
        for row in measure(make, shape, options.rounds):
            table.add_row(*row)
        console.print(table)


if __name__ == "__main__":
    main()
