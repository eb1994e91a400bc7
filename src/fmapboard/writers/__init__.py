"""Store logged steps: the ``Writer`` protocol and its implementations.

``tensorboard.TensorBoardWriter``, ``folder.FolderWriter``, ``folder.MemoryWriter`` and
``WandbWriter`` store steps; ``pipeline.Pipeline`` builds and writes them in a worker thread::

    writer = MemoryWriter()
    fmapboard.watch(model, writer=writer)        # later: writer.steps
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fmapboard.records import LoggedStep
    from fmapboard.writers.wandb_run import WandbWriter

__all__ = ["WandbWriter", "Writer"]


@runtime_checkable
class Writer(Protocol):
    """Stores logged steps; any object with these three methods can be passed to ``watch``.

    Methods are called by one thread at a time, not always the same one: ``write`` in the worker
    thread, in step order; ``flush`` and ``close`` in the thread that flushes or closes the logger.
    A step is immutable and may be kept.

    Example:
        >>> from fmapboard.records import LoggedStep
        >>> class StepPrinter:
        ...     def write(self, step):
        ...         print(f"step {step.step}: {len(step.pictures)} pictures")
        ...     def flush(self): ...
        ...     def close(self): ...
        >>> StepPrinter().write(LoggedStep(step=3, wall_time=0.0))
        step 3: 0 pictures
        >>> isinstance(StepPrinter(), Writer)
        True
    """

    def write(self, step: LoggedStep) -> None:
        """Store one step.

        An exception is logged once and never reaches the training; the step is lost.

        Args:
            step: Everything to store.

        Raises:
            WriteError: The step could not be stored completely; earlier steps remain readable.
        """

    def flush(self) -> None:
        """Return when everything written so far can be read by others.

        Raises:
            WriteError: It could not be stored.
        """

    def close(self) -> None:
        """Flush and release all resources; a second call does nothing.

        Raises:
            WriteError: Something could not be stored.
        """


def __getattr__(name: str) -> Any:
    """`WandbWriter`, when it is used: the command line needs this package for paths only."""
    if name != "WandbWriter":
        raise AttributeError(f"module 'fmapboard.writers' has no attribute {name!r}")
    from fmapboard.writers.wandb_run import WandbWriter

    return WandbWriter
