"""Two logged runs, and the routes of the tab on them."""

from __future__ import annotations

from two_layer_runs import logdir, tab  # noqa: F401  # fixtures
