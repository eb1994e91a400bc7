"""The types of convolutions, the shapes of their kernels, and layers grouped by them."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from fmapboard.records import KernelShape, TransposedShape

CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
CONVOLUTIONS_1D = (nn.Conv1d, nn.ConvTranspose1d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def kernel_shape(module: nn.Module) -> KernelShape | None:
    """The shape of a convolution's weight, from the module's attributes; None for other modules.

    The weight itself is not read: reading a spectral-norm weight changes its buffers.
    """
    if not isinstance(module, CONVOLUTIONS):
        return None
    outs, ins, groups = module.out_channels, module.in_channels, module.groups
    if isinstance(module, TRANSPOSED):
        return TransposedShape((ins, outs // groups, *module.kernel_size))
    return KernelShape((outs, ins // groups, *module.kernel_size))


def by_kernel_shape(layers: Mapping[str, nn.Module]) -> dict[KernelShape, list[str]]:
    """Group the convolutions among the layers: kernel shape -> names, in their given order."""
    groups: dict[KernelShape, list[str]] = {}
    for name, module in layers.items():
        shape = kernel_shape(module)
        if shape is not None:
            groups.setdefault(shape, []).append(name)
    return groups
