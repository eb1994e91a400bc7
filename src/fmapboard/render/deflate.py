"""Deflate and CRC-32 for PNG files: isal where it is installed, else the standard library's zlib.

isal has wheels for x86-64 and 64-bit ARM. zlib's streams decode to the same bytes; at the same
level it takes about three times as long.
"""

from __future__ import annotations

import zlib
from types import ModuleType

fastest: ModuleType = zlib
"""Has ``compressobj`` and ``crc32`` as `zlib` has them."""

try:
    from isal import isal_zlib
except ImportError:
    pass
else:
    fastest = isal_zlib
