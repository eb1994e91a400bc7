"""The lasting states of a run's layers, in words: they follow from a `HealthTable` alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from fmapboard.formats.overview import LASTING
from fmapboard.formats.training_facts import FirstNonfinite
from fmapboard.health.states import MAJOR, MINOR, ROUNDING, is_activation, states
from fmapboard.health.table import HealthTable, after_activation, call_text

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
    last = np.zeros_like(flags)  # steps at which such a run is as long
    last[least - 1 :] = sliding_window_view(flags, least, axis=0).all(-1)
    return back_to_start(last, flags)


def back_to_start(late: Flags, flags: Flags) -> Flags:
    """``late`` [steps, rows], extended back to the start of each run of ``flags`` that it is in."""
    whole: Flags = late.copy()
    for step in range(len(flags) - 2, -1, -1):
        whole[step] |= whole[step + 1] & flags[step]
    return whole


def spells_of(table: HealthTable, kind: str, flags: Flags) -> list[Spell]:
    """One spell for each layer that is in the state at any kept step, the earliest first."""
    exact = table.since.get(kind, {})
    found = []
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
        until = None if is_last else table.steps[last]
        found.append(Spell(row, last, since, after, until, share))
    return sorted(found, key=lambda spell: spell.since)  # those of one step in network order


def when(table: HealthTable, spell: Spell) -> str:
    """When, in words: "since step 12", "from step 3 to 9", "since a step between 80 and 100".

    If each step is another image: "for image 3 (cat.jpg)", "for images 3 to 9".
    """
    if table.is_of_images:
        text = table.since_text(spell.since, table.steps[spell.last])
        return text + _partly(spell, "of them")
    began = f"step {spell.since}"
    if spell.after is not None:
        began = f"a step between {spell.after} and {spell.since}"
    if spell.until == spell.since:
        return f"at step {spell.since}"
    if spell.until is not None:
        return f"from {began} to {spell.until}"
    return f"since {began}" + _partly(spell, "of the logged steps")


def _partly(spell: Spell, of: str) -> str:
    return f", at {100 * spell.share:.0f} % {of}" if spell.share < 1 else ""


LINES = 5
"""Maximum number of findings per kind; the last of them says how many more layers there are."""
_LEAST_VALUES = 500
"""Values per channel, or of a layer that is dead as a whole, below which dead channels are not
reported: in small maps they come and go."""
_UNCHANGED_STEPS = 3
"""Kept steps over which a layer's weights must be unchanged to be reported."""


@dataclass(frozen=True, slots=True)
class LayerFinding:
    """Something that is wrong in one layer, since a step.

    Attributes:
        kind: one of `formats.overview.KINDS`.
        severity: order of the findings: 3 for non-finite values, 2 for large values and for dead or
            constant channels that are half of the layer or more, 1 for others.
        name: name of the model, as in ``watch(name=...)``; "" for none.
        label: the layer; "" if the fault is that of a parameter.
        index: that of the layer's row in the table; None if it has none.
        since: first logged step with it, or the first kept one if ``after`` is given.
        value: the share of channels, 0 to 1, or for ``large`` the largest magnitude, at the newest
            step with it.
        message: the finding in one sentence.
        more: number of further layers with a fault of this kind that have no finding of their own.
        until: last kept step with it, if a later step is without; otherwise None.
        after: last kept step without it, if there may be logged steps between the two that are no
            longer kept; otherwise None.
    """

    kind: str
    severity: int
    name: str
    label: str
    index: int | None
    since: int
    value: float
    message: str
    more: int
    until: int | None
    after: int | None = None


DEAD = (
    "These channels are 0 for the whole batch at each of these steps, so they pass no gradient "
    "there: a step was too large, or the biases are far below zero",
    "Lower the learning rate or warm it up; or use a leaky activation",
)
"""What dead channels may mean, and what to do."""
OFF = ("These channels are 0 everywhere in each of these images; others may excite them", "")
"""The same for a run of images, which says nothing about training."""
MEANINGS = {
    "large": "The weights grow, or the inputs are not scaled; float16 overflows at 65,504.",
    "dead": "These channels are 0 for the whole batch at each of these steps, so they pass no "
    "gradient there. Many healthy networks have some; from half of a layer on it is a finding.",
    "constant": "These channels tell nothing about the input.",
    "unchanged": "The layer is frozen, or its updates are too small for its number format. Nothing "
    "is wrong if that is intended.",
}
"""What a state may mean, in sentences, by kind: without advice, since it is no finding."""
MEANINGS_OF_IMAGES = {
    "large": "The images are not scaled as the network expects them, or its weights are large; "
    "float16 overflows at 65,504.",
    "dead": f"{OFF[0]}.",
    "constant": MEANINGS["constant"],
}
"""The same for a run of images."""

Place = tuple[str, str, str]
"""Kind of state, name of the model, and label of a layer."""


