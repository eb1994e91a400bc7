"""The trainings of make_check_pictures.py, with a fault or without, and what is kept of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from line_chart import Curve
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.checks import RunRecord
from fmapboard.demo.photographs import Photographs
from fmapboard.health.read_runs import read_runs

PHOTOGRAPHS = Photographs.load()
STEPS, EVERY, BATCH = 121, 10, 32

Images = Callable[[Tensor], Tensor]
Optimize = Callable[[nn.Module], torch.optim.Optimizer]


def network(
    activation: type[nn.Module] = nn.ReLU, *, norm: bool = True, further: int = 0
) -> nn.Sequential:
    """Five convolutions or more with BatchNorm or without, and a linear head."""
    parts: list[nn.Module] = []
    shapes = [(3, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2)] + [(64, 64, 1)] * (1 + further)
    for inputs, width, stride in shapes:
        parts.append(nn.Conv2d(inputs, width, 3, stride, 1))
        parts += [nn.BatchNorm2d(width)] if norm else []
        parts.append(activation())
    classes = len(PHOTOGRAPHS.names)
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def adam(rate: float) -> Optimize:
    """Adam at a learning rate."""
    return lambda model: torch.optim.Adam(model.parameters(), rate)


@dataclass
class Training:
    """A training, and what was recorded of it.

    Attributes:
        make: creates the network.
        optimize: creates its optimizer.
        late: changes the network afterwards.
        after: changes the network after each optimizer step.
        images: changes the images of a batch.
        clears: calls ``zero_grad``.
        evaluates: leaves the network in eval mode.
        record: what fmapboard logged.
        moved: parameter -> norm of its change since step 0, relative to its norm then.
        variances: BatchNorm layer -> mean of its running variance.
        batch: images of the last step.
    """

    make: Callable[[], nn.Module] = network
    optimize: Optimize = field(default_factory=lambda: adam(1e-3))
    late: Callable[[nn.Module], None] = lambda model: None
    after: Callable[[nn.Module], None] = lambda model: None
    images: Images = lambda images: images
    clears: bool = True
    evaluates: bool = False
    record: RunRecord | None = None
    moved: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    variances: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    batch: Tensor | None = None

    def run(self) -> Training:
        """Train, and keep what the pictures need."""
        torch.manual_seed(0)
        model, made = self.make(), torch.Generator().manual_seed(0)
        optimizer = self.optimize(model)
        self.late(model)
        model.train(not self.evaluates)
        weights = {n: p for n, p in model.named_parameters() if p.dim() > 1}
        start = {name: weight.detach().clone() for name, weight in weights.items()}
        with tempfile.TemporaryDirectory() as folder:
            with fmapboard.watch(model, folder, optimizer=optimizer, every=EVERY):
                for step in range(STEPS):
                    images, labels = PHOTOGRAPHS.training_batch(BATCH, made)
                    self.batch = self.images(images)
                    if self.clears:
                        optimizer.zero_grad()
                    functional.cross_entropy(model(self.batch), labels).backward()
                    optimizer.step()
                    self.after(model)
                    if step % EVERY == 0:
                        self._note(step, model, weights, start)
            (run,) = read_runs(Path(folder))
            (self.record,) = run.records
        return self

    def _note(
        self,
        step: int,
        model: nn.Module,
        weights: dict[str, nn.Parameter],
        start: dict[str, Tensor],
    ) -> None:
        for name, weight in weights.items():
            change = float((weight.detach() - start[name]).norm() / start[name].norm())
            self.moved.setdefault(name, []).append((step, change))
        for name, layer in model.named_modules():
            if isinstance(layer, nn.BatchNorm2d):
                assert layer.running_var is not None  # it tracks them
                value = float(layer.running_var.mean())
                self.variances.setdefault(name, []).append((step, value))

    def scalars(self, group: str, *names: str) -> dict[str, Curve]:
        """Scalar series by name; all of the group without names."""
        assert self.record is not None  # it ran
        every = self.record.group(group)
        return {
            name: list(zip(every[name].steps.tolist(), np.abs(every[name].values), strict=True))
            for name in names or every
        }


def new_head(model: nn.Module) -> None:
    """Replace the head, after the optimizer was created."""
    assert isinstance(model, nn.Sequential)  # of ``network``
    model[-1] = nn.Linear(64, len(PHOTOGRAPHS.names))


def small_momentum() -> nn.Module:
    """A network whose running statistics hardly follow the batches."""
    model = network()
    for layer in model:
        if isinstance(layer, nn.BatchNorm2d):
            layer.momentum = 1e-4
    return model


class WriteBack:
    """Overwrites the weights with those of the first step, as a wrong moving average does."""

    def __init__(self) -> None:
        self._kept: dict[str, Tensor] = {}

    def __call__(self, model: nn.Module) -> None:
        """Called after each optimizer step."""
        if not self._kept:
            self._kept = {name: value.clone() for name, value in model.state_dict().items()}
        model.load_state_dict(self._kept)


def deep_sigmoid() -> nn.Module:
    """A network whose sigmoids shrink gradients from layer to layer."""
    return network(nn.Sigmoid, norm=False, further=5)
