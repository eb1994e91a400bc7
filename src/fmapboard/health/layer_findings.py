"""Layers that are not finite or dead, and since when: it follows from a `HealthTable` alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fmapboard.formats.training_facts import FirstNonfinite
from fmapboard.health import thresholds
from fmapboard.health.finding import whole_percent
from fmapboard.health.states import is_activation, states
from fmapboard.health.table import HealthTable, call_text, is_normalized

Flags = npt.NDArray[np.bool_]


class Spell(NamedTuple):
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
        places = np.flatnonzero(flags[:, row])
        first = int(places[0])
        last = int(places[-1])
        is_last = last == len(table.steps) - 1
        share = len(places) / (last - first + 1)
        since = table.steps[first]
        after = None
        if is_last and share == 1 and row in exact:
            since = exact[row]
        elif has_gaps and first > 0:
            after = table.steps[first - 1]
        until = None if is_last else table.steps[last]
        spell = Spell(row=row, last=last, since=since, after=after, until=until, share=share)
        found.append(spell)
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


def _partly(spell: Spell, whole: str) -> str:
    if spell.share == 1:
        return ""
    return f", at {whole_percent(spell.share)} {whole}"


LINES = 5
"""Maximum number of findings per kind; the last of them says how many more layers there are."""


@dataclass(frozen=True, slots=True)
class NonfiniteLayer:
    """The first layer that has values that are not finite.

    Attributes:
        label: the layer; "" if the fault is that of a parameter.
        index: that of the layer's row in the table; None if it has none.
        since: first logged step with it.
        value: the share of channels, 0 to 1, at the newest step with it.
        more: number of further layers with such values.
        began: "NaN since step 30".
        place: "first in `conv1`".
    """

    label: str
    index: int | None
    since: int
    value: float
    more: int
    began: str
    place: str

    @property
    def message(self) -> str:
        """The finding in one sentence."""
        return f"{self.began}, {self.place}{further(self.more)}"


class DeadLayer(NamedTuple):
    """A layer with dead channels.

    Attributes:
        spell: since when.
        share: share of its channels at the newest step, 0 to 1.
        behind: number of layers that pass nothing on since all channels of this one are dead.
    """

    spell: Spell
    share: float
    behind: int


DEAD = (
    "These channels are 0 for the whole batch at each of these steps, so they pass no "
    "gradient there: a step was too large, or the biases are far below zero",
    "Lower the learning rate or warm it up; or use a leaky activation",
)
"""What dead channels may mean, and what to do."""
OFF = ("These channels are 0 everywhere in each of these images; others may excite them", "")
"""The same for a run of images, which says nothing about training."""


_FROM_START = "These channels pass no gradient, since the first logged step, so before this run: "
_WEIGHTS = (
    f"{_FROM_START}the layer's weights are 0, since its output is the same whatever it receives",
    "Initialize the weights at random, and check the checkpoint if one was loaded",
)
_SCALE = (
    f"{_FROM_START}the scale of the normalization behind the layer is 0, or its shift far below 0",
    "Check the initial or loaded weight (1) and bias (0) of the normalization",
)
_BIASES = (
    f"{_FROM_START}biases below zero outweigh what the weights make of the input",
    "Check whether biases are far below zero or weights far too small, when initialized or loaded, "
    "and look at the network's input",
)
"""The same for channels that are dead since the first logged step."""
OF_OWN_RULES = ("expert", "head")
"""Units whose dead ones have rules of their own: the layer passes something on all the same."""


def dead_layers(table: HealthTable) -> list[DeadLayer]:
    """Layers of which a tenth of the channels or more have been dead up to the newest step.

    At each of the last four logged steps at least, in maps of at least 500 values per channel, or
    nine of ten channels of a layer with as many values together. Those that are dead from half on
    come first, then the earliest.
    """
    flags, whole = _dead(table)
    shares = table.columns["dead"]
    has_kernels = np.array([row.facts.kernel_shape is not None for row in table.rows], bool)
    found = []
    for spell in _without_followers(table, spells_of(table, "dead", flags)):
        has_own_rule = table.rows[spell.row].facts.unit in OF_OWN_RULES
        if spell.until is not None or has_own_rule:
            continue
        behind = 0
        if whole[spell.last, spell.row]:
            later = slice(spell.row + 1, None)
            behind = int((whole[spell.last, later] & has_kernels[later]).sum())
        found.append(DeadLayer(spell, float(shares[spell.last, spell.row]), behind))
    return sorted(found, key=lambda layer: layer.share < thresholds.MAJOR_SHARE.value)


def least_dead_share(table: HealthTable, spell: Spell) -> float:
    """The smallest share of the layer's channels since the spell began, 0 to 1."""
    is_in_it = np.array([step >= spell.since for step in table.steps])
    return float(np.nanmin(table.columns["dead"][is_in_it, spell.row]))


