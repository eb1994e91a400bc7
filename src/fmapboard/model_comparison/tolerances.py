"""Default tolerances of ``diff`` by dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import torch

TOLERANCES = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 5e-4,
    torch.bfloat16: 4e-3,
}
"""Relative error of one layer above which it counts as different.

Equal layers add at most 4e-7 in float32 with another memory format or number of threads
(``benchmarks/first_difference.py --noise``). In the half-width dtypes, half of all values off by
one unit in the last place are an error of 5e-4 and 4e-3.
"""

_OTHER = 1e-5


def tolerance_of(dtypes: Iterable[torch.dtype]) -> float:
    """The default tolerance for models that compute in these dtypes: that of the coarsest."""
    return max((TOLERANCES.get(dtype, _OTHER) for dtype in dtypes), default=_OTHER)


def most_common(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """The floating-point dtype that occurs most often; float32 if there is none."""
    counted = Counter(dtype for dtype in dtypes if dtype.is_floating_point)
    return counted.most_common(1)[0][0] if counted else torch.float32
