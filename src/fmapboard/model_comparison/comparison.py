"""``Comparison``: two models, their paired layer calls, and the errors between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from fmapboard.capture.passes import Side
from fmapboard.errors import ConfigurationError
from fmapboard.extraction.call_trace import TracedCall
from fmapboard.model.given import check_model
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.dtypes import converted, most_common, tolerance_of
from fmapboard.model_comparison.functions import Functions, functions_between
from fmapboard.model_comparison.layer_calls import (
    Arguments,
    Delivery,
    Recorded,
    layers_in_common,
    record,
    run,
    trace,
)
from fmapboard.model_comparison.lockstep import Lockstep
from fmapboard.model_comparison.pairs import in_both, paired
from fmapboard.model_comparison.relative_error import Errors, error_between

_NAMES = ("model_a", "model_b")


def compared(model_a: nn.Module, model_b: nn.Module, batches: Iterable[Arguments]) -> Comparison:
    """Compare two models on one or several batches; every error is the largest of all.

    Raises:
        ConfigurationError: As for ``diff``, or there is no batch.
    """
    for model in (model_a, model_b):
        check_model(model)
    found: Comparison | None = None
    for arguments in batches:
        found = found or Comparison((unwrap(model_a), unwrap(model_b)), arguments)
        found.measure(arguments)
    if found is None:
        raise ConfigurationError("no images to compare the models on")
    return found


class Comparison:
    """Two models, their paired layer calls, and the errors measured so far.

    Args:
        models: Both models, unwrapped.
        arguments: The first batch, on which their layer calls are traced and paired.

    Attributes:
        models: As passed.
        pairs: The paired layer calls, in order of execution.
        dtypes: The dtype in which most layers of each model return their outputs.
        natural: Errors of what the second model's calls with a partner received and returned when
            both models ran on their own; at ``(None, "input")`` that of the models' outputs.
        lockstep: Errors that the code before each such call adds (``"input"``), and that the call
            itself adds (``"output"``); at ``(None, "input")`` that of the code after the last call.
        changing: Calls without a partner that did not return what they received in each batch:
            (0, label) of the first model, (1, label) of the second one.

    Raises:
        ConfigurationError: A model cannot run on the batch, or no layer of one can be paired with
            the other's.
    """

    def __init__(self, models: tuple[nn.Module, nn.Module], arguments: Arguments) -> None:
        self.models, self._arguments = models, arguments
        calls = layers_in_common(
            *(trace(model, arguments, what) for model, what in zip(models, _NAMES, strict=True))
        )
        self.pairs = paired(*calls)
        self._partners = {first.label: second.label for first, second in in_both(self.pairs)}
        if not self._partners:
            raise ConfigurationError(
                f"no layer of model_a ({len(calls[0])} run) can be paired with one of model_b "
                f"({len(calls[1])} run): neither names nor types and shapes agree"
            )
        self._layers = [{c.layer_call.label: c.layer_call.layer for c in own} for own in calls]
        self._alone = (
            self._layers[0].keys() - self._partners.keys(),
            self._layers[1].keys() - self._partners.values(),
        )
        self.dtypes = _dtype(calls[0]), _dtype(calls[1])
        self.natural, self.lockstep = Errors(), Errors()
        self.changing = set[tuple[int, str]]()

    def measure(self, arguments: Arguments) -> None:
        """Measure a batch: both models on their own, then in lockstep."""
        first, second = self.models
        calls, output = record(first, self._layers[0], arguments, _NAMES[0])
        expected, natural = self._expected(calls), Errors()

        def compare(label: str, side: Side, found: list[Tensor]) -> None:
            if label in expected:
                natural[label, side] = error_between(expected[label].tensors[side], found)

        with Delivery(self._layers[1], compare).on(second):
            other = run(second, arguments, _NAMES[1])
        natural[None, "input"] = error_between(tensors(output), tensors(other))
        self.natural.include(natural)
        if self.dtypes[0] != self.dtypes[1]:
            first, second = self._in_coarser_dtype()
            calls, output = record(first, self._layers[0], arguments, _NAMES[0])
            expected = self._expected(calls)
        lockstep = Lockstep(second, self._layers[1], expected, self._alone[1])
        other = lockstep(arguments, _NAMES[1])
        lockstep.errors[None, "input"] = error_between(tensors(output), tensors(other))
        self.lockstep.include(lockstep.errors)
        same = {label for label, call in calls.items() if call.is_identity}
        self.changing |= {(0, label) for label in self._alone[0] - same}
        self.changing |= {(1, label) for label in self._alone[1] - lockstep.identities}

    def _expected(self, calls: Mapping[str, Recorded]) -> dict[str, Recorded]:
        """Call of the second model -> its partner among the recorded calls."""
        partners = self._partners.items()
        return {second: calls[first] for first, second in partners if first in calls}

    def _in_coarser_dtype(self) -> tuple[nn.Module, nn.Module]:
        first, second = self.models
        if tolerance_of(self.dtypes[:1]) < tolerance_of(self.dtypes[1:]):
            return converted(first, second, self.dtypes[1]), second
        return first, converted(second, first, self.dtypes[0])

    def functions(self, side: int) -> Functions:
        """The functions that a model (0 or 1) calls between its layers, on the first batch."""
        model, layers = self.models[side], self._layers[side]
        try:
            return functions_between(model, layers, self._arguments, _NAMES[side])
        except ConfigurationError:  # it does not run while torch's functions are watched
            return {}


def _dtype(calls: Iterable[TracedCall]) -> torch.dtype:
    return most_common(dtype for call in calls for dtype, _ in call.returned or ())
