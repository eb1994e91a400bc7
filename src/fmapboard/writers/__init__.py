"""Where a logged step goes: the `Writer` protocol, and its implementations.

`tensorboard.TensorBoardWriter`, `folder.FolderWriter` and `memory.MemoryWriter` store steps;
`pipeline.Pipeline` builds and writes them in a worker thread::

    writer = MemoryWriter()
    fmapboard.watch(model, writer=writer)        # later: writer.steps
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fmapboard.records import LoggedStep


@runtime_checkable
class Writer(Protocol):
    """Stores logged steps. All methods are called from one thread at a time, in step order."""

    def write(self, step: LoggedStep) -> None:
        """Store one step.

        Raises:
            WriteError: it could not be stored whole; what was written before stays readable.
        """

    def flush(self) -> None:
        """Return when everything written so far can be read by others."""

    def close(self) -> None:
        """Flush and let go; a second call does nothing."""
