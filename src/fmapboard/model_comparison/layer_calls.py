"""Run one of the models on the input of both, and note which layers run, in which order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import Probe, untouched
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.model.tensors import tensors
from fmapboard.records import LayerCall

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a model."""


class Key(NamedTuple):
    """A call of a module in a pass.

    Attributes:
        name: Name of the module.
        number: Which call of the module it is, from 1.
    """

    name: str
    number: int

    def __str__(self) -> str:
        return self.name if self.number == 1 else f"{self.name}.call{self.number}"


@dataclass(slots=True)
class Call:
    """One call of a module, with the calls that happened inside it.

    Attributes:
        key: Which call of which module.
        type: Name of the module's class.
        outer: The call that it happened in; None for the outermost.
        inner: The calls that happened in it.
        shapes: Shapes of the tensors that it returned.
        dtypes: Their dtypes.
    """

    key: Key
    type: str
    outer: Call | None = None
    inner: list[Call] | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[torch.dtype, ...] = ()

    def is_inside(self, names: Collection[str]) -> bool:
        """True if it happened in a call of one of these modules."""
        return self.outer is not None and (
            self.outer.key.name in names or self.outer.is_inside(names)
        )


def registry_of(model: nn.Module, names: Collection[str] | None = None) -> HookRegistry:
    """A registry of all modules of a model, or of the named ones.

    Parametrizations, which compute a weight, do not count as modules.
    """

    def chosen(name: str, module: nn.Module) -> bool:
        if names is not None:
            return name in names
        return "parametrizations" not in name.split(".")

    return HookRegistry(model, chosen)


def on_device_of(model: nn.Module, arguments: Arguments) -> Arguments:
    """Copies of the arguments on the model's device: it may change its input in place.

    Floating-point tensors get the dtype of the model's first floating-point parameter.
    """
    args, kwargs = arguments
    copied = Probe((*args, kwargs)).arguments(model)
    return copied[:-1], copied[-1]


def run(registry: HookRegistry, listener: Any, arguments: tuple[Any, ...], what: str) -> Any:
    """Run the registry's model in its own mode, without gradients, and restore it.

    Args:
        registry: Its layers are delivered to the listener, inputs and outputs.
        listener: A ``CaptureListener``.
        arguments: ``(args, kwargs)`` of the model.
        what: Names the model in an error.

    Raises:
        ConfigurationError: The model cannot run on these arguments.
    """
    sides: tuple[Side, ...] = ("input", "output")
    with registry.listening(listener, sides=sides):
        return run_restored(registry.model, arguments, what)


def run_restored(model: nn.Module, arguments: Arguments, what: str) -> Any:
    """Run a model as ``run`` does, without a listener."""
    args, kwargs = arguments
    with untouched(model), torch.no_grad():
        try:
            return model(*args, **kwargs)
        except Exception as error:
            raise ConfigurationError(
                f"{what} cannot run on the images: {first_line(error)}"
            ) from error


class Tracer(CaptureListener):
    """A ``CaptureListener`` that keeps which modules were called inside which."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._open: list[Call] = []

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Keep the beginning or the end of a call."""
        key = Key(layer_call.layer, layer_call.call)
        if side == "input":
            outer = self._open[-1] if self._open else None
            call = Call(key, layer_call.type, outer, [])
            if outer is not None and outer.inner is not None:
                outer.inner.append(call)
            self.calls.append(call)
            self._open.append(call)
            return
        while self._open:  # a call that raised, and whose error was caught, has no end
            call = self._open.pop()
            if call.key == key:
                returned = tensors(value)
                call.shapes = tuple(tuple(tensor.shape) for tensor in returned)
                call.dtypes = tuple(tensor.dtype for tensor in returned)
                return


def trace(registry: HookRegistry, arguments: tuple[Any, ...], what: str) -> list[Call]:
    """Run a model once; returns the calls of its modules in the order in which they begin."""
    tracer = Tracer()
    run(registry, tracer, arguments, what)
    return tracer.calls


def layers_in_common(
    first: Sequence[Call], second: Sequence[Call]
) -> tuple[list[Call], list[Call]]:
    """The calls to compare: those in which no other module was called.

    A module that calls others in one of the models only is compared as a whole.
    """
    plain = [{call.key.name for call in calls if not call.inner} for calls in (first, second)]
    mixed = [
        {call.key.name for call in calls if call.inner} - own
        for calls, own in zip((first, second), plain, strict=True)
    ]
    whole = (mixed[0] & plain[1]) | (mixed[1] & plain[0])
    return _layers(first, whole), _layers(second, whole)


def _layers(calls: Sequence[Call], whole: Collection[str]) -> list[Call]:
    return [
        call
        for call in calls
        if (not call.inner or call.key.name in whole) and not call.is_inside(whole)
    ]
