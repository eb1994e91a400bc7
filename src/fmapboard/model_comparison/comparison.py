"""Compare two models layer by layer, in lockstep, and name the first layer in which they differ."""

from __future__ import annotations

import copy
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from fmapboard.capture.passes import Side
from fmapboard.errors import ConfigurationError, escaped
from fmapboard.extraction.call_trace import TracedCall
from fmapboard.model.given import check_model
from fmapboard.model.layers import named_layers, unwrap
from fmapboard.model.tensors import tensors
from fmapboard.model_comparison.layer_calls import (
    Arguments,
    Delivery,
    Functions,
    Lockstep,
    Recorded,
    described,
    functions_between,
    layers_in_common,
    record,
    run,
    trace,
)
from fmapboard.model_comparison.pairs import in_both, paired
from fmapboard.model_comparison.relative_error import Error, Errors, error_between
from fmapboard.records import LayerCall


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """How one layer of two models differs, or the code between two layers.

    A relative error is the norm of the difference divided by the larger of the two norms, from 0
    to 2; the largest of all tensors and images. It is infinite if the tensors cannot be compared,
    because of their shapes or number, or are NaN or infinite at different places; ``note`` says
    which. It is None if there is nothing to compare, as for what a layer adds if its input already
    has another shape in the second model.

    Attributes:
        name: The layer's name in the first model, with the suffix ``.call2`` etc. from its second
            call on; in the second model if only that one runs it. For functional code, the layers
            around it: "between `layer1.1.conv2` and `layer2.0.conv1`".
        error_in: Relative error of what the layer received, when both models run on their own.
        error_out: Relative error of what it returned, likewise.
        added: Relative error that the layer itself adds: that of the second model's layer when it
            receives what the first model's received.
        type: Name of the module's class in the first model; empty for functional code.
        note: What else differs, in words.
        nonfinite: Number of NaN and infinite values that it returned in the first and in the second
            model, when both run on their own.
    """

    name: str
    error_in: float | None
    error_out: float | None
    added: float | None
    type: str = ""
    note: str = ""
    nonfinite: tuple[int, int] = (0, 0)

    def as_json(self) -> dict[str, Any]:
        """The attributes; infinite errors, which JSON does not have, are null."""
        own = asdict(self) | {"nonfinite": list(self.nonfinite)}
        return {name: None if value == math.inf else value for name, value in own.items()}


@dataclass(frozen=True, slots=True, repr=False)
class ModelDifference:
    """Where two models differ. It is true if they do, and prints as a table.

    Attributes:
        first: Name of the first difference in order of execution; None if no error that a layer
            adds exceeds the tolerance.
        layers: One row per layer call in order of execution, and one per place between two layers
            where functional code adds more than the tolerance.
        tolerance: The relative error above which a layer is different.
        dtypes: The dtype in which most layers return their outputs, in both models.
    """

    first: str | None
    layers: tuple[LayerDifference, ...]
    tolerance: float
    dtypes: tuple[str, str] = ("float32", "float32")

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def different(self) -> tuple[LayerDifference, ...]:
        """The rows whose added error exceeds the tolerance."""
        return tuple(row for row in self.layers if is_different(row.added, self.tolerance))

    def as_json(self) -> dict[str, Any]:
        """``first``, ``tolerance``, ``dtypes`` and ``layers``, as ``--json`` prints them."""
        return {
            "first": self.first,
            "tolerance": self.tolerance,
            "dtypes": list(self.dtypes),
            "layers": [row.as_json() for row in self.layers],
        }

    @property
    def summary(self) -> str:
        """One line: the first difference and how it differs, or that there is none."""
        if self.first is None:
            least = f"no difference above {self.tolerance:g} in {len(self.layers)} layers"
            return f"{least}{self._nonfinite()}"
        row = self.different[0]
        place = self.first if not row.type else f"`{self.first}`"
        note = f" ({row.note})" if row.note else ""
        others = len(self.different) - 1
        more = f"; {others} more differ{'s' * (others == 1)}" if others else ""
        return f"first difference: {place}{note}{more}{self._nonfinite()}"

    def _nonfinite(self) -> str:
        row = next((row for row in self.layers if any(row.nonfinite)), None)
        return "" if row is None else f"; NaN or infinite values first in `{row.name}`"

    def __repr__(self) -> str:
        names = [escaped(row.name, keep="") for row in self.layers]
        widest = max(map(len, names), default=5)
        lines = [f"{'layer':{widest}}  {'error in':>9} {'error out':>9} {'added':>9}"]
        for name, row in zip(names, self.layers, strict=True):
            numbers = " ".join(
                f"{shown(error):>9}" for error in (row.error_in, row.error_out, row.added)
            )
            lines.append(f"{name:{widest}}  {numbers}  {escaped(row.note)}".rstrip())
        return "\n".join([*lines, escaped(self.summary, keep="")])


