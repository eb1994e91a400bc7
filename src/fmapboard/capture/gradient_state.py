"""Detects changed parameter gradients without reading their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from torch import Tensor

_MAX_CHECKED = 32
"""How many parameters are checked at most, spread over the model."""

State = list[tuple[int, int] | None]


class GradientState:
    """Identity and version of the gradients of leaf tensors, as of the last check.

    Accumulation by a backward pass, ``zero_grad``, an assignment to ``grad`` and an in-place
    operation each change one of them. No reference to a gradient is held.

    Args:
        parameters: the model's parameters, or the leaf tensors that lead to its input; of a large
            number, evenly spaced ones are checked.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        held = list(parameters)
        stride = -(-len(held) // _MAX_CHECKED) or 1
        self._parameters: Sequence[Tensor] = tuple(islice(held, 0, None, stride))
        self._seen = self._now()

    def has_changed(self) -> bool:
        """True if a gradient changed since the last call of this method or of ``settle``."""
        before, self._seen = self._seen, self._now()
        return before != self._seen

    def settle(self) -> None:
        """Make the current gradients the reference for the next check."""
        self._seen = self._now()

    def _now(self) -> State:
        gradients = [parameter.grad for parameter in self._parameters]
        return [None if grad is None else (id(grad), grad._version) for grad in gradients]
