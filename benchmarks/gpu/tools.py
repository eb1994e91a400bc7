"""The loggers whose costs are compared, behind the protocol ``peer_tools.Tool``."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torchvision
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.model.kernel_shapes import CONVOLUTIONS
from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import TensorBoardWriter
from gpu.trainings import Training

HAS_WANDB = importlib.util.find_spec("wandb") is not None


class _Noting(TensorBoardWriter):
    """A writer that keeps the time for which the last step blocked the training thread, ms."""

    blocked = math.nan

    def write(self, step: LoggedStep) -> None:
        # The verdict comes without scalars.
        self.blocked = step.scalars.get("fmapboard/logged_step_ms", self.blocked)
        super().write(step)


class Fmapboard:
    """fmapboard with its defaults, without kernels."""

    def __init__(self, train: Training, folder: Path, **options: Any) -> None:
        self._train, self._writer = train, _Noting(folder)
        self._board = fmapboard.watch(
            train.model, writer=self._writer, every=1, kernels=False, scaler=train.scaler, **options
        )

    @property
    def blocked(self) -> float:
        """Time for which the last step blocked the training thread, ms."""
        return self._writer.blocked

    def logged(self, step: int) -> None:
        with self._board.step(step):
            self._train()

    def flush(self) -> None:
        self._board.flush()

    def close(self) -> None:
        self._board.close()


class Recipe:
    """The code that most people copy: hooks, ``make_grid``, ``add_histogram``, ``.item()``.

    It logs activations of the first image of the batch only, which favours it: histograms of a
    whole batch of 224² images take minutes per step.
    """

    def __init__(self, train: Training, folder: Path) -> None:
        self._train, self._writer = train, SummaryWriter(str(folder))
        self._maps: dict[str, Tensor] = {}

    def logged(self, step: int) -> None:
        handles = [
            module.register_forward_hook(self._keep(name))
            for name, module in self._train.raw.named_modules()
            if isinstance(module, CONVOLUTIONS)
        ]
        self._train()
        for handle in handles:
            handle.remove()
        for name, maps in self._maps.items():
            flat = maps[:, :, maps.shape[2] // 2] if maps.dim() == 5 else maps
            tiles, rows = flat.transpose(0, 1), int(maps.shape[1] ** 0.5)  # [C, 1, H, W]
            grid = torchvision.utils.make_grid(tiles, normalize=True, scale_each=True, nrow=rows)
            self._writer.add_image(f"maps/{name}", grid, step)
            self._writer.add_histogram(f"activations/{name}", maps, step)
        for name, parameter in self._train.raw.named_parameters():
            gradient = parameter.grad
            assert gradient is not None
            self._writer.add_histogram(f"weights/{name}", parameter, step)
            self._writer.add_histogram(f"gradients/{name}", gradient, step)
            self._writer.add_scalar(f"norm/{name}", gradient.norm().item(), step)
        self._maps.clear()

    def _keep(self, name: str) -> Callable[[nn.Module, object, Tensor], None]:
        def hook(module: nn.Module, args: object, output: Tensor) -> None:
            self._maps[name] = output[:1].detach().float().clone()

        return hook

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()