def findings(table: HealthTable, told: Collection[Place] = ()) -> list[LayerFinding]:
    """Everything that is wrong, the most severe first; equally severe, the earliest first.

    Args:
        table: the health of the run.
        told: states of layers to leave out, since a check has said them.

    - Non-finite values: the first layer that had them is named, and the number of others.
    - Large values: magnitudes of at least `health.states.LARGE`.
    - Dead channels: at least a tenth of a layer's channels dead at each of the last four logged
      steps, in maps of at least 500 values per channel, or all of a layer of as many values.
    - Constant channels of drawn layers, at four kept steps in a row.
    - Weights that did not change over the last three kept steps or more, except in a run of images.
    """
    if not table.steps or not table.rows:
        return []
    own = is_activation([row.facts for row in table.rows], table.columns["dead"])
    flags = {kind: codes > 0 for kind, codes in states(table.columns, own).items()}
    # Dead channels that last have been dead since before they had been so for `LASTING` steps; in
    # small maps they do not tell anything.
    lasting = back_to_start(flags["dead"] & (table.columns["dead_lasting"] >= MINOR), flags["dead"])
    values = np.array([row.facts.values for row in table.rows])
    of_all = values * [row.facts.channels for row in table.rows]
    counted = np.where(table.columns["dead"] >= 1 - ROUNDING, of_all, values)
    flags["dead"] = lasting & (counted >= _LEAST_VALUES)
    # Of layers that are not drawn, constant channels behind dead ones are no news.
    is_drawn = np.array([row.key is not None for row in table.rows])
    flags["constant"] = in_a_row(flags["constant"] & is_drawn, LASTING)
    whole = _whole(table, flags)
    flags |= {kind: flags[kind] & ~_behind(table, whole) for kind in ("dead", "constant")}
    # The activation behind a layer is in the same state.
    behind = {(row.name, row.facts.activation): row.facts.label for row in table.rows}
    for index, row in enumerate(table.rows):
        label = row.facts.label
        for kind in flags:
            labels = {label, behind.get((row.name, label), label)}
            if any((kind, row.name, each) in told for each in labels):
                flags[kind][:, index] = False
    found = [
        *_nonfinite(table, flags["nonfinite"], {of for kind, of, _ in told if kind == "nonfinite"}),
        *_large(table, flags["large"]),
        *_channels(table, "dead", flags["dead"], whole),
        *_channels(table, "constant", flags["constant"], whole),
        *_unchanged(table, flags["unchanged"]),
    ]
    return sorted(found, key=lambda finding: (-finding.severity, finding.since))


def _nonfinite(table: HealthTable, flags: Flags, known: set[str]) -> list[LayerFinding]:
    share = table.columns["nonfinite"]
    spells = spells_of(table, "nonfinite", flags)
    told = table.first_nonfinite
    if told is not None and told.name not in known and (not spells or told.step <= spells[0].since):
        return [_first_told(table, told, spells)]
    if not spells:
        return []
    first, more = spells[0], len(spells) - 1
    where = f"first in {_named(table, first.row)}{further(more)}"
    text = f"non-finite values {when(table, first)}, {where}"
    return [_finding(table, "nonfinite", 3, first, share[first.last, first.row], text, more)]


def _first_told(table: HealthTable, told: FirstNonfinite, spells: list[Spell]) -> LayerFinding:
    """The finding for the first non-finite value that `watch` wrote a text about."""
    row = table.index(told.name, told.label)
    own = next((spell for spell in spells if spell.row == row), None)
    more = len(spells) - (own is not None)
    where = f"the {told.where}"
    if row is not None:
        tensor = "" if told.place == "feature_maps" else f"the {told.tensor} of "
        where = tensor + _named(table, row)
    elif told.label is not None:
        where = where.replace("`", "")
    place = f"first in {where}"
    if told.label is None:  # the model's order is not the order in which they get gradients
        place = f"in {where} (of such parameters the first in the model's order)"
    kinds = " and ".join(told.found.kinds).replace("-Inf", "−Inf")
    last, until = (own.last, own.until) if own is not None else (-1, None)
    share = math.nan if row is None else float(table.columns["nonfinite"][last, row])
    began = f"at {table.step_text(told.step)}"
    if not table.is_of_images and own is not None and own.until is None and own.share == 1:
        began = f"since step {told.step}"  # the whole layer is non-finite from then on
    text = f"{kinds} {began}, {place}{further(more)}"
    label = told.label or ""
    return LayerFinding("nonfinite", 3, told.name, label, row, told.step, share, text, more, until)


def _percent(share: float) -> str:
    return f"{math.floor(100 * share + 0.5)} %"  # as the front end rounds


def further(more: int) -> str:
    """The end of a message that names the first of several layers."""
    return f"; then in {more} further layer{'s' * (more > 1)}" if more else ""


