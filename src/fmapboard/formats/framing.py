"""Framing of event files: TFRecords with their checksums, and protocol buffer fields.

A record is its length (u64), the masked CRC-32C of the length (u32), the bytes, and their masked
CRC-32C (TensorFlow's ``record_writer``). TensorBoard's own writer computes the checksum in pure
Python, at about 6 MB/s while holding the interpreter lock; ``google-crc32c`` is a thousand times
faster. It has wheels for the common platforms; elsewhere, TensorBoard's function computes the
checksum.
"""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
from collections.abc import Callable, Iterator
from typing import BinaryIO

from fmapboard.errors import FmapboardError

_HEADER = struct.Struct("<QI")
FOOTER_BYTES = 4
"""Size in bytes of the checksum behind the bytes of a record."""
_MAX_EVENT = 2**31
"""Maximum size in bytes of an event; protocol buffers have no larger messages."""


class Damaged(FmapboardError):
    """A file cannot be read on from a record; the text says why."""


def frame(*parts: bytes) -> list[bytes]:
    """A record, in parts: some bytes with their length and checksums."""
    length = struct.pack("<Q", sum(map(len, parts)))
    return [length, checksum(length), *parts, checksum(*parts)]


def records(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Move a file to the bytes of each record in turn; yields their offset and number.

    The caller may read the file in between. What follows the bytes is not checked.

    Raises:
        Damaged: the file ends within a record, or a record's length is damaged.
    """
    end = 0
    while header := file.read(_HEADER.size):
        offset = file.tell()
        size = 0
        if len(header) == _HEADER.size:
            size, _ = _HEADER.unpack(header)
            if size > _MAX_EVENT or checksum(header[:8]) != header[8:]:
                raise Damaged(f"is damaged at byte {offset - len(header)}")
        after = offset + size + FOOTER_BYTES
        if after > end:  # or it has grown
            end = file.seek(0, io.SEEK_END)
            file.seek(offset)
        if after > end:
            raise Damaged("ends within a record: still being written, or cut off")
        yield offset, size
        file.seek(after)


def field(number: int, *content: bytes) -> list[bytes]:
    """A length-delimited protocol buffer field with the given content, in parts.

    The fields of a message may be in any order, and a repeated field may occur several times.
    """
    length_delimited = 2
    key = _varint(number << 3 | length_delimited)
    length = _varint(sum(map(len, content)))
    return [key + length, *content]


def _varint(number: int) -> bytes:
    """Base-128 varint: seven bits per byte, lowest first; all but the last have bit 8 set."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def checksum(*parts: bytes) -> bytes:
    """The masked CRC-32C of some bytes, as it is stored behind them."""
    crc = 0
    for part in parts:
        crc = extend(crc, part)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def extend_slowly(crc: int, data: bytes) -> int:
    """CRC-32C of data with checksum ``crc``, followed by ``data``."""
    from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import crc_update

    return int(crc_update(crc, data))


extend: Callable[[int, bytes], int] = extend_slowly
"""CRC-32C of data with the given checksum, followed by more data."""

with contextlib.suppress(ImportError), warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its warning that it is slow without the C library
    import google_crc32c

    if google_crc32c.implementation == "c":
        extend = google_crc32c.extend
