"""How often ``prove`` is right about causes that were planted.

    python benchmarks/proofs.py

Small networks on squares of the bundled photographs, at a quarter of their size, whose class is
the photograph. First 16
trainings with a fault: whether its cause is proven. Then six trainings into whose verdicts causes
are put that are not there: whether these are refuted. Takes about two minutes on two cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.checks import Finding
from fmapboard.demo.bundled import bundled
from fmapboard.health.cures import proof_text
from fmapboard.rehearsal.prove import Experiments

SIDE = 32
STEPS = 40
EVERY = {
    "updates_too_small": "higher_rate",
    "loss_climbed": "turned_sign",
    "eval_mode": "train_mode",
    "not_in_optimizer": "all_parameters",
    "double_softmax": "no_activation",
    "gradients_not_cleared": "zero_grad",
    "updates_too_large": "lower_rate",
    "input_scale": "normalized_inputs",
    "dead": "new_weights",
    "dropout": "usual_dropout",
}
"""Kinds of findings and their cures."""


def photographs() -> list[Tensor]:
    """The bundled photographs, [3, H, W] from 0 to 1."""
    found = []
    for file in sorted(bundled("photographs").glob("*.jpg"))[:6]:
        with Image.open(file) as opened:
            pixels = np.asarray(opened.convert("RGB").reduce(4))
        found.append(torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255)
    return found


PHOTOGRAPHS = photographs()


def batches(*, scaled: bool = True) -> Iterator[tuple[Tensor, Tensor]]:
    """Random squares [24, 3, 32, 32], and the photograph of each."""
    drawn = torch.Generator().manual_seed(0)

    def below(most: int) -> int:
        return int(torch.randint(most, (1,), generator=drawn))

    for _ in range(STEPS):
        labels = torch.randint(len(PHOTOGRAPHS), (24,), generator=drawn)
        squares = []
        for label in labels.tolist():
            image = PHOTOGRAPHS[label]
            top = below(image.shape[1] - SIDE)
            left = below(image.shape[2] - SIDE)
            squares.append(image[:, top : top + SIDE, left : left + SIDE])
        stacked = torch.stack(squares)
        yield ((stacked - 0.45) / 0.25 if scaled else stacked * 255), labels


def convolutions(*last: nn.Module, norm: bool = False, dropout: float = 0.0) -> nn.Sequential:
    """Three convolutions and a linear layer."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 32)):
        layers.append(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1))
        if norm:
            layers.append(nn.BatchNorm2d(outputs))
        layers.append(nn.ReLU())
    layers += [nn.AdaptiveAvgPool2d(2), nn.Flatten()]
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(128, len(PHOTOGRAPHS)), *last)


def perceptron(factor: float = 1.0) -> nn.Sequential:
    """Three linear layers, their weights times a factor."""
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(3 * SIDE * SIDE, 128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Linear(64, len(PHOTOGRAPHS)),
    )
    return scaled_weights(model, factor)


def scaled_weights(model: nn.Sequential, factor: float) -> nn.Sequential:
    """The network with its parameters times a factor."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model


def adam(model: nn.Module, rate: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=rate)


def sgd(model: nn.Module, rate: float = 0.05) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)


def climbed(output: Tensor, labels: Tensor) -> Tensor:
    return -functional.cross_entropy(output, labels)


@dataclass
class Case:
    """A training.

    Attributes:
        model: the network.
        optimizer: makes its optimizer.
        loss: of output and labels.
        clears: clear the gradients in each step.
        scaled: normalize the images.
        planted: kinds of causes that are put into the verdict, with their cures.
    """

    model: nn.Module
    optimizer: Callable[[nn.Module], torch.optim.Optimizer] = adam
    loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy
    clears: bool = True
    scaled: bool = True
    planted: Mapping[str, str] = field(default_factory=dict)


RIGHT: dict[str, Callable[[], Case]] = {
    "rate 600 times too high": lambda: Case(convolutions(), lambda m: sgd(m, 30.0)),
    "rate of 1 for Adam": lambda: Case(convolutions(), lambda m: adam(m, 1.0)),
    "rate of 1e-7": lambda: Case(convolutions(), lambda m: sgd(m, 1e-7)),
    "rate of 1e-9 for Adam": lambda: Case(perceptron(), lambda m: adam(m, 1e-9)),
    "softmax twice": lambda: Case(convolutions(nn.Softmax(1))),
    "softmax twice, SGD": lambda: Case(convolutions(nn.Softmax(1)), lambda m: sgd(m, 0.01)),
    "sigmoid before cross-entropy": lambda: Case(convolutions(nn.Sigmoid())),
    "turned sign": lambda: Case(convolutions(), sgd, loss=climbed),
    "no zero_grad": lambda: Case(convolutions(), lambda m: sgd(m, 0.1), clears=False),
    "head in no optimizer": lambda: Case(convolutions(), lambda m: sgd(m[:-1])),
    "only the head in the optimizer": lambda: Case(convolutions(), lambda m: adam(m[-1])),
    "weights of zero": lambda: Case(scaled_weights(convolutions(), 0.0), sgd),
    "weights × 0.01": lambda: Case(perceptron(0.01), lambda m: sgd(m, 0.01)),
    "weights × 8": lambda: Case(perceptron(8.0)),
    "dropout of 0.97": lambda: Case(convolutions(dropout=0.97)),
    "images of 0 to 255": lambda: Case(convolutions(), sgd, scaled=False),
}
WRONG: dict[str, Callable[[], Case]] = {
    "healthy, Adam": lambda: Case(convolutions(), planted=EVERY),
    "healthy, BatchNorm": lambda: Case(convolutions(norm=True), sgd, planted=EVERY),
    "healthy perceptron": lambda: Case(perceptron(), planted=EVERY),
    "weights of zero": lambda: Case(
        scaled_weights(convolutions(), 0.0), sgd, planted=_without("dead")
    ),
    "turned sign": lambda: Case(
        convolutions(), sgd, loss=climbed, planted=_without("loss_climbed")
    ),
    "softmax twice": lambda: Case(convolutions(nn.Softmax(1)), planted=_without("double_softmax")),
}


def _without(kind: str) -> dict[str, str]:
    return {other: cure for other, cure in EVERY.items() if other != kind}


def proofs(case: Case) -> dict[str, Any]:
    """Kind of each cause that was tried -> what its experiment has shown."""
    optimizer = case.optimizer(case.model)
    with (
        tempfile.TemporaryDirectory() as folder,
        fmapboard.watch(case.model, folder, optimizer=optimizer, every=4, prove=True) as board,
    ):
        for images, labels in batches(scaled=case.scaled):
            if case.clears:
                optimizer.zero_grad()
            case.loss(case.model(images), labels).backward()
            optimizer.step()
        if not case.planted:
            verdict = board.prove()
            findings = () if verdict is None else verdict.findings
            return {finding.kind: finding.proof for finding in findings if finding.proof}
        board.flush()
        kept: Any = board._run.session.kept
        causes = [
            Finding(kind=kind, message="", since_step=0, cure=cure)
            for kind, cure in case.planted.items()
        ]
        found = Experiments(kept.model, kept, None, 60.0).prove(causes)
        kept.batches.clear()  # so that nothing is tried again when the logger is closed
        return dict(found)


def main() -> None:
    """Print each experiment."""
    for title, cases in (("right causes", RIGHT), ("wrong causes", WRONG)):
        print(f"{title}:")
        for name, make in cases.items():
            torch.manual_seed(0)
            for kind, proof in proofs(make()).items():
                print(f"  {name}: {kind}: {proof_text(proof)}", flush=True)


if __name__ == "__main__":
    main()
