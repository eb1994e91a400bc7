"""CRC-32C in C and in NumPy agree, and the one in C is used if it is installed."""

from __future__ import annotations

import subprocess
import sys

import google_crc32c
import numpy as np
import pytest

from fmapboard.formats import checksum

NOISE = np.random.default_rng(0).integers(0, 256, 2**20 + 300, np.uint8).tobytes()
SIZES = [*range(70), 127, 128, 129, 255, 256, 257, 4095, 4096, 4097, 99_999, 2**20, 2**20 + 300]
IMPLEMENTATIONS = [
    (checksum.value_numpy, checksum.extend_numpy),
    (google_crc32c.value, google_crc32c.extend),
]


@pytest.mark.parametrize(("value", "extend"), IMPLEMENTATIONS, ids=["numpy", "C"])
def test_known_checksums(value: checksum.Value, extend: checksum.Extend) -> None:
    assert value(b"") == 0
    assert value(b"123456789") == 0xE3069283
    assert value(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert value(b"\xff" * 32) == 0x62A8AB43
    assert extend(value(b"12345"), b"6789") == 0xE3069283


@pytest.mark.parametrize("size", SIZES)
def test_both_agree_on_any_length(size: int) -> None:
    assert checksum.value_numpy(NOISE[:size]) == google_crc32c.value(NOISE[:size])


@pytest.mark.parametrize("cut", [0, 1, 70, 300, 5000, 2**20])
def test_both_extend_a_checksum_to_the_same_value(cut: int) -> None:
    crc = google_crc32c.value(NOISE[:cut])
    assert checksum.extend_numpy(crc, NOISE[cut:]) == google_crc32c.value(NOISE)


CHOSEN = (
    "from fmapboard.formats import checksum as c; print(c.value.__module__, c.extend.__module__)"
)
PURE = (
    "import sys, types, warnings; m = types.ModuleType('google_crc32c');"
    "m.implementation = 'python'; sys.modules['google_crc32c'] = m;"
)
ABSENT = "import sys; sys.modules['google_crc32c'] = None;"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "modules"),
    [
        ("", "google_crc32c._crc32c google_crc32c._crc32c"),
        (ABSENT, "fmapboard.formats.checksum fmapboard.formats.checksum"),
        (PURE, "fmapboard.formats.checksum fmapboard.formats.checksum"),
    ],
    ids=["in C", "absent", "in Python"],
)
def test_the_library_is_used_if_it_computes_in_c(before: str, modules: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", before + CHOSEN],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == modules
