"""A forward pass that leaves model, random numbers and gradients exactly as they were."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.errors import ConfigurationError, first_line
from fmapboard.model.distributed import reshard
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import map_tensors, tensors


@contextlib.contextmanager
def untouched(model: nn.Module, *, training: bool | None = None) -> Iterator[None]:
    """Whatever runs inside, the model's modes and buffers and all random states come back.

    Args:
        model: any module.
        training: the mode inside; None keeps each module's own. Set and restored by attribute, so
            a BatchNorm that the user froze stays frozen afterwards.
    """
    modules = list(model.modules())
    modes = [module.training for module in modules]
    slots = [(module._buffers, dict(module._buffers)) for module in modules]
    # A lazy buffer has no values yet.
    buffers = [(b, b.detach().clone()) for b in model.buffers() if not is_lazy(b)]
    try:
        with _random_states(_devices(model)), _no_autocast_cache():
            if training is not None:
                for module in modules:
                    module.training = training
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
        for slot, held in slots:
            for name, buffer in held.items():
                if slot[name] is not buffer:  # a forward pass put another tensor in its place
                    slot[name] = buffer
        for saved, before in buffers:
            saved.data.copy_(before)  # .data: no version bump between a forward and its backward


@contextlib.contextmanager
def _random_states(devices: list[int]) -> Iterator[None]:
    python, legacy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)


@contextlib.contextmanager
def _no_autocast_cache() -> Iterator[None]:
    """Weights cast inside leave nothing to the user's own autocast region.

    Up to torch 2.7 one that was cast without a graph would lose its gradient there.
    """
    enabled = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(enabled)


def _devices(model: nn.Module) -> list[int]:
    """Indices of the CUDA devices that the model lives on."""
    found = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    return sorted(index for index in found if index is not None)


def run_side_pass(model: nn.Module, probe: Any) -> Any:
    """Run the unwrapped model on the probe: eval mode, no gradients, full precision.

    Args:
        model: any module; under DistributedDataParallel the inner one runs, so ranks cannot wait
            for each other.
        probe: what ``forward`` takes: a tensor, or a tuple of positional arguments. Floating
            tensors are moved to the device and dtype of the model's first parameter.
    """
    inner = unwrap(model)
    like = next((p for p in inner.parameters() if p.is_floating_point()), torch.empty(0))
    args = probe if isinstance(probe, tuple) else (probe,)
    moved = map_tensors(args, lambda tensor: _moved(tensor, like))
    with (
        untouched(inner, training=False),
        torch.no_grad(),
        torch.autocast(like.device.type, enabled=False, cache_enabled=False),
    ):
        try:
            return inner(*moved)
        finally:
            reshard(inner)


def _moved(tensor: Tensor, like: Tensor) -> Tensor:
    dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.detach().to(like.device, dtype)


def check_probe(model: nn.Module, probe: Any) -> None:
    """Run a probe once, so that one that does not fit is refused at once.

    Raises:
        ConfigurationError: the probe holds no images, or the model cannot run on it.
    """
    if probe is None:
        return
    _check_images(probe)
    if any(is_lazy(p) for p in model.parameters()):
        return
    try:
        run_side_pass(model, probe)
    except Exception as error:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors(probe))
        raise ConfigurationError(
            f"model.forward() failed on the probe of shape {shapes}: {first_line(error)}"
        ) from error


def _check_images(probe: Any) -> None:
    images = [] if isinstance(probe, list) else list(tensors(probe))
    if not images:
        raise ConfigurationError(
            f"probe={type(probe).__name__}: expected a tensor of images [N, C, H, W], "
            "as torch.stack(images) makes of a list, or a tuple of what the model is called with"
        )
    if any(image.dim() == 0 or image.numel() == 0 for image in images):
        raise ConfigurationError(f"probe of shape {list(images[0].shape)}: it has no samples")
