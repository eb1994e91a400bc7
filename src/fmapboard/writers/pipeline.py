"""The slow half of a logged step, in a worker thread: compose, then write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fmapboard.errors import WarnOnce, WriteError
from fmapboard.options import Options
from fmapboard.records import LoggedStep, StepData
from fmapboard.summary.budget import Budget
from fmapboard.summary.build import SummaryBuilder
from fmapboard.tags import DROPPED_STEPS
from fmapboard.writers import Writer
from fmapboard.writers.encoder import Encoder
from fmapboard.writers.worker import Worker

_FRAME = 64
"""Bytes of an event besides its summary, at most: framing, checksums, step and time."""

MAX_QUEUE_BYTES = 256 * 2**20
"""Bound of the steps that wait to be written."""


def _size(step: LoggedStep) -> int:
    """Bytes of the step in an event file, at most: each tag's metadata is counted every time."""
    return sum(map(len, Encoder()(step))) + _FRAME


class Pipeline:
    """Owns the worker, the composer and the writer of one logger; knows nothing of torch."""

    def __init__(self, writer: Writer, options: Options, warn: WarnOnce) -> None:
        self._compose = SummaryBuilder(
            colormap=options.colormap,
            scale=options.scale,
            name=options.name,
            max_kernels=options.max_channels,
            compact=options.max_tile is None,
            with_pngs=options.max_bytes_per_step is not None,
        )
        self._writer, self._warn = writer, warn
        self._worker: Worker[Callable[[], StepData]] = Worker(
            self._work,
            self._failed,
            max_bytes=MAX_QUEUE_BYTES,
            when_full=options.when_full,
            low_priority=True,
        )
        self._may_drop = options.when_full == "drop_oldest"
        self._max_bytes = options.max_bytes_per_step
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
                self._warn.warn(tag, f"{text} (TensorBoard's Text dashboard: {tag})")
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
            self._warn.warn(
                DROPPED_STEPS,
                f"step {data.step}: {dropped} logged steps dropped so far, since they come faster "
                f"than they are written (the scalar {DROPPED_STEPS} counts on); log less often, or "
                "with when_full='wait'",
            )
        return replace(data, scalars={**data.scalars, DROPPED_STEPS: float(dropped)})

    def _composed(self, data: StepData) -> LoggedStep:
        """The step, within the bytes that it may have."""
        step = self._compose(self._budget.applied(data))
        while self._max_bytes is not None and _size(step) > self._max_bytes:
            if not self._budget.tighten():
                text = f"max_bytes_per_step={self._max_bytes}: numbers alone take {_size(step)}"
                self._warn.warn("max_bytes_per_step", text)
                break
            self._compose.undo()
            step = self._compose(self._budget.applied(data))
        return step

    def _failed(self, error: Exception) -> None:
        what = "this step is lost, training goes on"
        self._warn.error("writing", error, what)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except (WriteError, OSError) as error:
            self._failed(error)
