"""Copies of convolution kernels, laid out to be drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.side_pass import untouched
from fmapboard.model.distributed import whole
from fmapboard.model.layers import TRANSPOSED, kernel_shape
from fmapboard.records import COLOURS, Kernels, LayerCall, Layout


@dataclass(frozen=True, slots=True)
class PendingKernels:
    """`records.Kernels` still on the device: f32, a copy."""

    layer_call: LayerCall
    weight: Tensor
    view: str
    inputs: int

    def to_host(self) -> Kernels:
        """Wait for the device and copy."""
        shape = self.layer_call.kernel_shape or ()
        layout: Layout = "rows" if len(shape) == 3 else "tiles"
        return Kernels(self.layer_call, self.weight.cpu().numpy(), self.view, self.inputs, layout)


def read_kernels(layers: Mapping[str, nn.Module], most: int | None) -> tuple[PendingKernels, ...]:
    """The weights of the convolutions among the layers, as (out, in / groups, height, width).

    Args:
        layers: by name, in order; other modules are passed over.
        most: at most this many outputs and inputs are copied, but all of three inputs; None copies
            all.
    """
    found = []
    for position, (name, module) in enumerate(layers.items()):
        shape = kernel_shape(module)
        if shape is None or any(is_lazy(parameter) for parameter in module.parameters()):
            continue
        # A parametrized weight is computed when it is read, which may change its buffers.
        with untouched(module, training=False), torch.no_grad():
            weight = module.weight
            if not isinstance(weight, Tensor) or weight.is_complex():
                continue
            layer_call = LayerCall(name, type(module).__name__, shape, position=position)
            flat, said = _two_dimensional(whole(weight.detach()))
            if isinstance(module, TRANSPOSED):
                flat = flat.transpose(0, 1)  # stored as (in, out / groups)
            inputs = flat.shape[1]
            kept = flat[:most, : inputs if inputs == COLOURS else most]
            copied = kept.to(torch.float32, copy=True)
            found.append(PendingKernels(layer_call, copied, said, inputs))
    return tuple(found)


def _two_dimensional(weight: Tensor) -> tuple[Tensor, str]:
    """A kernel [a, b, *spatial] as [a, b, height, width]."""
    if weight.dim() == 3:
        return weight.unsqueeze(2), "one axis, drawn as a line"
    if weight.dim() == 5:
        depth_aside = weight.permute(0, 1, 3, 2, 4).flatten(3)  # [a, b, h, d * w]
        return depth_aside, "depth slices side by side"
    return weight, ""
