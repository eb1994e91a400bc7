"""Copies of convolution kernels, arranged for drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from operator import methodcaller
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.twin import Twin
from fmapboard.errors import CaptureError
from fmapboard.interrupts import WeakTable
from fmapboard.model.distributed import PLAIN, is_dtensor, whole
from fmapboard.model.kernel_shapes import groups_of, kernel_shape
from fmapboard.model.tensors import packed
from fmapboard.records import COLOURS, Kernels, KernelShape, LayerCall, Layout, TransposedShape

ROW = 2048
"""Weights drawn of each row of a weight with two axes: browsers limit the width of a picture."""

_known: WeakTable[nn.Module, tuple[KernelShape, int]] = WeakTable()
"""Convolution -> shape of its kernels, for as long as its weight has it, and number of groups."""
_to_float = methodcaller("to", dtype=torch.float32, memory_format=torch.contiguous_format)


class PendingKernels(NamedTuple):
    """``records.Kernels`` still on the device.

    Attributes:
        layer_call: the convolution.
        weight: [out, in / groups, ...], the part that is drawn; f32 and a copy when it is returned.
        inputs: size of the second axis before it was cut to the maximum.
        groups: number of groups of the convolution.
    """

    layer_call: LayerCall
    weight: Tensor
    inputs: int
    groups: int

    def to_host(self) -> Kernels:
        """Wait for the device and copy to the host."""
        shape = self.layer_call.kernel_shape or ()
        layout: Layout = "rows" if len(shape) <= 3 else "tiles"
        weight = self.weight.cpu()
        view = ""
        if weight.dim() == 3:
            weight = weight.unsqueeze(2)  # [a, b, 1, w]
            view = "one axis, drawn as a line"
        elif weight.dim() == 5:
            weight = weight.permute(0, 1, 3, 2, 4).flatten(3)  # [a, b, h, d * w]
            view = "depth slices side by side"
        return Kernels(
            layer_call=self.layer_call,
            weight=weight.numpy(),
            view=view,
            inputs=self.inputs,
            layout=layout,
            groups=self.groups,
        )


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
        weight: Tensor | None = module._parameters.get("weight")
        if weight is not None and type(weight) not in PLAIN:
            weight = _gathered(module, weight)
        try:
            kernels = _kernels(name, position, module, weight, most)
        except Exception:  # raised again, inside a block that reports it for this layer
            with guarded(f"kernels of {name}"):
                raise
        else:
            if kernels is not None:
                found.append(kernels)
    return _copied(found)


def _gathered(module: nn.Module, weight: Tensor) -> Tensor:
    """The weight of a module; the whole of it if it is a convolution's and sharded."""
    if not is_dtensor(weight) or kernel_shape(module) is None:
        return weight
    with torch.no_grad():
        return whole(weight.detach())


def _kernels(
    name: str, position: int, module: nn.Module, weight: Tensor | None, most: int | None
) -> PendingKernels | None:
    """The part of a convolution's weight that is drawn, not copied yet; None for other modules.

    Args:
        name: of the layer.
        position: among the layers.
        module: the layer.
        weight: its weight, whole; None if it is no parameter of the module.
        most: see ``read_kernels``.
    """
    known = _known.get(module)
    own = module._parameters.get("weight")
    if known is None or (own is not None and tuple(own.shape) != known[0]):
        shape = kernel_shape(module)
        if shape is None or any(map(is_lazy, module.parameters())):
            return None
        known = shape, groups_of(module)
        _known[module] = known
    shape, groups = known
    with torch.no_grad():
        if weight is None:
            weight = _computed_weight(module)
        if not isinstance(weight, Tensor) or weight.is_complex():
            return None
        is_plain = type(weight) in PLAIN
        if is_plain and not weight.untyped_storage().nbytes():
            raise CaptureError(
                "the weight has no memory: another library has freed or sharded it; kernels=False "
                "leaves kernels out"
            )
        kernels = weight.detach()
        if not is_plain:
            kernels = whole(kernels)
        if kernels.dim() == 2:  # what kernels are computed from, such as one row per expert
            kernels = kernels[:, :ROW].unsqueeze(1)
        elif isinstance(shape, TransposedShape):
            kernels = kernels.transpose(0, 1)  # stored as (in, out / groups)
        inputs = kernels.shape[1]
        most_inputs = inputs if inputs == COLOURS else most
        kept = kernels[:most, :most_inputs]
        if not isinstance(weight, nn.Parameter):  # gathered or computed: not to be kept whole
            kept = kept.to(torch.float32, copy=True)
    layer_call = LayerCall(name, type(module).__name__, shape, position=position)
    return PendingKernels(layer_call, kept, inputs, groups)


def _computed_weight(module: nn.Module) -> Any:
    """The weight of a parametrized module, computed on a twin: buffers may change."""
    twin = Twin(module)
    with own_pass(twin, training=False):
        return twin.module.weight


def _copied(found: list[PendingKernels]) -> tuple[PendingKernels, ...]:
    """Copies in f32; of kernels whose shapes differ in axis 0 only, all in few operations."""
    with torch.no_grad():
        weights = []
        for kernels in found:
            weight = kernels.weight
            if weight.dim() == 5:  # CUDA concatenates tensors of up to four axes in one launch
                weight = weight.flatten(2)  # [a, b, d * h * w]
            weights.append(weight)
        copies = packed(weights, _to_float).split()
    copied = []
    for kernels, copy in zip(found, copies, strict=True):
        weight = copy.view(kernels.weight.shape)
        copied.append(kernels._replace(weight=weight))
    return tuple(copied)
