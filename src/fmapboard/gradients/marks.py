"""Was a gradient touched? Identities and versions of gradients, compared at two moments.

Accumulation by a backward pass, ``zero_grad``, an assignment to ``grad`` and an in-place operation
each change one of them; an operation on ``.data`` does not. The selection of the pass asks this of
some gradients, the search for uncleared ones of all. A mark holds no reference to the gradient.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from torch import Tensor

K = TypeVar("K")


class Mark(NamedTuple):
    """A gradient and its version at one moment."""

    gradient: weakref.ref[Tensor]
    version: int


def marks(parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """Mark the gradients that some parameters have now; those without one are left out."""
    return {
        key: Mark(weakref.ref(gradient), gradient._version)
        for key, parameter in parameters.items()
        if (gradient := parameter.grad) is not None
    }


def same(before: Mapping[K, Mark], parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """Mark the gradients again that are still the same tensor, changed or not."""
    return {
        key: Mark(mark.gradient, gradient._version)
        for key, mark in before.items()
        if (gradient := parameters[key].grad) is not None and mark.gradient() is gradient
    }


def untouched(before: Mapping[K, Mark], parameters: Mapping[K, Tensor]) -> dict[K, Mark]:
    """The marks of gradients that are still the same tensor and were not changed."""
    now = same(before, parameters)
    return {key: mark for key, mark in now.items() if mark.version == before[key].version}
