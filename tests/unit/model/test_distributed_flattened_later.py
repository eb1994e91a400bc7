"""A network that FSDP1 wraps after ``watch``: its freed weights are not read, and no pass waits."""

from __future__ import annotations

import logging

import pytest
import torch
from networks import NestedNet
from torch import nn
from watched_training import train_step

import fmapboard
from fmapboard.capture.kernels import read_kernels
from fmapboard.errors import CaptureError
from fmapboard.writers.folder import MemoryWriter


def test_a_weight_whose_memory_was_freed_is_an_error() -> None:
    conv = nn.Conv2d(3, 4, 3)
    conv.weight.untyped_storage().resize_(0)  # type: ignore[attr-defined]  # torch's types lack it
    with pytest.raises(CaptureError, match="the weight has no memory"):
        read_kernels({"conv": conv}, None)


def test_a_probe_is_not_drawn_once_parameters_are_flattened(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    passes = []
    model.register_forward_hook(lambda module, *_: passes.append(module.training))
    probe = torch.zeros(1, 3, 12, 12)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, probe=probe),
    ):
        train_step(model, optimizer)
        is_probed = len(passes)
        for parameter in model.parameters():
            parameter._fsdp_flattened = True  # type: ignore[attr-defined]  # as FSDP1 does
        passes.clear()
        train_step(model, optimizer)
        train_step(model, optimizer)
    assert is_probed > 1
    assert passes == [True, True]
    said = [message for message in caplog.messages if "FSDP" in message]
    assert [text[:69] for text in said] == [
        "fmapboard: the probe is not drawn: parameters are sharded (FSDP), and"
    ]
