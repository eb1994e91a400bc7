"""Copies of convolution kernels, arranged for drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.side_pass import untouched
from fmapboard.model.distributed import whole
from fmapboard.model.layers import TRANSPOSED, kernel_shape
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


def read_kernels(layers: Mapping[str, nn.Module], most: int | None) -> tuple[PendingKernels, ...]:
    """Copies of the weights of the convolutions among the layers.

    Runs on the training thread. Collective if parameters are sharded: every rank must call it.

    Args:
        layers: layers by name; those that are not convolutions are ignored.
        most: copy at most this many outputs and inputs, but all inputs if there are three; None
            copies all.

    Returns:
        One entry per convolution, in the order of the layers.
    """
    found: list[PendingKernels] = []
    together: dict[int, Tensor] = {}
    for position, (name, module) in enumerate(layers.items()):
        shape = kernel_shape(module)
        if shape is None or any(is_lazy(parameter) for parameter in module.parameters()):
            continue
        # Reading a parametrized weight computes it, which may change its buffers.
        with untouched(module, training=False), torch.no_grad():
            weight = module.weight
            if not isinstance(weight, Tensor) or weight.is_complex():
                continue
            own = weight.detach()
            gathered = whole(own)
            is_transposed = isinstance(module, TRANSPOSED)  # stored as (in, out / groups)
            kernels = gathered.transpose(0, 1) if is_transposed else gathered
            inputs = kernels.shape[1]
            kept = kernels[:most, : inputs if inputs == COLOURS else most]
            if not kept.is_cpu and gathered is own and isinstance(weight, nn.Parameter):
                copied, view = kept, ""
                together[len(found)] = kept
            else:  # on the CPU, or a temporary tensor
                flat, view = _two_dimensional(kept)
                copied = flat.to(torch.float32, copy=True)
            layer_call = LayerCall(name, type(module).__name__, shape, position=position)
            found.append(PendingKernels(layer_call, copied, view, inputs))
    for number, (copied, view) in _copied_together(together).items():
        found[number] = replace(found[number], weight=copied, view=view)
    return tuple(found)


def _copied_together(kept: Mapping[int, Tensor]) -> dict[int, tuple[Tensor, str]]:
    """``_two_dimensional`` copies in f32; kernels whose shapes differ in axis 0 only share one."""
    groups: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, weight in kept.items():
        groups[weight.device, weight.dtype, weight.shape[1:]].append(number)
    found = {}
    for (*_, shape), members in groups.items():
        with torch.no_grad():
            # CUDA concatenates tensors of up to four axes in one launch.
            is_volume = len(shape) == 4
            parts = [kept[n].flatten(2) if is_volume else kept[n] for n in members]
            flat, view = _two_dimensional(torch.cat(parts).view(-1, *shape))
            copied = flat.float().contiguous()
        sizes = [len(kept[n]) for n in members]
        for number, own in zip(members, copied.split_with_sizes(sizes), strict=True):
            found[number] = own, view
    return found


def _two_dimensional(weight: Tensor) -> tuple[Tensor, str]:
    """A kernel [a, b, ...] as [a, b, height, width], and a note on how it was rearranged."""
    if weight.dim() == 3:
        return weight.unsqueeze(2), "one axis, drawn as a line"
    if weight.dim() == 5:
        side_by_side = weight.permute(0, 1, 3, 2, 4).flatten(3)  # [a, b, h, d * w]
        return side_by_side, "depth slices side by side"
    return weight, ""
