"""The input of both models."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.side_pass import Probe
from fmapboard.model.tensors import map_tensors

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a model."""


def on_device_of(model: nn.Module, arguments: Arguments) -> Arguments:
    """Copies of the arguments on the model's device: it may change its input in place.

    Floating-point tensors get the dtype of the model's first floating-point parameter.
    """
    args, kwargs = arguments
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    moved = Probe((*args, kwargs)).arguments(like)
    copied: tuple[Any, ...] = map_tensors(moved, _copied)
    return copied[:-1], copied[-1]


def _copied(tensor: Tensor) -> Tensor:
    return tensor.clone()
