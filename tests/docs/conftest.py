"""What several tests of one page share."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from page_results import RunPage, run_page

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.md"


@pytest.fixture(scope="package")
def hooks_page(tmp_path_factory: pytest.TempPathFactory) -> RunPage:
    """docs/hooks.md, run once."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*torch\.jit\.")  # deprecated; add_graph uses it
        patch.chdir(tmp_path_factory.mktemp("hooks"))
        patch.setenv("FMAPBOARD_ON_ERROR", "raise")
        return run_page(HOOKS)
