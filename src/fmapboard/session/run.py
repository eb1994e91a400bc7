"""``Run``, a file of its own, apart from one step: opens steps that are due and hands them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch.optim.optimizer import Optimizer

from fmapboard.capture.compiled import follow_captures, is_capturing
from fmapboard.errors import ConfigurationError, WarnOnce
from fmapboard.interrupts import is_interrupted
from fmapboard.measure.merge_ranks import RankExchange
from fmapboard.schedule import StepCounter, next_due
from fmapboard.session.selection import Passes
from fmapboard.session.session import StepSession
from fmapboard.session.step import PendingStep
from fmapboard.session.usage import ParameterVersions, Usage, Versions
from fmapboard.writers.pipeline import Pipeline


@dataclass(slots=True)
class Run:
    """The steps of one run: opened when they are due, handed to the pipeline when they close.

    Attributes:
        steps: counts the steps and decides which are logged.
        session: collects the logged step that is open.
        pipeline: receives logged steps.
        warn: where warnings are reported.
        writes: False on ranks whose steps are not written.
        usage: how many steps ended, were due and were logged so far.
        abandoned: takes part in the exchange of the step that was abandoned last; None if there is
            none, or once it was queued.
        closed: called when a logged step has closed, with its number, until it returns True.
    """

    steps: StepCounter
    session: StepSession
    pipeline: Pipeline
    warn: WarnOnce
    writes: bool
    usage: Usage = field(init=False)
    _entered: tuple[int, Versions] = field(init=False, default=(-1, ()))
    abandoned: Callable[[], None] | None = field(init=False, default=None)
    closed: Callable[[int], bool] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.usage = Usage(self.steps, ParameterVersions(self.session.model), self.warn)

    def open(self, passes: Passes, *, any_thread: bool = False) -> None:
        """Begin to log the next step; for the arguments see ``StepSession.open``.

        Does nothing while a CUDA graph is captured.
        """
        self._entered = self.steps.next, self.usage.versions.read()
        if is_capturing():
            return
        follow_captures()
        self.session.open(self.steps.next, passes, any_thread=any_thread)

    def mark(self, number: int, *, training: bool) -> bool:
        """Set the number of the step that begins.

        Returns:
            False if a training step of this number began before and the parameters have changed
            since, which is reported: the step must not be logged again.
        """
        before = self.steps.next - 1
        self.steps.next = number
        if number < before and self.usage.logged:
            self.warn.warn(
                "backwards",
                f"step numbers went back from {before} to {number}: TensorBoard discards what was "
                "logged from there on; number steps over the whole training, not per epoch",
            )
        if number != before or not training:  # the validation after a step may have its number
            return True
        versions = self.usage.versions.read()
        if self._entered[0] != number:
            self._entered = number, versions
        if self._entered[1] == versions:
            return True
        if self.writes:
            self.warn.warn(
                "entered again",
                f"step {number} was entered again after an optimizer step and is not logged again; "
                "number optimizer steps over the whole training, not epochs, or let fmapboard "
                "count them: with board.step():",
            )
        return False

    def abandon_step(self) -> None:
        """Discard the open step after an exception, and wait until the ones before it are written.

        After an interrupt, such as Ctrl-C, this does not wait. The other ranks may complete the
        step: if training goes on, this one takes part in their exchange; see ``share_abandoned``.
        """
        self._count_end()
        self.share_abandoned()
        exchange = self.session.exchange
        if self.session.open_step is not None and exchange is not None:
            self.abandoned = partial(_only_share, exchange, self.session.open_step, None)
        if self.session.is_awaited and not is_interrupted():
            self.session.close()
        self.session.abandon()
        if not is_interrupted():
            self.flush()

    def share_abandoned(self) -> None:
        """Take part in the exchange of statistics of the step that was abandoned last, if any.

        Called when training goes on, or ends as planned. An exception that ends the training must
        not wait for the other ranks, which may wait for this one.
        """
        if self.abandoned is not None:
            self.pipeline.put(self.abandoned, 0)
            self.abandoned = None

    def flush(self) -> None:
        """Wait until every step handed over so far can be read.

        While this thread captures a CUDA graph it returns at once: the worker thread waits for the
        end of the capture.
        """
        if is_capturing():
            self.warn.warn(
                "flush in a capture",
                "steps are not flushed while a CUDA graph is captured; flush after the capture",
            )
        else:
            self.pipeline.flush()

    def close_step(self) -> None:
        """End the current step, and hand it to the pipeline if it is logged.

        A step that ends while a CUDA graph is captured is not logged.
        """
        self._count_end()
        if is_capturing():
            self.session.abandon()
        elif self.session.open_step is not None:
            number = self.session.open_step
            exchange = self.session.exchange
            pending = self.session.close()
            if pending is not None and self.writes:
                self.usage.logged += 1
                self.pipeline.put(pending.to_host, pending.nbytes)
            elif exchange is not None:
                nbytes = 0 if pending is None else pending.nbytes
                self.pipeline.put(partial(_only_share, exchange, number, pending), nbytes)
            self.warn.raise_first()
            if self.closed is not None and self.closed(number):
                self.closed = None
        self.steps.next += 1

    def count(self, optimizer: Optimizer) -> None:
        """Open and close logged steps by the completed steps of an optimizer, from now on."""
        self.usage.count(optimizer)
        self._open_if_due(any_thread=True)

    def counted_step(self, optimizer: Optimizer) -> None:
        """Called when that optimizer has completed a step that ends before a due one."""
        if self.session.was_skipped(optimizer):
            return
        self.close_step()
        if self.session.facts is not None:
            self.session.facts.step_completed(optimizer)
        self.usage.counted()
        self._open_if_due()

    def pause(self) -> None:
        """Discard the open step, before passes that are none of the training."""
        self.session.abandon()

    def resume(self) -> None:
        """Log the next step after `pause` if it is due and optimizer steps are counted."""
        if self.usage.counts:
            self._open_if_due(any_thread=True)

    def stop_counting(self) -> None:
        """Stop counting optimizer steps: from now on the user marks the steps."""
        self.usage.counts = False
        self.steps.quiet_until = 0
        self.session.abandon()

    def _open_if_due(self, *, any_thread: bool = False) -> None:
        if self.steps.schedule(self.steps.next):
            self.open("training", any_thread=any_thread)
        else:
            self.steps.quiet_until = next_due(self.steps.schedule, self.steps.next)

    def _count_end(self) -> None:
        self.usage.ended += 1
        self.usage.due += self.session.open_step is not None


def _only_share(exchange: RankExchange, number: int, pending: PendingStep | None) -> None:
    """Take part in a step's exchange of statistics on a rank that does not write the step."""
    if pending is None:
        exchange.merged(number, ())
    else:
        pending.to_host()


