"""The input of both models."""

from __future__ import annotations

from typing import Any

from torch import nn

from fmapboard.capture.side_pass import Probe

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a model."""


def on_device_of(model: nn.Module, arguments: Arguments) -> Arguments:
    """Copies of the arguments on the model's device: it may change its input in place.

    Floating-point tensors get the dtype of the model's first floating-point parameter.
    """
    args, kwargs = arguments
    copied = Probe((*args, kwargs)).arguments(model)
    return copied[:-1], copied[-1]
