"""Run one of the models on the input of both: record its layer calls, or run it in lockstep.

In lockstep with a recorded pass of another model, each layer receives what its partner received in
the recorded pass, and the code after it continues with what the partner returned. What a layer adds
to the error is then the difference between what it returns and what its partner returned; what the
code between layers adds is the difference between what a layer would have received and what its
partner received.

A tensor is replaced only if its values differ, so in a copy of the recorded model nothing is. A
layer that changes its input in place then changes the replaced tensor; the change is copied to the
tensor that it was called with, which the code after it may still use.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.own_pass import (
    RandomStates,
    generators_of,
    own_pass,
    random_states,
    set_random_states,
)
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import Probe, detached_copy
from fmapboard.capture.twin import Twin
from fmapboard.errors import ConfigurationError, few, first_line
from fmapboard.extraction.call_trace import CallTrace, TracedCall
from fmapboard.model.layers import named_layers
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.model_comparison.relative_error import Errors, error_between, is_same, same_bits
from fmapboard.records import LayerCall

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a model."""

Layers = Mapping[str, str]
"""Label of a call of a module -> name of the module, in order of execution."""

Receiver = Callable[[str, Side, list[Tensor]], None]
"""Called with the label of a call that begins (``"input"``) or has returned (``"output"``), and the
live tensors: the next operation may overwrite them."""

Watched = Callable[[Twin], AbstractContextManager[object]]
"""A block in which something observes a twin."""

_SIDES: tuple[Side, ...] = ("input", "output")


def on_device_of(model: nn.Module, arguments: Arguments) -> Arguments:
    """Copies of the arguments on the model's device: it may change its input in place.

    Floating-point tensors get the dtype of the model's first floating-point parameter.
    """
    args, kwargs = arguments
    probe = Probe((*args, kwargs))
    *copied, copied_kwargs = probe.arguments(model)
    return tuple(copied), copied_kwargs


def run(
    model: nn.Module,
    arguments: Arguments,
    what: str,
    *,
    watched: Watched = contextlib.nullcontext,
    within: AbstractContextManager[object] | None = None,
) -> Any:
    """Run a twin of an unwrapped model in its own mode, without gradients.

    Args:
        model: Called with copies of the arguments on its device.
        arguments: What it is called with.
        what: Names the model in an error.
        watched: A block in which calls of the twin are delivered; by default none.
        within: Entered for the call alone; None for nothing.

    Raises:
        ConfigurationError: The model cannot run on these arguments.
    """
    args, kwargs = on_device_of(model, arguments)
    twin = Twin(model)
    within = within or contextlib.nullcontext()
    with own_pass(twin), torch.no_grad(), watched(twin):
        try:
            with within:
                return twin.module(*args, **kwargs)
        except Exception as error:
            message = f"{what} cannot run on the images: {first_line(error)}"
            raise ConfigurationError(message) from error


@dataclass(slots=True)
class Delivery(CaptureListener):
    """A ``CaptureListener`` that delivers what layer calls receive and return.

    Attributes:
        layers: The calls.
        receiver: Called at the beginning and at the end of each.
    """

    layers: Layers
    receiver: Receiver

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """See ``CaptureListener``."""
        label = layer_call.label
        if label in self.layers:
            self.receiver(label, side, tensors(value))

    def on(self, model: nn.Module) -> Watched:
        """What delivers the calls of a twin of a model in a ``with`` block."""
        names = set(self.layers.values())
        registry = HookRegistry(model, lambda name, _: name in names)
        return lambda twin: registry.listening(self, sides=_SIDES, twin=twin)


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
        received = self.tensors["input"]
        returned = self.tensors["output"]
        return is_same(received[:1], returned[:1])


def record(
    model: nn.Module, layers: Layers, arguments: Arguments, what: str
) -> tuple[dict[str, Recorded], Any]:
    """Run a model as ``run`` does; returns its calls by label, and a copy of its output."""
    calls: dict[str, Recorded] = {}
    generators = generators_of(model)

    def receive(label: str, side: Side, found: list[Tensor]) -> None:
        call = calls.setdefault(label, Recorded())
        call.tensors[side] = list(map(detached_copy, found))
        call.states[side] = random_states(generators)

    delivery = Delivery(layers, receive)
    output = run(model, arguments, what, watched=delivery.on(model))
    return calls, map_tensors(output, detached_copy)


