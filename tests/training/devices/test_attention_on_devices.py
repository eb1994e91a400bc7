"""Rows of attention on an accelerator (a simulated one): as on the CPU, and no step waits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from attending_networks import LABELS, AttendingNet, Attention, OfTorch, images
from logged_step import measurement
from simulated_device import move, moved, simulated_device
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.capture import passes
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


@pytest.fixture(autouse=True)
def as_in_a_process_without_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once other tests have used it, attention is read in a pass of its own."""
    monkeypatch.setattr(passes, "is_compile_used", bool)


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def masked(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    seen = (query @ key.transpose(-1, -2)).detach().tril(0) != 0
    return functional.scaled_dot_product_attention(query, key, value, seen)


def eager(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return (query @ key.transpose(-1, -2)).softmax(-1) @ value


ATTENTION = {
    "causal": lambda: Attention(causal),
    "masked": lambda: Attention(masked),
    "eager": lambda: Attention(eager),
    "MultiheadAttention": OfTorch,
}


def logged(model: nn.Module, x: Tensor) -> list[LoggedStep]:
    kept = MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
    with board:
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            board.flush()
    return kept.steps


def network(name: str) -> nn.Module:
    torch.manual_seed(0)
    model = AttendingNet(ATTENTION[name])
    for module in model.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
    return model


@pytest.mark.parametrize("name", ATTENTION)
def test_rows_and_numbers_are_those_of_the_cpu_and_no_step_waits(name: str) -> None:
    expected = logged(network(name), images())
    with simulated_device() as machine:
        model = network(name)
        move(model, "cuda")
        x = moved(images(), "cuda")
        machine.waits.clear()
        found = logged(model, x)
        assert machine.waits_on("MainThread") == []
    for step, other in zip(found, expected, strict=True):
        for label in LABELS:
            own = measurement(step, label)
            same = measurement(other, label)
            assert own.statistics is not None
            assert same.statistics is not None
            np.testing.assert_allclose(own.statistics.maximum, same.statistics.maximum, rtol=1e-5)
            if same.heads is not None:
                assert own.heads is not None
                np.testing.assert_allclose(own.heads.entropy, same.heads.entropy, rtol=1e-5)
                np.testing.assert_allclose(own.heads.logit, same.heads.logit, rtol=1e-4)
                np.testing.assert_allclose(own.heads.first, same.heads.first, rtol=1e-5)
