"""The Triton kernel that reads a watched tensor once: statistics, drawn copy and histogram sample.

Import this module only where Triton is installed. The host side is ``launch``.

The programs of a launch have three jobs. The first ``blocks * parts`` of them reduce one part of
``CHANNELS`` channels each to ten numbers per channel; the next copy what is drawn; the last copy
the histogram sample.

A program of the first kind takes the mean of its first tile as shift, which bounds the cancellation
whatever the values are, and then reads all its tiles. If a square left the range of float32, it
does both again with values scaled by a power of two.
"""

# mypy: ignore-errors
# Triton's language is not Python's, and Triton has no type stubs.

import triton
import triton.language as tl

_LARGEST_SUM = tl.constexpr(2.0**120)
_SMALLEST_SUM = tl.constexpr(2.0**-86)


@triton.jit
def power_of_two(magnitude):
    """The power of two that scales a finite float32 magnitude to about 1; exact and finite."""
    exponent = (magnitude.to(tl.int32, bitcast=True) >> 23) & 255
    scaled = tl.minimum(tl.maximum(254 - exponent, 1), 254) << 23
    return scaled.to(tl.float32, bitcast=True)


@triton.jit
def _load(
    x, tile, row, column, channels, has_channel,
    inner, tiles_per_group, outer, per_tile, size_1, size_2,
    inner_stride, stride_0, stride_1, stride_2, channel_stride,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, VECTOR: tl.constexpr, GENERAL: tl.constexpr,
):  # fmt: skip
    """One tile of values, float32 [CHANNELS, ROWS], and which of them exist."""
    group = tile // tiles_per_group
    first = tile % tiles_per_group * ROWS
    at = first + column
    exists = (at < inner) & (row < per_tile)
    where = group * per_tile + row
    exists &= where < outer
    if GENERAL:
        rest = where // size_2
        offset = (rest // size_1) * stride_0 + (rest % size_1) * stride_1
        offset += (where % size_2) * stride_2
    else:
        offset = where * stride_2
    offsets = (offset + at * inner_stride)[None, :] + (channels * channel_stride)[:, None]
    exists = exists[None, :] & has_channel[:, None]
    pointers = x + offsets
    if VECTOR > 1:  # what the compiler cannot know of arguments that are not specialized
        size: tl.constexpr = VECTOR * (x.dtype.element_ty.primitive_bitwidth // 8)
        if CHANNELS == 1:
            pointers = tl.multiple_of(tl.max_contiguous(pointers, [1, VECTOR]), [1, size])
            exists = tl.max_constancy(exists, [1, VECTOR])
        else:
            pointers = tl.multiple_of(tl.max_contiguous(pointers, [VECTOR, 1]), [size, 1])
            exists = tl.max_constancy(exists, [VECTOR, 1])
    return tl.load(pointers, mask=exists, other=0.0).to(tl.float32), exists


@triton.jit(do_not_specialize=list(range(39)))  # all but the last four
def statistics_kernel(
    x, rows, drawn_from, drawn, sampled, channels, parts,
    inner, tiles, tiles_per_group, tiles_per_part, outer, per_tile, size_1, size_2,
    inner_stride, stride_0, stride_1, stride_2, channel_stride,
    drawn_size, drawn_1, drawn_2, drawn_3,
    drawn_stride_0, drawn_stride_1, drawn_stride_2, drawn_stride_3,
    sample_size, sample_step, sample_1, sample_2, sample_3, sample_4,
    sample_stride_0, sample_stride_1, sample_stride_2, sample_stride_3, sample_stride_4,
    CHANNELS: tl.constexpr, ROWS: tl.constexpr, VECTOR: tl.constexpr, GENERAL: tl.constexpr,
):  # fmt: skip
    """Reduce a tensor [N, C, *spatial] of any strides; copy what is drawn and a sample.

    The values of a channel are up to three outer axes (``size_1`` and ``size_2`` are the sizes of
    the last two, ``outer`` is the number of index combinations) and an inner one. A tile is
    ``ROWS`` consecutive values of the inner axis, or ``per_tile`` whole inner axes.

    Args:
        x: The tensor: float32, bfloat16 or float16.
        rows: Result, int32 [10, parts, C]; six of the rows are bit patterns of float32. See
            ``rows.combine``.
        drawn_from: View [K, M, H, W] of the tensor.
        drawn: Result, its contiguous copy.
        sampled: Result, float32: every ``sample_step``-th value in the order of the sample axes.
        VECTOR: Number of values that a thread may read at once; 1 unless all addresses, strides and
            sizes are multiples of it.
        GENERAL: There is more than one outer axis.
    """
    program = tl.program_id(0)
    blocks = (channels + CHANNELS - 1) // CHANNELS
    copies = (drawn_size + CHANNELS * ROWS - 1) // (CHANNELS * ROWS)
    if program < blocks * parts:
        part = program // blocks
        channel = (program % blocks) * CHANNELS + tl.arange(0, CHANNELS)
        has_channel = channel < channels
        lane = tl.arange(0, ROWS)
        if VECTOR > 1 and CHANNELS == 1:
            row = lane * 0
            column = lane
        else:
            row = lane // inner
            column = lane % inner
            column = tl.where(inner < ROWS, column, lane)
            row = tl.where(inner < ROWS, row, 0)
        first = part * tiles_per_part
        last = tl.minimum(first + tiles_per_part, tiles)

        # The first tile gives the shift. If it has no finite value of a channel, all tiles do.
        # Then everything is read with this shift; if that was out of range, both again, scaled.
        unit = tl.zeros([CHANNELS], tl.float32) + 1.0
        shift = tl.zeros([CHANNELS], tl.float32)
        least = shift
        most = shift
        total = shift
        total_squares = shift
        count = has_channel.to(tl.int32)
        up = count
        down = count
        number = first * 0
        stage = number
        end = tl.minimum(first + 1, last)
        while stage < 4:
            lo = tl.full([CHANNELS, ROWS], float("inf"), tl.float32)
            hi = tl.full([CHANNELS, ROWS], float("-inf"), tl.float32)
            sums = tl.zeros([CHANNELS, ROWS], tl.float32)
            squares = tl.zeros([CHANNELS, ROWS], tl.float32)
            counts = tl.zeros([CHANNELS, ROWS], tl.int32)
            ups = tl.zeros([CHANNELS, ROWS], tl.int32)
            downs = tl.zeros([CHANNELS, ROWS], tl.int32)
            number = first * 0
            for tile in range(first, end):
                values, exists = _load(
                    x, tile, row, column, channel, has_channel, inner, tiles_per_group, outer,
                    per_tile, size_1, size_2, inner_stride, stride_0, stride_1, stride_2,
                    channel_stride, CHANNELS, ROWS, VECTOR, GENERAL,
                )  # fmt: skip
                finite = exists & (tl.abs(values) < float("inf"))
                counts += finite.to(tl.int32)
                ups += (values == float("inf")).to(tl.int32)
                downs += (values == float("-inf")).to(tl.int32)
                lo = tl.minimum(lo, tl.where(finite, values, float("inf")))
                hi = tl.maximum(hi, tl.where(finite, values, float("-inf")))
                rest = tl.where(finite, values * unit[:, None] - shift[:, None], 0.0)
                sums += rest
                squares += rest * rest
                # Scalars: how many values of a channel the tile has.
                in_group = tl.minimum(per_tile, outer - tile // tiles_per_group * per_tile)
                number += in_group * tl.minimum(ROWS, inner - tile % tiles_per_group * ROWS)
            least = tl.min(lo, 1)
            most = tl.max(hi, 1)
            total = tl.sum(sums, 1)
            total_squares = tl.sum(squares, 1)
            count = tl.sum(counts, 1)
            up = tl.sum(ups, 1)
            down = tl.sum(downs, 1)
            if stage % 2 == 0:
                is_missing = has_channel & (count == 0)
                if (tl.max(is_missing.to(tl.int32), 0) > 0) & (end < last):
                    end = last
                else:
                    mean = total / tl.maximum(count, 1).to(tl.float32)
                    mean = tl.where(mean == mean, mean, 0.0)  # NaN if the sum overflowed both ways
                    mean = tl.minimum(tl.maximum(mean, least * unit), most * unit)
                    shift = tl.where(count > 0, mean, 0.0)
                    end = last
                    stage += 1
            else:
                again = (count > 0) & ~(total_squares < _LARGEST_SUM)
                again |= (total_squares < _SMALLEST_SUM) & (least < most)
                again &= has_channel & (unit == 1.0)
                is_last = (tl.max(again.to(tl.int32), 0) == 0) | (stage == 3)
                if is_last:
                    stage = first * 0 + 4
                else:
                    scale = power_of_two(tl.maximum(tl.abs(least), tl.abs(most)))
                    unit = tl.where(count > 0, scale, 1.0)
                    shift = tl.zeros([CHANNELS], tl.float32)
                    end = tl.minimum(first + 1, last)
                    stage += 1
        row_0 = rows + part * channels + channel
        size = parts * channels
        tl.store(row_0, least.to(tl.int32, bitcast=True), mask=has_channel)
        tl.store(row_0 + size, most.to(tl.int32, bitcast=True), mask=has_channel)
        tl.store(row_0 + 2 * size, unit.to(tl.int32, bitcast=True), mask=has_channel)
        tl.store(row_0 + 3 * size, shift.to(tl.int32, bitcast=True), mask=has_channel)
        tl.store(row_0 + 4 * size, total.to(tl.int32, bitcast=True), mask=has_channel)
        tl.store(row_0 + 5 * size, total_squares.to(tl.int32, bitcast=True), mask=has_channel)
        tl.store(row_0 + 6 * size, count, mask=has_channel)
        tl.store(row_0 + 7 * size, number - count - up - down, mask=has_channel)
        tl.store(row_0 + 8 * size, up, mask=has_channel)
        tl.store(row_0 + 9 * size, down, mask=has_channel)
    elif program < blocks * parts + copies:
        at = (program - blocks * parts) * (CHANNELS * ROWS) + tl.arange(0, CHANNELS * ROWS)
        exists = at < drawn_size
        line = at // drawn_3
        plane = line // drawn_2
        offset = at % drawn_3 * drawn_stride_3 + line % drawn_2 * drawn_stride_2
        offset += plane % drawn_1 * drawn_stride_1 + plane // drawn_1 * drawn_stride_0
        tl.store(drawn + at, tl.load(drawn_from + offset, mask=exists), mask=exists)
    else:
        to = (program - blocks * parts - copies) * (CHANNELS * ROWS)
        to += tl.arange(0, CHANNELS * ROWS)
        exists = to < sample_size
        at = tl.where(exists, to, 0) * sample_step
        offset = at % sample_4 * sample_stride_4
        at = at // sample_4
        offset += at % sample_3 * sample_stride_3
        at = at // sample_3
        offset += at % sample_2 * sample_stride_2
        at = at // sample_2
        offset += at % sample_1 * sample_stride_1 + at // sample_1 * sample_stride_0
        values = tl.load(x + offset, mask=exists, other=0.0).to(tl.float32)
        tl.store(sampled + to, values, mask=exists)