def trace(model: nn.Module, arguments: Arguments, what: str) -> list[TracedCall]:
    """Run a model once; returns the calls of its modules in the order in which they begin.

    Parametrizations, which compute a weight, do not count as modules.
    """
    found = CallTrace()
    registry = HookRegistry(model, _is_traced)

    def watched(twin: Twin) -> AbstractContextManager[None]:
        return registry.listening(found, sides=_SIDES, twin=twin)

    run(model, arguments, what, watched=watched)
    return [call for call in found.calls if call.received is not None]


def _is_traced(name: str, _: nn.Module) -> bool:
    return "parametrizations" not in name.split(".")


def layers_in_common(
    first: Sequence[TracedCall], second: Sequence[TracedCall]
) -> tuple[list[TracedCall], list[TracedCall]]:
    """The calls to compare: those in which no other module was called.

    A module that calls others in one of the models only is compared as a whole.
    """
    plain_a, mixed_a = _plain_and_mixed(first)
    plain_b, mixed_b = _plain_and_mixed(second)
    mixed_in_a = (mixed_a - plain_a) & plain_b
    mixed_in_b = (mixed_b - plain_b) & plain_a
    whole = mixed_in_a | mixed_in_b
    return _compared(first, whole), _compared(second, whole)


def _plain_and_mixed(calls: Sequence[TracedCall]) -> tuple[set[str], set[str]]:
    """Names of the layers that call no other module, and of those that call one."""
    plain = set[str]()
    mixed = set[str]()
    for call in calls:
        names = mixed if call.inner else plain
        names.add(call.layer_call.layer)
    return plain, mixed


def _compared(calls: Sequence[TracedCall], whole: Collection[str]) -> list[TracedCall]:
    """The calls of layers that call no other module, or are compared as a whole."""
    found = []
    for call in calls:
        is_compared = not call.inner or call.layer_call.layer in whole
        if is_compared and not _is_inside(call, whole):
            found.append(call)
    return found


def _is_inside(call: TracedCall, names: Collection[str]) -> bool:
    """True if it happened in a call of one of these modules."""
    outer = call.outer
    while outer is not None:
        if outer.layer_call.layer in names:
            return True
        outer = outer.outer
    return False


Functions = Mapping[str | None, Sequence[str]]
"""Label of a layer call -> names of the functions that are called before it, since the layer
before; None -> those after the last layer."""

_MOST = 6
"""Maximum number of names in a note."""


def functions_between(
    model: nn.Module, layers: Layers, arguments: Arguments, what: str
) -> Functions:
    """Run a model once and keep the names of the functions outside of its layers.

    Only functions that return tensors count. Empty if the model does not run while torch's
    functions are watched.

    Args:
        model: The unwrapped model; it is restored afterwards.
        layers: The layer calls.
        arguments: What the model is called with.
        what: Names the model in an error.
    """
    seen = _Functions()
    try:
        delivery = Delivery(layers, seen.deliver)
        run(model, arguments, what, watched=delivery.on(model), within=seen)
    except ConfigurationError:
        return {}
    return {**seen.before, None: seen.since}


def described(first: Sequence[str], second: Sequence[str]) -> str:
    """The functions of both models between two layers, in words; empty if there is none.

    Example:
        >>> described(["add", "relu"], ["relu"]), described(["mul"], ["mul"])
        ('add, relu in A; relu in B', 'mul in both')
    """
    if not first and not second:
        return ""
    names_a = few(first, _MOST) or "no function"
    names_b = few(second, _MOST) or "no function"
    if list(first) == list(second):
        return f"{names_a} in both"
    return f"{names_a} in A; {names_b} in B"


class _Functions(TorchFunctionMode):
    """Collects the names of torch's functions that are called while no layer runs."""

    def __init__(self) -> None:
        super().__init__()
        self.before: dict[str | None, list[str]] = {}
        self.since: list[str] = []
        self._running: str | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self._running is not None:
            return result
        name = str(getattr(func, "__name__", ""))
        is_named = name not in ("", "__get__")
        if is_named and tensors(result):
            self.since.append(name.strip("_"))
        return result

    def deliver(self, label: str, side: Side, found: list[Tensor]) -> None:
        """Called when a layer begins or has returned."""
        if side == "input":
            self.before[label] = self.since
            self.since = []
            self._running = label
        elif label == self._running:
            self._running = None


class _Replaced(NamedTuple):
    """A tensor that was replaced in a layer's arguments or output.

    Attributes:
        original: The tensor that was there.
        replacement: The tensor that takes its place.
        version: Version counter of the replacement at that time.
    """

    original: Tensor
    replacement: Tensor
    version: int


