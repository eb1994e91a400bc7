"""Makes the pictures of docs/rehearse.md.

    python assets/make_rehearsal_pictures.py

Rehearses a small network on squares of the bundled photographs, whose class is the photograph: as
it is, and with four faults. Takes about a minute on two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import fmapboard
from fmapboard.demo.bundled import bundled

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SIDE = 32
PER_PHOTOGRAPH = 96


def squares() -> tuple[Tensor, Tensor]:
    """Random squares of the photographs, [N, 3, 32, 32], and which photograph each one is of."""
    drawn = np.random.default_rng(0)
    images = []
    labels = []
    for label, file in enumerate(sorted(bundled("photographs").glob("*.jpg"))):
        with Image.open(file) as opened:
            pixels = np.asarray(opened.convert("RGB").reduce(2))
        for _ in range(PER_PHOTOGRAPH):
            top = int(drawn.integers(pixels.shape[0] - SIDE))
            left = int(drawn.integers(pixels.shape[1] - SIDE))
            images.append(pixels[top : top + SIDE, left : left + SIDE])
            labels.append(label)
    stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)  # [N, 3, 32, 32]
    return stacked.float() / 255 - 0.5, torch.tensor(labels)


def network(classes: int, *last: nn.Module) -> nn.Sequential:
    """Two convolutions with BatchNorm, and a linear layer."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, classes),
        *last,
    )


def main() -> None:
    """Write one picture per rehearsal."""
    images, labels = squares()
    classes = int(labels.max()) + 1
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    cases: dict[str, Callable[[], tuple[nn.Module, Tensor, float]]] = {
        "healthy": lambda: (network(classes), labels, 0.02),
        "softmax_over_the_batch": lambda: (network(classes, nn.Softmax(dim=0)), labels, 0.02),
        "softmax_twice": lambda: (network(classes, nn.Softmax(dim=1)), labels, 0.02),
        "shuffled_labels": lambda: (network(classes), labels[order], 0.02),
        "rate_too_high": lambda: (network(classes), labels, 100.0),
    }
    for name, make in cases.items():
        model, own, rate = make()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
        loader: DataLoader[Any] = DataLoader(TensorDataset(images, own), 32, shuffle=True)
        torch.manual_seed(0)
        found = fmapboard.rehearse(model, loader, nn.CrossEntropyLoss(), optimizer)
        found.save(FOLDER / f"rehearsal_{name}.png")
        print(f"{name}: {found.verdict}")


if __name__ == "__main__":
    main()
