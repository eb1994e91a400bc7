"""Compare two models layer by layer, each on its own and then in lockstep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import Tensor, nn

from fmapboard.capture.passes import Side
from fmapboard.errors import ConfigurationError
from fmapboard.extraction.call_trace import TracedCall
from fmapboard.model.given import check_model
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.dtypes import converted, dtype_of, tolerance_of
from fmapboard.model_comparison.layer_calls import (
    Arguments,
    Delivery,
    Functions,
    Lockstep,
    Recorded,
    functions_between,
    layers_in_common,
    record,
    run,
    trace,
)
from fmapboard.model_comparison.pairs import in_both, paired
from fmapboard.model_comparison.relative_error import Errors, error_between

_NAMES = ("model_a", "model_b")


def compared(model_a: nn.Module, model_b: nn.Module, batches: Iterable[Arguments]) -> Comparison:
    """Compare two models on one or several batches; every error is the largest of all.

    Raises:
        ConfigurationError: As for ``diff``, or there is no batch.
    """
    check_model(model_a)
    check_model(model_b)
    models = (unwrap(model_a), unwrap(model_b))
    found: Comparison | None = None
    for arguments in batches:
        if found is None:
            found = Comparison(models, arguments)
        found.measure(arguments)
    if found is None:
        raise ConfigurationError("no images to compare the models on; give at least one")
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
        self.models = models
        self._arguments = arguments
        model_a, model_b = models
        traced_a = trace(model_a, arguments, _NAMES[0])
        traced_b = trace(model_b, arguments, _NAMES[1])
        calls_a, calls_b = layers_in_common(traced_a, traced_b)
        self.pairs = paired(calls_a, calls_b)
        paired_calls = in_both(self.pairs)
        self._partners = {first.label: second.label for first, second in paired_calls}
        if not self._partners:
            raise ConfigurationError(
                f"no layer of model_a ({len(calls_a)} run) can be paired with one of model_b "
                f"({len(calls_b)} run): neither names nor types and shapes agree; compare a "
                "network with a port, or with another checkpoint, of its own architecture"
            )
        layers_a = _layers(calls_a)
        layers_b = _layers(calls_b)
        self._layers = (layers_a, layers_b)
        self._alone_a = layers_a.keys() - self._partners.keys()
        self._alone_b = layers_b.keys() - self._partners.values()
        self.dtypes = (dtype_of(calls_a), dtype_of(calls_b))
        self.natural = Errors()
        self.lockstep = Errors()
        self.changing = set[tuple[int, str]]()

    def measure(self, arguments: Arguments) -> None:
        """Measure a batch: both models on their own, then in lockstep."""
        model_a, model_b = self.models
        layers_a, layers_b = self._layers
        calls, output = record(model_a, layers_a, arguments, _NAMES[0])
        expected = self._expected(calls)
        natural = Errors()

        def compare(label: str, side: Side, found: list[Tensor]) -> None:
            partner = expected.get(label)
            if partner is not None:
                natural[label, side] = error_between(partner.tensors[side], found)

        delivery = Delivery(layers_b, compare)
        output_b = run(model_b, arguments, _NAMES[1], watched=delivery.on(model_b))
        returned = tensors(output_b)
        natural[None, "input"] = error_between(tensors(output), returned)
        self.natural.include(natural)
        dtype_a, dtype_b = self.dtypes
        if tolerance_of(dtype_a) < tolerance_of(dtype_b):
            model_a = converted(model_a, model_b, dtype_b)
        elif dtype_a != dtype_b:
            model_b = converted(model_b, model_a, dtype_a)
        if dtype_a != dtype_b:
            calls, output = record(model_a, layers_a, arguments, _NAMES[0])
            expected = self._expected(calls)
        lockstep = Lockstep(model_b, layers_b, expected, self._alone_b)
        output_b = lockstep(arguments, _NAMES[1])
        returned = tensors(output_b)
        lockstep.errors[None, "input"] = error_between(tensors(output), returned)
        self.lockstep.include(lockstep.errors)
        for label in self._alone_a:
            recorded = calls.get(label)
            if recorded is None or not recorded.is_identity:
                self.changing.add((0, label))
        changing_b = self._alone_b - lockstep.identities
        for label in changing_b:
            self.changing.add((1, label))

    def _expected(self, calls: Mapping[str, Recorded]) -> dict[str, Recorded]:
        """Call of the second model -> its partner among the recorded calls."""
        expected = {}
        for first, second in self._partners.items():
            if first in calls:
                expected[second] = calls[first]
        return expected

    def functions(self, side: int) -> Functions:
        """The functions that a model (0 or 1) calls between its layers, on the first batch."""
        model = self.models[side]
        layers = self._layers[side]
        return functions_between(model, layers, self._arguments, _NAMES[side])


def _layers(calls: Iterable[TracedCall]) -> dict[str, str]:
    """Label of a call -> name of its layer."""
    return {call.layer_call.label: call.layer_call.layer for call in calls}