def _large(table: HealthTable, flags: Flags) -> Iterator[LayerFinding]:
    magnitudes = table.magnitudes
    for spell, more in _limited(_without_followers(table, spells_of(table, "large", flags))):
        value = float(magnitudes[spell.last, spell.row])
        text = f"magnitudes up to {value:.2g} in {_named(table, spell.row)} {when(table, spell)}"
        yield _finding(table, "large", 2, spell, value, text, more)


def _without_followers(table: HealthTable, spells: list[Spell]) -> list[Spell]:
    """Leave out activations whose preceding layer is in the same state."""
    named = {
        (table.rows[spell.row].name, table.rows[spell.row].facts.activation) for spell in spells
    }
    rows = table.rows
    return [s for s in spells if (rows[s.row].name, rows[s.row].facts.label) not in named]


def _whole(table: HealthTable, flags: Mapping[str, Flags]) -> Flags:
    """[steps, rows]: all channels of a layer are dead or constant, so that it passes nothing on."""
    kinds = "dead", "constant"
    found: Flags = np.logical_or.reduce(
        [flags[kind] & (table.columns[kind] >= 1 - ROUNDING) for kind in kinds]
    )
    return found


def _behind(table: HealthTable, whole: Flags) -> Flags:
    """[steps, rows]: such layers behind others of their model, from which that follows."""
    found = np.zeros_like(whole)
    for name in {row.name for row in table.rows}:
        own = [index for index, row in enumerate(table.rows) if row.name == name]
        before = np.logical_or.accumulate(whole[:, own], axis=1)
        found[:, own[1:]] = (whole[:, own] & np.roll(before, 1, axis=1))[:, 1:]
    return found


def _channels(table: HealthTable, kind: str, flags: Flags, whole: Flags) -> Iterator[LayerFinding]:
    shares = table.columns[kind]
    overtaken = table.columns["nonfinite"] > 0
    spells = [
        spell
        for spell in _without_followers(table, spells_of(table, kind, flags))
        if spell.until is None or overtaken[spell.last + 1, spell.row]
    ]
    share = {spell.row: float(shares[spell.last, spell.row]) for spell in spells}
    spells.sort(key=lambda spell: share[spell.row] < MAJOR)
    for spell, more in _limited(spells):
        value, row = share[spell.row], table.rows[spell.row]
        first = int(np.flatnonzero(flags[:, spell.row])[0])
        began, now = _percent(float(shares[first, spell.row])), _percent(value)
        count = row.facts.channels
        where = _named(table, spell.row)
        if kind == "dead":
            where += after_activation(table, row)
        if whole[spell.last, spell.row]:
            behind = whole[spell.last, spell.row + 1 :]
            named = [one.facts.kernel_shape is not None for one in table.rows[spell.row + 1 :]]
            more += int((behind & np.array(named, bool)).sum())
        word = "off" if kind == "dead" and table.is_of_images else kind
        text = f"{now} of {count} channels {word} in {where} {when(table, spell)}"
        if began != now:
            ends = (table.step_text(table.steps[at]) for at in (first, spell.last))
            text = f"channels {word} in {where} {when(table, spell)}: {began} of {count} at "
            text += f", {now} at ".join(ends)
        yield _finding(table, kind, 2 if value >= MAJOR else 1, spell, value, text, more)


def _unchanged(table: HealthTable, unchanged: Flags) -> list[LayerFinding]:
    if table.is_of_images:
        return []
    flags = in_a_row(unchanged, _UNCHANGED_STEPS)
    # ``since`` is the step before the first at which they are unchanged, which has no mark.
    flagged = replace(table, since={})
    same_as = table.since.get("unchanged", {})
    spells = [spell for spell in spells_of(flagged, "unchanged", flags) if spell.until is None]
    if not spells:
        return []
    first, more = spells[0], len(spells) - 1
    before = same_as.get(first.row)
    if before is not None and first.after is not None:
        first = replace(first, after=max(first.after, before))
    text = f"weights of {_named(table, first.row)} unchanged {when(table, first)}"
    if before is not None:
        text += f" (the same as at step {before})"
    if more:
        text += f", and those of {more} further layer{'s' * (more > 1)}"
    return [_finding(table, "unchanged", 1, first, 0.0, text, more)]


def _limited(spells: list[Spell]) -> Iterator[tuple[Spell, int]]:
    """The first `LINES` spells, each with the number of those left out: 0 but for the last."""
    for index, spell in enumerate(spells[:LINES]):
        yield spell, max(0, len(spells) - LINES) if index == LINES - 1 else 0


def _named(table: HealthTable, row: int) -> str:
    return call_text(table, table.rows[row], with_model=True)


def _finding(
    table: HealthTable,
    kind: str,
    severity: int,
    spell: Spell,
    value: float,
    message: str,
    more: int,
) -> LayerFinding:
    row = table.rows[spell.row]
    return LayerFinding(
        kind, severity, row.name, row.facts.label, spell.row, spell.since, float(value), message,
        more, spell.until, spell.after,
    )  # fmt: skip
