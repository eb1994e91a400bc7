"""Which functions a model calls between its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn
from torch.overrides import TorchFunctionMode

from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.layer_calls import Layers, registry_of, run
from fmapboard.records import LayerCall

Functions = Mapping[str | None, Sequence[str]]
"""Label of a layer call -> names of the functions that are called before it, since the layer
before; None -> those after the last layer."""

_MOST = 6
"""Maximum number of names in a note."""


def functions_between(
    model: nn.Module, layers: Layers, arguments: tuple[Any, ...], what: str
) -> Functions:
    """Run a model once and keep the names of the functions outside of its layers.

    Only functions that return tensors count.

    Args:
        model: The unwrapped model; it is restored afterwards.
        layers: The layer calls.
        arguments: ``(args, kwargs)`` of the model.
        what: Names the model in an error.
    """
    listener = _Listener(layers)
    with _Watch(listener):
        run(registry_of(model, layers.values()), listener, arguments, what)
    return {**listener.before, None: listener.since}


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


class _Listener(CaptureListener):
    """A ``CaptureListener`` that knows whether a layer is running."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._running: str | None = None
        self.before: dict[str | None, list[str]] = {}
        self.since: list[str] = []

    def called(self, name: str) -> None:
        """Called when a function has returned tensors."""
        if self._running is None:
            self.since.append(name)

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Called when a layer begins or has returned."""
        label = layer_call.label
        if label not in self._layers:
            return
        if side == "input":
            self.before[label], self.since, self._running = self.since, [], label
        elif label == self._running:
            self._running = None


class _Watch(TorchFunctionMode):
    """Passes the names of torch's functions to a listener."""

    def __init__(self, listener: _Listener) -> None:
        super().__init__()
        self._listener = listener

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(getattr(func, "__name__", ""))
        if name and name != "__get__" and tensors(result):
            self._listener.called(name.strip("_"))
        return result
