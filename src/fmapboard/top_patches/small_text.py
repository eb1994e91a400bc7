"""Small text on pictures, in a font of five by seven pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fmapboard.records import Bytes8

HEIGHT = 7
"""Height of a line of text in px."""

_ADVANCE = 6
_ROWS = {
    "0": "0e1113151911 0e", "1": "040c04040404 0e", "2": "0e1101020408 1f",
    "3": "1f0204020111 0e", "4": "02060a121f02 02", "5": "1f101e010111 0e",
    "6": "0608101e1111 0e", "7": "1f0102040808 08", "8": "0e11110e1111 0e",
    "9": "0e11110f0102 0c", ".": "00000000000c 0c", "-": "0000001f0000 00",
    "+": "0004041f0404 00", "e": "00000e111f10 0e", "i": "04000c040404 0e",
    "n": "000016191111 11", "f": "0609081c0808 08", "a": "00000e010f11 0f",
    "A": "0e11111f1111 11", "B": "1e11111e1111 1e", "C": "0e1110101011 0e",
    "D": "1c1211111112 1c", "E": "1f10101e1010 1f", "F": "1f10101e1010 10",
    "G": "0e1110171111 0f", "H": "1111111f1111 11", "I": "0e0404040404 0e",
    "J": "070202020212 0c", "K": "111214181412 11", "L": "101010101010 1f",
    "M": "111b15151111 11", "N": "111915131111 11", "O": "0e1111111111 0e",
    "P": "1e11111e1010 10", "Q": "0e1111111512 0d", "R": "1e11111e1412 11",
    "S": "0f10100e0101 1e", "T": "1f0404040404 04", "U": "111111111111 0e",
    "V": "11111111110a 04", "W": "111111151515 0a", "X": "11110a040a11 11",
    "Y": "11110a040404 04", "Z": "1f0102040810 1f", "_": "000000000000 1f",
}  # fmt: skip
"""Character -> seven rows of five pixels, each row two hexadecimal digits, highest bit left."""


def text_width(text: str) -> int:
    """Width of a line of text in px."""
    return max(0, len(text) * _ADVANCE - 1)


def text_mask(text: str) -> npt.NDArray[np.bool_]:
    """The pixels of a line of text, bool [7, W]; unknown characters are blank."""
    drawn = np.zeros((HEIGHT, len(text) * _ADVANCE), bool)
    for number, character in enumerate(text):
        rows = np.frombuffer(bytes.fromhex(_ROWS.get(character, "00" * HEIGHT)), np.uint8)
        bits = np.unpackbits(rows[:, None], axis=1)[:, 3:]  # [7, 5]
        drawn[:, number * _ADVANCE : number * _ADVANCE + 5] = bits
    return drawn[:, : text_width(text)]


_BACKGROUND, INK = 255, 40
"""Grey values."""


def blank_page(height: int, width: int) -> Bytes8:
    """White pixels, u8 [height, width, 3]."""
    return np.full((height, width, 3), _BACKGROUND, np.uint8)


def write(page: Bytes8, text: str, top: int, left: int, ink: int = INK) -> None:
    """Write a line of text onto a page, u8 [H, W, 3], as far as it fits there.

    Args:
        page: Changed in place.
        text: See ``text_mask``.
        top: Of its first row in px.
        left: Of its first column in px.
        ink: Grey value of the text.
    """
    mask = text_mask(text)
    area = page[top:, left:][: mask.shape[0], : mask.shape[1]]
    area[mask[: area.shape[0], : area.shape[1]]] = ink
