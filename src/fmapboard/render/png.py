"""Encode pictures as PNG.

The file follows Portable Network Graphics (W3C, third edition): signature, IHDR, PLTE for pictures
with a palette, IDAT, IEND. Pixels are compressed by ``isal`` (Intel's igzip) at level 1, which is
about twenty times faster than zlib at the level that Pillow uses, for about 15 % more bytes:
feature maps are noisy and hardly compress. isal has wheels for x86-64 and 64-bit ARM; elsewhere
zlib's level 1 is used, which takes about three times as long and decodes to the same bytes.

Most of the compression comes from the row filter applied before it. RGB pictures get Paeth, the
most effective and most expensive filter; large smooth maps get Up; small or noisy maps get None. An
enlarged picture is filtered like the small one: Sub within a row and Up for its repetitions, which
become zeros.
"""

from __future__ import annotations

import contextlib
import importlib
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import numpy as np
import numpy.typing as npt

from fmapboard.records import Bytes8, Picture

fastest: ModuleType = zlib
"""Module with the ``compressobj`` and ``crc32`` of ``zlib``."""

with contextlib.suppress(ImportError):
    fastest = importlib.import_module("isal.isal_zlib")

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY = 0
_RGB = 2
_INDEXED = 3
"""Colour types of IHDR."""
_NONE = 0
_SUB = 1
_UP = 2
_PAETH = 4
"""Filter types, of a row."""
_LEVEL = 1
_BLOCK_BYTES = 2**17
"""Number of bytes filtered at a time, so that they are still cached when compressed."""
_PROBE_ROWS = 48
"""Number of rows that are read to choose the filter of a picture."""
_PROBE_PIXELS = 2**12
"""Approximate number of pixels that are read of these rows."""


def encoded(picture: Picture) -> Picture:
    """The picture together with its PNG."""
    return replace(picture, png=encode(picture))


def encode(picture: Picture, factor: int = 1) -> bytes:
    """Encode a picture as an 8-bit PNG: grey, palette-indexed or RGB, depending on its arrays.

    Args:
        picture: Not changed; no reference to it is kept.
        factor: Each pixel becomes a square with this side in px, as in ``grid.enlarge``.

    Raises:
        ValueError: A side of the picture is 0 px.
    """
    if picture.png is not None and factor == 1:
        return picture.png
    height, width = picture.pixels.shape[:2]
    if not height or not width:
        raise ValueError(f"a picture of {height}×{width} px cannot be a PNG")
    sides = struct.pack(">II", width * factor, height * factor)
    colour_type = _colour_type(picture)
    kind = bytes([8, colour_type, 0, 0, 0])
    parts = [_SIGNATURE]
    parts += _chunk(b"IHDR", sides, kind)
    if picture.palette is not None:
        parts += _chunk(b"PLTE", picture.palette.tobytes())
    stream = fastest.compressobj(_LEVEL)
    data = []
    for rows in _filtered(picture.pixels, factor):
        data.append(stream.compress(rows))
    parts += _chunk(b"IDAT", *data, stream.flush())
    parts += _chunk(b"IEND")
    return b"".join(parts)


def _colour_type(picture: Picture) -> int:
    if picture.pixels.ndim == 3:
        return _RGB
    if picture.palette is not None:
        return _INDEXED
    return _GREY


def _filtered(pixels: Bytes8, factor: int) -> Iterator[Bytes8]:
    """Blocks of rows, each row preceded by its filter type; all blocks reuse the same buffer."""
    if factor > 1:
        return _filter_enlarged(pixels, factor)
    if pixels.ndim == 3:
        return _prefiltered(_PAETH, _filter_paeth(pixels))
    middle = max(0, len(pixels) - _PROBE_ROWS) // 2
    rows = pixels[middle : middle + _PROBE_ROWS]
    step = rows.size // _PROBE_PIXELS | 1  # odd, since tiles often repeat at even steps
    probe = rows[:, ::step]
    differences = probe[1:] - probe[:-1]
    if _entropy(probe) < _entropy(differences):
        return _prefiltered(_NONE, pixels)
    up = pixels.copy()
    up[1:] -= pixels[:-1]
    return _prefiltered(_UP, up)