def is_different(added: float | None, tolerance: float) -> bool:
    """True if an added error exceeds the tolerance."""
    return added is not None and added > tolerance


def shown(error: float | None) -> str:
    """An error for people to read."""
    if error is None:
        return "–"
    return "0" if error == 0 else f"{error:.1e}"


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

    def result(self, tolerance: float | None) -> ModelDifference:
        """The rows, and the first difference above a tolerance; None for that of the dtypes."""
        limit = tolerance_of(self.dtypes) if tolerance is None else tolerance
        rows = Rows(self, limit).all()
        first = next((row.name for row in rows if is_different(row.added, limit)), None)
        one, other = (str(dtype).removeprefix("torch.") for dtype in self.dtypes)
        return ModelDifference(first, rows, limit, (one, other))

    def functions(self, side: int) -> Functions:
        """The functions that a model (0 or 1) calls between its layers, on the first batch."""
        model, layers = self.models[side], self._layers[side]
        return functions_between(model, layers, self._arguments, _NAMES[side])


def _dtype(calls: Iterable[TracedCall]) -> torch.dtype:
    return most_common(dtype for call in calls for dtype, _ in call.returned or ())


# Dtypes that two models compute in: tolerances, and the finer model in those of the coarser.
#
# A layer in bfloat16 differs from the same layer in float32 by the rounding of its weights, its
# input and its output, which hides smaller differences. Rounded in the same way, an equal layer
# returns equal values.

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 5e-4, torch.bfloat16: 4e-3}
"""Relative error of one layer above which it counts as different.

Equal layers add at most 4e-7 in float32 with another memory format or number of threads
(``tests/accuracy/first_difference.py --noise``). In the half-width dtypes, half of all values off
by one unit in the last place are an error of 5e-4 and 4e-3.
"""

_OTHER = 1e-5


def tolerance_of(dtypes: Iterable[torch.dtype]) -> float:
    """The default tolerance for models that compute in these dtypes: that of the coarsest."""
    return max((TOLERANCES.get(dtype, _OTHER) for dtype in dtypes), default=_OTHER)


def most_common(dtypes: Iterable[torch.dtype]) -> torch.dtype:
    """The floating-point dtype that occurs most often; float32 if there is none."""
    counted = Counter(dtype for dtype in dtypes if dtype.is_floating_point)
    return counted.most_common(1)[0][0] if counted else torch.float32


def converted(model: nn.Module, like: nn.Module, default: torch.dtype) -> nn.Module:
    """A copy of a model in the dtypes of another one, on the device of the model.

    Args:
        model: The model to copy.
        like: Parameters and buffers of the same name determine the dtypes.
        default: Dtype of the floating-point tensors that ``like`` does not have.
    """
    twin, known = copy.deepcopy(model), {name: t.dtype for name, t in _named_tensors(like)}
    for name, tensor in _named_tensors(twin):
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(known.get(name, default))
    return twin


