"""Types that all records share: kinds of tensors, marks, kernel shapes and layer calls."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

COLOURS = 3  # red, green and blue
Bytes8 = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.floating[Any]]
TensorKind = Literal[
    "feature_maps",
    "inputs",
    "gradients_of_maps",
    "kernels",
    "network_input",
    "attribution",
    "patches",
]
Scale = Literal["channel", "layer", "locked"]
Layout = Literal["tiles", "rows"]  # one tile per channel; one row of pixels per channel
Normalization = tuple[tuple[float, ...], tuple[float, ...]]  # mean, std of each input channel


class PixelMark(IntEnum):
    """Meaning of a pixel that is not a value."""

    PADDING = 250
    NAN = 251
    POSITIVE_INFINITY = 252
    NEGATIVE_INFINITY = 253
    CONSTANT = 254
    DEAD = 255


class KernelShape(tuple[int, ...]):
    """Shape of a convolution's weight, printed as ``64x3x7x7``.

    Regular convolutions: ``(out, in / groups, *kernel)``; transposed ones:
    ``(in, out / groups, *kernel)``.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return "x".join(map(str, self))

    def __repr__(self) -> str:
        return f"KernelShape({self})"


class TransposedShape(KernelShape):
    """``KernelShape`` of a transposed convolution, whose first axis is the input channel."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LayerCall:
    """One call of a watched layer in the recorded forward pass.

    Attributes:
        layer: Name of the layer in the model.
        type: Name of the module's class.
        kernel_shape: Shape of a convolution's weight; None for other modules.
        call: Which call of the layer this is, counted from 1.
        position: Index of the call among all calls of the pass, counted from 0.
        pictures: True if the layer is drawn; otherwise it is only measured.
        floor: Output of an activation when it is off (0 for ReLU); None for other modules.
        transposed_stride: Stride of a transposed convolution; None for other modules.
        received: True if the output is what the next layer receives, after all forward hooks on
            this one; False if it is what ``forward`` returned.
    """

    layer: str
    type: str
    kernel_shape: KernelShape | None = None
    call: int = 1
    position: int = 0
    pictures: bool = True
    floor: float | None = None
    transposed_stride: tuple[int, ...] | None = None
    received: bool = False

    @property
    def label(self) -> str:
        """The layer's name; from its second call on with the suffix ``.call2`` etc."""
        return self.layer if self.call == 1 else f"{self.layer}.call{self.call}"

    @property
    def group(self) -> str:
        """Group in the Images dashboard: the kernel shape, otherwise the module's type."""
        return str(self.kernel_shape) if self.kernel_shape else self.type


class PassCount(NamedTuple):
    """How many of the backward passes that contribute to a step a gradient is the sum of.

    >>> str(PassCount(1, 2)), str(PassCount(2, 2))
    ('first of 2 backward passes', '')

    Attributes:
        summed: Number of passes in the sum; the others came later.
        seen: Number of passes.
    """

    summed: int = 1
    seen: int = 1

    def __str__(self) -> str:
        if self.summed >= self.seen:
            return ""
        first = "first" if self.summed == 1 else f"first {self.summed}"
        return f"{first} of {self.seen} backward passes"


ONE_PASS = PassCount()
