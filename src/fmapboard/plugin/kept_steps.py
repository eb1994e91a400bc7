"""How many steps TensorBoard keeps: its option ``--samples_per_plugin``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fmapboard.formats.tab_records import PLUGIN_NAME

KEPT_STEPS = 50
"""Steps per series that TensorBoard keeps in memory, unless the user gave a number.

TensorBoard's default is 10 random steps. That is not changed if fmapboard wrote none of the runs,
because their pictures would take five times the memory. Records and pictures get the same number,
so that both keep the same steps; histograms and scalars have higher defaults.
"""
_PICTURES = "images"


def keeps_enough(flags: Any) -> bool:
    """False if TensorBoard keeps only its default of 10 steps (see `KEPT_STEPS`)."""
    given = getattr(flags, "samples_per_plugin", None)
    return not isinstance(given, Mapping) or PLUGIN_NAME in given


def gives_number(given: Mapping[str, Any]) -> bool:
    """True if the user gave a number for records or pictures."""
    return PLUGIN_NAME in given or _PICTURES in given


def with_kept_steps(given: Mapping[str, Any]) -> dict[str, Any]:
    """``--samples_per_plugin`` with our defaults added.

    A number that the user gave only for pictures, or only for records, is used for both.
    """
    number = given.get(PLUGIN_NAME, given.get(_PICTURES, KEPT_STEPS))
    return {PLUGIN_NAME: number, _PICTURES: number, **given}
