"""Logged warnings, collected in a list while code runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def collected_warnings(logger: str = "fmapboard") -> Iterator[list[str]]:
    """A list that fills with what a logger and those below it warn about."""
    collector, source = _Collector(), logging.getLogger(logger)
    source.addHandler(collector)
    try:
        yield collector.messages
    finally:
        source.removeHandler(collector)
