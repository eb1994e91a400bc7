"""Whether gradients were changed between two moments, without reading a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from torch import nn

_MOST = 32
"""Parameters that are looked at, spread over the model."""

State = list[tuple[int, int] | None]


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
        gradients = [parameter.grad for parameter in self._parameters]
        return [None if grad is None else (id(grad), grad._version) for grad in gradients]
