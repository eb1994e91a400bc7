from __future__ import annotations

import pytest

from fmapboard.arithmetic import ceil_div


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient"),
    [(0, 3, 0), (1, 3, 1), (3, 3, 1), (4, 3, 2), (-1, 3, 0), (10**30 + 1, 10, 10**29 + 1)],
)
def test_the_quotient_is_rounded_up(dividend: int, divisor: int, quotient: int) -> None:
    assert ceil_div(dividend, divisor) == quotient
