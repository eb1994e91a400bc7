"""The Triton kernel that averages what is drawn and quantizes it to one byte per pixel.

Import this module only where Triton is installed. The host side is ``tiles``. It does what
``render.quantize.Quantizer`` does with ``scale="channel"``, in the same order of operations. One
program reads one plane; if it is drawn with at most ``PIXELS`` pixels, it reads it once.
"""

# mypy: ignore-errors
# Triton's language is not Python's, and Triton has no type stubs.

import triton
import triton.language as tl

from fmapboard.measure.fused.statistics_kernel import power_of_two
from fmapboard.records import PixelMark

_LARGE = tl.constexpr(2.0**60)
_SMALL = tl.constexpr(2.0**-60)
_NAN = tl.constexpr(int(PixelMark.NAN))
_UP = tl.constexpr(int(PixelMark.POSITIVE_INFINITY))
_DOWN = tl.constexpr(int(PixelMark.NEGATIVE_INFINITY))


@triton.jit
def _means(
    x, chunk, unit, pixels, drawn_width, height, width, block, row_stride, column_stride,
    PIXELS: tl.constexpr,
):  # fmt: skip
    """Means of blocks times ``unit``, which pixels exist, and finite extremes of their values."""
    at = chunk * PIXELS + tl.arange(0, PIXELS)
    exists = at < pixels
    top = at // drawn_width * block
    left = at % drawn_width * block
    total = tl.zeros([PIXELS], tl.float32)
    lo = tl.full([PIXELS], float("inf"), tl.float32)
    hi = tl.full([PIXELS], float("-inf"), tl.float32)
    for j in range(block):
        column = tl.zeros([PIXELS], tl.float32)
        for i in range(block):
            inside = exists & (top + i < height) & (left + j < width)
            offsets = (top + i) * row_stride + (left + j) * column_stride
            values = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
            finite = inside & (tl.abs(values) < float("inf"))
            lo = tl.minimum(lo, tl.where(finite, values, float("inf")))
            hi = tl.maximum(hi, tl.where(finite, values, float("-inf")))
            column += values * unit
        total += column
    count = tl.minimum(block, height - top) * tl.minimum(block, width - left)
    return tl.div_rn(total, tl.maximum(count, 1).to(tl.float32)), exists, lo, hi


@triton.jit(do_not_specialize=list(range(16)))  # all but the last
def tiles_kernel(
    x, limits, drawn, marks, planes, channels, height, width, block, drawn_height, drawn_width,
    centered, sample_stride, channel_stride, row_stride, column_stride,
    PIXELS: tl.constexpr,
):  # fmt: skip
    """Average and quantize planes [K, M, H, W] of any strides.

    Args:
        x: The planes: float32, bfloat16 or float16.
        limits: Result, float32 [5, K * M]: the values drawn as 0 and as 255, both times the third
            row, a power of two; and the finite extremes of the plane (inf and -inf if none).
        drawn: Result, u8 [K, M, drawn_height, drawn_width].
        marks: Result of the same shape: a ``PixelMark`` per non-finite pixel, else 0.
        block: Side in px of the squares that are averaged.
        centered: 1 to scale from -m to m, where m is the largest magnitude; otherwise 0.
    """
    plane = tl.program_id(0)
    source = x + plane // channels * sample_stride + plane % channels * channel_stride
    pixels = drawn_height * drawn_width
    chunks = (pixels + PIXELS - 1) // PIXELS
    unit = plane.to(tl.float32) * 0.0 + 1.0
    means = tl.zeros([PIXELS], tl.float32)
    lo = unit
    hi = unit
    whole_lo = unit
    whole_hi = unit
    stage = plane * 0
    while stage < 2:
        los = tl.full([PIXELS], float("inf"), tl.float32)
        his = tl.full([PIXELS], float("-inf"), tl.float32)
        whole_los = tl.full([PIXELS], float("inf"), tl.float32)
        whole_his = tl.full([PIXELS], float("-inf"), tl.float32)
        for chunk in range(chunks):
            means, exists, own_lo, own_hi = _means(
                source, chunk, unit, pixels, drawn_width, height, width, block, row_stride,
                column_stride, PIXELS,
            )  # fmt: skip
            finite = exists & (tl.abs(means) < float("inf"))
            los = tl.minimum(los, tl.where(finite, means, float("inf")))
            his = tl.maximum(his, tl.where(finite, means, float("-inf")))
            whole_los = tl.minimum(whole_los, own_lo)
            whole_his = tl.maximum(whole_his, own_hi)
        lo = tl.min(los, 0)
        hi = tl.max(his, 0)
        whole_lo = tl.min(whole_los, 0)
        whole_hi = tl.max(whole_his, 0)
        magnitude = tl.maximum(tl.abs(whole_lo), tl.abs(whole_hi))
        is_extreme = (magnitude > _LARGE) & (magnitude < float("inf"))
        is_extreme |= (magnitude < _SMALL) & (magnitude > 0.0)
        if is_extreme & (stage == 0):  # sums could overflow: once more, scaled to about 1
            unit = power_of_two(magnitude)
            stage += 1
        else:
            stage = plane * 0 + 2
    # Averaging equal values may cause rounding errors.
    is_flat = whole_lo == whole_hi
    lo = tl.where(is_flat, whole_lo * unit, lo)
    hi = tl.where(is_flat, whole_hi * unit, hi)
    largest = tl.maximum(tl.abs(lo), tl.abs(hi))
    lo = tl.where(centered == 1, -largest, lo)
    hi = tl.where(centered == 1, largest, hi)
    is_empty = tl.maximum(tl.abs(lo), tl.abs(hi)) == float("inf")
    lo = tl.where(is_empty, 0.0, lo)
    hi = tl.where(is_empty, 0.0, hi)
    span = tl.where(hi > lo, hi - lo, float("inf"))
    for back in range(chunks):
        chunk = chunks - 1 - back
        if back > 0:  # the last chunk is still there
            means, exists, own_lo, own_hi = _means(
                source, chunk, unit, pixels, drawn_width, height, width, block, row_stride,
                column_stride, PIXELS,
            )  # fmt: skip
        at = chunk * PIXELS + tl.arange(0, PIXELS)
        scaled = tl.div_rn(means - lo, tl.zeros([PIXELS], tl.float32) + span)
        scaled = tl.where(scaled == scaled, scaled, 0.0)
        scaled = tl.minimum(tl.maximum(scaled, 0.0), 1.0) * 255.0
        mark = tl.where(means == means, 0, _NAN)
        mark = tl.where(means == float("inf"), _UP, mark)
        mark = tl.where(means == float("-inf"), _DOWN, mark)
        to = plane * pixels + at
        tl.store(drawn + to, scaled.to(tl.int32).to(tl.uint8), mask=at < pixels)
        tl.store(marks + to, mark.to(tl.uint8), mask=at < pixels)
    tl.store(limits + plane, lo)
    tl.store(limits + planes + plane, hi)
    tl.store(limits + 2 * planes + plane, unit)
    tl.store(limits + 3 * planes + plane, whole_lo)
    tl.store(limits + 4 * planes + plane, whole_hi)
