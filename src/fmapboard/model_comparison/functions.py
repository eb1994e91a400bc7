"""Which functions a model calls between its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fmapboard.capture.passes import Side
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.layer_calls import Arguments, Delivery, Layers, run

Functions = Mapping[str | None, Sequence[str]]
"""Label of a layer call -> names of the functions that are called before it, since the layer
before; None -> those after the last layer."""

_MOST = 6
"""Maximum number of names in a note."""


def functions_between(
    model: nn.Module, layers: Layers, arguments: Arguments, what: str
) -> Functions:
    """Run a model once and keep the names of the functions outside of its layers.

    Only functions that return tensors count.

    Args:
        model: The unwrapped model; it is restored afterwards.
        layers: The layer calls.
        arguments: What the model is called with.
        what: Names the model in an error.

    Raises:
        ConfigurationError: It does not run while torch's functions are watched.
    """
    seen = _Functions()
    with Delivery(layers, seen.deliver).on(model):
        run(model, arguments, what, within=seen)
    return {**seen.before, None: seen.since}


def described(first: Sequence[str], second: Sequence[str]) -> str:
    """The functions of both models between two layers, in words; empty if there is none.

    Example:
        >>> described(["add", "relu"], ["relu"]), described(["mul"], ["mul"])
        ('add, relu in A; relu in B', 'mul in both')
    """
    if not first and not second:
        return ""
    if list(first) == list(second):
        return f"{_listed(first)} in both"
    return f"{_listed(first)} in A; {_listed(second)} in B"


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "no function"
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


class _Functions(TorchFunctionMode):
    """Collects the names of torch's functions that are called while no layer runs."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str | None, list[str]] = {}
        self.since: list[str] = []
        self._running: str | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(getattr(func, "__name__", ""))
        if self._running is None and name and name != "__get__" and tensors(result):
            self.since.append(name.strip("_"))
        return result

    def deliver(self, label: str, side: Side, found: list[Tensor]) -> None:
        """Called when a layer begins or has returned."""
        if side == "input":
            self.before[label], self.since, self._running = self.since, [], label
        elif label == self._running:
            self._running = None
