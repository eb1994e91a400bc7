"""fmapboard and comparable loggers behind one protocol, `Tool`, for `peers.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torchvision
from torch import Tensor, nn
from workloads import Training

import fmapboard


class Tool(Protocol):
    """A logger of training steps."""

    writes: str
    """What it writes per step, as text for the table."""

    def logged(self, step: int) -> None:
        """Train one step and log it."""

    def flush(self) -> None:
        """Wait until everything is on disk."""

    def close(self) -> None:
        """Close all files."""


class Fmapboard:
    """fmapboard with its defaults, without kernels."""

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
    """`add_histogram` of every weight and gradient, with a SummaryWriter of either library."""

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
    """The pictures of the classic recipe: `make_grid` and `add_image` for every convolution."""

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
    """ignite's handlers for histograms of weights and gradients, run by an `Engine`."""

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
        """Nothing: another process writes, and only `finish` waits for it."""

    def close(self) -> None:
        self._run.finish()


def tools() -> dict[str, Callable[[Training, Path], Tool]]:
    """Name of a tool -> its constructor."""
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
