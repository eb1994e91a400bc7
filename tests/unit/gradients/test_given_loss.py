"""A loss and labels that the user gives are logged, with the accuracy, for outputs of any size."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fmapboard
from fmapboard.formats import tags
from fmapboard.formats.training_facts import unpack_training_facts
from fmapboard.writers.folder import MemoryWriter


@pytest.mark.parametrize("period", [2, 3], ids=["pairs", "triplets"])
@pytest.mark.parametrize(
    ("images", "classes"),
    [
        *((64, 1000), (131, 1000), (132, 1000), (256, 1000), (512, 1000)),
        *((5000, 10), (5000, 200), (1024, 200)),
    ],
)
def test_with_labels_the_accuracy_is_logged_for_outputs_of_any_size(
    images: int, classes: int, period: int
) -> None:
    torch.manual_seed(0)
    model, kept = (
        nn.Sequential(nn.Conv2d(1, 4, 4), nn.Flatten(), nn.Linear(4, classes)),
        MemoryWriter(),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = torch.randn(images, 1, 4, 4)
    logits = model(batch).detach()
    labels = torch.where(torch.arange(images) % period == 0, 0, logits.argmax(1))
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        output = model(batch)
        loss = F.cross_entropy(output, labels)
        board.loss(loss, labels)
        loss.backward()
        optimizer.step()
    scalars = kept.steps[0].scalars
    exact = float((logits.argmax(1) == labels).float().mean())
    assert scalars["loss/accuracy"] == pytest.approx(exact)
    assert scalars["loss/given"] == pytest.approx(loss.item())


def test_of_many_rows_of_one_unit_all_are_counted() -> None:
    model, kept = nn.Sequential(nn.Flatten(), nn.Linear(4, 1)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = torch.randn(9000, 1, 2, 2)
    labels = (model(batch)[:, 0] > 0).long()
    labels[::2] = 1 - labels[::2]
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        loss = F.binary_cross_entropy_with_logits(model(batch)[:, 0], labels.float())
        board.loss(loss, labels)
        loss.backward()
        optimizer.step()
    assert kept.steps[0].scalars["loss/accuracy"] == 0.5


@pytest.mark.parametrize(
    ("labels", "stored"),
    [
        (torch.tensor([1, -1, 1, 1]), ((1, 3), (-1, 1))),
        (torch.tensor([1.0, 0.0, 1.0, 1.0]), ((1, 3), (0, 1))),
        (torch.tensor([True, False, True, True]), ((1, 3), (0, 1))),
        (torch.tensor([1, -100, 1, 1]), ((1, 3),)),
        (torch.full((4,), -100), None),
        (torch.tensor([0.5, 0.25, 1.0, 2.0]), None),
        (torch.tensor([1.0, math.nan, 1.0, 1.0]), None),
    ],
    ids=["signs", "floats", "truths", "ignored", "all ignored", "targets", "nan"],
)
def test_whatever_labels_are_given_the_facts_of_the_step_are_read_back(
    labels: torch.Tensor, stored: tuple[tuple[int, int], ...] | None
) -> None:
    model, kept = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        loss = model(torch.randn(4, 1, 2, 2)).square().mean()
        board.loss(loss, labels)
        loss.backward()
        optimizer.step()
    (record,) = (one for one in kept.steps[0].records if one.tag == tags.TRAINING_FACTS)
    (output,) = unpack_training_facts(record.blobs).outputs
    assert output.labels == stored
    assert output.loss == pytest.approx(loss.item())


def test_rows_with_the_label_that_torch_leaves_out_do_not_count_as_wrong() -> None:
    model, kept = nn.Sequential(nn.Flatten(), nn.Linear(4, 3)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = torch.randn(16, 1, 2, 2)
    labels = model(batch).argmax(1)
    labels[::4] = -100
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        loss = F.cross_entropy(model(batch), labels)
        board.loss(loss, labels)
        loss.backward()
        optimizer.step()
    assert kept.steps[0].scalars["loss/accuracy"] == 1


def test_of_one_unit_the_sign_is_the_answer_to_labels_of_minus_1_and_1() -> None:
    model, kept = nn.Sequential(nn.Flatten(), nn.Linear(4, 1)), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    batch = torch.randn(16, 1, 2, 2)
    labels = torch.where(model(batch)[:, 0] > 0, 1, -1)
    labels[:4] *= -1
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1) as board:
        loss = F.relu(1 - model(batch)[:, 0] * labels).mean()
        board.loss(loss, labels)
        loss.backward()
        optimizer.step()
    assert kept.steps[0].scalars["loss/accuracy"] == 0.75
