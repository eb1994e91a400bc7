"""``fmapboard demo``: train a small network on the bundled photographs and log its feature maps."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.progress import TextColumn
from torch import nn
from torch.optim import Optimizer

from fmapboard.cli.commands.serve import run_server
from fmapboard.cli.run_dirs import to_paste
from fmapboard.demo.bundled import PHOTOGRAPH
from fmapboard.demo.network import MEAN, STD, DemoNetwork
from fmapboard.demo.photographs import Photographs
from fmapboard.demo.training import STEPS, Result, train
from fmapboard.imaging.images import read_image
from fmapboard.imaging.models.load import demo_preprocessing
from fmapboard.imaging.visualize import visualize
from fmapboard.imaging.write_images import new_directory
from fmapboard.logger import watch
from fmapboard.printing import console, progress_bar
from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import TensorBoardWriter


def run_demo(
    log_dir: Path,
    steps: int | None = None,
    every: int = 25,
    serve: bool = False,
    port: int = 6006,
    open_browser: bool = True,
) -> None:
    """Train the network with logging on, draw one photograph, and print how to open the run.

    Args:
        log_dir: Run directory; if it is not empty, the next free name is used, such as runs/demo-2.
        steps: Training steps. None for `STEPS`.
        every: Log every N steps.
        serve: Start TensorBoard on the run afterwards.
        port: As for `run_server`, as is ``open_browser``.
        open_browser: Likewise.

    Raises:
        FmapboardError: the run directory cannot be written to.
    """
    run = new_directory(log_dir)
    out = console()
    photographs = Photographs.load()
    out.print(
        f"Training a small network to classify crops of {len(photographs.names)} photographs: "
        f"{', '.join(photographs.names)}"
    )
    network = DemoNetwork()
    result = _train(network, photographs, run, steps or STEPS, every)
    out.print(
        f"Trained {result.steps} steps in {result.seconds:.1f} s, logged every {every}. "
        f"Validation accuracy on held-out regions: {result.accuracy:.1%} "
        f"(chance: {result.chance:.1%})."
    )
    _draw(network, run)
    out.print(f"\nOpen it in TensorBoard:\n  {to_paste('serve', run)}", soft_wrap=True)
    if serve:
        run_server(run, port, open_browser=open_browser)


def _train(
    network: nn.Module, photographs: Photographs, run: Path, steps: int, every: int
) -> Result:
    # Drawn at every logged step, so that steps can be compared.
    photograph = demo_preprocessing()(read_image(PHOTOGRAPH))[None]  # [1, C, H, W]
    curves = TensorBoardWriter(run)  # shares its file with the one that `watch` opens

    def scalar(tag: str, value: float, step: int) -> None:
        curves.write(LoggedStep(step, time.time(), scalars={tag: value}))

    def watched(model: nn.Module, optimizer: Optimizer) -> AbstractContextManager[Any]:
        return watch(
            model,
            run,
            optimizer=optimizer,
            every=every,
            probe=photograph,
            normalization=(MEAN, STD),
        )

    loss_column = TextColumn("{task.fields[loss]}")
    with progress_bar("training", loss_column) as progress:
        task = progress.add_task("", total=steps, loss="")

        def advance(step: int, loss: float) -> None:
            progress.update(task, completed=step + 1, loss=f"loss {loss:.2f}")

        try:
            return train(
                network, photographs, steps=steps, watch=watched, on_step=advance, scalars=scalar
            )
        finally:
            curves.close()


def _draw(network: nn.Module, run: Path) -> None:
    """Draw one photograph with the trained network, into a run of its own and as PNG files."""
    place = run / "photograph"
    drawn = visualize(
        network, PHOTOGRAPH, log_dir=place, out=place / "png", kernels=True,
        transform=demo_preprocessing(), normalization=(MEAN, STD),
    )  # fmt: skip
    console().print(f"\nFeature maps of the trained network on {PHOTOGRAPH.name}:")
    console().print(drawn.table, soft_wrap=True)
