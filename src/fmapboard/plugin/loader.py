"""The entry point that TensorBoard imports when it starts; no failure in it stops TensorBoard.

TensorBoard does not catch errors in the import of this module or in `FeatureMapsLoader.fix_flags`.
So this module imports only the standard library and the base class, and the loader's methods catch
all exceptions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from tensorboard.plugins import base_plugin

NAME = "feature_maps"
_log = logging.getLogger("tensorboard")


class FeatureMapsLoader(base_plugin.TBLoader):  # type: ignore[misc]  # tensorboard has no types
    """Loads the plugin; if that fails, TensorBoard starts without it and logs the reason."""

    def fix_flags(self, flags: Any) -> None:
        """Raise the number of steps that TensorBoard keeps, unless the user gave numbers."""
        try:
            from fmapboard.plugin.kept_steps import gives_number, with_kept_steps
            from fmapboard.plugin.log_scan import given_logdirs, has_only_foreign_runs

            given = getattr(flags, "samples_per_plugin", None)
            if isinstance(given, Mapping):
                asked = gives_number(given)
                if asked or not has_only_foreign_runs(path for _, path in given_logdirs(flags)):
                    flags.samples_per_plugin = with_kept_steps(given)
        except Exception as error:
            _log.warning(
                "fmapboard: could not raise the number of steps that TensorBoard keeps: %s; give "
                "it as --samples_per_plugin images=200,feature_maps=200",
                error,
            )

    def load(self, context: Any) -> Any:
        """The plugin, or None if it cannot be loaded."""
        try:
            if NAME in (context.plugin_name_to_instance or {}):
                return None  # installed twice: a second instance would stop TensorBoard
            from fmapboard.plugin.plugin import FeatureMapsPlugin

            return FeatureMapsPlugin(context)
        except Exception as error:
            _log.warning(
                "fmapboard: the Feature maps tab is missing (%s: %s); run `fmapboard doctor`",
                type(error).__name__,
                error,
            )
            return None
