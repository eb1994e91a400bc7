"""Names of layer calls in sentences, as the tab names them: ``relu (call 2, behind conv2)``."""

from __future__ import annotations

from fmapboard.checks.health_table import HealthRow, HealthTable


def call_text(table: HealthTable, row: HealthRow, *, with_model: bool = False) -> str:
    """The layer of a row between backticks, followed by its call if that is not the first.

    Args:
        table: has the row, and the layers before it.
        row: the layer call.
        with_model: begin with the name of the model, if it has one.
    """
    facts, call = row.facts, ""
    if facts.call > 1:
        before = [
            other.facts.label
            for other in table.rows
            if (other.name, other.facts.activation) == (row.name, facts.label)
        ]
        call = f" (call {facts.call}{f', behind `{before[0]}`' if before else ''})"
    return f"`{f'{row.name}: ' if row.name and with_model else ''}{facts.layer}`{call}"


def after_activation(table: HealthTable, row: HealthRow) -> str:
    """`` (after `relu`, call 2)`` if a row's numbers are those behind an activation; else ""."""
    label = row.facts.activation
    if not label:
        return ""
    rows = (other.facts for other in table.rows if other.name == row.name)
    facts = next((facts for facts in rows if facts.label == label), None)
    if facts is None or facts.call == 1:
        return f" (after `{label}`)"
    return f" (after `{facts.layer}`, call {facts.call})"
