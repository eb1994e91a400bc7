"""The slow half of a logged step, in a worker thread: compose, then write."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from fmapboard.errors import CaptureError, WriteError
from fmapboard.options import OnError, Settings
from fmapboard.records import LoggedStep, StepData
from fmapboard.summary.budget import Budget
from fmapboard.summary.build import Composer
from fmapboard.writers import Writer
from fmapboard.writers.encoder import Encoder
from fmapboard.writers.worker import Worker

_FRAME = 64
"""Bytes of an event besides its summary, at most: framing, checksums, step and time."""

DROPPED_TAG = "fmapboard/dropped_steps"

log = logging.getLogger("fmapboard")


class Complaints:
    """Says each thing once: in the log, or raised later where the user asked for it.

    A thing is what it is about (a layer's name, ``"writing"``) and the kind of error.
    """

    def __init__(self, on_error: OnError) -> None:
        self._on_error = on_error
        self._said: set[tuple[str, str]] = set()
        self._first: str | None = None

    def error(self, about: str, error: Exception, consequence: str) -> None:
        """Report an error of ours; only its text is kept, since its traceback pins tensors."""
        text = f"{about}: {type(error).__name__}: {error}; {consequence}"
        self._first = self._first or text
        self.warn(about, text, kind=type(error).__name__)

    def warn(self, about: str, text: str, kind: str = "") -> None:
        """Say something once."""
        if (about, kind) not in self._said:
            self._said.add((about, kind))
            log.warning("%s", text)

    def raise_first(self) -> None:
        """With ``on_error="raise"``: raise the first error that was reported, once.

        Raises:
            CaptureError: there was one.
        """
        text, self._first = self._first, None
        if text is not None and self._on_error == "raise":
            raise CaptureError(text)


def _size(step: LoggedStep) -> int:
    """Bytes of the step in an event file, at most: each tag's metadata is counted every time."""
    return sum(map(len, Encoder()(step))) + _FRAME


class Pipeline:
    """Owns the worker, the composer and the writer of one logger; knows nothing of torch."""

    def __init__(self, writer: Writer, settings: Settings, complaints: Complaints) -> None:
        self._compose = Composer(
            colormap=settings.colormap,
            scale=settings.scale,
            name=settings.name,
            max_kernels=settings.max_channels,
            compact=settings.max_tile is None,
        )
        self._writer, self._complaints = writer, complaints
        self._worker: Worker[Callable[[], StepData]] = Worker(
            self._work,
            self._failed,
            max_bytes=settings.max_queue_bytes,
            when_full=settings.when_full,
        )
        self._may_drop = settings.when_full == "drop_oldest"
        self._max_bytes = settings.max_bytes_per_step
        self._budget = Budget()
        self._closed = False

    @property
    def dropped(self) -> int:
        """Steps that were dropped because the queue was full."""
        return self._worker.dropped

    def put(self, receive: Callable[[], StepData], nbytes: int) -> None:
        """Queue a step that holds ``nbytes`` bytes; ``receive`` is called in the worker thread."""
        self._worker.put(receive, nbytes)

    def flush(self) -> None:
        """Return when every queued step is written and readable."""
        self._worker.flush()
        self._guarded(self._writer.flush)

    def close(self) -> None:
        """Flush, end the worker and close the writer; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._worker.close()
            self._guarded(self._writer.close)

    def _work(self, receive: Callable[[], StepData]) -> None:
        data = self._with_dropped(receive())
        try:
            step = self._composed(data)
            for tag, text in step.texts.items():
                self._complaints.warn(tag, f"{text} (TensorBoard's Text dashboard: {tag})")
            self._writer.write(step)
        except Exception:
            self._compose.undo()
            raise

    def _with_dropped(self, data: StepData) -> StepData:
        """Where steps may be dropped, their count stands among the step's scalars."""
        if not self._may_drop:
            return data
        dropped = self._worker.dropped
        if dropped:
            self._complaints.warn(
                DROPPED_TAG,
                f"step {data.step}: {dropped} logged steps dropped so far, since they come faster "
                f"than they are written (the scalar {DROPPED_TAG} counts on); log less often, or "
                "with when_full='wait'",
            )
        return replace(data, scalars={**data.scalars, DROPPED_TAG: float(dropped)})

    def _composed(self, data: StepData) -> LoggedStep:
        """The step, within the bytes that it may have."""
        step = self._compose(self._budget.applied(data))
        while self._max_bytes is not None and _size(step) > self._max_bytes:
            if not self._budget.tighten():
                text = f"max_bytes_per_step={self._max_bytes}: numbers alone take {_size(step)}"
                self._complaints.warn("max_bytes_per_step", text)
                break
            self._compose.undo()
            step = self._compose(self._budget.applied(data))
        return step

    def _failed(self, error: Exception) -> None:
        what = "this step is lost, training goes on"
        self._complaints.error("writing", error, what)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except (WriteError, OSError) as error:
            self._failed(error)
