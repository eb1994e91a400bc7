"""A copy of everything that fmapboard must leave unchanged in a model and in the process."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import Tensor, nn


def state_of(model: nn.Module) -> list[Tensor]:
    """Copies of parameters, gradients, buffers and modes, and all random generators' states."""
    return [
        *(p.detach().clone() for p in model.parameters()),
        *(torch.zeros(0) if p.grad is None else p.grad.clone() for p in model.parameters()),
        *(b.clone() for b in model.buffers()),
        torch.tensor([m.training for m in model.modules()]),
        *random_state(),
    ]


def random_state() -> list[Tensor]:
    """The states of the generators of torch, NumPy and Python."""
    return [
        torch.get_rng_state(),
        torch.tensor([*np.random.get_state()[1].tolist(), np.random.get_state()[2]]),
        torch.tensor(list(random.getstate()[1])),
    ]


def assert_unchanged(before: list[Tensor], after: list[Tensor]) -> None:
    """Assert that two lists of tensors are bitwise equal."""
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
