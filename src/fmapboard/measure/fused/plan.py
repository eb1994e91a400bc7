"""How a tensor of any strides is read: which axes are one, tiles, and how many programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

Axis = tuple[int, int]
"""Size and stride of an axis, in elements."""

LARGEST = 2**31 - 1
"""The kernels compute offsets with int32, and the launcher would compile anew for an int64."""

ROWS, CHANNELS = 1024, 32
"""Values of a tile for one channel; channels of a tile where neighbouring values are channels."""

_MOST_TILES = 64  # per program: float32 sums of more squares would drift
_PROGRAMS = 2048  # enough to fill the largest devices, each of which runs several at a time
_FEWER = 8  # times fewer where a program reads 32 channels: each writes a row per channel
VECTOR = 4
"""Values that a thread reads at once where addresses and sizes allow."""


@dataclass(frozen=True, slots=True)
class Variant:
    """The parameters for which a statistics kernel is compiled.

    Attributes:
        channels: Channels of a tile.
        rows: Values of a tile per channel.
        vector: True if addresses and sizes are multiples of ``VECTOR`` values.
        general: True if a channel's values have more than one outer axis.
    """

    channels: int
    rows: int
    vector: bool
    general: bool


VARIANTS = (
    Variant(1, ROWS, True, False),
    Variant(1, ROWS, False, False),
    Variant(1, ROWS, False, True),
    Variant(CHANNELS, 2 * ROWS // CHANNELS, True, False),
    Variant(CHANNELS, 2 * ROWS // CHANNELS, False, True),
)
"""Everything that is compiled, per dtype."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one tensor is read.

    Attributes:
        variant: Which compiled kernel reads it.
        parts: Number of programs per block of channels.
        blocks: Number of blocks of channels.
        sizes: The kernel's arguments from ``inner`` to ``channel_stride``.
    """

    variant: Variant
    parts: int
    blocks: int
    sizes: tuple[int, ...]


@lru_cache(maxsize=1024)
def plan(shape: Sequence[int], strides: Sequence[int], aligned: bool) -> Plan | None:
    """Plan how to read a tensor [N, C, *spatial].

    Args:
        shape: Its shape.
        strides: Its strides, in elements.
        aligned: The address of its first element is a multiple of ``VECTOR`` elements.

    Returns:
        The plan; None if the tensor is too large or has too many axes that cannot be joined.
    """
    reach = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    channels, channel_stride = shape[1], strides[1]
    axes = [a for i, a in enumerate(zip(shape, strides, strict=True)) if i != 1]
    *outer, (inner, inner_stride) = joined(by_stride(axes)) or [(1, 0)]
    size = 1
    for n in shape:
        size *= n
    if max(reach, size) > LARGEST - 2**16 or len(outer) > 3:  # a tile may reach past the end
        return None
    (_, stride_0), (size_1, stride_1), (size_2, stride_2) = [(1, 0)] * (3 - len(outer)) + outer
    count = size // channels // inner
    across = channels > 1 and channel_stride < inner_stride and 2 * channels >= CHANNELS
    variant = _variant(across, len(outer) > 1)
    steps = (channel_stride, stride_2) if not across else (inner_stride, stride_2)
    lengths = (channels if across else inner, *steps)
    is_vector = aligned and all(n % VECTOR == 0 for n in lengths)
    unit = channel_stride if across else inner_stride
    long = across or 2 * inner > ROWS
    if is_vector and unit == 1 and long and len(outer) <= 1:
        variant = VARIANTS[3 if across else 0]
    per_tile = max(1, variant.rows // inner)
    tiles_per_group = -(-inner // variant.rows)
    tiles = -(-count // per_tile) * tiles_per_group
    blocks = -(-channels // variant.channels)
    programs = max(1, _PROGRAMS // _FEWER) if across else _PROGRAMS
    per_part = max(1, min(_MOST_TILES, -(-tiles * blocks // programs)))
    sizes = (
        *(inner, tiles, tiles_per_group, per_part, count, per_tile, size_1, size_2),
        *(inner_stride, stride_0, stride_1, stride_2, channel_stride),
    )
    return Plan(variant, -(-tiles // per_part), blocks, sizes)


def _variant(across: bool, general: bool) -> Variant:
    """The variant for tensors that cannot be read in vectors."""
    return VARIANTS[4] if across else VARIANTS[2 if general else 1]


def by_stride(axes: Sequence[Axis]) -> list[Axis]:
    """Axes in the order of memory, from the largest stride; equal strides keep their order."""
    return sorted(axes, key=lambda axis: axis[1], reverse=True)


def joined(axes: Sequence[Axis]) -> list[Axis]:
    """The same axes in fewer: without those of size 1, neighbours that are one in memory joined.

    Example:
        >>> joined([(64, 1200), (10, 100), (100, 1), (1, 7)])
        [(64, 1200), (1000, 1)]
    """
    found: list[Axis] = []
    for size, stride in axes:
        if size == 1:
            continue
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return found
