"""Seeding under the name of monai.utils."""

from __future__ import annotations

import torch


def set_determinism(seed: int) -> None:
    torch.manual_seed(seed)
