"""Records are found, and their checksum is right, in C and in Python."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable

import google_crc32c
import numpy as np
import pytest

from fmapboard.formats import framing

NOISE = np.random.default_rng(0).integers(0, 256, 2**20 + 300, np.uint8).tobytes()
SIZES = [*range(70), 255, 256, 257, 99_999]
EXTEND = {"Python": framing.extend_slowly, "C": google_crc32c.extend}


@pytest.mark.parametrize("extend", EXTEND.values(), ids=EXTEND)
def test_known_checksums(extend: Callable[[int, bytes], int]) -> None:
    assert extend(0, b"") == 0
    assert extend(0, b"123456789") == 0xE3069283
    assert extend(0, bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert extend(0, b"\xff" * 32) == 0x62A8AB43
    assert extend(extend(0, b"12345"), b"6789") == 0xE3069283


@pytest.mark.parametrize("size", SIZES)
def test_both_agree_on_any_length(size: int) -> None:
    assert framing.extend_slowly(0, NOISE[:size]) == google_crc32c.value(NOISE[:size])


@pytest.mark.parametrize("cut", [0, 1, 300, 2**20])
def test_both_extend_a_checksum_to_the_same_value(cut: int) -> None:
    crc = google_crc32c.value(NOISE[:cut])
    assert framing.extend_slowly(crc, NOISE[cut:]) == google_crc32c.value(NOISE)


CHOSEN = "from fmapboard.formats import framing; print(framing.extend.__module__)"
PURE = (
    "import sys, types, warnings; m = types.ModuleType('google_crc32c');"
    "m.implementation = 'python'; sys.modules['google_crc32c'] = m;"
)
ABSENT = "import sys; sys.modules['google_crc32c'] = None;"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "module"),
    [
        ("", "google_crc32c._crc32c"),
        (ABSENT, "fmapboard.formats.framing"),
        (PURE, "fmapboard.formats.framing"),
    ],
    ids=["in C", "absent", "in Python"],
)
def test_the_library_is_used_if_it_computes_in_c(before: str, module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", before + CHOSEN],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.strip() == module


CUT_OFF = "ends within a record: still being written, or cut off"


def framed(*contents: bytes) -> bytes:
    return b"".join(part for content in contents for part in framing.frame(content))


def test_the_records_of_a_file_are_found_whatever_is_read_in_between() -> None:
    file, found = io.BytesIO(framed(b"one", b"", b"three")), []
    for offset, size in framing.records(file):
        found.append((offset, file.read(size)))
        file.seek(0)
    assert found == [(12, b"one"), (31, b""), (47, b"three")]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (framed(b"one", b"two")[:-1], CUT_OFF),
        (framed(b"one", b"two")[:30], CUT_OFF),
        (framed(b"one") + bytes(20), "is damaged at byte 19"),
        (framed(b"one") + framing.frame(b"")[0] + b"none", "is damaged at byte 19"),
    ],
    ids=["footer", "header", "zeros", "checksum"],
)
def test_a_record_that_is_cut_off_or_damaged_is_named_after_those_before_it(
    content: bytes, why: str
) -> None:
    found = framing.records(io.BytesIO(content))
    assert next(found) == (12, 3)
    with pytest.raises(framing.Damaged) as raised:
        list(found)
    assert str(raised.value) == why


def test_records_written_while_a_file_is_read_are_found_too() -> None:
    file = io.BytesIO(framed(b"one"))
    found = framing.records(file)
    assert next(found) == (12, 3)
    file.seek(0, io.SEEK_END)
    file.write(framed(b"two"))
    assert list(found) == [(31, 3)]
