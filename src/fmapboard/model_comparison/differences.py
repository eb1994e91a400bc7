"""Where two models differ, layer by layer: what ``diff`` returns and how it prints."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from fmapboard.errors import escaped
from fmapboard.formats.model_difference import MAX_ROWS, DifferenceRow, DifferenceTable
from fmapboard.printing import Table, add_row, as_text, new_table


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
    error_in: float | None = None
    error_out: float | None = None
    added: float | None = None
    type: str = ""
    note: str = ""
    nonfinite: tuple[int, int] = (0, 0)

    def as_json(self) -> dict[str, Any]:
        """The attributes; infinite errors, which JSON does not have, are null."""
        attributes = asdict(self)
        for name in ("error_in", "error_out", "added"):
            if attributes[name] == math.inf:
                attributes[name] = None
        attributes["nonfinite"] = list(self.nonfinite)
        return attributes


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
    def table(self) -> DifferenceTable:
        """What is stored of it: the table as it prints."""
        rows = []
        for row in self.layers[:MAX_ROWS]:
            shown = DifferenceRow(
                name=row.name,
                type=row.type,
                error_in=_shown(row.error_in),
                error_out=_shown(row.error_out),
                added=_shown(row.added),
                note=row.note,
                is_different=is_different(row.added, self.tolerance),
            )
            rows.append(shown)
        return DifferenceTable(
            tolerance=self.tolerance,
            compared=len(self.layers),
            different=len(self.different),
            rows=tuple(rows),
        )

    @property
    def summary(self) -> str:
        """One line: the first difference and how it differs, or that there is none."""
        if self.first is None:
            text = f"no difference above {self.tolerance:g} in {len(self.layers)} layers"
        else:
            text = self._first_difference(self.first)
        for row in self.layers:
            if any(row.nonfinite):
                return f"{text}; NaN or infinite values first in `{row.name}`"
        return text

    def _first_difference(self, name: str) -> str:
        first, *others = self.different
        place = f"`{name}`" if first.type else name
        text = f"first difference: {place}"
        if first.note:
            text += f" ({first.note})"
        if len(others) == 1:
            text += "; 1 more differs"
        elif others:
            text += f"; {len(others)} more differ"
        return text

    def __repr__(self) -> str:
        return f"{as_text(difference_table(self))}\n{escaped(self.summary, keep='')}"


def difference_table(found: ModelDifference) -> Table:
    """One row per layer; those that differ are bold where there is a terminal."""
    table = new_table()
    table.add_column("layer", overflow="fold")
    table.add_column("type", no_wrap=True)
    for heading in ("error in", "error out", "added"):
        table.add_column(heading, no_wrap=True, justify="right")
    table.add_column("", overflow="fold")
    for row in found.layers:
        errors = map(_shown, (row.error_in, row.error_out, row.added))
        style = "bold" if is_different(row.added, found.tolerance) else None
        add_row(table, row.name, row.type, *errors, row.note, style=style)
    return table


def is_different(added: float | None, tolerance: float) -> bool:
    """True if an added error exceeds the tolerance."""
    return added is not None and added > tolerance


def _shown(error: float | None) -> str:
    """An error for people to read."""
    if error is None:
        return "–"
    return "0" if error == 0 else f"{error:.1e}"
