"""Run a model in lockstep with a recorded pass of another one.

Each layer of the model receives what its partner received in the recorded pass, and the code after
it continues with what the partner returned. What a layer adds to the error is then the difference
between what it returns and what its partner returned; what the code between layers adds is the
difference between what a layer would have received and what its partner received.

A tensor is replaced only if its values differ, so in a copy of the recorded model nothing is. A
layer that changes its input in place then changes the replaced tensor; the change is copied to the
tensor that it was called with, which the code after it may still use.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.capture.side_pass import generators_of, set_random_states
from fmapboard.model.layers import named_layers
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.model_comparison.layer_calls import Arguments, Layers, Recorded, run
from fmapboard.model_comparison.relative_error import Errors, error_between, is_same, same_bits
from fmapboard.records import LayerCall


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
        self._model, self._layers = model, layers
        self._expected, self._alone = expected, alone
        self._generators = generators_of(model)
        self._numbers: Counter[str] = Counter()
        self._running: list[_Running] = []
        self.errors, self.identities = Errors(), set[str]()

    def __call__(self, arguments: Arguments, what: str) -> Any:
        """Run the model and return its output.

        Args:
            arguments: What it is called with.
            what: Names the model in an error.

        Raises:
            ConfigurationError: The model cannot run in lockstep.
        """
        named = named_layers(self._model)
        with contextlib.ExitStack() as stack:
            for name in dict.fromkeys(self._layers.values()):
                begins, ends = partial(self._begins, name), partial(self._ends, name)
                before = named[name].register_forward_pre_hook(begins, with_kwargs=True)
                stack.callback(before.remove)
                # Before the user's own forward hooks, as in the recorded pass.
                after = named[name].register_forward_hook(ends, prepend=True, with_kwargs=True)
                stack.callback(after.remove)
            return run(self._model, arguments, what)

    def _begins(self, name: str, _: nn.Module, args: Any, kwargs: Any) -> Any:
        self._numbers[name] += 1
        label = LayerCall(name, type="", call=self._numbers[name]).label
        given, expected = tensors((args, kwargs)), self._expected.get(label)
        call = _Running(name, label, [], [])
        self._running.append(call)
        if expected is None:
            if label in self._alone:
                call.received.extend(tensor.detach().clone() for tensor in given[:1])
            return None
        partners = expected.tensors["input"]
        self.errors[label, "input"] = error_between(partners, given)
        changed = _replace((args, kwargs), given, partners, call.replaced)
        set_random_states(expected.states["input"], self._generators)
        return changed if call.replaced else None

    def _ends(self, name: str, _: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        while self._running:  # a call that raised, and whose error was caught, has no end
            call = self._running.pop()
            if call.layer == name:
                break
        else:
            return None
        expected, returned = self._expected.get(call.label), tensors(output)
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
        set_random_states(expected.states.get("output", {}), self._generators)
        return changed if forced else None


def _replace(
    value: Any, given: Sequence[Tensor], expected: Sequence[Tensor], replaced: list[_Replaced]
) -> Any:
    """The structure with the expected tensors where values differ, if they have the same shapes."""
    if [tensor.shape for tensor in given] != [tensor.shape for tensor in expected]:
        return value
    partners = iter(expected)

    def change(tensor: Tensor) -> Tensor:
        partner = next(partners)
        if same_bits(partner, tensor):
            return tensor
        replacement = torch.empty_like(tensor).copy_(partner)
        replaced.append(_Replaced(tensor, replacement, replacement._version))
        return replacement

    return map_tensors(value, change)
