"""A loss and labels that the user gives are logged, with the accuracy, for outputs of any size."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fmapboard
from fmapboard.writers.folder import MemoryWriter


@pytest.mark.parametrize(
    ("images", "classes"),
    [
        *((64, 1000), (131, 1000), (132, 1000), (256, 1000), (512, 1000)),
        *((5000, 10), (5000, 200), (1024, 200)),
    ],
)
def test_with_labels_the_accuracy_is_logged_for_outputs_of_any_size(
    images: int, classes: int
) -> None:
    torch.manual_seed(0)
    model, kept = (
        nn.Sequential(nn.Conv2d(1, 4, 4), nn.Flatten(), nn.Linear(4, classes)),
        MemoryWriter(),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = torch.randn(images, 1, 4, 4)
    logits = model(batch).detach()
    labels = torch.where(torch.arange(images) % 3 == 0, 0, logits.argmax(1))
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        output = model(batch)
        loss = F.cross_entropy(output, labels)
        board.loss(loss, labels)
        loss.backward()
        optimizer.step()
    scalars = kept.steps[0].scalars
    exact = float((logits.argmax(1) == labels).float().mean())
    assert scalars["loss/accuracy"] == pytest.approx(exact, abs=0.02)
    assert scalars["loss/given"] == pytest.approx(loss.item())
