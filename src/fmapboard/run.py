"""The steps of one run: when each is opened, and where it goes when it is closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch.optim.optimizer import Optimizer

from fmapboard.capture.open_step import Passes
from fmapboard.errors import WarnOnce
from fmapboard.schedule import StepCounter
from fmapboard.session import StepSession
from fmapboard.writers.pipeline import Pipeline


@dataclass(slots=True)
class Run:
    """The steps of one run: opened when they are due, closed into the pipeline."""

    steps: StepCounter
    session: StepSession
    pipeline: Pipeline
    warn: WarnOnce
    writes: bool
    logged: int = 0

    def open(self, *, passes: Passes, probe_now: bool, any_thread: bool = False) -> None:
        """Begin to log the next step; the arguments are those of `StepSession.open`."""
        self.session.open(
            self.steps.next, passes=passes, probe_now=probe_now, any_thread=any_thread
        )

    def close_step(self) -> None:
        """End the step, and the logged one that is open."""
        if self.session.open_step is not None:
            pending = self.session.close()
            if pending is not None and self.writes:
                self.logged += 1
                self.pipeline.put(pending.to_host, pending.nbytes)
            self.warn.raise_first()
        self.steps.next += 1


class OptimizerSteps:
    """Opens and closes logged steps by itself, between the completed steps of an optimizer.

    Args:
        run: whose steps.
        owner: lives as long as the optimizer, which holds this.
    """

    def __init__(self, run: Run, owner: object) -> None:
        self._run, self._steps, self._owner = run, run.steps, owner
        self.is_on = True
        self._open_if_due(any_thread=True)

    def after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """The optimizer has stepped: one call for a step that is not logged."""
        steps = self._steps
        if steps.next + 1 < steps.quiet_until:
            steps.next += 1
        elif self.is_on and not self._run.session.was_skipped(optimizer):
            self._run.close_step()
            self._open_if_due()

    def end(self) -> None:
        """From now on the user says where a step begins."""
        self.is_on, self._steps.quiet_until = False, 0
        self._run.session.abandon()

    def _open_if_due(self, *, any_thread: bool = False) -> None:
        if self._steps.schedule(self._steps.next):
            self._run.open(passes="training", probe_now=False, any_thread=any_thread)
        else:
            self._steps.rest()
