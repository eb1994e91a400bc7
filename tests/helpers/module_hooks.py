"""The number of hooks on a model."""

from __future__ import annotations

from torch import nn


def hook_count(model: nn.Module) -> int:
    """Forward, forward pre- and backward hooks on all submodules; torch has no public count."""
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks)
        + len(m._backward_hooks) + len(m._backward_pre_hooks)
        for m in model.modules()
    )  # fmt: skip
