"""Run one of the models on the input of both, and note which layers run, in which order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import Side
from fmapboard.capture.side_pass import Probe, untouched
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.extraction.call_trace import CallTrace, TracedCall

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a model."""


Layers = Mapping[str, str]
"""Label of a call of a module -> name of the module, in order of execution."""


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


def trace(registry: HookRegistry, arguments: tuple[Any, ...], what: str) -> list[TracedCall]:
    """Run a model once; returns the calls of its modules in the order in which they begin."""
    found = CallTrace()
    run(registry, found, arguments, what)
    return [call for call in found.calls if call.received is not None]


def layers_in_common(
    first: Sequence[TracedCall], second: Sequence[TracedCall]
) -> tuple[list[TracedCall], list[TracedCall]]:
    """The calls to compare: those in which no other module was called.

    A module that calls others in one of the models only is compared as a whole.
    """
    both = first, second
    plain = [{call.layer_call.layer for call in calls if not call.inner} for calls in both]
    mixed = [{call.layer_call.layer for call in calls if call.inner} for calls in both]
    whole = ((mixed[0] - plain[0]) & plain[1]) | ((mixed[1] - plain[1]) & plain[0])
    return _layers(first, whole), _layers(second, whole)


def _layers(calls: Sequence[TracedCall], whole: Collection[str]) -> list[TracedCall]:
    return [
        call
        for call in calls
        if (not call.inner or call.layer_call.layer in whole) and not _is_inside(call, whole)
    ]


def _is_inside(call: TracedCall, names: Collection[str]) -> bool:
    """True if it happened in a call of one of these modules."""
    outer = call.outer
    return outer is not None and (outer.layer_call.layer in names or _is_inside(outer, names))
