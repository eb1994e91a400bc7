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
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.side_pass import Generator, generators_of, set_random_states
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.model_comparison.layer_calls import Arguments, run_restored
from fmapboard.model_comparison.recording import Recorded
from fmapboard.model_comparison.relative_error import Error, error_between, same_bits
from fmapboard.records import LayerCall


class Lockstep:
    """Runs a model in lockstep with a recorded pass.

    Args:
        modules: The modules to hook, by name.
        expected: Call of this model -> its partner in the recorded pass.
        alone: Calls of this model that have no partner.

    Attributes:
        received: Error that the code before each call adds, per call with a partner.
        returned: Error that each call with a partner adds.
        identities: Calls without a partner that returned what they received.
    """

    def __init__(
        self,
        modules: Mapping[str, nn.Module],
        expected: Mapping[str, Recorded],
        alone: frozenset[str],
    ) -> None:
        self._modules, self._expected, self._alone = modules, expected, alone
        self._generators: list[Generator] = []
        self.received: dict[str, Error] = {}
        self.returned: dict[str, Error] = {}
        self.identities: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._open: list[tuple[LayerCall, list[_Replaced], list[Tensor]]] = []

    def __call__(self, model: nn.Module, arguments: Arguments, what: str) -> Any:
        """Run the model and return its output.

        Args:
            model: The unwrapped model; it is restored afterwards.
            arguments: ``(args, kwargs)``.
            what: Names the model in an error.

        Raises:
            ConfigurationError: The model cannot run in lockstep.
        """
        self._generators = generators_of(model)
        with contextlib.ExitStack() as stack:
            for name, module in self._modules.items():
                self._hook(stack, name, module)
            return run_restored(model, arguments, what)

    def _hook(self, stack: contextlib.ExitStack, name: str, module: nn.Module) -> None:
        def begins(_: nn.Module, args: Any, kwargs: Any) -> Any:
            return self._begins(name, args, kwargs)

        def ends(_: nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
            return self._ends(name, output)

        before = module.register_forward_pre_hook(begins, with_kwargs=True)
        stack.callback(before.remove)
        # Before the user's own forward hooks, as in the recorded pass.
        after = module.register_forward_hook(ends, prepend=True, with_kwargs=True)
        stack.callback(after.remove)

    def _begins(self, name: str, args: Any, kwargs: Any) -> Any:
        self._numbers[name] += 1
        call = LayerCall(name, type="", call=self._numbers[name])
        given = tensors((args, kwargs))
        expected = self._expected.get(call.label)
        if expected is None:
            copies = [t.detach().clone() for t in given[:1]] if call.label in self._alone else []
            self._open.append((call, [], copies))
            return None
        self.received[call.label] = error_between(expected.inputs, given)
        replaced: list[_Replaced] = []
        changed = _replace((args, kwargs), given, expected.inputs, replaced)
        self._open.append((call, replaced, []))
        set_random_states(expected.before, self._generators)
        return changed if replaced else None

    def _ends(self, name: str, output: Any) -> Any:
        while self._open:  # a call that raised, and whose error was caught, has no end
            call, replaced, received = self._open.pop()
            if call.layer == name:
                break
        else:
            return None
        expected, returned = self._expected.get(call.label), tensors(output)
        if expected is None:
            if received and error_between(received, returned[:1]).relative == 0.0:
                self.identities.add(call.label)
            return None
        self.returned[call.label] = error_between(expected.outputs, returned)
        for one in replaced:
            one.copy_back()
        forced: list[_Replaced] = []
        changed = _replace(output, returned, expected.outputs, forced)
        set_random_states(expected.after, self._generators)
        return changed if forced else None


class _Replaced:
    """A tensor that was replaced in a layer's arguments.

    Args:
        original: The tensor that the layer was called with.
        replacement: The tensor that it receives.
    """

    def __init__(self, original: Tensor, replacement: Tensor) -> None:
        self._original, self._replacement = original, replacement
        self._version = replacement._version

    def copy_back(self) -> None:
        """If the layer changed the replacement in place, change the original in the same way."""
        if self._replacement._version != self._version:
            self._original.data.copy_(self._replacement)


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
        replaced.append(_Replaced(tensor, replacement))
        return replacement

    return map_tensors(value, change)
