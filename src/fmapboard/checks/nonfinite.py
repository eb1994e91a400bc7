"""NaN and infinite values: where they are first, and what the record tells about the cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.checks.finding import Finding
from fmapboard.checks.health_table import HealthTable
from fmapboard.checks.layer_findings import PARAMETER, LayerFinding, findings
from fmapboard.checks.nonfinite_cause import Evidence, Place, cause
from fmapboard.checks.run_record import RunRecord


@dataclass(frozen=True, slots=True)
class NonfiniteCheck:
    """NaN or infinite values in activations or gradients at any logged step."""

    kind: ClassVar[str] = "nonfinite"

    def __call__(self, record: RunRecord) -> Sequence[Finding]:
        """See `Check`."""
        table = record.layers()
        for found in findings(table):
            if found.kind == self.kind:
                return [self._finding(record, table, found)]
        return []

    def _finding(self, record: RunRecord, table: HealthTable, found: LayerFinding) -> Finding:
        row = _row(table, found.label)
        text = _text(table, found)
        parameter = text.partition(PARAMETER)[2] if not found.label else ""
        meaning, advice = cause(Evidence(record, table, found.since, row, _place(text), text))
        return Finding(
            kind=self.kind,
            class_="warning",
            message=found.message,
            since_step=found.since,
            layer=found.label or None,
            parameter=parameter or None,
            value=found.value,
            meaning=meaning,
            advice=advice,
            picture="" if row is None else record.picture(table.rows[row]),
        )


def _text(table: HealthTable, found: LayerFinding) -> str:
    """What `watch` wrote about the place of a finding; "" if the finding is from other numbers."""
    told = table.first_nonfinite
    if told is None or (told["step"], told["label"] or "") != (found.since, found.label):
        return ""
    return told["text"]


def _place(text: str) -> Place:
    if PARAMETER in text:
        return "parameter gradient"
    if "in the gradient of the activations" in text:
        return "activation gradient"
    return "input" if "in the input of layer" in text else "output"


def _row(table: HealthTable, label: str) -> int | None:
    labels = (index for index, row in enumerate(table.rows) if row.facts.label == label)
    return next(labels, None)
