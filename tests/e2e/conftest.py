"""Fixtures of the end-to-end tests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
import torch


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """A function that returns the warnings logged so far."""
    with caplog.at_level(logging.WARNING, "fmapboard"):
        yield lambda: caplog.messages


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Torch computes with a single thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
