"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """A function that returns the warnings logged so far."""
    with caplog.at_level(logging.WARNING, "fmapboard"):
        yield lambda: caplog.messages
