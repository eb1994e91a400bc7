"""Parts of a model that are called one by one, in half precision and with a GradScaler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.checks import run_checks
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.health.read_runs import read_runs

STEPS = 9


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        norm = nn.BatchNorm2d(8)
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, 4)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.head(self.body(images).flatten(1))
        return found


def train(dtype: torch.dtype, *, in_parts: bool, folder: Path | None = None) -> dict[str, Any]:
    """What is left of a training, whose third step the scaler skips."""
    torch.manual_seed(0)
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    board = None
    if folder is not None:
        board = fmapboard.watch(model, folder, optimizer=optimizer, scaler=scaler, every=2)
    for step in range(STEPS):
        images, labels = torch.randn(16, 3, 9, 9), torch.randint(4, (16,))
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype):
            output = model.head(model.body(images).flatten(1)) if in_parts else model(images)
        loss = functional.cross_entropy(output.float(), labels)
        factor = float("inf") if step == 2 else 1.0
        scaler.scale(factor * loss).backward()  # type: ignore[no-untyped-call]  # torch has no types here
        scaler.step(optimizer)
        scaler.update()
    if board is not None:
        board.close()
    return {**model.state_dict(), "scale": torch.tensor(scaler.get_scale())}


def read(folder: Path) -> tuple[set[str], Mapping[int, TrainingFacts]]:
    """The kinds of findings of a run, and its training facts."""
    ((record,),) = (run.records for run in read_runs(folder))
    return {found.kind for found in run_checks(record).findings}, record.facts


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_are_bitwise_the_same_and_the_checks_see_what_they_see_of_the_whole(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    bare = train(dtype, in_parts=True)
    parts = train(dtype, in_parts=True, folder=tmp_path / "parts")
    train(dtype, in_parts=False, folder=tmp_path / "whole")
    for name, value in bare.items():
        assert torch.equal(value, parts[name]), name
    findings, facts = read(tmp_path / "parts")
    expected_findings, expected_facts = read(tmp_path / "whole")
    assert findings == expected_findings
    assert facts.keys() == expected_facts.keys() == {0, 2, 4, 6}
    # Of parts it is not known that the scaler skipped a pass, nor its factor.
    for step in (0, 4, 6):
        assert facts[step].batch == expected_facts[step].batch == 16
        (output,) = facts[step].outputs
        (expected,) = expected_facts[step].outputs
        assert replace(output, held=expected.held, factor=expected.factor) == expected
    assert output.loss is not None
