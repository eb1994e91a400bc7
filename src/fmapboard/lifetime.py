"""The cleanup of a logger, and a record of the open loggers in this process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from torch import nn
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.cuda_graphs import CAPTURES
from fmapboard.errors import WarnOnce
from fmapboard.run import Run
from fmapboard.writers.pipeline import Pipeline


class Closeable(Protocol):
    """The part of a logger that this module needs.

    Attributes:
        end: its cleanup.
    """

    end: End

    @property
    def is_closed(self) -> bool:
        """True after ``close``."""

    def close(self) -> None:
        """End the logger; a second call does nothing."""


@dataclass(slots=True)
class End:
    """The cleanup of a logger: on ``close``, on garbage collection or at interpreter exit.

    Attributes:
        pipeline: closed after the open step is abandoned.
        handles: hooks to remove.
        run: its open step is abandoned.
        end_explaining: ends the thread that explains why nothing is logged.
        is_replaced: another logger of the same model and name was created.
    """

    pipeline: Pipeline
    handles: list[RemovableHandle]
    run: Run
    end_explaining: Callable[[], object] | None = None
    is_replaced: bool = False

    def __call__(self) -> None:
        """Clean up; called once. In a CUDA graph's capture, steps are written after it."""
        try:
            self._clean_up()
        except BaseException:  # an interrupt: whatever it has cut short is done now
            self._clean_up()
            raise

    def _clean_up(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.run.session.abandon()
        CAPTURES.after(self.pipeline.close)
        if self.end_explaining is not None:
            self.end_explaining()
            self.run.usage.explain(is_over=True)


@dataclass(frozen=True, slots=True)
class _Open:
    """A logger that may be open, and its model, both held by weak references."""

    logger: weakref.ref[Closeable]
    model: weakref.ref[nn.Module]
    process: int = field(default_factory=os.getpid)


_open: dict[tuple[int, str | None], _Open] = {}


def remember(logger: Closeable, model: nn.Module, name: str | None) -> None:
    """Record an open logger for a model and name, until the logger is garbage-collected."""
    # Nothing is called when a logger is deleted: an interrupt there would be lost.
    for key, entry in list(_open.items()):
        if entry.logger() is None:
            del _open[key]
    _open[id(model), name] = _Open(weakref.ref(logger), weakref.ref(model))


def close_earlier(model: nn.Module, name: str | None, warn: WarnOnce) -> None:
    """Close the open logger of this model and name, for example after a notebook cell was rerun."""
    earlier = _open.pop((id(model), name), None)
    logger = None if earlier is None else earlier.logger()
    if earlier is None or logger is None or logger.is_closed or earlier.model() is not model:
        return
    if earlier.process != os.getpid():
        return  # it belongs to the process that this one was forked from
    logger.end.run.usage.explains = False  # it ends here, not with the training
    logger.end.is_replaced = True
    logger.close()
    warn.warn(
        "again",
        f"this {type(model).__name__} was watched already; the earlier logger is now closed. "
        "To keep both, give each logger its own name=",
    )
