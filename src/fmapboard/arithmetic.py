"""Integer arithmetic that many packages need and the standard library does not name."""

from __future__ import annotations

import math
from functools import lru_cache


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient of two integers, rounded up.

    Raises:
        ZeroDivisionError: `divisor` is 0.

    Example:
        >>> ceil_div(7, 3)
        3
    """
    return -(-dividend // divisor)


@lru_cache(maxsize=1024)
def coprime(about: int, sides: tuple[int, ...], by: int = 1) -> int:
    """The first of ``about``, ``about + by``, ... that shares no factor with any of the sides.

    Every k-th value of an array with these sides then covers all rows, columns and channels.

    Example:
        >>> coprime(4, (8, 15))
        7
    """
    while any(math.gcd(about, side) > 1 for side in sides):
        about += by
    return about