NOT_A_DECORATOR = "board.step is not a decorator; wrap each training step in: with board.step(i):"


@dataclass(eq=False, repr=False)
class StepBlock:
    """The ``with`` block of one training step.

    Attributes:
        _begin: called when the block is entered.
        _end: called when the block is left without an exception.
        _broken: called when an exception leaves the block.
        _warn: where a block that is never entered is reported.
    """

    _begin: Callable[[], None]
    _end: Callable[[], None]
    _broken: Callable[[], None]
    _warn: WarnOnce

    def __enter__(self) -> None:
        self.__class__ = StepBlock
        self._begin()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        (self._end if error is None else self._broken)()

    def __call__(self, function: object) -> Any:
        """Refuse to be used as a decorator."""
        self.__class__ = StepBlock
        raise ConfigurationError(NOT_A_DECORATOR)


class UnusedStepBlock(StepBlock):
    """A block that has not been entered, as returned by ``board.step(i)``; warns if it never is.

    Once it is used it becomes a ``StepBlock``, so that Python runs no code of ours when the block
    is deleted: an exception of a signal handler would be lost there.
    """

    def __del__(self) -> None:
        if hasattr(self, "_warn"):
            self._warn.warn(
                "step without with",
                "board.step(...) was called without a with block, and does nothing; write: "
                "with board.step(i):, or leave it out where watch() was given the optimizer",
            )
