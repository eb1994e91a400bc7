"""Forward passes that leave the model, its gradients and the random states unchanged."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.compiled import force_eager
from fmapboard.capture.isolation import block_begins, block_ended
from fmapboard.capture.transfer import pinned_memory
from fmapboard.errors import ConfigurationError, first_line, interrupt_in
from fmapboard.model.distributed import reshard
from fmapboard.model.given import without_batch_axis
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import map_tensors, tensors


class untouched:  # lower case: a context manager that is used like a function
    """Restore the model's training modes, its buffers and the random states after the block.

    The random states are those of Python, NumPy, and torch on the CPU and on the model's devices.
    Nothing here waits for a device: the states of its generators are kept on the host. Weights that
    are cast inside the block stay out of the user's autocast cache: up to torch 2.7, a cast made
    without a graph would be reused there, and the weight would get no gradient.

    Args:
        model: any module.
        training: the mode inside the block; None keeps each module's own. It is set and restored
            per module, without ``train()``, so a BatchNorm that the user froze is still frozen
            afterwards.
    """

    def __init__(self, model: nn.Module, *, training: bool | None = None) -> None:
        self._model, self._training = model, training
        self._restore: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        model = self._model
        modules = list(model.modules())
        modes = [(module, module.training) for module in modules]
        slots = [(module._buffers, dict(module._buffers)) for module in modules]
        # Lazy buffers have no values yet.
        buffers = [(b, b.detach().clone()) for b in model.buffers() if not is_lazy(b)]
        self._restore = [
            partial(_restore_modes, modes),
            partial(_restore_buffers, slots, buffers),
            *random_states(model),
            partial(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled()),
        ]
        block_begins(self)
        torch.set_autocast_cache_enabled(False)
        if self._training is not None:
            for module in modules:
                module.training = self._training

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Restore everything; a second call does nothing."""
        for restore in self._restore:
            restore()
        self._restore = []
        block_ended(self)


def _restore_modes(modes: list[tuple[nn.Module, bool]]) -> None:
    for module, mode in modes:
        module.training = mode


def _restore_buffers(
    slots: list[tuple[dict[str, Tensor | None], dict[str, Tensor | None]]],
    buffers: list[tuple[Tensor, Tensor]],
) -> None:
    for slot, held in slots:
        for name, buffer in held.items():
            if slot[name] is not buffer:  # the forward pass replaced the tensor
                slot[name] = buffer
    for saved, before in buffers:
        # Through .data, because autograd raises if a buffer's version changes between the user's
        # forward pass and its backward pass.
        saved.data.copy_(before)


def random_states(model: nn.Module) -> Iterator[Callable[[], object]]:
    """Functions that restore the random states of this moment, also of the model's devices."""
    yield partial(random.setstate, random.getstate())
    yield partial(np.random.set_state, np.random.get_state())
    yield partial(torch.set_rng_state, torch.get_rng_state())
    for kind, indices in _devices(model).items():
        module = torch.get_device_module(kind)
        for index in indices:
            yield partial(module.set_rng_state, module.get_rng_state(index), index)


def _devices(model: nn.Module) -> dict[str, list[int]]:
    """Indices of the accelerators that hold the model's parameters, by type of device."""
    found: dict[str, set[int]] = {}
    for device in {parameter.device for parameter in model.parameters()}:
        if hasattr(getattr(torch, device.type, None), "get_rng_state"):  # not the CPU
            found.setdefault(device.type, set()).add(device.index or 0)
    return {kind: sorted(indices) for kind, indices in found.items()}


class Probe:
    """Images for side passes, kept on the model's device.

    Args:
        images: what ``forward`` takes: a tensor, or a tuple of positional arguments.
    """

    def __init__(self, images: Any) -> None:
        self.images = images
        self._moved: Any = None
        self._place: tuple[torch.device, torch.dtype] | None = None

    def arguments(self, like: Tensor) -> tuple[Any, ...]:
        """The positional arguments of ``forward``.

        They are copied to the device once, and again only if the device or the dtype changes; each
        call returns a copy made there, because the model may change its input in place. On the CPU,
        tensors of the right dtype are passed on without a copy.

        Args:
            like: floating-point tensors get its device and dtype, other tensors its device.
        """
        images = self.images if isinstance(self.images, tuple) else (self.images,)
        if like.is_cpu:
            moved: tuple[Any, ...] = map_tensors(images, lambda t: _moved(t, like))
            return moved
        if self._place != (like.device, like.dtype):
            self._moved = map_tensors(images, lambda t: _moved(t, like))
            self._place = like.device, like.dtype
        copied: tuple[Any, ...] = map_tensors(self._moved, torch.clone)
        return copied


def _always() -> bool:
    return True


def run_side_pass(model: nn.Module, probe: Any, may_run: Callable[[], bool] = _always) -> Any:
    """Run the unwrapped model on the probe in eval mode, without gradients or autocast.

    Args:
        model: any module. Under DistributedDataParallel the inner module runs, so no rank waits for
            another.
        probe: a ``Probe``, or its images. Floating-point tensors are moved to the device and dtype
            of the model's first floating-point parameter, other tensors to its device.
        may_run: called when everything but the pass itself is done; False cancels the pass.

    Returns:
        What ``forward`` returned; None if the pass was cancelled.
    """
    inner = unwrap(model)
    like = next((p for p in inner.parameters() if p.is_floating_point()), torch.empty(0))
    kept = probe if isinstance(probe, Probe) else Probe(probe)
    with (
        untouched(inner, training=False),
        torch.no_grad(),
        torch.autocast(like.device.type, enabled=False, cache_enabled=False),
        force_eager(),
    ):
        arguments = kept.arguments(like)
        try:
            return inner(*arguments) if may_run() else None
        finally:
            reshard(inner)


def _moved(tensor: Tensor, like: Tensor) -> Tensor:
    """The tensor on another device, through pinned memory if there is any."""
    dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
    tensor = tensor.detach()
    if like.is_cpu or not tensor.is_cpu:
        return tensor.to(like.device, dtype)
    try:
        staged = pinned_memory(tensor.shape, dtype)
    except RuntimeError as error:
        if interrupt_in(error) is not None:
            raise
        return tensor.to(like.device, dtype)
    return staged.copy_(tensor).to(like.device, non_blocking=True)


def check_probe(model: nn.Module, probe: Probe | None) -> None:
    """Run the model on the probe once, so that an unsuitable probe is rejected before training.

    This also copies the probe to the model's device. A model with lazy parameters is not run.

    Raises:
        ConfigurationError: the probe holds no images, or the model cannot run on it.
    """
    if probe is None:
        return
    _check_images(probe.images)
    if any(is_lazy(p) for p in model.parameters()):
        return
    handled = sys.exc_info()[1]
    try:
        run_side_pass(model, probe)
    except Exception as error:
        if interrupt_in(error, handled) is not None:
            raise
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors(probe.images))
        fix = "; add a batch axis: probe=x[None]" * bool(without_batch_axis(probe.images))
        raise ConfigurationError(
            f"model.forward() failed on the probe of shape {shapes}: {first_line(error)}{fix}"
        ) from error


def _check_images(probe: Any) -> None:
    images = [] if isinstance(probe, list) else list(tensors(probe))
    if not images:
        raise ConfigurationError(
            f"probe={type(probe).__name__}: expected a tensor of images [N, C, H, W] (use "
            "torch.stack(images) for a list), or a tuple of the model's positional arguments"
        )
    if any(image.dim() == 0 or image.numel() == 0 for image in images):
        raise ConfigurationError(
            f"probe of shape {list(images[0].shape)}: expected at least one sample"
        )