def _prefiltered(kind: int, rows: Bytes8) -> Iterator[Bytes8]:
    """Blocks of rows that were filtered with one type of filter, each row preceded by it."""
    height, width = rows.shape
    line = 1 + width
    rows_per_block = max(1, _BLOCK_BYTES // line)
    buffer = np.empty((min(rows_per_block, height), line), np.uint8)
    buffer[:, 0] = kind
    for first in range(0, height, rows_per_block):
        block = buffer[: height - first]
        block[:, 1:] = rows[first : first + len(block)]
        yield block


def _filter_enlarged(pixels: Bytes8, factor: int) -> Iterator[Bytes8]:
    """Enlarge and filter: Sub, which is non-zero only at the left edge of each square, then Up."""
    height, width, *colour = pixels.shape
    line = 1 + factor * pixels[0].size
    rows_per_block = max(1, _BLOCK_BYTES // (line * factor))
    block = np.zeros((min(rows_per_block, height), factor, line), np.uint8)
    block[:, 0, 0] = _SUB
    block[:, 1:, 0] = _UP
    squares = block[:, 0, 1:].reshape(len(block), width, factor, *colour)
    left_edges = squares[:, :, 0]  # [rows, W], a view
    for first in range(0, height, rows_per_block):
        rows = pixels[first : first + rows_per_block]
        edges = left_edges[: len(rows)]
        edges[:, 0] = rows[:, 0]
        np.subtract(rows[:, 1:], rows[:, :-1], out=edges[:, 1:])
        yield block[: len(rows)]


def _entropy(values: Bytes8) -> float:
    """Entropy in bits per value; 0 for an empty array."""
    counts = np.bincount(values.ravel(), minlength=256)
    share = counts[counts > 0] / max(values.size, 1)
    bits = share * np.log2(share)
    return -float(bits.sum())


def _filter_paeth(pixels: Bytes8) -> Bytes8:
    """Pixels [H, W] or [H, W, 3] after the Paeth filter, as [H, W] or [H, 3 * W].

    Each pixel minus the one of its left, upper and upper-left neighbours that is nearest to
    left + above - corner.
    """
    height, width, *colour = pixels.shape
    size = 3 if colour else 1
    around = np.zeros((height + 1, size * (width + 1)), np.uint8)
    here = around[1:, size:]
    here[:] = pixels.reshape(height, -1)
    left = around[1:, :-size]
    above = around[:-1, size:]
    corner = around[:-1, :-size]
    from_left = np.subtract(above, corner, dtype=np.int16)  # distance to left + above - corner
    from_above = np.subtract(left, corner, dtype=np.int16)
    from_corner = np.abs(from_left + from_above)
    np.abs(from_left, out=from_left)
    np.abs(from_above, out=from_above)
    nearest_other = _where(from_above <= from_corner, above, corner)
    is_left = (from_left <= from_above) & (from_left <= from_corner)
    nearest = _where(is_left, left, nearest_other)
    return here - nearest


def _where(condition: npt.NDArray[np.bool_], if_true: Bytes8, if_false: Bytes8) -> Bytes8:
    """``np.where`` with bit masks, which is several times faster."""
    mask = np.negative(condition.view(np.uint8))  # 0 or 255
    difference = if_false ^ if_true
    return if_false ^ (difference & mask)


def _chunk(kind: bytes, *data: bytes) -> list[bytes]:
    """A PNG chunk: length, type, data and CRC-32."""
    length = 0
    checksum = fastest.crc32(kind)
    for part in data:
        length += len(part)
        checksum = fastest.crc32(part, checksum)
    head = struct.pack(">I", length)
    tail = struct.pack(">I", checksum)
    return [head, kind, *data, tail]
