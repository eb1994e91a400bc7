"""What is wrong in a run, in words: of its health table, and of the checks while it was logged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fmapboard.formats import tags
from fmapboard.formats.checks import unpack_checks
from fmapboard.formats.tab_records import PLUGIN_NAME, FormatError
from fmapboard.health.checks.growth import MAGNITUDES
from fmapboard.health.checks.layers import DEAD_ADVICE, DEAD_MEANING
from fmapboard.health.checks.weights import UnchangedWeightsCheck
from fmapboard.health.finding import Finding
from fmapboard.health.layer_findings import LayerFinding
from fmapboard.health.layer_findings import findings as find
from fmapboard.health.table import HealthRow, HealthTable
from fmapboard.plugin.data_source import Reader
from fmapboard.plugin.health_tables import health_table
from fmapboard.plugin.http import Answer, Query
from fmapboard.plugin.overview_series import unread_step

_OF_KIND = {
    "large": "The weights grow, or the inputs are not scaled; float16 overflows at 65,504. Lower "
    "the learning rate, clip the gradients, or add normalization layers.",
    "dead": f"{DEAD_MEANING}. {DEAD_ADVICE}.",
    "constant": "These channels tell nothing about the input. Look at the layer's weights, and at "
    "what it receives.",
    "unchanged": "The layer is frozen, or its updates are too small for its number format. Nothing "
    "is wrong if that is intended.",
}


def explanation(found: LayerFinding, stored: Sequence[Finding]) -> str:
    """Sentences on a finding of the table; "" if nothing is known.

    Args:
        found: the finding.
        stored: what the checks found while the run was logged; they know the cause of a non-finite
            value.
    """
    if found.kind != "nonfinite":
        return _OF_KIND.get(found.kind, "")
    place = (found.kind, found.name, found.since, found.label)
    same = (
        each
        for each in stored
        if (each.kind, each.model, each.since_step, each.layer or "") == place
    )
    return next((each.explanation for each in same), "")


_FROM_TABLE = frozenset({"nonfinite", "dead"})
"""Kinds that follow from the table of all kept steps, which may be newer than the record."""
_SEVERITY = {"warning": 3, "note": 1}


def stored_findings(reader: Reader, run: str, table: HealthTable) -> list[Finding]:
    """The findings of the newest record of each model."""
    names = sorted({row.name for row in table.rows})
    series = {tags.prefix(name) + tags.CHECKS: name for name in names}
    found = reader.points(PLUGIN_NAME, run, list(series)) if series else {}
    newest = [(series[tag], points[-1]) for tag, points in found.items() if points]
    blobs = reader.blobs([(point, 0) for _, point in newest if point.blobs], keep=False)
    listed: list[Finding] = []
    for (name, _), blob in zip([of for of in newest if of[1].blobs], blobs, strict=True):
        try:
            listed += [Finding(**asdict(each), model=name) for each in unpack_checks(blob)]
        except FormatError:
            continue
    return listed


def checked(stored: Sequence[Finding], table: HealthTable) -> list[dict[str, Any]]:
    """The lines of stored findings, besides those that the table tells."""
    return [_line(each, table) for each in stored if each.kind not in _FROM_TABLE]


def without_repeats(
    lines: list[dict[str, Any]], told: Sequence[LayerFinding], table: HealthTable
) -> list[dict[str, Any]]:
    """Leave out growing magnitudes of a layer if its large magnitudes are reported for those steps.

    Args:
        lines: findings of the checks.
        told: findings from the table.
        table: the states of all layers at all steps.
    """
    end = table.steps[-1] if table.steps else 0
    large = {
        (found.name, found.label): end if found.until is None else found.until
        for found in told
        if found.kind == "large"
    }
    for row in table.rows:  # what is found in an activation is about the layer before it
        if row.facts.activation and (row.name, row.facts.label) in large:
            last = large[row.name, row.facts.label]
            large.setdefault((row.name, row.facts.activation), last)
    return [
        line
        for line in lines
        if not line["message"].startswith(MAGNITUDES)
        or line["since"] > large.get((line["name"], line["label"]), -math.inf)
    ]


def in_one_line(
    lines: list[dict[str, Any]], told: Sequence[LayerFinding]
) -> tuple[list[dict[str, Any]], list[LayerFinding]]:
    """Both lists, without findings of unchanged weights that the checks report for the same layer.

    The check's finding then also counts the other layers of the finding left out: those whose
    weights no optimizer has.

    Args:
        lines: findings of the checks; the names of their parameters are taken out.
        told: findings from the table.
    """
    repeated, said = [], [dict(line) for line in lines]
    for line in said:
        parameters = line.pop("parameters")
        if line["kind"] != UnchangedWeightsCheck.kind:
            continue
        weights = {name.rpartition(".")[0] for name in parameters}
        for found in told:
            if found.kind == "unchanged" and found.name == line["name"] and found.label in weights:
                repeated.append(found)
                line["more"] = max(0, 1 + found.more - len(parameters))
    return said, [found for found in told if found not in repeated]


def _line(finding: Finding, table: HealthTable) -> dict[str, Any]:
    row = _row(finding, table)
    is_of_layer = row is not None and finding.layer is not None
    healthy = f" (healthy: {finding.healthy})" if finding.healthy else ""
    first = table.steps[0] if table.steps else 0
    return {
        "kind": finding.kind,
        "class": finding.class_,
        "severity": _SEVERITY[finding.class_],
        "name": finding.model,
        "label": finding.layer or "",
        "key": row.key if row is not None and is_of_layer else None,
        "shown_at": None if row is None else row.shown_at,
        "since": first if finding.since_step is None else finding.since_step,
        "after": None,
        "until": None,
        "value": finding.value,
        "more": 0,
        "message": finding.message + healthy,
        "explanation": finding.explanation,
        "parameters": finding.parameters or (finding.parameter,) * (finding.parameter is not None),
    }


def _row(finding: Finding, table: HealthTable) -> HealthRow | None:
    """The layer of a finding, or the layer that has its parameter."""
    layer = finding.layer
    if layer is None and finding.parameter is not None:
        layer = finding.parameter.rpartition(".")[0]
    if not layer:
        return None
    place = (finding.model, layer)
    return next((row for row in table.rows if (row.name, row.facts.label) == place), None)


def findings(reader: Reader, query: Query) -> Answer:
    """``data/findings``: the findings of a run, ranked, and what they were looked for in.

    ``unread`` is the newest logged step if TensorBoard has not read it yet, otherwise None.
    """
    run = query.text("run")
    table = health_table(reader, run)
    told = find(table)
    stored = stored_findings(reader, run, table)
    said, told = in_one_line(without_repeats(checked(stored, table), told, table), told)
    listed = [
        {
            **asdict(found),
            "class": _class(found.kind),
            "value": _number(found.value),
            "explanation": explanation(found, stored),
        }
        for found in told
    ]
    listed += said
    listed.sort(key=lambda line: (-line["severity"], line["since"]))
    unread = unread_step(reader, run, table.rows[0].name, table.wall_times)
    return Answer(
        {
            "run": table.run,
            "layers": len(table.rows),
            "steps": len(table.steps),
            "written": table.written,
            "unread": unread,
            "findings": listed,
        }
    )


def _class(kind: str) -> str:
    """The class of what follows from the table; unchanged weights may be frozen on purpose."""
    return "warning" if kind == "nonfinite" else "note"


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
