"""Rows of the result, from the errors of paired layer calls, and how paired layers differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from torch import Tensor, nn

from fmapboard.model.layers import named_layers
from fmapboard.model_comparison.comparison import Comparison
from fmapboard.model_comparison.functions import described
from fmapboard.model_comparison.relative_error import Error, error_between
from fmapboard.model_comparison.result import LayerDifference, is_different
from fmapboard.records import LayerCall

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
            notes.append(causes(self._modules[0][first.layer], self._modules[1][second.layer]))
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
