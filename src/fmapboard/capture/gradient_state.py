"""Whether gradients were changed between two moments, without reading a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from torch import Tensor, nn

_MOST = 64
"""Parameters that are looked at, spread over the model."""

State = tuple[tuple[int, int] | None, ...]


class GradientState:
    """Identity and version of the gradients of a model's parameters, as last seen.

    An addition by a backward pass, `zero_grad`, an assignment to ``grad`` and an in-place operation
    each change it. It holds no reference to a gradient.

    Args:
        parameters: the model's; of a large number some are looked at.
    """

    def __init__(self, parameters: Iterable[nn.Parameter]) -> None:
        held = list(parameters)
        stride = -(-len(held) // _MOST) or 1
        self._parameters: Sequence[nn.Parameter] = tuple(islice(held, 0, None, stride))
        self._seen = self._now()

    def has_changed(self) -> bool:
        """True if a gradient is not what it was when this was last asked, or `settle` called."""
        before, self._seen = self._seen, self._now()
        return before != self._seen

    def settle(self) -> None:
        """Take the gradients as they are now."""
        self._seen = self._now()

    def _now(self) -> State:
        return tuple(_identity(parameter.grad) for parameter in self._parameters)


def _identity(gradient: Tensor | None) -> tuple[int, int] | None:
    return None if gradient is None else (id(gradient), gradient._version)
