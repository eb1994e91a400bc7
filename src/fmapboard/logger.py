"""`FeatureMapLogger` and `watch`: when a step is logged, and where it goes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from torch import nn
from torch.optim.optimizer import Optimizer
from torch.utils.hooks import RemovableHandle
from typing_extensions import Unpack

from fmapboard.capture.loss_scale import check_scaler
from fmapboard.capture.optimizer_hook import after_each_step
from fmapboard.capture.optimizers import unwrapped
from fmapboard.capture.side_pass import check_probe
from fmapboard.errors import ConfigurationError, WarnOnce
from fmapboard.lifetime import End, close_earlier, remember
from fmapboard.model.distributed import is_sharded, rank
from fmapboard.model.given import check_model
from fmapboard.model.layers import Layers, unwrap
from fmapboard.options import Options, WatchOptions, check_place, with_options
from fmapboard.records import KernelShape
from fmapboard.run import OptimizerSteps, Run, StepBlock
from fmapboard.schedule import StepCounter, as_schedule, never, step_number
from fmapboard.session import StepSession
from fmapboard.writers import Writer
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.pipeline import Pipeline
from fmapboard.writers.tensorboard import TensorBoardWriter, as_writer, default_log_dir


class FeatureMapLogger:
    """Logs feature maps, histograms and gradient norms of a model while it trains.

    Made by `watch`; a context manager that closes itself. With an optimizer it lives as long as
    that does, and what waits is written when the interpreter ends. Between logged steps nothing is
    installed on the model, and no error of ours reaches the user's forward, backward or step.

    Args:
        model: any module that has parameters, or what ``layers`` names.
        open_writer: opens the place where logged steps go, once everything else is found to be in
            order; the writer is called in a worker thread.
        options: every option that is not named here.
        layers: what to watch (see `layers.Layers`).
        optimizer: its completed steps are counted, and each window that is to be logged opens and
            closes by itself. Without it, mark steps with `step`.
        scaler: a `torch.amp.GradScaler`: a step that it skips is counted as skipped.

    Attributes:
        end: what happens at the end.

    Raises:
        ConfigurationError, LayerNotFound, NoConvolution: at once, for what cannot be done.
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
        check_scaler(scaler)
        model, warn = unwrap(model), WarnOnce()
        counted = None if optimizer is None else unwrapped(optimizer)
        schedule, writes = as_schedule(options.every), rank() == 0
        takes_part = writes or options.reduce_statistics or is_sharded(model)
        steps = StepCounter(schedule if takes_part else never, options.start_step)
        session = StepSession(model, layers, options, scaler, warn)
        check_probe(model, options.probe)
        close_earlier(model, options.name, warn)
        writer = open_writer() if writes else MemoryWriter()
        pipeline = Pipeline(writer, options, warn)
        self._model_name = type(model).__name__
        self._run = Run(steps, session, pipeline, warn, writes)
        self._automatic: OptimizerSteps | None = None
        handles: list[RemovableHandle] = []
        self.end = End(pipeline, handles, self._run)
        self._finalizer = weakref.finalize(self, self.end)
        remember(self, model, options.name)
        if counted is not None:
            self._automatic = OptimizerSteps(self._run, self)
            handles.append(after_each_step(counted, self._automatic.after_step))

    def __repr__(self) -> str:
        run = self._run
        return (
            f"FeatureMapLogger({self._model_name}, {len(run.session.registry.layers)} layers, "
            f"{run.usage.logged} steps logged, next step {run.steps.next})"
        )

    @property
    def groups(self) -> dict[KernelShape, list[str]]:
        """Kernel shape -> names of the watched convolutions that have it."""
        return self._run.session.registry.groups

    @property
    def logged_steps(self) -> int:
        """How many steps were handed to the writer."""
        return self._run.usage.logged

    @property
    def dropped_steps(self) -> int:
        """How many of them were dropped because the queue was full."""
        return self._run.pipeline.dropped

    @property
    def is_closed(self) -> bool:
        """True after `close`: nothing is logged any more."""
        return not self._finalizer.alive

    def step(self, number: int | None = None) -> StepBlock:
        """Mark one training step: forward, backward and optimizer step belong inside.

        ``with board.step(i):`` is the only use; anything else is reported.

        An exception inside leaves the model without hooks and what was logged before on disk.

        Args:
            number: the step's number (see `begin_step`).

        Raises:
            ConfigurationError: the number is no step number, or this is used as a decorator.
        """
        if callable(number):
            raise ConfigurationError(
                "@board.step is no decorator; put the training step into: with board.step(i):"
            )
        checked = None if number is None else step_number(number)
        begin = partial(self.begin_step, checked)
        return StepBlock(begin, self.end_step, self._broken, self._run.warn)

    def _broken(self) -> None:
        self._run.session.abandon()
        self._run.pipeline.flush()

    def begin_step(self, number: int | None = None, *, training: bool = True) -> None:
        """Begin a step that `end_step` ends: for a framework's events, where `step` cannot stand.

        Begun once more under the number that is open, it goes on: the next micro-batch begins.

        Args:
            number: the step's number, a whole number of any type; None counts on from the one
                before.
            training: False for a step of validation: its pass in eval mode is recorded, and no
                optimizer is expected to step.

        Raises:
            ConfigurationError: the number is no step number.
        """
        run = self._run
        if not self._finalizer.alive:
            run.warn.warn(
                "closed", "a step was begun after close(): nothing is logged; call watch again"
            )
            return
        if self._automatic is not None and self._automatic.is_on:
            self._automatic.end()
        if number is not None:
            number = step_number(number)
            run.warn_if_backwards(number)
            run.steps.next = number
        if run.steps.schedule(run.steps.next) and run.session.open_step != run.steps.next:
            run.open(passes="all" if training else "evaluation", probe_now=True)

    def end_step(self) -> None:
        """End the step that `begin_step` began."""
        run = self._run
        if run.session.open_step is not None:
            run.close_step()
        elif self._finalizer.alive:  # as short as can be: most steps end here
            run.usage.ended += 1
            run.steps.next += 1

    def before_clipping(self) -> None:
        """Log the gradients' norms as they are now, under ``gradient_norm_before_clipping/``.

        Call it after ``backward`` (and ``scaler.unscale_``), before gradients are clipped; at a
        step that is not logged it does nothing.
        """
        self._run.session.before_clipping()

    def flush(self) -> None:
        """Return when every step logged so far can be read by TensorBoard."""
        self._run.pipeline.flush()
        self._run.warn.raise_first()

    def close(self) -> None:
        """Remove all hooks, write what is waiting and close; a second call does nothing."""
        self._finalizer()
        self._run.warn.raise_first()

    def __enter__(self) -> FeatureMapLogger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end.explains &= error is None
        self._finalizer()
        if error is None:
            self._run.warn.raise_first()


