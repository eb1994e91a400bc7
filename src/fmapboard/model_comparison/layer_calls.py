"""Run one of the models on the input of both, and deliver what its layers receive and return."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import (
    Probe,
    RandomStates,
    generators_of,
    random_states,
    untouched,
)
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.extraction.call_trace import CallTrace, TracedCall
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.model_comparison.relative_error import is_same
from fmapboard.records import LayerCall

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a model."""

Layers = Mapping[str, str]
"""Label of a call of a module -> name of the module, in order of execution."""

Each = Callable[[str, Side, list[Tensor]], None]
"""Called with the label of a call that begins (``"input"``) or has returned (``"output"``), and the
live tensors: the next operation may overwrite them."""

_SIDES: tuple[Side, ...] = ("input", "output")


def on_device_of(model: nn.Module, arguments: Arguments) -> Arguments:
    """Copies of the arguments on the model's device: it may change its input in place.

    Floating-point tensors get the dtype of the model's first floating-point parameter.
    """
    args, kwargs = arguments
    copied = Probe((*args, kwargs)).arguments(model)
    return copied[:-1], copied[-1]


def run(
    model: nn.Module,
    arguments: Arguments,
    what: str,
    *,
    within: AbstractContextManager[object] | None = None,
) -> Any:
    """Run an unwrapped model in its own mode, without gradients, and restore it.

    Args:
        model: Called with copies of the arguments on its device.
        arguments: What it is called with.
        what: Names the model in an error.
        within: Entered for the call alone; None for nothing.

    Raises:
        ConfigurationError: The model cannot run on these arguments.
    """
    args, kwargs = on_device_of(model, arguments)
    with untouched(model), torch.no_grad():
        try:
            with within or contextlib.nullcontext():
                return model(*args, **kwargs)
        except Exception as error:
            raise ConfigurationError(
                f"{what} cannot run on the images: {first_line(error)}"
            ) from error


@dataclass(slots=True)
class Delivery(CaptureListener):
    """A ``CaptureListener`` that delivers what layer calls receive and return.

    Attributes:
        layers: The calls.
        each: Called at the beginning and at the end of each.
    """

    layers: Layers
    each: Each

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """See ``CaptureListener``."""
        if layer_call.label in self.layers:
            self.each(layer_call.label, side, tensors(value))

    def on(self, model: nn.Module) -> AbstractContextManager[None]:
        """Deliver the calls in a pass of a model in a ``with`` block."""
        names = set(self.layers.values())
        registry = HookRegistry(model, lambda name, _: name in names)
        return registry.listening(self, sides=_SIDES)


@dataclass(slots=True)
class Recorded:
    """What one layer call received and returned.

    Attributes:
        tensors: Copies of the tensors; none for ``"output"`` if it did not return.
        states: Random states when it began and when it had returned.
    """

    tensors: dict[Side, list[Tensor]] = field(default_factory=lambda: {"input": [], "output": []})
    states: dict[Side, RandomStates] = field(default_factory=dict)

    @property
    def is_identity(self) -> bool:
        """True if it returned what it received."""
        return is_same(self.tensors["input"][:1], self.tensors["output"][:1])


def record(
    model: nn.Module, layers: Layers, arguments: Arguments, what: str
) -> tuple[dict[str, Recorded], Any]:
    """Run a model as ``run`` does; returns its calls by label, and a copy of its output."""
    calls, generators = dict[str, Recorded](), generators_of(model)

    def each(label: str, side: Side, found: list[Tensor]) -> None:
        call = calls.setdefault(label, Recorded())
        call.tensors[side] = list(map(_copied, found))
        call.states[side] = random_states(generators)

    with Delivery(layers, each).on(model):
        output = run(model, arguments, what)
    return calls, map_tensors(output, _copied)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone()


def trace(model: nn.Module, arguments: Arguments, what: str) -> list[TracedCall]:
    """Run a model once; returns the calls of its modules in the order in which they begin.

    Parametrizations, which compute a weight, do not count as modules.
    """
    found = CallTrace()
    registry = HookRegistry(model, lambda name, _: "parametrizations" not in name.split("."))
    with registry.listening(found, sides=_SIDES):
        run(model, arguments, what)
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
