"""Record what the layers of a model receive and return, and compare another model with that."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.capture.side_pass import Generator, RandomStates, random_states
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.relative_error import Error, error_between
from fmapboard.records import LayerCall


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
        labels: The calls to record.
        generators: Those whose random states are kept.
    """

    def __init__(self, labels: Container[str], generators: Collection[Generator] = ()) -> None:
        self._labels, self._generators = labels, generators
        self.calls: dict[str, Recorded] = {}

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Copy now: the next operation may overwrite the tensors."""
        if layer_call.label not in self._labels:
            return
        kept = self.calls.setdefault(layer_call.label, Recorded())
        copies = [tensor.detach().clone() for tensor in tensors(value)]
        if side == "input":
            kept.inputs, kept.before = copies, random_states(self._generators)
        else:
            kept.outputs, kept.after = copies, random_states(self._generators)


class Comparer(CaptureListener):
    """A ``CaptureListener`` that compares layer calls with those of a recorded pass.

    Args:
        expected: The recorded call for each call that is compared.
    """

    def __init__(self, expected: Mapping[str, Recorded]) -> None:
        self._expected = expected
        self.inputs: dict[str, Error] = {}
        self.outputs: dict[str, Error] = {}

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        """Compare now: the next operation may overwrite the tensors."""
        expected = self._expected.get(layer_call.label)
        if expected is None:
            return
        if side == "input":
            self.inputs[layer_call.label] = error_between(expected.inputs, tensors(value))
        else:
            self.outputs[layer_call.label] = error_between(expected.outputs, tensors(value))
