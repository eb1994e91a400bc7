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
Batches = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]
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
        batches: images and labels of a step.
        images: changes the images of a batch.
        labels: changes its labels.
        loss: of output and labels.
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
    batches: Batches = lambda step, made: PHOTOGRAPHS.training_batch(BATCH, made)
    images: Images = lambda images: images
    labels: Images = lambda labels: labels
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy
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
                    images, labels = self.batches(step, made)
                    self.batch = self.images(images)
                    if self.clears:
                        optimizer.zero_grad()
                    self.loss(model(self.batch), self.labels(labels)).backward()
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

    def classes(self) -> int:
        """Size of the output's class axis."""
        assert self.record is not None  # it ran
        return max(one.classes or 1 for of in self.record.facts.values() for one in of.outputs)

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


def ending(*last: nn.Module) -> Callable[[], nn.Module]:
    """Makes the network with further modules at its end."""
    return lambda: nn.Sequential(*network(), *last)


def no_scale() -> nn.Module:
    """A network whose last BatchNorm has a scale of 0."""
    model = network()
    nn.init.zeros_(model[-5].weight)  # type: ignore[arg-type]  # of a BatchNorm
    return model


def large_head(model: nn.Module) -> None:
    """Enlarge the weights of the head."""
    assert isinstance(model, nn.Sequential)  # of ``network``
    model[-1].weight.data.mul_(100)  # type: ignore[operator]  # of a Linear


def dropping() -> nn.Module:
    """A network that drops 95 % of what its head receives."""
    *parts, head = network()
    return nn.Sequential(*parts, nn.Dropout(0.95), head)


def pooled_norm() -> nn.Module:
    """A network with BatchNorm behind the pooling: one value per image and channel."""
    *parts, flat, head = network()
    return nn.Sequential(*parts, nn.Conv2d(64, 64, 1), nn.BatchNorm2d(64), nn.ReLU(), flat, head)


def thousand_classes() -> nn.Module:
    """A network whose head was made for ImageNet."""
    return nn.Sequential(*network()[:-1], nn.Linear(64, 1000))


class Forgetful(nn.Sequential):
    """A network that does not call its last convolution."""

    def forward(self, images: Tensor) -> Tensor:
        """All modules but three, one after the other."""
        parts = list(self)
        for part in [*parts[:12], *parts[15:]]:
            images = part(images)
        return images


def sorted_by_class(step: int, made: torch.Generator) -> tuple[Tensor, Tensor]:
    """A batch of images of one class, another one after 15 steps."""
    images, labels = PHOTOGRAPHS.training_batch(16 * BATCH, made)
    chosen = (labels == step // 15 % len(PHOTOGRAPHS.names)).nonzero()[:BATCH, 0]
    return images[chosen], labels[chosen]


def the_first_batch(step: int, made: torch.Generator) -> tuple[Tensor, Tensor]:
    """The same batch at every step."""
    return PHOTOGRAPHS.training_batch(BATCH, torch.Generator().manual_seed(0))


class Decaying:
    """Adam whose rate is multiplied by 0.75 after every step instead of every epoch."""

    def __call__(self, model: nn.Module) -> torch.optim.Optimizer:
        """Create the optimizer."""
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        self._scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.75)
        return optimizer

    def step(self, _: nn.Module) -> None:
        """Called after each optimizer step."""
        self._scheduler.step()
