"""How often a rehearsal says that right labels of hard tasks do not belong to their images.

    python benchmarks/rehearsals_of_hard_tasks.py

Five tasks that no network learns from a few hundred samples, in batches of 8, 16 and 32, with three
seeds each: 45 healthy trainings. The same with shuffled labels. Takes about two minutes on two
cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import fmapboard

COUNT = 1024
Task = tuple[nn.Module, Tensor, Tensor, nn.Module]


def perceptron(inputs: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, outputs),
    )


def parity(drawn: torch.Generator) -> Task:
    """Whether six bits of twelve have an even sum."""
    bits = torch.randint(0, 2, (COUNT, 12), generator=drawn).float()
    return perceptron(12, 2), bits, bits[:, :6].sum(1).long() % 2, nn.CrossEntropyLoss()


def weak_regression(drawn: torch.Generator) -> Task:
    """A number of which the inputs explain 2 %."""
    values = torch.randn(COUNT, 20, generator=drawn)
    target = 0.14 * values[:, :1] + torch.randn(COUNT, 1, generator=drawn)
    return perceptron(20, 1), values, target, nn.MSELoss()


def weak_classes(drawn: torch.Generator) -> Task:
    """Two classes that the inputs hardly tell apart."""
    values = torch.randn(COUNT, 20, generator=drawn)
    labels = (0.15 * values[:, 0] + torch.randn(COUNT, generator=drawn) > 0).long()
    return perceptron(20, 2), values, labels, nn.CrossEntropyLoss()


def rare_tokens(drawn: torch.Generator) -> Task:
    """A class that follows from one of 400 tokens."""
    tokens = torch.randint(0, 400, (COUNT, 12), generator=drawn)
    model = nn.Sequential(
        nn.Embedding(400, 64), nn.Flatten(), nn.Linear(768, 64), nn.ReLU(), nn.Linear(64, 4)
    )
    return model, tokens, tokens[:, 1] * 7 % 13 % 4, nn.CrossEntropyLoss()


def distance(drawn: torch.Generator) -> Task:
    """Whether two bright pixels are near each other."""
    places = torch.randint(2, 14, (COUNT, 2, 2), generator=drawn)
    images = 0.5 * torch.randn(COUNT, 1, 16, 16, generator=drawn)
    for point in (0, 1):
        images[torch.arange(COUNT), 0, places[:, point, 0], places[:, point, 1]] += 2
    labels = ((places[:, 0] - places[:, 1]).abs().sum(1) < 6).long()
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 2)
    )
    return model, images, labels, nn.CrossEntropyLoss()


TASKS: tuple[Callable[[torch.Generator], Task], ...] = (
    parity, weak_regression, weak_classes, rare_tokens, distance,
)  # fmt: skip


def judged(make: Callable[[torch.Generator], Task], size: int, seed: int, *, shuffles: bool) -> str:
    """What a rehearsal says of the labels of a task."""
    drawn = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model, inputs, labels, loss = make(drawn)
    if shuffles:
        labels = labels[torch.randperm(COUNT, generator=drawn)]
    rate = 3e-3 if labels.dtype == torch.long else 1e-3
    found = fmapboard.rehearse(
        model,
        DataLoader(TensorDataset(inputs, labels), size),
        loss,
        torch.optim.Adam(model.parameters(), lr=rate),
        progress=False,
    )
    answers = {outcome.kind: outcome.answer for outcome in found.outcomes}
    return answers["labels_fit_images"].judgement


def main() -> None:
    """Print how often each judgement is made."""
    for shuffles in (False, True):
        counts = Counter[str]()
        for make in TASKS:
            for size in (8, 16, 32):
                counts.update(judged(make, size, seed, shuffles=shuffles) for seed in (0, 10, 20))
        print("shuffled labels:" if shuffles else "right labels:", dict(counts))


if __name__ == "__main__":
    main()
