"""Logged runs, and the tab that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_visitor import address, browser, serve, visit  # noqa: F401  # fixtures
from column_runs import column_runs  # noqa: F401  # a fixture
from compared_runs import compared_runs  # noqa: F401  # a fixture
from faulty_runs import faulty_runs  # noqa: F401  # a fixture
from overview_runs import overview_runs  # noqa: F401  # a fixture
from striped_training import striped_runs  # noqa: F401  # a fixture
from tab_client import Tab, open_tab
from two_layer_runs import log_steps


@pytest.fixture(scope="session")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: one model, and two models of one process."""
    root = tmp_path_factory.mktemp("logdir")
    log_steps(root / "run2")
    log_steps(root / "run10", names=["gan", "critic"])
    return root


@pytest.fixture(scope="session")
def tab(logdir: Path) -> Tab:
    return open_tab(logdir)
