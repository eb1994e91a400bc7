"""The exit status of commands that judge, `check` and `diff`: 1 is their finding, not an error."""

from __future__ import annotations

from collections.abc import Callable

from fmapboard.errors import CaptureError, FmapboardError

FOUND = 1
"""Exit status if something was found."""
FAILED = 2
"""Exit status for bad usage, unreadable input, and every other error."""


def judged(found: Callable[[], bool]) -> int:
    """The exit status of a command.

    Args:
        found: runs it; True if something was found.

    Raises:
        FmapboardError: it failed; the exit code is `FAILED`, also for errors of other types, for
            which Python would exit with 1.
    """
    try:
        return FOUND if found() else 0
    except FmapboardError as error:
        error.exit_code = FAILED
        raise
    except BrokenPipeError:  # whoever reads the output has seen enough
        raise
    except Exception as error:
        failed = CaptureError(f"{type(error).__name__}: {error}")
        failed.exit_code = FAILED
        raise failed from error
