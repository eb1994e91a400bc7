"""Outputs on accelerators: the loss is read, no step waits, few launches."""

from __future__ import annotations

import pytest
import torch
from device_training import network
from simulated_device import move, moved, simulated_device
from torch.nn import functional as F

import fmapboard
from fmapboard.gradients.outputs import OutputRecorder
from fmapboard.writers.folder import MemoryWriter


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_the_loss_is_read_on_a_device_and_no_step_waits(kind: str) -> None:
    kept, values, _ = trained(kind)
    found = {at: of["loss/read_from_gradient"] for at, of in kept.steps[1].earlier.items()}
    found |= {one.step: one.scalars["loss/read_from_gradient"] for one in kept.steps[1:]}
    assert found == pytest.approx(values, rel=1e-4)
    assert [p.tag for p in kept.steps[2].pictures][-1] == "network_input/highest_loss"


def test_outputs_and_images_take_few_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, launches = trained("cuda")
    monkeypatch.setattr(OutputRecorder, "returned", lambda *_: None)
    _, _, without = trained("cuda")
    assert 10 < launches - without <= 33  # half of them are views, which launch nothing


def trained(kind: str) -> tuple[MemoryWriter, dict[int, float], int]:
    """Three logged steps; their records, the losses, and the launches of the last one."""
    kept, losses, launches = MemoryWriter(), list[torch.Tensor](), 0
    with simulated_device() as machine:
        model = network()
        move(model, kind)
        images, labels = moved(torch.randn(16, 3, 32, 32), kind), moved(torch.arange(16) % 5, kind)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
        machine.waits.clear()
        with board:
            for _ in range(3):
                before = machine.launches
                optimizer.zero_grad()
                losses.append(F.cross_entropy(model(images), labels))
                losses[-1].backward()
                optimizer.step()
                board.flush()
                launches = machine.launches - before
        assert machine.waits_on("MainThread") == []
        return kept, {step: float(one.detach()) for step, one in enumerate(losses)}, launches
