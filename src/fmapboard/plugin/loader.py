"""The entry point that TensorBoard imports when it starts; it can never stop TensorBoard.

TensorBoard guards neither the import of this module nor `FeatureMapsLoader.fix_flags`, so nothing
but the standard library and the base class is imported here, and nothing is let through.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from tensorboard.plugins import base_plugin

NAME = "feature_maps"
KEPT_STEPS = 50
"""So many steps of a series stay in TensorBoard's memory, where the user gave no number.

Its own default is 10 random ones, and stays where all runs are other people's: their pictures would
take five times the memory. Records and pictures get the same number, so that the same steps survive
in both; histograms and scalars keep more by default.
"""
_PICTURES = "images"
_NAMED = re.compile(r"[^:/\\]+:(?!//)")
"""The name in front of a directory in ``--logdir_spec``."""

_log = logging.getLogger("tensorboard")


class FeatureMapsLoader(base_plugin.TBLoader):  # type: ignore[misc]  # tensorboard has no types
    """Loads the tab; where that fails, TensorBoard starts without it and says why."""

    def fix_flags(self, flags: Any) -> None:
        """Raise how many steps TensorBoard keeps; the user's own numbers stay."""
        try:
            from fmapboard.plugin.log_scan import has_only_foreign_runs

            given = getattr(flags, "samples_per_plugin", None)
            if isinstance(given, Mapping):
                asked = NAME in given or _PICTURES in given
                if asked or not has_only_foreign_runs(_logdirs(flags)):
                    flags.samples_per_plugin = with_kept_steps(given)
        except Exception as error:
            _log.warning("fmapboard: TensorBoard's sampling was left as it is: %s", error)

    def load(self, context: Any) -> Any:
        """The plugin, or None where it cannot be had."""
        try:
            if NAME in (context.plugin_name_to_instance or {}):
                return None  # installed twice: a second one would stop TensorBoard
            from fmapboard.plugin.plugin import FeatureMapsPlugin

            return FeatureMapsPlugin(context)
        except Exception as error:
            _log.warning(
                "fmapboard: the Feature maps tab is missing (%s: %s); run `fmapboard doctor`",
                type(error).__name__,
                error,
            )
            return None


def keeps_enough(flags: Any) -> bool:
    """False if TensorBoard keeps the few steps of its own default, since no run was ours."""
    given = getattr(flags, "samples_per_plugin", None)
    return not isinstance(given, Mapping) or NAME in given


def _logdirs(flags: Any) -> list[str]:
    """The directories that TensorBoard reads: ``--logdir``, or those of ``--logdir_spec``."""
    spec = getattr(flags, "logdir_spec", "") or ""
    named = [part.partition(":")[2] if _NAMED.match(part) else part for part in spec.split(",")]
    return [path for path in [getattr(flags, "logdir", "") or "", *named] if path]


def with_kept_steps(given: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of ``--samples_per_plugin`` with ours where the user gave none.

    A number for the pictures alone, or for the records alone, counts for both.
    """
    number = given.get(NAME, given.get(_PICTURES, KEPT_STEPS))
    return {NAME: number, _PICTURES: number, **given}
