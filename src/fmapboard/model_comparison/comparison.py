"""``Comparison``: two models, their paired layer calls, and the errors between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from fmapboard.capture.side_pass import generators_of
from fmapboard.errors import ConfigurationError
from fmapboard.extraction.call_trace import TracedCall
from fmapboard.model.given import check_model
from fmapboard.model.layers import named_layers, unwrap
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.model_comparison.dtypes import converted, most_common, tolerance_of
from fmapboard.model_comparison.functions import Functions, functions_between
from fmapboard.model_comparison.layer_calls import (
    Arguments,
    Layers,
    layers_in_common,
    on_device_of,
    registry_of,
    run,
    trace,
)
from fmapboard.model_comparison.lockstep import Lockstep
from fmapboard.model_comparison.pairs import Pair, in_both, paired
from fmapboard.model_comparison.recording import Comparer, Recorded, Recorder
from fmapboard.model_comparison.relative_error import error_between
from fmapboard.model_comparison.result import ModelDifference
from fmapboard.model_comparison.rows import Measured, Rows


def compared(model_a: nn.Module, model_b: nn.Module, batches: Iterable[Arguments]) -> Comparison:
    """Compare two models on one or several batches; every error is the largest of all.

    Raises:
        ConfigurationError: As for ``diff``, or there is no batch.
    """
    for model in (model_a, model_b):
        check_model(model)
    models = (unwrap(model_a), unwrap(model_b))
    found: Comparison | None = None
    for arguments in batches:
        found = Comparison.of(models, arguments) if found is None else found.again(arguments)
    if found is None:
        raise ConfigurationError("no images to compare the models on")
    return found


@dataclass(slots=True)
class Comparison:
    """Two models, their paired layer calls, and the errors measured so far.

    Attributes:
        models: Both models, unwrapped.
        arguments: The first batch.
        pairs: The paired layer calls, in order of execution.
        dtypes: The dtype in which most layers of each model return their outputs.
        measured: The errors.
    """

    models: tuple[nn.Module, nn.Module]
    arguments: Arguments
    pairs: list[Pair]
    dtypes: tuple[torch.dtype, torch.dtype]
    measured: Measured = field(default_factory=Measured)

    @classmethod
    def of(cls, models: tuple[nn.Module, nn.Module], arguments: Arguments) -> Comparison:
        """Trace both models on a batch, pair their layer calls, and measure them."""
        traces = [
            trace(registry_of(model), on_device_of(model, arguments), what)
            for model, what in zip(models, ("model_a", "model_b"), strict=True)
        ]
        first, second = layers_in_common(*traces)
        pairs = paired(first, second)
        if not in_both(pairs):
            raise ConfigurationError(
                f"no layer of model_a ({len(first)} run) can be paired with one of model_b "
                f"({len(second)} run): neither names nor types and shapes agree"
            )
        return cls(models, arguments, pairs, (_dtype(first), _dtype(second))).again(arguments)

    def again(self, arguments: Arguments) -> Comparison:
        """Measure another batch; returns the comparison itself."""
        self.measured = self.measured.worst(self._natural(arguments))
        return self

    def _natural(self, arguments: Arguments) -> Measured:
        """Errors of both models on their own, then those of the lockstep pass."""
        first, second = self.models
        recorder, output = _record(first, self._layers(0), arguments)
        comparer = Comparer(self._expected(recorder.calls))
        registry = registry_of(second, self._layers(1).values())
        other = run(registry, comparer, on_device_of(second, arguments), "model_b")
        errors = error_between(tensors(output), tensors(other))
        own = Measured(inputs=comparer.inputs, outputs=comparer.outputs, output=errors)
        if self.dtypes[0] != self.dtypes[1]:
            first, second = self._in_coarser_dtype()
            recorder, output = _record(first, self._layers(0), arguments)
        return own.worst(self._lockstep(second, recorder, output, arguments))

    def _lockstep(
        self, model: nn.Module, recorder: Recorder, output: Any, arguments: Arguments
    ) -> Measured:
        names = self._layers(1).values()
        modules = {name: m for name, m in named_layers(model).items() if name in names}
        lockstep = Lockstep(modules, self._expected(recorder.calls), self._alone(1))
        other = lockstep(model, on_device_of(model, arguments), "model_b")
        return Measured(
            received=lockstep.received,
            added=lockstep.returned,
            end=error_between(tensors(output), tensors(other)),
            identities={(1, label) for label in lockstep.identities}
            | {
                (0, label)
                for label in self._alone(0)
                if label in recorder.calls and recorder.calls[label].is_identity
            },
        )

    def _in_coarser_dtype(self) -> tuple[nn.Module, nn.Module]:
        first, second = self.models
        if tolerance_of(self.dtypes[:1]) < tolerance_of(self.dtypes[1:]):
            return converted(first, second, self.dtypes[1]), second
        return first, converted(second, first, self.dtypes[0])

    def _layers(self, side: int) -> Layers:
        return {call.label: call.layer for pair in self.pairs if (call := pair[side]) is not None}

    def _alone(self, side: int) -> frozenset[str]:
        """Calls of one of the models without a partner."""
        return frozenset(
            call.label for pair in self.pairs if None in pair and (call := pair[side]) is not None
        )

    def _expected(self, recorded: Mapping[str, Recorded]) -> dict[str, Recorded]:
        """Call of the second model -> what its partner received and returned."""
        return {
            second.label: recorded[first.label]
            for first, second in in_both(self.pairs)
            if first.label in recorded
        }

    def _functions(self, side: int) -> Functions:
        model, what = self.models[side], ("model_a", "model_b")[side]
        arguments = on_device_of(model, self.arguments)
        try:
            return functions_between(model, self._layers(side), arguments, what)
        except ConfigurationError:  # it does not run while torch's functions are watched
            return {}

    def result(self, tolerance: float | None) -> ModelDifference:
        """The rows, and the first difference."""
        limit = tolerance_of(self.dtypes) if tolerance is None else tolerance
        found = Rows(self.pairs, self.measured, limit, self.models, self._functions).all()
        first = next((r.name for r in found if r.added is not None and r.added > limit), None)
        names = [str(dtype).removeprefix("torch.") for dtype in self.dtypes]
        return ModelDifference(first, found, limit, (names[0], names[1]))


def _record(model: nn.Module, layers: Layers, arguments: Arguments) -> tuple[Recorder, Any]:
    recorder = Recorder(layers, generators_of(model))
    registry = registry_of(model, layers.values())
    output = run(registry, recorder, on_device_of(model, arguments), "model_a")
    return recorder, map_tensors(output, lambda tensor: tensor.detach().clone())


def _dtype(calls: Sequence[TracedCall]) -> torch.dtype:
    return most_common(dtype for call in calls for dtype, _ in call.returned or ())
