"""Copies of convolution kernels, arranged for drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.side_pass import untouched
from fmapboard.model.distributed import is_dtensor, whole
from fmapboard.model.layers import CONVOLUTIONS, TRANSPOSED, kernel_shape
from fmapboard.records import COLOURS, Kernels, LayerCall, Layout


@dataclass(frozen=True, slots=True)
class PendingKernels:
    """``records.Kernels`` still on the device.

    Attributes:
        layer_call: the convolution.
        weight: f32 [out, in / groups, height, width], a copy.
        view: how the weight was rearranged to two dimensions; empty if it was not.
        inputs: size of the second axis before it was cut to the maximum.
    """

    layer_call: LayerCall
    weight: Tensor
    view: str
    inputs: int

    def to_host(self) -> Kernels:
        """Wait for the device and copy to the host."""
        shape = self.layer_call.kernel_shape or ()
        layout: Layout = "rows" if len(shape) == 3 else "tiles"
        return Kernels(self.layer_call, self.weight.cpu().numpy(), self.view, self.inputs, layout)


def read_kernels(
    layers: Mapping[str, nn.Module],
    most: int | None,
    guarded: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> tuple[PendingKernels, ...]:
    """Copies of the weights of the convolutions among the layers.

    Runs on the training thread. Collective if parameters are sharded: every rank must call it.
    Weights are then gathered in the order of the layers, whether or not this rank can use them.

    Args:
        layers: layers by name; those that are not convolutions are ignored.
        most: copy at most this many outputs and inputs, but all inputs if there are three; None
            copies all.
        guarded: a context manager that handles the errors of one layer, made from what to call it.

    Returns:
        One entry per convolution, in the order of the layers.
    """
    found: list[PendingKernels] = []
    for position, (name, module) in enumerate(layers.items()):
        gathered = _gathered(module)
        with guarded(f"kernels of {name}"):
            found += _kernels(name, position, module, gathered, most)
    return tuple(found)


def _gathered(module: nn.Module) -> Tensor | None:
    """The whole weight of a convolution whose own weight is sharded; None for other modules."""
    weight = module._parameters.get("weight")
    if not isinstance(module, CONVOLUTIONS) or weight is None or not is_dtensor(weight):
        return None
    with torch.no_grad():
        return whole(weight.detach())


def _kernels(
    name: str, position: int, module: nn.Module, gathered: Tensor | None, most: int | None
) -> list[PendingKernels]:
    """A copy of one convolution's weight; empty for other modules."""
    shape = kernel_shape(module)
    if shape is None or any(is_lazy(parameter) for parameter in module.parameters()):
        return []
    # Reading a parametrized weight computes it, which may change its buffers.
    with untouched(module, training=False), torch.no_grad():
        weight = module.weight if gathered is None else gathered
        if not isinstance(weight, Tensor) or weight.is_complex():
            return []
        layer_call = LayerCall(name, type(module).__name__, shape, position=position)
        flat, view = _two_dimensional(whole(weight.detach()))
        if isinstance(module, TRANSPOSED):
            flat = flat.transpose(0, 1)  # stored as (in, out / groups)
        inputs = flat.shape[1]
        kept = flat[:most, : inputs if inputs == COLOURS else most]
        copied = kept.to(torch.float32, copy=True)
        return [PendingKernels(layer_call, copied, view, inputs)]


def _two_dimensional(weight: Tensor) -> tuple[Tensor, str]:
    """A kernel [a, b, ...] as [a, b, height, width], and a note on how it was rearranged."""
    if weight.dim() == 3:
        return weight.unsqueeze(2), "one axis, drawn as a line"
    if weight.dim() == 5:
        side_by_side = weight.permute(0, 1, 3, 2, 4).flatten(3)  # [a, b, h, d * w]
        return side_by_side, "depth slices side by side"
    return weight, ""
