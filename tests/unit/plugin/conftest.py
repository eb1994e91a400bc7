"""Logged runs, and the routes of the tab on them."""

from __future__ import annotations

from column_runs import column_runs  # noqa: F401  # a fixture
from faulty_runs import faulty_runs  # noqa: F401  # a fixture
from image_runs import image_runs  # noqa: F401  # a fixture
from two_layer_runs import logdir, tab  # noqa: F401  # fixtures
