"""Guards for tests: fmapboard's errors are raised, or collected in a list."""

from __future__ import annotations

from fmapboard.capture.guard import Guard
from fmapboard.errors import WarnOnce


class _Raises(WarnOnce):
    def error(self, about: str, error: Exception, consequence: str) -> None:
        raise error


class _Keeps(WarnOnce):
    def __init__(self, errors: list[tuple[str, Exception]]) -> None:
        super().__init__()
        self._errors = errors

    def error(self, about: str, error: Exception, consequence: str) -> None:
        self._errors.append((about, error))


def strict_guard() -> Guard:
    """A guard that raises."""
    return Guard(_Raises())


def keeping_guard(errors: list[tuple[str, Exception]]) -> Guard:
    """A guard that appends (name, error) to a list."""
    return Guard(_Keeps(errors))
