"""Integer arithmetic that many packages need and the standard library does not name."""

from __future__ import annotations


def ceil_div(dividend: int, divisor: int) -> int:
    """The quotient of two integers, rounded up.

    Raises:
        ZeroDivisionError: `divisor` is 0.

    Example:
        >>> ceil_div(7, 3)
        3
    """
    return -(-dividend // divisor)
