"""What is drawn of a tensor, averaged and quantized on its device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fmapboard.records import Planes


@dataclass(frozen=True, slots=True)
class PendingTiles:
    """Quantized planes [K, M, h, w] that are still on the device; see ``tiles_kernel``.

    Attributes:
        pixels: u8 [K, M, h, w].
        marks: u8 [K, M, h, w], a ``PixelMark`` or 0.
        limits: f32 [5, K, M]: drawn as 0 and as 255, times a power of two; that power; and the
            finite extremes of the plane before it was averaged.
        channels: Number of channels of the whole tensor.
        view: How the tensor was converted to maps; empty for plain [N, C, H, W].
        block: Side in px of the squares that were averaged into one pixel; 1 for none.
    """

    pixels: Tensor
    marks: Tensor
    limits: Tensor
    channels: int
    view: str
    block: int

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors held."""
        return self.pixels, self.marks, self.limits

    def planes(self, shape: tuple[int, ...]) -> Planes:
        """Wait for the device.

        Args:
            shape: Shape of the whole tensor.
        """
        marks = self.marks.cpu().numpy()
        lo, hi, unit, least, most = self.limits.cpu().numpy().astype(np.float64)
        return Planes(
            self.pixels.cpu().numpy(),
            marks if marks.any() else None,
            flat=least == most,
            lo=lo / unit,
            hi=hi / unit,
            shape=shape,
            channels=self.channels,
            block=self.block,
            view=self.view,
        )


def block_of(planes: Tensor, most: int | None) -> int:
    """Side of the squares to average so that no side of the planes exceeds ``most`` px."""
    return 1 if most is None else max(1, -(-max(planes.shape[2:]) // most))


def fits(planes: Tensor, most: int | None) -> bool:
    """True if ``quantized`` can draw the planes: they have more than one pixel when averaged."""
    return max(planes.shape[2:]) > block_of(planes, most)


def quantized(
    planes: Tensor, most: int | None, *, centered: bool, channels: int, view: str
) -> PendingTiles:
    """Average and quantize planes in one launch; needs Triton.

    Args:
        planes: [K, M, H, W] of more than one pixel, float32, bfloat16 or float16, of any strides.
        most: Maximum side of a drawn plane in px; None keeps the size.
        centered: Scale from -m to m, where m is the largest magnitude.
        channels: See ``PendingTiles``.
        view: See ``PendingTiles``.
    """
    from fmapboard.measure.fused.tiles_kernel import tiles_kernel

    height, width = planes.shape[2:]
    block = block_of(planes, most)
    drawn = (*planes.shape[:2], -(-height // block), -(-width // block))
    device, number = planes.device, planes.shape[0] * planes.shape[1]
    pixels = torch.empty(drawn, dtype=torch.uint8, device=device)
    marks = torch.empty_like(pixels)
    limits = torch.empty(5, *planes.shape[:2], device=device, dtype=torch.float32)
    tiles_kernel[(number,)](
        planes,
        limits,
        pixels,
        marks,
        number,
        planes.shape[1],
        height,
        width,
        block,
        *drawn[2:],
        int(centered),
        *planes.stride(),
        **TILE_CONSTANTS,
    )
    return PendingTiles(pixels, marks, limits, channels, view, block)


TILE_CONSTANTS = {"PIXELS": 4096, "num_warps": 8, "enable_fp_fusion": False}
"""The kernel's compile-time argument and options."""