def explanation_of_dead(table: HealthTable, spell: Spell) -> tuple[str, str]:
    """What dead channels of a layer may mean, and what to do."""
    if table.is_of_images:
        return OFF
    if spell.since > table.steps[0]:
        return DEAD
    if table.columns["constant"][0, spell.row] >= 1 - thresholds.SHARE_ROUNDING.value:
        return _WEIGHTS
    return _SCALE if is_normalized(table.rows[spell.row]) else _BIASES


def _dead(table: HealthTable) -> tuple[Flags, Flags]:
    """[steps, rows] each: lastingly dead and not behind such a layer; nothing is passed on."""
    facts = [row.facts for row in table.rows]
    own = is_activation(facts, table.columns["dead"])
    flags = {kind: codes > 0 for kind, codes in states(table.columns, own).items()}
    # Dead channels that last have been dead since before they had been so for `LASTING` steps; in
    # small maps they do not tell anything.
    is_lasting = table.columns["dead_lasting"] >= thresholds.MINOR_SHARE.value
    lasting = back_to_start(flags["dead"] & is_lasting, flags["dead"])
    values = np.array([layer.values for layer in facts])  # per channel
    of_all = values * [layer.channels for layer in facts]
    dead = np.nan_to_num(table.columns["dead"])
    rounding = thresholds.SHARE_ROUNDING.value
    is_whole = dead >= thresholds.DEAD_NEARLY_ALL.value - rounding
    counted = np.where(is_whole, dead * of_all, values)
    flags["dead"] = lasting & (counted >= thresholds.DEAD_VALUES.value)
    whole: Flags = np.zeros_like(lasting)
    for kind in ("dead", "constant"):
        whole |= flags[kind] & (table.columns[kind] >= 1 - rounding)
    whole &= np.array([layer.unit not in OF_OWN_RULES for layer in facts], bool)
    return flags["dead"] & ~_behind(table, whole), whole


def first_nonfinite(table: HealthTable) -> NonfiniteLayer | None:
    """The first layer or parameter with values that are not finite, and the number of others."""
    share = table.columns["nonfinite"]
    spells = spells_of(table, "nonfinite", share > 0)
    recorded = table.first_nonfinite
    if recorded is not None and (not spells or recorded.step <= spells[0].since):
        return _recorded_first(table, recorded, spells)
    if not spells:
        return None
    first = spells[0]
    more = len(_without_followers(table, spells)) - 1
    return NonfiniteLayer(
        label=table.rows[first.row].facts.label,
        index=first.row,
        since=first.since,
        value=float(share[first.last, first.row]),
        more=more,
        began=f"non-finite values {when(table, first)}",
        place=f"first in {_named(table, first.row)}",
    )


def _recorded_first(
    table: HealthTable, first: FirstNonfinite, spells: list[Spell]
) -> NonfiniteLayer:
    """The finding for the first non-finite value that `watch` wrote a text about."""
    row = table.index(first.name, first.label)
    own = next((spell for spell in spells if spell.row == row), None)
    apart = _without_followers(table, spells)
    more = len(apart) if own is None else len(apart) - 1
    where = f"the {first.where}"
    if row is not None:
        tensor = "" if first.place == "feature_maps" else f"the {first.tensor} of "
        where = tensor + _named(table, row)
    elif first.label is not None:
        where = where.replace("`", "")
    place = f"first in {where}"
    if first.label is None:  # the model's order is not the order in which they get gradients
        place = f"in {where} (of such parameters the first in the model's order)"
    kinds = " and ".join(first.found.kinds).replace("-Inf", "−Inf")
    share = math.nan
    if row is not None:
        last = -1 if own is None else own.last
        share = float(table.columns["nonfinite"][last, row])
    began = f"at {table.step_text(first.step)}"
    lasts = own is not None and own.until is None and own.share == 1
    if lasts and not table.is_of_images:
        began = f"since step {first.step}"  # the whole layer is non-finite from then on
    return NonfiniteLayer(
        label=first.label or "",
        index=row,
        since=first.step,
        value=share,
        more=more,
        began=f"{kinds} {began}",
        place=place,
    )


def further(more: int) -> str:
    """The end of a message that names the first of several layers."""
    if not more:
        return ""
    layers = "layer" if more == 1 else "layers"
    return f"; then in {more} further {layers}"


def _without_followers(table: HealthTable, spells: list[Spell]) -> list[Spell]:
    """Leave out activations whose preceding layer is in the same state."""
    rows = [table.rows[spell.row] for spell in spells]
    followers = {(row.name, row.facts.activation) for row in rows}
    return [
        spell
        for spell, row in zip(spells, rows, strict=True)
        if (row.name, row.facts.label) not in followers
    ]


def _behind(table: HealthTable, whole: Flags) -> Flags:
    """[steps, rows]: such layers behind others of their model, from which that follows."""
    found = np.zeros_like(whole)
    for name in {row.name for row in table.rows}:
        own = [index for index, row in enumerate(table.rows) if row.name == name]
        flags = whole[:, own]  # [steps, own rows]
        before = np.logical_or.accumulate(flags, axis=1)
        found[:, own[1:]] = flags[:, 1:] & before[:, :-1]
    return found


def _named(table: HealthTable, row: int) -> str:
    return call_text(table, table.rows[row], with_model=True)
