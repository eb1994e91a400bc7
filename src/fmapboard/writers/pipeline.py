"""Build and write logged steps in a worker thread.

If the process is killed, the steps that are not yet written are lost: at most 8 (see
``writers.worker``).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fmapboard.errors import VERDICT_OF, WarnOnce, WorkerEnded, WriteError, log
from fmapboard.formats import tags
from fmapboard.formats.checks import Proof
from fmapboard.formats.tags import DROPPED_STEPS, WAITED_MS
from fmapboard.health.run import LiveChecks, LiveState, chosen
from fmapboard.health.verdict import Verdict
from fmapboard.interrupts import is_interrupted, raise_interrupt
from fmapboard.options import Options
from fmapboard.records import LoggedStep, StepData
from fmapboard.summary.build import SummaryBuilder, SummaryState
from fmapboard.summary.byte_limit import SIDES, with_smaller_tiles
from fmapboard.summary.token_names import named
from fmapboard.writers import Writer
from fmapboard.writers.folder import store
from fmapboard.writers.remote import RemoteDirectory, log_directory
from fmapboard.writers.tensorboard import Encoder
from fmapboard.writers.worker import Worker

Receive = Callable[[], StepData | None]
"""Returns a step, or None if nothing is to be written."""

_EVENT_OVERHEAD = 64
"""Maximum size in bytes of an event without its summary: framing, checksums, step and time."""

MAX_QUEUE_BYTES = 256 * 2**20
"""Maximum size in bytes of the steps that wait to be written."""
SECONDS_AFTER_INTERRUPT = 10.0
"""After an interrupt, ``close`` waits at most this long for the steps that are not yet written."""

_FORKED = (
    "process {} was forked from the process that logs this run, so its steps are not logged: "
    "they would be mixed with those of the other process in one directory; to log them, call "
    "fmapboard.watch in this process with a separate log_dir"
)


def _size(step: LoggedStep) -> int:
    """Maximum size in bytes of the step in an event file, with the metadata of every tag."""
    return sum(map(len, Encoder()(step))) + _EVENT_OVERHEAD


def _log_fault(verdict: Verdict) -> None:
    text = "\n  ".join(verdict.lines())
    log.warning("%s", text, extra={VERDICT_OF: verdict.run})


def _store_summary(verdict: Verdict, name: str) -> None:
    """Write the verdict as a file beside the events."""
    content = f"{json.dumps(verdict.as_json(), indent=1)}\n".encode()
    directory = log_directory(verdict.run)
    if isinstance(directory, RemoteDirectory):
        directory.put(name, content)
    else:
        store(directory / name, content)


class Pipeline:
    """The worker, summary builder and writer of one logger; independent of torch."""

    def __init__(self, writer: Writer, options: Options, warn: WarnOnce) -> None:
        self._build = SummaryBuilder(
            colormap=options.colormap,
            scale=options.scale,
            name=options.name,
            max_kernels=options.max_channels,
            only_changed_kernels=options.kernels is True,
            with_pngs=options.max_bytes_per_step is not None,
            has_probe=options.probe is not None,
            class_names=options.class_names,
            normalization=options.normalization,
        )
        self._writer = writer
        self._warn = warn
        self._checks = LiveChecks(chosen(options.checks), options.name, self._check_failed)
        self._worker: Worker[tuple[Receive, float]] = Worker(
            self._work, self._failed, max_bytes=MAX_QUEUE_BYTES, when_full=options.when_full
        )
        self._prefix = tags.prefix(options.name)
        self._name_tokens = options.tokens
        self._newest: LoggedStep | None = None
        self._may_drop = options.when_full == "drop_oldest"
        self._max_bytes = options.max_bytes_per_step
        self._sides: tuple[int, ...] = SIDES
        self._side: int | None = None  # of a tile, once a step has exceeded the byte limit
        self._waited_ms = 0.0
        self._closed = False

    @property
    def dropped(self) -> int:
        """Number of steps dropped because the queue was full."""
        return self._worker.dropped

    @property
    def log_dir(self) -> Any:
        """The directory that is written to, a path or a URL; None if the writer has none."""
        return getattr(self._writer, "log_dir", None)

    def put(self, receive: Receive, nbytes: int) -> None:
        """Queue a step.

        If training has to wait for the queue, the next step records the waiting time. In a forked
        child of the process that logs, nothing is logged, which is reported once.

        Args:
            receive: Called in a worker thread.
            nbytes: Size in bytes of the tensors that the queued step holds.
        """
        if self._worker.is_inherited:
            self._warn.warn("fork", _FORKED.format(os.getpid()))
        self._waited_ms = self._worker.put((receive, self._waited_ms), nbytes) * 1e3

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the steps that are written; None before the first one."""
        report = self._checks.report
        return None if report is None else report.verdict(str(self.log_dir or ""))

    def prove(self, proofs: Mapping[str, Proof]) -> None:
        """Add what experiments have shown to the verdict; called when every step is written."""
        newest = self._newest
        if newest is not None and not self._worker.is_inherited:
            record = self._checks.prove(proofs)
            self._guarded(lambda: self._write_more(newest, records=(record,)))

    def flush(self) -> None:
        """Return when every queued step is written and readable."""
        self._worker.flush()
        self._guarded(self._writer.flush)

    def close(self) -> None:
        """Flush, stop the worker, write the verdict on the run, and close the writer.

        A second call does nothing.

        After an interrupt, such as Ctrl-C, and if one arrives during the wait, this waits at most
        ``SECONDS_AFTER_INTERRUPT`` and reports how many steps are not written. They are still
        written as long as the process runs.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._end(SECONDS_AFTER_INTERRUPT if is_interrupted() else None)
        except BaseException:
            self._end(SECONDS_AFTER_INTERRUPT)
            raise

    def _end(self, seconds: float | None) -> None:
        if self._worker.close(seconds):
            self._conclude()
            self._guarded(self._writer.close)
            return
        count = self._worker.unfinished
        self._warn.warn(
            "interrupted",
            f"{seconds:g} s after the interrupt, logged steps are still being written: the "
            f"last {count} of them are lost if the process ends now",
        )

    def _conclude(self) -> None:
        """Write the last kernels, and log and write why the run is as it is: once, at its end."""
        newest = self._newest
        if newest is None or self._worker.is_inherited:
            return
        self._newest = None
        parts = ("last kernels", self._write_last_kernels), ("verdict", self._write_verdict)
        for what, write in parts:
            try:
                write(newest)
            except Exception as error:
                raise_interrupt(error)
                self._warn.error(what, error, f"the run is logged without its {what}")

    def _write_last_kernels(self, newest: LoggedStep) -> None:
        """The newest step's kernels where they hardly changed: those of the last step are kept."""
        kernels = () if self.log_dir is None else self._build.left_out_kernels()
        if kernels:
            self._write_more(newest, pictures=kernels)

    def _write_verdict(self, newest: LoggedStep) -> None:
        """As a text of the newest step, and as a file beside the events."""
        verdict = self.verdict
        if verdict is not None and verdict.state == "fault":
            _log_fault(verdict)
        if verdict is not None and verdict.run:
            why = {self._prefix + tags.WHY: "\n\n".join(verdict.lines())}
            self._write_more(newest, texts=why)
            _store_summary(verdict, self._prefix + tags.SUMMARY_FILE)

    def _write_more(self, newest: LoggedStep, **further: Any) -> None:
        """Write further fields of the newest step, unless they are too large."""
        step = replace(newest, **further)
        is_too_large = self._max_bytes is not None and _size(step) > self._max_bytes
        if not is_too_large and not getattr(self._writer, "is_closed", False):
            self._writer.write(step)

    def _work(self, queued: tuple[Receive, float]) -> Iterator[None]:
        """Build and write one step; at each yield the work may move to another thread.

        Args:
            queued: the step, and the time in ms that training waited before it.
        """
        receive, waited_ms = queued
        received = receive()
        if received is None:
            return
        data = self._with_queue(self._with_tokens(received), waited_ms)
        yield
        state, step = self._built(data)
        yield
        texts = step.texts
        checked, step = self._checked(step)
        if self._is_unsaid(checked):
            for tag, text in texts.items():
                self._warn.warn(tag, f"{text} (TensorBoard's Text dashboard: {tag})")
        self._writer.write(step)
        self._build.state = state  # what is known of the stored steps
        self._newest = LoggedStep(step.step, step.wall_time)
        if checked is not None:
            self._checks.stored(checked, step.step)

    def _is_unsaid(self, checked: LiveState | None) -> bool:
        """True if no check says of the step what its own texts say, and none was switched off."""
        if checked is None:
            return True
        is_said = any(finding.kind == "nonfinite" for finding in checked.new)
        return not is_said and "nonfinite" not in self._checks.off

    def _checked(self, step: LoggedStep) -> tuple[LiveState | None, LoggedStep]:
        """The step with what the checks say; without it if they fail or it is too large."""
        try:
            state, checked = self._checks(step)
        except Exception as error:
            self._warn.error("checks", error, "the step is logged without them")
            return None, step
        limit = self._max_bytes
        if checked is not step and limit is not None and _size(checked) > limit:
            return self._checks.unstored(state), step
        return state, checked

    def _check_failed(self, kind: str, error: str) -> None:
        self._warn.warn(
            f"check {kind}",
            f"check {kind}: {error}; the other checks go on. Correct it, or leave it out (checks=)",
        )

    def _with_tokens(self, data: StepData) -> StepData:
        """Add the names of the texts' tokens; without them if the user's function fails."""
        if self._name_tokens is None or not data.texts:
            return data
        try:
            texts = tuple(named(text, self._name_tokens) for text in data.texts)
        except Exception as error:
            raise_interrupt(error)
            self._warn.error("tokens=", error, "tokens are not named; training continues")
            return data
        return replace(data, texts=texts)

    def _with_queue(self, data: StepData, waited_ms: float) -> StepData:
        """Add the time that training waited and, if steps may be dropped, how many were."""
        scalars = dict(data.scalars)
        if waited_ms:
            scalars[WAITED_MS] = waited_ms
        dropped = self._worker.dropped
        if self._may_drop:
            scalars[DROPPED_STEPS] = float(dropped)
        if dropped:
            self._warn.warn(
                DROPPED_STEPS,
                f"step {data.step}: {dropped} logged steps dropped so far, since they are "
                f"logged faster than they are written (see the scalar {DROPPED_STEPS}); log "
                "less often, or use when_full='wait'",
            )
        return replace(data, scalars=scalars)

    def _built(self, data: StepData) -> tuple[SummaryState, LoggedStep]:
        """Build the step, with smaller tiles or without pictures if it exceeds the byte limit."""
        while True:
            smaller = data if self._side is None else with_smaller_tiles(data, self._side)
            state, step = self._build.build(smaller)
            if self._max_bytes is None:
                return state, step
            size = _size(step)
            if size <= self._max_bytes:
                return state, step
            if not self._sides:
                limit = f"max_bytes_per_step={self._max_bytes}"
                text = f"{limit}: even without pictures a step takes {size} bytes"
                advice = "raise the limit, or watch fewer layers (layers=)"
                self._warn.warn("max_bytes_per_step", f"{text}; {advice}")
                return state, step
            self._side, *rest = self._sides
            self._sides = tuple(rest)

    def _failed(self, error: Exception) -> None:
        lost = "all later steps are" if isinstance(error, WorkerEnded) else "this step is"
        self._warn.error("writing", error, f"{lost} lost; training continues")

    def _guarded(self, act: Callable[[], None]) -> None:
        if self._worker.is_inherited:
            return  # the writer's threads and locks do not work after a fork
        try:
            act()
        except (WriteError, OSError) as error:
            raise_interrupt(error)
            self._failed(error)
