"""``FeatureMapLogger``: the public interface for training loops; ``watch`` creates it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn
from torch.optim.optimizer import Optimizer
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.loss_scale import check_scaler
from fmapboard.capture.optimizer_hook import after_each_step
from fmapboard.capture.optimizers import unwrapped
from fmapboard.capture.side_pass import check_probe
from fmapboard.errors import ConfigurationError, WarnOnce
from fmapboard.lifetime import End, close_earlier, remember
from fmapboard.model.distributed import is_sharded, rank
from fmapboard.model.flat_parameters import options_for
from fmapboard.model.given import check_model, check_not_inference
from fmapboard.model.layers import Layers, unwrap
from fmapboard.options import Options
from fmapboard.records import KernelShape
from fmapboard.report.of_logger import ReportsRun
from fmapboard.run import OptimizerSteps, Run, StepBlock, UnusedStepBlock
from fmapboard.schedule import StepCounter, as_schedule, never, step_number
from fmapboard.session import StepSession
from fmapboard.usage import explain_every_minute
from fmapboard.writers import Writer
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.pipeline import Pipeline


class FeatureMapLogger(ReportsRun):
    """Logs a model's feature maps, histograms and gradient norms while it trains.

    Create it with ``watch``, which documents the arguments. ``options`` holds the remaining ones;
    ``open_writer`` is called on rank 0 only, after everything else has been checked.

    Use it as a context manager, or call ``close`` at the end. A logger with an optimizer lives as
    long as the optimizer. Pending steps are written at interpreter exit. Errors inside fmapboard
    are logged and do not stop training, unless ``FMAPBOARD_ON_ERROR=raise`` is set in the
    environment. Call the methods from the training thread.

    Attributes:
        end: the cleanup that ``close`` runs once.

    Raises:
        ConfigurationError: an argument is invalid, or there is nothing to watch.
    """

    def __init__(
        self,
        model: nn.Module,
        open_writer: Callable[[], Writer],
        options: Options,
        *,
        layers: Layers = None,
        optimizer: Optimizer | None = None,
        scaler: Any = None,
    ) -> None:
        check_model(model)
        check_not_inference(model)
        check_scaler(scaler)
        given, model, warn = model, unwrap(model), WarnOnce()
        counted = None if optimizer is None else unwrapped(optimizer)
        schedule, writes = as_schedule(options.every), rank() == 0
        takes_part = writes or options.reduce_statistics or is_sharded(model)
        steps = StepCounter(schedule if takes_part else never, options.start_step)
        options = options_for(model, options, warn)
        session = StepSession(given, layers, options, scaler, warn)
        check_probe(model, session.probe_pass.probe)
        close_earlier(model, options.name, warn)
        pipeline = Pipeline(open_writer() if writes else MemoryWriter(), options, warn)
        self._model_name = type(model).__name__
        self._run = Run(steps, session, pipeline, warn, writes)
        self._automatic: OptimizerSteps | None = None
        handles: list[RemovableHandle] = []
        self.end = End(pipeline, handles, self._run)
        if writes:
            self.end.end_explaining = explain_every_minute(self._run.usage)
        self._finalizer = weakref.finalize(self, self.end)
        remember(self, model, options.name)
        if counted is not None:
            self._automatic = OptimizerSteps(self._run, counted, self)
            handles.append(after_each_step(counted, self._automatic.after_step))

    def __repr__(self) -> str:
        run = self._run
        return (
            f"FeatureMapLogger({self._model_name}, {len(run.session.registry.layers)} layers, "
            f"{run.usage.logged} steps logged, next step {run.steps.next})"
        )

    @property
    def groups(self) -> dict[KernelShape, list[str]]:
        """Kernel shape -> names of the watched convolutions with that shape."""
        return self._run.session.registry.groups

    @property
    def logged_steps(self) -> int:
        """How many steps were queued for writing, including those dropped later."""
        return self._run.usage.logged

    @property
    def dropped_steps(self) -> int:
        """How many logged steps were dropped because the queue was full."""
        return self._run.pipeline.dropped

    @property
    def is_closed(self) -> bool:
        """True after ``close``, when nothing is logged any more."""
        return not self._finalizer.alive

    def step(self, number: int | None = None) -> StepBlock:
        """Mark one training step: forward, backward and optimizer step.

        Use it as ``with board.step(i):``. If the block raises, all hooks are removed and the steps
        logged before it are written to disk.

        Args:
            number: the step's number (see ``begin_step``).

        Raises:
            ConfigurationError: ``number`` is not a step number, or this is used as a decorator.
        """
        if callable(number):
            raise ConfigurationError(
                "board.step is not a decorator; wrap each training step in: with board.step(i):"
            )
        begin = partial(self.begin_step, None if number is None else step_number(number))
        return UnusedStepBlock(begin, self.end_step, self._run.abandon_step, self._run.warn)

    def begin_step(self, number: int | None = None, *, training: bool = True) -> None:
        """Begin a step that ``end_step`` ends, for callbacks that cannot use a ``with`` block.

        To continue the open step with its next micro-batch, call this again with the same number.

        Args:
            number: the step's number, a whole number of any type; None continues the count.
            training: False for a validation step: its forward pass in eval mode is recorded, and no
                optimizer step is expected.

        Raises:
            ConfigurationError: ``number`` is not a step number.
        """
        run = self._run
        if not self._finalizer.alive:
            why = (
                "in a logger that was closed when this model was watched again, and is not logged; "
                "use the later logger, or give each logger its own name="
                if self.end.is_replaced
                else "after close() and is not logged; call watch() again"
            )
            run.warn.warn("closed", f"a step began {why}")
            return
        if self._automatic is not None and self._automatic.is_on:
            self._automatic.end()
        run.usage.marked = True
        is_new = number is None or run.mark(step_number(number), training=training)
        if not is_new or run.session.open_step == run.steps.next:
            return
        if run.steps.schedule(run.steps.next):
            run.open(passes="all" if training else "evaluation", probe_now=True)

    def end_step(self) -> None:
        """End the step that ``begin_step`` began."""
        run = self._run
        if run.session.open_step is not None:
            run.close_step()
        elif self._finalizer.alive:  # most steps are not logged and end here: keep it fast
            run.usage.ended += 1
            run.steps.next += 1

    def before_clipping(self) -> None:
        """Log the current gradient norms under ``gradient_norm_before_clipping/``.

        Call it after ``backward`` (and ``scaler.unscale_``), right before gradients are clipped. At
        a step that is not logged it does nothing.
        """
        self._run.session.before_clipping()

    def flush(self) -> None:
        """Wait until TensorBoard can read every step logged so far."""
        self._run.flush()
        self._run.warn.raise_first()

    def close(self) -> None:
        """Remove all hooks and write pending steps; a second call does nothing."""
        self._finalizer()
        self._run.warn.raise_first()

    def __enter__(self) -> FeatureMapLogger:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._run.usage.explains &= error is None
        self._finalizer()
        if error is None:
            self._run.warn.raise_first()
