"""One row per layer call, and one per place between layers where functions add too much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from fmapboard.model.layers import named_layers
from fmapboard.model_comparison.causes import causes
from fmapboard.model_comparison.comparison import Comparison
from fmapboard.model_comparison.differences import LayerDifference, ModelDifference, is_different
from fmapboard.model_comparison.dtypes import tolerance_of
from fmapboard.model_comparison.layer_calls import described
from fmapboard.model_comparison.relative_error import Error
from fmapboard.records import LayerCall


def difference_of(comparison: Comparison, tolerance: float | None) -> ModelDifference:
    """The rows, and the first difference above a tolerance; None for that of the dtypes."""
    if tolerance is None:
        tolerance = tolerance_of(*comparison.dtypes)
    rows = Rows(comparison, tolerance).all()
    different = [row.name for row in rows if is_different(row.added, tolerance)]
    first = different[0] if different else None
    dtype_a, dtype_b = map(str, comparison.dtypes)
    names = (dtype_a.removeprefix("torch."), dtype_b.removeprefix("torch."))
    return ModelDifference(first, rows, tolerance, names)


class Rows:
    """Makes the rows of a comparison.

    If a layer that only one of the models runs changes its input, what arrives behind it is
    attributed to that layer.

    Args:
        comparison: The paired layer calls and their errors.
        tolerance: Relative error above which a layer or a place between layers is different.
    """

    def __init__(self, comparison: Comparison, tolerance: float) -> None:
        self._comparison = comparison
        self._tolerance = tolerance
        self._modules = [named_layers(model) for model in comparison.models]
        self._functions = lru_cache(comparison.functions)
        self._rows: list[LayerDifference] = []
        self._alone: int | None = None
        """Index of the row of the layer that only one model runs, since the last pair."""
        self._before = "the input"
        self._error_before = Error(0.0)

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
        if self._alone is None:
            key = (side, call.label)
            if key in self._comparison.changing:
                self._alone = len(self._rows)
        model = "AB"[side]
        row = LayerDifference(call.label, type=call.type, note=f"only {model} runs it")
        self._rows.append(row)

    def _pair(self, first: LayerCall, second: LayerCall) -> None:
        """Add a row for a call that both models make."""
        place = f"`{first.label}`"
        label = second.label
        self._between(place, first.label, label)
        natural = self._comparison.natural
        lockstep = self._comparison.lockstep
        returned = natural[label, "output"]
        added = lockstep[label, "output"]
        received = lockstep[label, "input"]
        if received.has_other_shapes and added.has_other_shapes:
            added = Error(reason="not compared: its input has another shape in B")
        notes = []
        if first.layer != second.layer:
            notes.append(f"`{label}` in B")
        if is_different(added.relative, self._tolerance):
            modules_a, modules_b = self._modules
            module_a = modules_a[first.layer]
            module_b = modules_b[second.layer]
            notes += causes(module_a, module_b)
        if added.has_other_shapes:
            notes.append(f"output {added.reason}")
        else:
            notes.append(added.reason)
        row = LayerDifference(
            first.label,
            error_in=natural[label, "input"].relative,
            error_out=returned.relative,
            added=added.relative,
            type=first.type,
            note=_joined(notes),
            nonfinite=returned.nonfinite,
        )
        self._rows.append(row)
        self._before = place
        self._error_before = returned
        self._alone = None

    def _between(self, after: str, first: str | None, second: str | None) -> None:
        """Add a row for the code before a call, whose labels are given, or before the output.

        If a layer that only one model runs comes before it, the error is attributed to that layer.
        """
        added = self._comparison.lockstep[second, "input"]
        natural = self._comparison.natural[second, "input"]
        before = self._error_before
        if not is_different(added.relative, self._tolerance):
            return
        if added.has_other_shapes and added.reason == before.reason:
            return  # passed on from the layer before
        row = LayerDifference(
            f"between {self._before} and {after}",
            error_in=before.relative,
            error_out=natural.relative,
            added=added.relative,
        )
        if self._alone is None:
            functions_a = self._functions(0).get(first, ())
            functions_b = self._functions(1).get(second, ())
            functions = described(functions_a, functions_b)
            note = _joined([added.reason, functions])
            self._rows.append(replace(row, note=note))
            return
        alone = self._rows[self._alone]
        note = _joined([alone.note, added.reason])
        attributed = replace(row, name=alone.name, type=alone.type, note=note)
        self._rows[self._alone] = attributed


def _joined(notes: Iterable[str]) -> str:
    return "; ".join(filter(None, notes))
