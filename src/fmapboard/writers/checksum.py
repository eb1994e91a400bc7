"""CRC-32C, the checksum of event files: in C where `google-crc32c` has it, else in numpy.

`google-crc32c` has wheels for the common platforms; where it was built without its C library it
computes in pure Python, at a few MB/s and holding the interpreter lock, and is not used. The
fallback in numpy runs many parts of the data side by side, and joins their checksums: a CRC is
linear, so bytes behind a part only map its register to another by a fixed linear map.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]
Value = Callable[[bytes], int]
"""The CRC-32C of data."""
Extend = Callable[[int, bytes], int]
"""The CRC-32C of what had the checksum that is given, followed by data."""

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed (RFC 3720, section 12.1)
_BLOCK = 2**20
"""Bytes that are taken at a time: their registers stay in the processor's cache."""
_SHORT = 64
"""Bytes below which a loop in Python is faster."""


def extend_numpy(crc: int, data: bytes) -> int:
    """The CRC-32C of what had the checksum ``crc``, followed by ``data``."""
    octets = np.frombuffer(data, np.uint8)
    register = ~crc & 0xFFFFFFFF
    for first in range(0, len(octets), _BLOCK):
        register = _block(register, octets[first : first + _BLOCK])
    return ~register & 0xFFFFFFFF


def value_numpy(data: bytes) -> int:
    """The CRC-32C of ``data``."""
    return extend_numpy(0, data)


def _block(register: int, octets: npt.NDArray[np.uint8]) -> int:
    """The register behind some octets."""
    power = 0 if len(octets) < _SHORT else len(octets).bit_length() // 2
    head = len(octets) % 2**power if power else len(octets)
    table = _bytewise_list()
    for octet in octets[:head].tolist():
        register = register >> 8 ^ table[(register ^ octet) & 0xFF]
    return _lanes(register, octets[head:], power) if head < len(octets) else register


def _lanes(register: int, octets: npt.NDArray[np.uint8], power: int) -> int:
    """The register behind octets that make up whole lanes of ``2 ** power`` bytes."""
    columns = np.ascontiguousarray(octets.reshape(-1, 2**power).T)  # [2**power, lanes]
    registers = np.zeros(columns.shape[1], np.uint32)
    registers[0] = register
    table = _bytewise()
    for column in columns:
        lowest = registers.astype(np.uint8) ^ column
        registers >>= 8
        registers ^= table.take(lowest)
    while len(registers) > 1:
        if len(registers) % 2:  # an empty register in front changes nothing
            registers = np.concatenate([np.zeros(1, np.uint32), registers])
        registers = _moved(_map(power), registers[::2]) ^ registers[1::2]
        power += 1
    return int(registers[0])


@lru_cache
def _bytewise() -> Words:
    """A register's low byte -> what it becomes, u32 [256]."""
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
    """Where ``2 ** power`` zero bytes take a register: u32 [4, 256], per byte of the register."""
    if power == 0:
        each = np.arange(256, dtype=np.uint32) << (8 * np.arange(4, dtype=np.uint32))[:, None]
        moved: Words = each >> 8 ^ _bytewise()[each & 0xFF]
        return moved
    half = _map(power - 1)
    return _moved(half, half)


def _moved(linear: Words, registers: Words) -> Words:
    """Registers, of any shape, under a linear map."""
    low, second, third, high = (registers >> 8 * k & 0xFF for k in range(4))
    moved: Words = linear[0][low] ^ linear[1][second] ^ linear[2][third] ^ linear[3][high]
    return moved


extend: Extend = extend_numpy
value: Value = value_numpy

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is slow without its C library
        import google_crc32c
except ImportError:
    pass
else:
    if google_crc32c.implementation == "c":
        extend, value = google_crc32c.extend, google_crc32c.value