class _Running(NamedTuple):
    """A call that has not ended.

    Attributes:
        layer: Name of the layer.
        label: Label of the call.
        replaced: The tensors that were replaced in its arguments.
        received: A copy of the first tensor among them, if the call has no partner.
    """

    layer: str
    label: str
    replaced: list[_Replaced]
    received: list[Tensor]


class Lockstep:
    """Runs a model in lockstep with a recorded pass.

    Args:
        model: The unwrapped model; it is restored afterwards.
        layers: Its calls.
        expected: Call of this model -> its partner in the recorded pass.
        alone: Calls of this model that have no partner.

    Attributes:
        errors: Error that the code before each call with a partner adds (``"input"``), and that
            the call itself adds (``"output"``).
        identities: Calls without a partner that returned what they received.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        expected: Mapping[str, Recorded],
        alone: Container[str],
    ) -> None:
        self._model = model
        self._layers = layers
        self._expected = expected
        self._alone = alone
        self._generators = generators_of(model)
        self._numbers: Counter[str] = Counter()
        self._running: list[_Running] = []
        self.errors = Errors()
        self.identities = set[str]()

    def __call__(self, arguments: Arguments, what: str) -> Any:
        """Run the model and return its output.

        Args:
            arguments: What it is called with.
            what: Names the model in an error.

        Raises:
            ConfigurationError: The model cannot run in lockstep.
        """
        return run(self._model, arguments, what, watched=self._hooked)

    def _hooked(self, twin: Twin) -> AbstractContextManager[None]:
        """Put hooks on a twin, where they stay."""
        modules = named_layers(self._model)
        chosen = {name: modules[name] for name in self._layers.values()}
        layers = twin.layers(chosen)
        for name, module in layers.items():
            begins = partial(self._begins, name)
            module.register_forward_pre_hook(begins, with_kwargs=True)
            # Before the user's own forward hooks, as in the recorded pass.
            ends = partial(self._ends, name)
            module.register_forward_hook(ends, prepend=True, with_kwargs=True)
        return contextlib.nullcontext()

    def _begins(self, name: str, _: nn.Module, args: Any, kwargs: Any) -> Any:
        self._numbers[name] += 1
        number = self._numbers[name]
        label = LayerCall(name, type="", call=number).label
        given = tensors((args, kwargs))
        expected = self._expected.get(label)
        call = _Running(name, label, replaced=[], received=[])
        self._running.append(call)
        if expected is None:
            if label in self._alone:
                copies = map(detached_copy, given[:1])
                call.received.extend(copies)
            return None
        partners = expected.tensors["input"]
        self.errors[label, "input"] = error_between(partners, given)
        changed = _replace((args, kwargs), given, partners, call.replaced)
        states = expected.states["input"]
        set_random_states(states, self._generators)
        return changed if call.replaced else None

    def _ends(self, name: str, _: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        while self._running:  # a call that raised, and whose error was caught, has no end
            call = self._running.pop()
            if call.layer == name:
                break
        else:
            return None
        returned = tensors(output)
        expected = self._expected.get(call.label)
        if expected is None:
            if is_same(call.received, returned[:1]):
                self.identities.add(call.label)
            return None
        partners = expected.tensors["output"]
        self.errors[call.label, "output"] = error_between(partners, returned)
        for original, replacement, version in call.replaced:
            if replacement._version != version:  # changed in place: change the original, too
                original.data.copy_(replacement)
        forced: list[_Replaced] = []
        changed = _replace(output, returned, partners, forced)
        states = expected.states.get("output", {})
        set_random_states(states, self._generators)
        return changed if forced else None


def _replace(
    value: Any, given: Sequence[Tensor], expected: Sequence[Tensor], replaced: list[_Replaced]
) -> Any:
    """The structure with the expected tensors where values differ, if they have the same shapes."""
    shapes = [tensor.shape for tensor in given]
    if shapes != [tensor.shape for tensor in expected]:
        return value
    partners = iter(expected)

    def change(tensor: Tensor) -> Tensor:
        partner = next(partners)
        if same_bits(partner, tensor):
            return tensor
        replacement = torch.empty_like(tensor)
        replacement.copy_(partner)
        pair = _Replaced(tensor, replacement, version=replacement._version)
        replaced.append(pair)
        return replacement

    return map_tensors(value, change)
