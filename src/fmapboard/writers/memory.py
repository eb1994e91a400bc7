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
        >>> import fmapboard
        >>> import torch
        >>> from torch import nn
        >>> model, writer = nn.Sequential(nn.Conv2d(3, 8, 3)), MemoryWriter()
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        ...     model(torch.zeros(1, 3, 6, 6)).sum().backward()
        ...     optimizer.step()
        >>> [tagged.tag for tagged in writer.steps[0].pictures]
        ['feature_maps_8x3x3x3/0', 'kernels_8x3x3x3/0', 'network_input/sample_0']
    """

    steps: list[LoggedStep] = field(default_factory=list)

    def write(self, step: LoggedStep) -> None:
        """Append the step to ``steps``."""
        self.steps.append(step)

    def flush(self) -> None:
        """Do nothing: steps are available when ``write`` returns."""

    def close(self) -> None:
        """Do nothing: ``steps`` remain available."""
