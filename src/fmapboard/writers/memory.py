"""A writer that keeps the steps in a list: for tests, and for looking from a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field

from fmapboard.records import LoggedStep


@dataclass(slots=True)
class MemoryWriter:
    """Keeps every step in ``steps``."""

    steps: list[LoggedStep] = field(default_factory=list)

    def write(self, step: LoggedStep) -> None:
        """Append the step."""
        self.steps.append(step)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is held open."""