def _named_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers; those that modules share occur under each of their names."""
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)


_OPTION = re.compile(r", (?=\w+=)")
"""What separates the options in the text of a module, such as "3, 8, kernel_size=(3, 3)"."""


class Rows:
    """Makes one row per layer call, and one per place between layers that adds too much.

    If a layer that only one of the models runs changes its input, what arrives behind it is
    attributed to that layer.

    Args:
        comparison: The paired layer calls and their errors.
        tolerance: Relative error above which a layer or a place between layers is different.
    """

    def __init__(self, comparison: Comparison, tolerance: float) -> None:
        self._comparison, self._tolerance = comparison, tolerance
        self._modules = [named_layers(model) for model in comparison.models]
        self._functions = lru_cache(comparison.functions)
        self._rows: list[LayerDifference] = []
        self._alone: list[int] = []
        self._before, self._error_before = "the input", Error(0.0)

    def all(self) -> tuple[LayerDifference, ...]:
        """The rows, in order of execution."""
        for first, second in self._comparison.pairs:
            if first is not None and second is not None:
                self._pair(first, second)
            elif first is not None:
                self._only(first, 0)
            elif second is not None:
                self._only(second, 1)
        self._between("the output", None, None)
        return tuple(self._rows)

    def _only(self, call: LayerCall, side: int) -> None:
        """Add a row for a call that one of the models (0 or 1) makes."""
        if (side, call.label) in self._comparison.changing:
            self._alone.append(len(self._rows))
        note = f"only {'AB'[side]} runs it"
        self._rows.append(LayerDifference(call.label, None, None, None, call.type, note))

    def _pair(self, first: LayerCall, second: LayerCall) -> None:
        natural, lockstep, label = self._comparison.natural, self._comparison.lockstep, second.label
        self._between(f"`{first.label}`", first.label, label)
        error_in, error_out = natural[label, "input"], natural[label, "output"]
        received, added = lockstep[label, "input"], lockstep[label, "output"]
        notes = [] if first.layer == second.layer else [f"`{label}` in B"]
        if received.has_other_shapes and added.has_other_shapes:
            added = Error(reason="not compared: its input has another shape in B")
        if is_different(added.relative, self._tolerance):
            notes += causes(self._modules[0][first.layer], self._modules[1][second.layer])
        notes.append(f"output {added.reason}" if added.has_other_shapes else added.reason)
        self._rows.append(
            LayerDifference(
                first.label,
                error_in.relative,
                error_out.relative,
                added.relative,
                first.type,
                _joined(notes),
                error_out.nonfinite,
            )
        )
        self._before, self._error_before = f"`{first.label}`", error_out
        self._alone.clear()

    def _between(self, after: str, first: str | None, second: str | None) -> None:
        """Add a row for the code before a call, whose labels are given, or before the output.

        If a layer that only one model runs comes before it, the error is attributed to that layer.
        """
        added = self._comparison.lockstep[second, "input"]
        arriving = self._comparison.natural[second, "input"]
        if not is_different(added.relative, self._tolerance):
            return
        if added.has_other_shapes and added.reason == self._error_before.reason:
            return  # passed on from the layer before
        row = LayerDifference(
            f"between {self._before} and {after}",
            self._error_before.relative,
            arriving.relative,
            added.relative,
        )
        if self._alone:
            alone = self._rows[self._alone[0]]
            note = _joined([alone.note, added.reason])
            self._rows[self._alone[0]] = replace(row, name=alone.name, type=alone.type, note=note)
            return
        called = described(self._functions(0).get(first, ()), self._functions(1).get(second, ()))
        self._rows.append(replace(row, note=_joined([added.reason, called])))


def _joined(notes: Iterable[str]) -> str:
    return "; ".join(filter(None, notes))


def causes(first: nn.Module, second: nn.Module) -> Iterator[str]:
    """What differs between two modules, in words; nothing if no difference can be seen."""
    types = [type(module).__name__ for module in (first, second)]
    has_other_options = first.extra_repr() != second.extra_repr()
    if types[0] != types[1]:
        yield f"{types[0]} in A, {types[1]} in B"
    elif has_other_options:
        options = [_options(module) for module in (first, second)]
        own = [option for option in options[0] if option not in options[1]]
        other = [option for option in options[1] if option not in options[0]]
        yield f"{', '.join(own) or 'nothing'} in A, {', '.join(other) or 'nothing'} in B"
    if first.training != second.training:
        modes = ["train" if module.training else "eval" for module in (first, second)]
        yield f"{modes[0]} mode in A, {modes[1]} mode in B"
    is_alike = types[0] == types[1] and not has_other_options
    yield from _tensors(first, second, with_shapes=is_alike)


def _options(module: nn.Module) -> list[str]:
    """The options, such as ``["Conv2d(3, 8)", "kernel_size=(3, 3)"]``."""
    found = _OPTION.split(module.extra_repr())
    if "=" not in found[0]:
        found[0] = f"{type(module).__name__}({found[0]})"
    return found


def _tensors(first: nn.Module, second: nn.Module, *, with_shapes: bool) -> Iterator[str]:
    """What differs between their tensors; shapes follow from the options if these differ."""
    mine, other = (_state(module) for module in (first, second))
    for name in [*mine, *(name for name in other if name not in mine)]:
        if name not in mine or name not in other:
            yield f"{name} only in {'A' if name in mine else 'B'}"
            continue
        one, two = mine[name], other[name]
        for what in ("dtype", "device"):
            if getattr(one, what) != getattr(two, what):
                values = [str(getattr(t, what)).removeprefix("torch.") for t in (one, two)]
                yield f"{name} is {values[0]} in A, {values[1]} in B"
        error = error_between([one], [two])
        if error.has_other_shapes and not with_shapes:
            continue
        if error.reason:
            yield f"{name}: {error.reason}"
        elif error.relative:
            yield f"relative error of {name} {error.relative:.2g}"


def _state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, also those that are not saved."""
    found = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    # BatchNorm counts its batches for nothing but a momentum of None.
    return {name: t for name, t in found.items() if not name.endswith("num_batches_tracked")}
