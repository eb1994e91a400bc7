"""Logged runs, and a browser that shows them in the tab."""

from __future__ import annotations

from browser_visitor import address, browser, left_pages, serve, serve_shared, visit  # noqa: F401
from column_runs import column_runs  # noqa: F401  # a fixture
from compared_runs import compared_runs  # noqa: F401  # a fixture
from faulty_runs import faulty_runs  # noqa: F401  # a fixture
from image_runs import image_runs  # noqa: F401  # a fixture
from overview_runs import overview_runs  # noqa: F401  # a fixture
from stated_runs import stated_runs  # noqa: F401  # a fixture
from striped_training import striped_runs  # noqa: F401  # a fixture
from trained_kernels import trained_kernels  # noqa: F401  # a fixture
from two_layer_runs import logdir, tab  # noqa: F401  # fixtures
