"""Node, which runs the front end's modules in tests without a browser."""

from __future__ import annotations

import shutil

import pytest


def find_node() -> str | None:
    """Path of the system's Node, or of the one in Playwright's Python package."""
    found = shutil.which("node")
    if found is None:
        try:
            from playwright._impl._driver import compute_driver_executable
        except ImportError:
            return None
        found = str(compute_driver_executable()[0])
    return found


def required_node() -> str:
    """`find_node`; skips the test if there is none."""
    found = find_node()
    if found is None:
        pytest.skip("node is missing: install it, or pip install playwright, which brings one")
    return found
