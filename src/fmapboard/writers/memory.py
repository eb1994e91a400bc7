"""A writer that keeps logged steps in memory, for tests and notebooks."""

from __future__ import annotations

from dataclasses import dataclass, field

from fmapboard.records import LoggedStep


@dataclass(slots=True)
class MemoryWriter:
    """Keeps every logged step in a list.

    Attributes:
        steps: The steps written so far, as ``fmapboard.records.LoggedStep``, in step order.

    Example:
        >>> import fmapboard, torch
        >>> from torch import nn
        >>> model, writer = nn.Sequential(nn.Conv2d(3, 8, 3)), MemoryWriter()
        >>> with fmapboard.watch(model, writer=writer) as logger, logger.step(0):
        ...     output = model(torch.zeros(1, 3, 6, 6))
        >>> [tagged.tag for tagged in writer.steps[0].pictures]
        ['feature_maps_8x3x3x3/0', 'kernels_8x3x3x3/0']
    """

    steps: list[LoggedStep] = field(default_factory=list)

    def write(self, step: LoggedStep) -> None:
        """Append the step to ``steps``."""
        self.steps.append(step)

    def flush(self) -> None:
        """Do nothing: steps are available when ``write`` returns."""

    def close(self) -> None:
        """Do nothing: ``steps`` remain available."""
