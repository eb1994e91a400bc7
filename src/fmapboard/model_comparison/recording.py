"""Record what the layers of a model receive and return, and compare another model with that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.layer_calls import Key
from fmapboard.model_comparison.relative_error import Error, error_between
from fmapboard.records import LayerCall

RandomStates = Mapping[str, Tensor]
"""Type of device -> state of torch's generator."""


@dataclass(slots=True)
class Recorded:
    """What one layer call received and returned.

    Attributes:
        inputs: The tensors among its arguments, copies.
        outputs: The tensors that it returned, copies.
        before: Random states when it began.
        after: Random states when it had returned.
    """

    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    before: RandomStates = field(default_factory=dict)
    after: RandomStates = field(default_factory=dict)

    @property
    def is_identity(self) -> bool:
        """True if it returned what it received."""
        first, last = self.inputs[:1], self.outputs[:1]
        return bool(first) and error_between(first, last).relative == 0.0


class Recorder(CaptureListener):
    """A ``CaptureListener`` that copies what layer calls receive and return.

    Args:
        keys: The calls to record.
        kinds: Types of devices whose random states are kept.
    """

    def __init__(self, keys: Iterable[Key], kinds: Iterable[str] = ("cpu",)) -> None:
        self._keys, self.kinds = frozenset(keys), tuple(kinds)
        self.calls: dict[Key, Recorded] = {}

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Copy now: the next operation may overwrite the tensors."""
        key = Key(layer_call.layer, layer_call.call)
        if key not in self._keys:
            return
        kept = self.calls.setdefault(key, Recorded())
        copies = [tensor.detach().clone() for tensor in tensors(value)]
        if side == "input":
            kept.inputs, kept.before = copies, random_states(self.kinds)
        else:
            kept.outputs, kept.after = copies, random_states(self.kinds)


class Comparer(CaptureListener):
    """A ``CaptureListener`` that compares layer calls with those of a recorded pass.

    Args:
        expected: The recorded call for each call that is compared.
    """

    def __init__(self, expected: Mapping[Key, Recorded]) -> None:
        self._expected = expected
        self.inputs: dict[Key, Error] = {}
        self.outputs: dict[Key, Error] = {}

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Compare now: the next operation may overwrite the tensors."""
        key = Key(layer_call.layer, layer_call.call)
        expected = self._expected.get(key)
        if expected is None:
            return
        if side == "input":
            self.inputs[key] = error_between(expected.inputs, tensors(value))
        else:
            self.outputs[key] = error_between(expected.outputs, tensors(value))


def random_states(kinds: Iterable[str]) -> RandomStates:
    """States of torch's generators on the current devices of these types."""
    return {
        kind: torch.get_rng_state() if kind == "cpu" else _generator(kind).get_rng_state()
        for kind in kinds
    }


def set_random_states(states: RandomStates, kinds: Iterable[str]) -> None:
    """Set the states of torch's generators on devices of these types, as far as they are known."""
    for kind in kinds:
        if kind not in states:
            continue
        if kind == "cpu":
            torch.set_rng_state(states[kind])
        else:
            _generator(kind).set_rng_state(states[kind])


def generators_of(model: nn.Module) -> tuple[str, ...]:
    """Types of devices with a generator that a model may draw random numbers from."""
    kinds = {parameter.device.type for parameter in model.parameters()}
    others = {kind for kind in kinds - {"cpu"} if hasattr(_generator(kind), "get_rng_state")}
    return "cpu", *sorted(others)


def _generator(kind: str) -> Any:
    return getattr(torch, kind, None)
