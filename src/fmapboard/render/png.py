"""Encode pictures as PNG.

The file follows Portable Network Graphics (W3C, third edition): signature, IHDR, PLTE for pictures
with a palette, IDAT, IEND. Pixels are compressed by ``isal`` (Intel's igzip) at level 1, which is
about twenty times faster than zlib at the level that Pillow uses, for about 15 % more bytes:
feature maps are noisy and hardly compress. Without isal, zlib's level 1 is used (``deflate``).

Most of the compression comes from the row filter applied before it. RGB pictures get Paeth, the
most effective and most expensive filter; large smooth maps get Up; small or noisy maps get None. An
enlarged picture is filtered like the small one: Sub within a row and Up for its repetitions, which
become zeros.

In a picture with ``compact`` set, each row gets the filter with the smallest sum of magnitudes, and
zlib is restricted to run-length matches, since other matches in feature maps cost more than they
save. That gives 5 to 6 % fewer bytes in about four times the time.
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

# Deflate and CRC-32 for PNG files: isal if it is installed, otherwise zlib.
#
# isal has wheels for x86-64 and 64-bit ARM. zlib takes about three times as long at the same
# level; its streams decode to the same bytes.

fastest: ModuleType = zlib
"""Module with the ``compressobj`` and ``crc32`` of ``zlib``."""

with contextlib.suppress(ImportError):
    fastest = importlib.import_module("isal.isal_zlib")

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB, _INDEXED = 0, 2, 3
_NONE, _SUB, _UP, _PAETH = 0, 1, 2, 4
_LEVEL = 1
_BLOCK_BYTES = 2**17
"""Number of bytes filtered at a time, so that they are still cached when compressed."""
_PROBE_ROWS, _PROBE_PIXELS = 48, 2**12
"""Number of rows, and approximate number of pixels, read to choose the filter of a picture."""


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
    colour = _RGB if picture.pixels.ndim == 3 else _GREY if picture.palette is None else _INDEXED
    sides = width * factor, height * factor
    chunks = [_chunk(b"IHDR", struct.pack(">IIBBBBB", *sides, 8, colour, 0, 0, 0))]
    if picture.palette is not None:
        chunks.append(_chunk(b"PLTE", picture.palette.tobytes()))
    chunks.append(_chunk(b"IDAT", *_compressed(picture, factor)))
    return b"".join([_SIGNATURE, *(part for chunk in chunks for part in chunk), *_chunk(b"IEND")])


def _compressed(picture: Picture, factor: int) -> list[bytes]:
    """The filtered rows as one zlib stream, in parts."""
    if picture.compact and factor == 1:
        runs = zlib.compressobj(_LEVEL, memLevel=9, strategy=zlib.Z_RLE)
        return [*(runs.compress(rows.data) for rows in _minimum_sum(picture.pixels)), runs.flush()]
    stream = fastest.compressobj(_LEVEL)
    return [*map(stream.compress, _filtered(picture.pixels, factor)), stream.flush()]


def _filtered(pixels: Bytes8, factor: int) -> Iterator[Bytes8]:
    """Blocks of rows, each row preceded by its filter type; all blocks reuse the same buffer."""
    if factor > 1:
        return _filter_enlarged(pixels, factor)
    if pixels.ndim == 3:
        return _prefiltered(_PAETH, _filter_paeth(pixels))
    middle = max(0, pixels.shape[0] - _PROBE_ROWS) // 2
    rows = pixels[middle : middle + _PROBE_ROWS]
    step = rows.size // _PROBE_PIXELS | 1  # odd, since tiles often repeat at even steps
    probe = rows[:, ::step]
    if _entropy(probe) < _entropy(probe[1:] - probe[:-1]):
        return _prefiltered(_NONE, pixels)
    return _prefiltered(_UP, _filter_up(pixels))


def _minimum_sum(pixels: Bytes8) -> Iterator[Bytes8]:
    """Filter each row with the filter whose output has the smallest sum of magnitudes.

    This is the heuristic that the PNG specification recommends. Only None, Up and Paeth are tried:
    the other filters are hardly ever chosen.
    """
    plain = pixels.reshape(len(pixels), -1)
    candidates = np.stack([plain, _filter_up(plain), _filter_paeth(pixels)])  # [3, H, W]
    sums = [np.minimum(rows, -rows).sum(1, dtype=np.int64) for rows in candidates]
    best = np.argmin(sums, axis=0)  # [H]
    kinds = np.array([_NONE, _UP, _PAETH], np.uint8)[best]
    return _prefiltered(kinds, candidates[best, np.arange(len(best))])


def _prefiltered(kinds: int | Bytes8, rows: Bytes8) -> Iterator[Bytes8]:
    """Blocks of filtered rows, each row preceded by its filter type, or that of all."""
    height, width = rows.shape
    types = np.broadcast_to(np.uint8(kinds), height)
    rows_per_block = max(1, _BLOCK_BYTES // (width + 1))
    buffer = np.empty((min(rows_per_block, height), width + 1), np.uint8)
    for first in range(0, height, rows_per_block):
        block = buffer[: height - first]
        block[:, 0], block[:, 1:] = types[first:][: len(block)], rows[first:][: len(block)]
        yield block


def _filter_up(rows: Bytes8) -> Bytes8:
    """Each row without the one above, modulo 256."""
    filtered: Bytes8 = rows.copy()
    filtered[1:] -= rows[:-1]
    return filtered


def _filter_enlarged(pixels: Bytes8, factor: int) -> Iterator[Bytes8]:
    """Enlarge and filter: Sub, which is non-zero only at the left edge of each square, then Up."""
    height, width, *colour = pixels.shape
    line = 1 + width * factor * (3 if colour else 1)
    rows_per_block = max(1, _BLOCK_BYTES // (line * factor))
    block = np.zeros((min(rows_per_block, height), factor, line), np.uint8)
    block[:, 0, 0], block[:, 1:, 0] = _SUB, _UP
    squares = block[:, 0, 1:].reshape(len(block), width, factor, *colour)
    left = squares[:, :, 0]  # [rows, W], a view
    for first in range(0, height, rows_per_block):
        rows = pixels[first : first + rows_per_block]
        left[: len(rows), 0] = rows[:, 0]
        np.subtract(rows[:, 1:], rows[:, :-1], out=left[: len(rows), 1:])
        yield block[: len(rows)]


def _entropy(values: Bytes8) -> float:
    """Entropy in bits per value; 0 for an empty array."""
    counts = np.bincount(values.ravel(), minlength=256)
    share = counts[counts > 0] / max(values.size, 1)
    return -float((share * np.log2(share)).sum())


def _filter_paeth(pixels: Bytes8) -> Bytes8:
    """Pixels [H, W] or [H, W, 3] after the Paeth filter, as [H, W] or [H, 3 * W].

    Each pixel minus the one of its left, upper and upper-left neighbours that is nearest to
    left + above - corner.
    """
    height, width, *colour = pixels.shape
    size = 3 if colour else 1
    around = np.zeros((height + 1, size * (width + 1)), np.uint8)
    around[1:, size:] = pixels.reshape(height, -1)
    left, above, corner = around[1:, :-size], around[:-1, size:], around[:-1, :-size]
    from_left = np.subtract(above, corner, dtype=np.int16)  # distance to left + above - corner
    from_above = np.subtract(left, corner, dtype=np.int16)
    from_corner = np.abs(from_left + from_above)
    np.abs(from_left, out=from_left)
    np.abs(from_above, out=from_above)
    is_left = (from_left <= from_above) & (from_left <= from_corner)
    nearest = _where(from_above <= from_corner, above, corner)
    return around[1:, size:] - _where(is_left, left, nearest)


def _where(condition: npt.NDArray[np.bool_], if_true: Bytes8, if_false: Bytes8) -> Bytes8:
    """``np.where`` with bit masks, which is several times faster."""
    mask = np.negative(condition.view(np.uint8))  # 0 or 255
    return if_false ^ ((if_false ^ if_true) & mask)


def _chunk(kind: bytes, *data: bytes) -> list[bytes]:
    """A PNG chunk: length, type, data and CRC-32."""
    checksum = fastest.crc32(kind)
    for part in data:
        checksum = fastest.crc32(part, checksum)
    return [struct.pack(">I", sum(map(len, data))), kind, *data, struct.pack(">I", checksum)]
