"""Rows of the result, from the errors of paired layer calls, and how paired layers differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from torch import Tensor, nn

from fmapboard.model.layers import named_layers
from fmapboard.model_comparison.functions import Functions, described
from fmapboard.model_comparison.pairs import Pair
from fmapboard.model_comparison.relative_error import Error, error_between
from fmapboard.model_comparison.result import LayerDifference, is_different
from fmapboard.records import LayerCall

K = TypeVar("K")

_OPTION = re.compile(r", (?=\w+=)")
"""What separates the options in the text of a module, such as "3, 8, kernel_size=(3, 3)"."""


@dataclass(slots=True)
class Measured:
    """Errors of the second model's layer calls, each with a partner in the first model.

    Attributes:
        inputs: What the calls received, when both models ran on their own.
        outputs: What they returned, likewise.
        output: What the models returned, likewise.
        received: What the code before each call adds.
        added: What each call adds.
        end: What the code after the last call adds.
        identities: Calls without a partner that returned what they received: (0, call) of the
            first model, (1, call) of the second one.
    """

    inputs: Mapping[str, Error] = field(default_factory=dict)
    outputs: Mapping[str, Error] = field(default_factory=dict)
    output: Error = field(default_factory=Error)
    received: Mapping[str, Error] = field(default_factory=dict)
    added: Mapping[str, Error] = field(default_factory=dict)
    end: Error = field(default_factory=Error)
    identities: set[tuple[int, str]] | None = None

    def worst(self, other: Measured) -> Measured:
        """The errors of several batches as one."""
        both = [found for found in (self.identities, other.identities) if found is not None]
        return Measured(
            _worst(self.inputs, other.inputs),
            _worst(self.outputs, other.outputs),
            self.output.worst(other.output),
            _worst(self.received, other.received),
            _worst(self.added, other.added),
            self.end.worst(other.end),
            set.intersection(*both) if both else None,
        )


def _worst(first: Mapping[K, Error], second: Mapping[K, Error]) -> dict[K, Error]:
    keys = dict.fromkeys([*first, *second])
    return {key: first.get(key, Error()).worst(second.get(key, Error())) for key in keys}


class Rows:
    """Makes one row per layer call, and one per place between layers that adds too much.

    If a layer that only one of the models runs changes its input, what arrives behind it is
    attributed to that layer.

    Args:
        pairs: In order of execution.
        measured: Their errors.
        tolerance: Relative error above which a layer or a place between layers is different.
        models: Both models, to say how the layers of a pair differ.
        functions: 0 or 1 -> the functions that this model calls between its layers; called if there
            is a difference between two layers.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        measured: Measured,
        tolerance: float,
        models: tuple[nn.Module, nn.Module],
        functions: Callable[[int], Functions],
    ) -> None:
        self._pairs, self._measured, self._tolerance = pairs, measured, tolerance
        self._layers = [named_layers(model) for model in models]
        self._functions = lru_cache(functions)
        self._rows: list[LayerDifference] = []
        self._alone: list[int] = []
        self._before, self._error_before = "the input", Error(0.0)

    def all(self) -> tuple[LayerDifference, ...]:
        """The rows, in order of execution."""
        for pair in self._pairs:
            first, second = pair.first, pair.second
            if first is not None and second is not None:
                self._pair(first, second)
                continue
            call = first or second
            assert call is not None  # a pair has at least one call
            side = 0 if first is not None else 1
            if (side, call.label) not in (self._measured.identities or ()):
                self._alone.append(len(self._rows))
            self._rows.append(
                LayerDifference(
                    call.label, None, None, None, call.type, f"only {'AB'[side]} runs it"
                )
            )
        self._between(self._measured.end, self._measured.output, "the output", (None, None))
        return tuple(self._rows)

    def _pair(self, first: LayerCall, second: LayerCall) -> None:
        measured, label = self._measured, second.label
        error_in = measured.inputs.get(label, Error())
        error_out = measured.outputs.get(label, Error())
        received = measured.received.get(label, Error())
        self._between(received, error_in, f"`{first.label}`", (first.label, label))
        added = measured.added.get(label, Error())
        notes = [] if first.layer == second.layer else [f"`{label}` in B"]
        if received.has_other_shapes and added.has_other_shapes:
            added = Error(reason="not compared: its input has another shape in B")
        if is_different(added.relative, self._tolerance):
            modules = [
                layers.get(call.layer)
                for layers, call in zip(self._layers, (first, second), strict=True)
            ]
            if modules[0] is not None and modules[1] is not None:
                notes.append(causes(modules[0], modules[1]))
        notes.append(f"output {added.reason}" if added.has_other_shapes else added.reason)
        self._rows.append(
            LayerDifference(
                first.label,
                error_in.relative,
                error_out.relative,
                added.relative,
                first.type,
                "; ".join(filter(None, notes)),
                error_out.nonfinite,
            )
        )
        self._before, self._error_before = f"`{first.label}`", error_out
        self._alone.clear()

    def _between(
        self, added: Error, arriving: Error, after: str, labels: tuple[str | None, str | None]
    ) -> None:
        """Add a row for the code before a layer.

        If a layer that only one model runs comes before it, the error is attributed to that layer.
        """
        if not is_different(added.relative, self._tolerance):
            return
        if added.has_other_shapes and added.reason == self._error_before.reason:
            return  # passed on from the layer before
        if self._alone:
            alone = self._rows[self._alone[0]]
            self._rows[self._alone[0]] = replace(
                alone,
                error_in=self._error_before.relative,
                error_out=arriving.relative,
                added=added.relative,
                note="; ".join(filter(None, [alone.note, added.reason])),
            )
            return
        self._rows.append(
            LayerDifference(
                f"between {self._before} and {after}",
                self._error_before.relative,
                arriving.relative,
                added.relative,
                note="; ".join(filter(None, [added.reason, self._called(labels)])),
            )
        )

    def _called(self, labels: tuple[str | None, str | None]) -> str:
        first, second = (self._functions(side).get(label, ()) for side, label in enumerate(labels))
        return described(first, second)


def causes(first: nn.Module, second: nn.Module) -> str:
    """What differs between two modules, in words; empty if nothing does that can be seen."""
    return "; ".join(_causes(first, second))


def _causes(first: nn.Module, second: nn.Module) -> Iterator[str]:
    types = [type(module).__name__ for module in (first, second)]
    has_other_options = types[0] != types[1] or first.extra_repr() != second.extra_repr()
    if types[0] != types[1]:
        yield f"{types[0]} in A, {types[1]} in B"
    elif first.extra_repr() != second.extra_repr():
        options = [_options(module) for module in (first, second)]
        own = [option for option in options[0] if option not in options[1]]
        other = [option for option in options[1] if option not in options[0]]
        yield f"{', '.join(own) or 'nothing'} in A, {', '.join(other) or 'nothing'} in B"
    if first.training != second.training:
        modes = ["train" if module.training else "eval" for module in (first, second)]
        yield f"{modes[0]} mode in A, {modes[1]} mode in B"
    yield from _tensors(first, second, with_shapes=not has_other_options)


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