def watch(
    model: nn.Module,
    log_dir: str | Path | None = None,
    *,
    writer: Any = None,
    optimizer: Optimizer | None = None,
    scaler: Any = None,
    layers: Layers = None,
    comment: str = "",
    filename_suffix: str = "",
    **options: Unpack[WatchOptions],
) -> FeatureMapLogger:
    """Watch a model while it trains, and write what its layers do for TensorBoard.

    >>> with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=100):  # doctest: +SKIP
    ...     train(model, optimizer)

    Args:
        model: any module; DistributedDataParallel and torch.compile are looked through.
        log_dir: the run's directory, a path or a URL (``s3://``, ``gs://``, ``memory://``, …), made
            where it is missing; without it and without ``writer`` it is
            ``runs/<time>_<host><comment>``.
        writer: instead of ``log_dir``: your `torch.utils.tensorboard.SummaryWriter`, which stays
            open, or any `writers.Writer`, which is closed at the end.
        optimizer: its completed steps are counted (of several optimizers give the one that steps
            last); accelerate's and Fabric's wrappers are looked through. Without it mark steps:
            ``with board.step(i):``.
        scaler: your `torch.amp.GradScaler`, to have the steps that it skips counted.
        every: log each step whose number it divides, or a function from step number to bool.
        start_step: steps done before, on resume; what the directory holds from there on is void.
        name: stands in front of every tag, to keep two models of one process apart.
        layers: which layers; None is every convolution, of any dimension and transposed ones too;
            in a model without any, every leaf module with parameters (see `layers.Layers`).
        samples: draw this many samples of the batch, a grid each.
        probe: fixed images [N, C, H, W] (or a tuple of what the model is called with) to draw
            instead, all of them, in a forward pass of their own in eval mode; numbers are still
            of the training batch.
        inputs: also the layers' inputs, as grids and histograms.
        activation_gradients: also the gradients of the layers' outputs, as grids and histograms.
        kernels: convolution kernels as pictures: True at each tenth logged step, a number at each
            such logged step, False never.
        max_channels: draw at most so many channels; None draws all.
        max_tile: average larger maps down to at most this many px per side, and sequences to rows
            of at most 8 times as many; None keeps the size.
        depth: of maps with a depth (Conv3d), draw this slice, counted from 0; None draws the middle
            one.
        max_bytes_per_step: on disk; kept by shrinking tiles, then by leaving channels out. A limit
            once needed stays for the rest of the run.
        reduce_statistics: with several ranks, make the numbers of channels (extremes, mean, spread,
            fractions) those of all ranks' batches; every rank must watch. Pictures and histograms
            stay those of rank 0.
        scale: ``"channel"``: each on its own; ``"layer"``: one for all channels of a layer;
            ``"locked"``: per channel, as at the first logged step.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centred ``"signed"``.
        normalization: (mean, std) of the network's input, each one number per channel: draws the
            input's picture as it was before normalization.
        comment: ends the name of the default directory, as in SummaryWriter.
        filename_suffix: ends the event file's name, as in SummaryWriter.
        when_full: what happens when steps come faster than they can be written: ``"wait"``, or
            ``"drop_oldest"``, counted in `FeatureMapLogger.dropped_steps`.

    Raises:
        ConfigurationError: what was asked for cannot be meant, or both ``log_dir`` and ``writer``.
        LayerNotFound, NoConvolution: there is nothing to watch.
        WriteError: the directory cannot be written to.
        MissingExtra: a package for such a URL is not installed.
    """
    check_place(log_dir, writer, comment, filename_suffix)
    checked = Options.of(**options)

    def open_writer() -> Writer:
        if writer is not None:
            return as_writer(writer)
        place = default_log_dir(comment) if log_dir is None else log_dir
        start = checked.start_step
        return TensorBoardWriter(place, filename_suffix=filename_suffix, start_step=start)

    return FeatureMapLogger(
        model, open_writer, checked, layers=layers, optimizer=optimizer, scaler=scaler
    )


watch.__signature__ = with_options(watch)  # type: ignore[attr-defined]  # help() and editors read it
