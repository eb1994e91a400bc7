"""Over which kept steps a layer is in a state, and how to say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fmapboard.checks.health_table import HealthTable

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spell:
    """The kept steps at which a layer is in a state, from the first to the last of them.

    Attributes:
        row: the layer.
        last: index of the last kept step with it.
        since: first logged step with it, or the first kept one if ``after`` is given.
        after: last kept step without it, if there may be logged steps between the two that are no
            longer kept; otherwise None.
        until: last kept step with it, if a later step is without; otherwise None.
        share: share of the kept steps from the first to the last that have it.
    """

    row: int
    last: int
    since: int
    after: int | None
    until: int | None
    share: float


def in_a_row(flags: Flags, least: int) -> Flags:
    """Flags [steps, rows] that belong to a run of at least ``least`` steps."""
    least = min(least, len(flags))
    length = np.zeros(flags.shape[1], np.intp)
    lengths = np.zeros(flags.shape, np.intp)
    for step, now in enumerate(flags):
        length = np.where(now, length + 1, 0)
        lengths[step] = length
    return back_to_start(lengths >= least, flags)


def back_to_start(late: Flags, flags: Flags) -> Flags:
    """``late`` [steps, rows], extended back to the start of each run of ``flags`` that it is in."""
    whole: Flags = late.copy()
    for step in range(len(flags) - 2, -1, -1):
        whole[step] |= whole[step + 1] & flags[step]
    return whole


def spells(table: HealthTable, kind: str, flags: Flags) -> Iterator[Spell]:
    """One spell for each layer that is in the state at any kept step."""
    exact = table.since.get(kind, {})
    has_gaps = table.written > len(table.steps)
    for row in np.flatnonzero(flags.any(0)).tolist():
        at = np.flatnonzero(flags[:, row])
        first, last = int(at[0]), int(at[-1])
        is_last = last == len(table.steps) - 1
        since, after = table.steps[first], None
        share = len(at) / (last - first + 1)
        if is_last and share == 1 and row in exact:
            since = exact[row]
        elif has_gaps and first > 0:
            after = table.steps[first - 1]
        yield Spell(row, last, since, after, None if is_last else table.steps[last], share)


def when(table: HealthTable, spell: Spell) -> str:
    """When, in words: "since step 12", "from step 3 to 9", "since a step between 80 and 100".

    If each step is another image: "for image 3 (cat.jpg)", "for images 3 to 9".
    """
    if table.is_of_images:
        last = table.steps[spell.last]
        if last == spell.since:
            return f"for {table.step_text(last)}"
        return f"for images {spell.since} to {last}" + _partly(spell, "of them")
    began = f"step {spell.since}"
    if spell.after is not None:
        began = f"a step between {spell.after} and {spell.since}"
    if spell.until is not None:
        return (
            f"at step {spell.since}"
            if spell.until == spell.since
            else f"from {began} to {spell.until}"
        )
    return f"since {began}" + _partly(spell, "of the logged steps")


def _partly(spell: Spell, of: str) -> str:
    return f", at {100 * spell.share:.0f} % {of}" if spell.share < 1 else ""
