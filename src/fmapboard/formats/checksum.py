"""CRC-32C, the checksum of event files: in C from ``google-crc32c``, otherwise in NumPy.

``google-crc32c`` has wheels for the common platforms. If it was built without its C library, it
runs in pure Python at a few MB/s while holding the GIL, and is not used. The NumPy fallback
computes the checksums of many parts of the data in parallel lanes and combines them: a CRC is
linear, so the bytes that follow a part map its register by a fixed linear map.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Value = Callable[[bytes], int]
"""CRC-32C of the data."""
Extend = Callable[[int, bytes], int]
"""CRC-32C of data with the given checksum, followed by more data."""

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed (RFC 3720, section 12.1)
_BLOCK = 2**20
"""Number of bytes processed at a time, so that their registers stay in the CPU cache."""
_SHORT = 64
"""Number of bytes below which a Python loop is faster."""


def extend_numpy(crc: int, data: bytes) -> int:
    """CRC-32C of data with checksum ``crc``, followed by ``data``."""
    octets = np.frombuffer(data, np.uint8)
    register = ~crc & 0xFFFFFFFF
    for first in range(0, len(octets), _BLOCK):
        register = _block(register, octets[first : first + _BLOCK])
    return ~register & 0xFFFFFFFF


def value_numpy(data: bytes) -> int:
    """CRC-32C of ``data``."""
    return extend_numpy(0, data)


def masked(crc: int) -> bytes:
    """A checksum as it is stored behind a record's length and behind its bytes."""
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _block(register: int, octets: npt.NDArray[np.uint8]) -> int:
    """The register after some octets."""
    power = 0 if len(octets) < _SHORT else len(octets).bit_length() // 2
    head = len(octets) % 2**power if power else len(octets)
    table = _bytewise_list()
    for octet in octets[:head].tolist():
        register = register >> 8 ^ table[(register ^ octet) & 0xFF]
    return _lanes(register, octets[head:], power) if head < len(octets) else register


def _lanes(register: int, octets: npt.NDArray[np.uint8], power: int) -> int:
    """The register after octets that fill whole lanes of ``2 ** power`` bytes."""
    columns = np.ascontiguousarray(octets.reshape(-1, 2**power).T)  # [2**power, lanes]
    registers = np.zeros(columns.shape[1], np.uint32)
    registers[0] = register
    table = _bytewise()
    for column in columns:
        lowest = registers.astype(np.uint8) ^ column
        registers >>= 8
        registers ^= table.take(lowest)
    while len(registers) > 1:
        if len(registers) % 2:  # a leading empty register changes nothing
            registers = np.concatenate([np.zeros(1, np.uint32), registers])
        registers = _mapped(_map(power), registers[::2]) ^ registers[1::2]
        power += 1
    return int(registers[0])


@lru_cache
def _bytewise() -> Words:
    """Table u32 [256]: the low byte of a register -> its contribution to the next register."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


@lru_cache
def _bytewise_list() -> list[int]:
    table: list[int] = _bytewise().tolist()
    return table


@lru_cache
def _map(power: int) -> Words:
    """The linear map of ``2 ** power`` zero bytes: u32 [4, 256], per byte of the register."""
    if power == 0:
        each = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
        mapped: Words = each >> 8 ^ _bytewise()[each & 0xFF]
        return mapped
    half = _map(power - 1)
    return _mapped(half, half)


def _mapped(linear: Words, registers: Words) -> Words:
    """Apply a linear map to registers of any shape."""
    low, second, third, high = (registers >> 8 * k & 0xFF for k in range(4))
    mapped: Words = linear[0][low] ^ linear[1][second] ^ linear[2][third] ^ linear[3][high]
    return mapped


extend: Extend = extend_numpy
value: Value = value_numpy

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its warning that it is slow without the C library
        import google_crc32c
except ImportError:
    pass
else:
    if google_crc32c.implementation == "c":
        extend, value = google_crc32c.extend, google_crc32c.value
