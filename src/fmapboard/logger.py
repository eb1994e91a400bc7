"""``FeatureMapLogger``: the public interface for training loops; ``watch`` creates it."""

from __future__ import annotations

import atexit
import gc
import inspect
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer
from typing_extensions import Never, Unpack

from fmapboard.capture.compiled import is_capturing
from fmapboard.capture.probe import check_probe
from fmapboard.errors import ConfigurationError, FmapboardError, WarnOnce
from fmapboard.gradients.loss_scale import check_scaler
from fmapboard.gradients.optimizer_hook import StepHook
from fmapboard.gradients.optimizers import unwrapped
from fmapboard.health.verdict import Verdict
from fmapboard.interrupts import WeakTable, is_ended_by_exception, raise_interrupt
from fmapboard.model.distributed import is_sharded, rank
from fmapboard.model.given import check_model, check_not_inference
from fmapboard.model.layers import Layers, unwrap
from fmapboard.options import Options, WatchOptions, check_names, check_place, with_options
from fmapboard.printing import console
from fmapboard.records import KernelShape
from fmapboard.report.result import Report
from fmapboard.schedule import StepCounter, as_schedule, never, step_number
from fmapboard.session.run import NOT_A_DECORATOR, Run, StepBlock, UnusedStepBlock
from fmapboard.session.session import StepSession, options_for
from fmapboard.session.usage import explain_every_minute
from fmapboard.writers import Writer
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.pipeline import Pipeline
from fmapboard.writers.tensorboard import TensorBoardWriter, as_writer, default_log_dir


@dataclass(slots=True)
class End:
    """The cleanup of a logger: on ``close``, on garbage collection or at interpreter exit.

    Attributes:
        run: its open step is abandoned, and then its pipeline is closed.
        hook: the one on the optimizer whose steps are counted; None if there is none.
        end_explaining: ends the thread that explains why nothing is logged.
        is_replaced: another logger of the same model and name was created.
        process: the process that the logger belongs to.
    """

    run: Run
    hook: StepHook | None = None
    end_explaining: Callable[[], object] | None = None
    is_replaced: bool = False
    process: int = field(default_factory=os.getpid)

    def __call__(self) -> None:
        """Clean up; called once. In a CUDA graph's capture, the writer is closed at exit."""
        try:
            self._clean_up()
        except BaseException:  # an interrupt: whatever it has cut short is done now
            self._clean_up()
            raise

    def stop_counting(self) -> None:
        """Count the steps of no optimizer any more; may be called again."""
        if self.hook is not None:
            self.hook.drop(id(self))

    def count(self, optimizer: Optimizer, hook: StepHook, function: Callable[..., Any]) -> None:
        """Count the completed steps of an optimizer from now on, instead of those of another one.

        Args:
            optimizer: the logger lives as long as it does.
            hook: a hook on it, which from now on calls the function.
            function: the logger's own.
        """
        if self.hook is not None:
            self.stop_counting()
            self.run.session.abandon()
        self.run.count(optimizer)
        self.hook = hook
        hook.call(id(self), function)  # which keeps the logger

    def _clean_up(self) -> None:
        self.stop_counting()
        self.run.session.abandon()
        if is_capturing():  # the worker waits for its end
            atexit.register(self.run.pipeline.close)
        else:
            self.run.pipeline.close()
        if self.end_explaining is not None:
            self.end_explaining()
            if not is_ended_by_exception():  # whose traceback is the last thing to be read
                self.run.usage.explain(is_over=True)
        if self.run.closed is not None and self.run.usage.explains:
            why = "no logged step trained the model by calling it; pass batch and loss to"
            self.run.warn.warn(
                "rehearse", f"the training was not rehearsed: {why} board.rehearse()"
            )


_loggers: WeakTable[nn.Module, dict[str | None, weakref.ref[FeatureMapLogger]]] = WeakTable()
"""Model -> by name, its last logger, which may be open, closed or deleted."""


def is_watched(model: nn.Module) -> bool:
    """True if a logger of this process is open on the module."""
    loggers = [reference() for reference in (_loggers.get(model) or {}).values()]
    return any(logger is not None and not logger.is_closed for logger in loggers)


def close_earlier(model: nn.Module, name: str | None, warn: WarnOnce) -> None:
    """Close the open logger of this model and name, for example after a notebook cell was rerun."""
    earlier = (_loggers.get(model) or {}).get(name)
    logger = None if earlier is None else earlier()
    if logger is None or logger.is_closed or logger.end.process != os.getpid():
        return  # that of another process is its own matter: this one was forked from it
    logger.end.run.usage.explains = False  # it ends here, not with the training
    logger.end.is_replaced = True
    logger.close()
    warn.warn(
        "again",
        f"this {type(model).__name__} was watched already; the earlier logger is now closed. "
        "To keep both, give each logger its own name=",
    )


_given_writers: weakref.WeakValueDictionary[tuple[int, str | None], FeatureMapLogger] = (
    weakref.WeakValueDictionary()
)
"""Id of a writer that a user gave, and name -> the last logger that writes to it."""


def check_writer_is_free(writer: object, name: str | None) -> None:
    """Refuse a writer to which an open logger of this process writes under the same name.

    Raises:
        ConfigurationError: there is such a logger.
    """
    place = id(writer), name
    if place in _given_writers:
        gc.collect()  # a logger that nobody holds any more is closed by this
    logger = _given_writers.get(place)
    if logger is not None and not logger.is_closed and logger.end.process == os.getpid():
        raise ConfigurationError(
            f"writer={type(writer).__name__}: another open logger writes to it under the same "
            "name; give each its own name=, or close the other one first (board.close())"
        )


def _nothing() -> None:
    """In place of a reference."""


def _print(text: str) -> None:
    console().print(text, soft_wrap=True)


class RunSoFar:
    """Reports the run that a logger logs, and tries out what takes its fault away.

    Args:
        run: the run.
        scaler: the GradScaler of the training; None for none.
        seconds: how long ``prove`` may take; 0 if it was not asked for.

    Attributes:
        show: called with the text of a rehearsal in a logged step.
    """

    def __init__(self, run: Run, scaler: Any, seconds: float) -> None:
        self._run = run
        self._scaler = scaler
        self._prove_seconds = seconds
        self.show: Callable[[str], object] = _print
        self._trained: tuple[Callable[[], Any], Callable[[], Any] | None] = (_nothing, None)

    def prove(self) -> Verdict | None:
        """Train copies of the network without the cause of its fault, and return the verdict.

        Two copies begin as the training began, and are trained on batches of logged steps for
        50 steps each: one as it is, one without the cause. Where the loss falls clearly
        further, the cause is proven; otherwise it is refuted, and no longer the first one of the
        verdict, or inconclusive, where the cause is there and both copies learn. It blocks the
        training thread for as many seconds as ``prove=`` of ``watch`` allows at most, and leaves
        the training bitwise as it was. ``close`` does it too.

        Returns:
            The verdict on the run so far, whose ``lines()`` are those of ``fmapboard why``; None
            before the first logged step, and on ranks other than 0.

        Raises:
            ConfigurationError: ``watch`` was not told to keep batches (``prove=True``).
        """
        from fmapboard.rehearsal.prove import Experiments
        from fmapboard.rehearsal.surroundings import code_of, surroundings_kept

        run = self._run
        kept = run.session.kept
        if kept is None:
            raise ConfigurationError(
                "board.prove() needs the batches of logged steps: watch(..., prove=True)"
            )
        run.flush()
        verdict = run.pipeline.verdict
        if verdict is None or not run.writes:
            return None
        run.pause()
        try:
            experiments = Experiments(kept.model, kept, self._scaler, self._prove_seconds)
            optimizers = {type(reference()) for reference in kept.optimizers}
            with surroundings_kept(code_of(kept.model), *optimizers):
                proofs = experiments.prove(verdict.findings)
            if proofs:
                run.pipeline.prove(proofs)
        except Exception as error:
            raise_interrupt(error)
            run.warn.error("experiments", error, "no cause is proven; training continues")
        finally:
            run.resume()
        return run.pipeline.verdict

    def report(
        self,
        path: str | Path,
        *,
        steps: int = 8,
        layers: str | Sequence[str] = (),
        max_mb: float = 20.0,
        inputs: bool = True,
    ) -> Report | None:
        """Write the run so far into one HTML file, as ``fmapboard report`` does.

        The file opens in a browser without TensorBoard, and contains training images.

        Args:
            path: the HTML file; replaced if it exists.
            steps: pictures of at most this many steps, evenly spaced, with the first and the last.
            layers: a glob on layer names, or several; one that begins with ``!`` excludes. Empty
                for all layers.
            max_mb: limit on the size of the file, 10⁶ bytes. To stay below it, pictures of steps
                are left out, then layers.
            inputs: False to leave out every picture of the network's input.

        Returns:
            What was written and what was left out; None on ranks other than 0, which write nothing.

        Raises:
            ConfigurationError: an argument is invalid, nothing was logged yet, or the run is not
                logged into a local directory.
            LayerNotFound: a glob matches no layer.
            WriteError: the file cannot be written.
        """
        from fmapboard.report.write import write_report  # reads TensorBoard's modules

        run = self._run
        if not run.writes:
            return None
        folder = run.pipeline.log_dir
        if not isinstance(folder, (str, Path)) or "://" in str(folder):
            raise ConfigurationError(
                "report() needs a run that is logged into a local directory: watch(model, log_dir)"
            )
        run.flush()
        chosen = (layers,) if isinstance(layers, str) else tuple(layers)
        return write_report(
            [Path(folder)], Path(path), steps=steps, layers=chosen, max_mb=max_mb, inputs=inputs,
            below=False,
        )  # fmt: skip

    def rehearse(
        self,
        batch: Any = None,
        loss: Callable[[Any, Any], Tensor] | None = None,
        *,
        seconds: float = 60.0,
    ) -> Any:
        """Rehearse the training with the model and the optimizer that are watched.

        Without ``batch``, it happens at the end of the next logged step that trains the model, on
        what the model is called with there, with the loss that was read from the gradient, as
        ``watch(..., rehearse=True)`` does at the first one, and the result is printed.

        Args:
            batch: see ``fmapboard.rehearse``.
            loss: likewise.
            seconds: likewise.

        Returns:
            The answers, a ``Rehearsal``; None without ``batch``.

        Raises:
            ConfigurationError: no optimizer was passed to ``watch``, or an argument is invalid.
        """
        from fmapboard.rehearsal.run import rehearse

        if batch is None:
            self._rehearse_later(seconds)
            return None
        model, optimizer = self._rehearsed()
        return rehearse(model, batch, loss, optimizer, scaler=self._scaler, seconds=seconds)

    def _rehearsed(self) -> tuple[Any, Any]:
        """The model and the optimizer, which the logger does not keep."""
        model, optimizer = self._trained
        return model(), None if optimizer is None else optimizer()

    def _rehearse_later(self, seconds: float = 60.0) -> None:
        """Rehearse at the end of the next logged step that trains the model."""
        from fmapboard.rehearsal.run import check_not_compiled, rehearse_kept

        session = self._run.session
        is_kept_for_proofs = session.kept is not None
        kept = session.keep_batches()

        def closed(step: int) -> bool:
            try:
                model, optimizer = self._rehearsed()
                check_not_compiled(model)
                batch = kept.of_step(step)
                if batch is None:
                    return False
                found = rehearse_kept(model, batch, optimizer, scaler=self._scaler, seconds=seconds)
            except Exception as error:
                raise_interrupt(error)
                self._run.warn.warn("rehearse", f"the training was not rehearsed: {error}")
            else:
                self.show(str(found))
            if not is_kept_for_proofs:
                session.kept = None
            return True

        self._run.closed = closed


class FeatureMapLogger(RunSoFar):
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
        given = model
        model = unwrap(model)
        warn = WarnOnce()
        counted = None if optimizer is None else unwrapped(optimizer)
        schedule = as_schedule(options.every)
        writes = rank() == 0
        takes_part = writes or options.reduce_statistics or is_sharded(model)
        steps = StepCounter(schedule if takes_part else never, options.start_step)
        options = options_for(model, options, warn)
        session = StepSession(given, layers, options, scaler, warn)
        if session.probe_pass is not None:
            check_probe(model, session.probe_pass.probe)
        close_earlier(model, options.name, warn)
        pipeline = Pipeline(open_writer() if writes else MemoryWriter(), options, warn)
        run = Run(steps, session, pipeline, warn, writes)
        super().__init__(run, scaler, options.prove_seconds)
        self._trained = weakref.ref(given), None
        if options.rehearse and writes:
            self._rehearse_later()
        self.end = End(self._run)
        if writes:
            self.end.end_explaining = explain_every_minute(self._run.usage)
        self._finalizer = weakref.finalize(self, self.end)
        _loggers[model] = {**(_loggers.get(model) or {}), options.name: weakref.ref(self)}
        if counted is not None:
            self.count(counted, StepHook(counted))

    def __repr__(self) -> str:
        run = self._run
        session = self._run.session
        return (
            f"FeatureMapLogger({type(session.model).__name__}, {len(session.registry.layers)} "
            f"layers, {run.usage.logged} steps logged, next step {run.steps.next})"
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
            raise ConfigurationError(NOT_A_DECORATOR)
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
        if run.usage.counts:
            run.stop_counting()
        run.usage.marked = True
        if run.abandoned is not None:
            run.share_abandoned()
        is_new = number is None or run.mark(step_number(number), training=training)
        if not is_new or run.session.open_step == run.steps.next:
            return
        if run.steps.schedule(run.steps.next):
            run.open("all" if training else "evaluation")

    def count(self, optimizer: Optimizer, hook: StepHook) -> None:
        """Count an optimizer's steps from now on, instead of another one's; see ``End.count``."""
        self._trained = self._trained[0], weakref.ref(optimizer)
        self.end.count(optimizer, hook, self._after_step)

    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """Called after each step of the optimizer; until ``quiet_until``, it only counts it."""
        run = self._run
        steps = self._run.steps
        if steps.next + 1 < steps.quiet_until:
            steps.next += 1
        elif run.usage.counts and not is_capturing():  # nothing is trained in a capture
            run.counted_step(optimizer)

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

    def loss(self, loss: Tensor | float, labels: Tensor | None = None) -> None:
        """Log the loss, and the labels, where they cannot be read from the output's gradient.

        Call it in the step, with the loss of the first micro-batch if gradients are accumulated;
        later calls in the step do nothing, nor do those at a step that is not logged. Training does
        not wait for the device.

        Args:
            loss: one number, or one per image.
            labels: whole numbers, one per image; with them, accuracy is logged as well.
        """
        self._run.session.given_loss(loss, labels)

    def flush(self) -> None:
        """Wait until TensorBoard can read every step logged so far."""
        self._run.flush()
        self._run.warn.raise_first()

    def close(self) -> None:
        """Remove all hooks and write pending steps; a second call does nothing."""
        if self._finalizer.alive:
            self._run.share_abandoned()
            if self._prove_seconds and not is_ended_by_exception():
                try:
                    self.prove()
                except BaseException:
                    self._finalizer()
                    raise
        self._finalizer()
        self._run.warn.raise_first()

    def __enter__(self) -> FeatureMapLogger:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            self.close()
        else:
            self.abandon()

    def abandon(self) -> None:
        """Close after an exception: write pending steps, prove no cause and explain nothing."""
        self._run.usage.explains = False
        self._finalizer()


def watch(
    model: nn.Module,
    log_dir: str | Path | None = None,
    *others: Never,
    writer: Any = None,
    optimizer: Optimizer | None = None,
    scaler: Any = None,
    layers: Layers = None,
    comment: str = "",
    filename_suffix: str = "",
    **options: Unpack[WatchOptions],
) -> FeatureMapLogger:
    """Log a model's feature maps, histograms and gradient norms to TensorBoard while it trains.

    >>> import torch, fmapboard
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5), torch.nn.ReLU())
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=2) as board:
    ...     for images in torch.rand(4, 16, 3, 32, 32):  # four batches
    ...         optimizer.zero_grad()
    ...         model(images).mean().backward()
    ...         optimizer.step()
    >>> board.logged_steps  # steps 0 and 2
    2

    Hooks are on the model only while it runs in a logged step. Training stays bitwise the same, and
    an error inside fmapboard is logged once as a warning instead of being raised.

    Args:
        model: any module; DistributedDataParallel, DataParallel and torch.compile are unwrapped.
        log_dir: the run's directory, created if missing: a path or a URL (``s3://``, ``gs://``,
            ``memory://``, ...). Default: ``runs/<time>_<host><comment>``. If it holds another
            writer's event files, the run goes into its subdirectory ``fmapboard``; if another
            process or an open logger of the same name writes there, into ``fmapboard_2``.
        optimizer: count its completed steps; of several optimizers, pass the one that steps last.
            Wrappers of accelerate and Fabric are unwrapped. Without it: ``with board.step(i):``.
        every: log each step whose number is divisible by this, or for which this function is true.
        layers: which layers to watch: a glob (``"layer1.*"``), a compiled regular expression, a
            module type, a list of these (``"!stem*"`` excludes), or a function of name and module
            that returns a bool. Globs and regular expressions select convolutions, or any module if
            no convolution matches. Default: every convolution and the blocks of a transformer,
            their attention and MLPs; in a model without a convolution also the leaf layers with
            parameters around the blocks.
        samples: draw this many samples of the batch, one grid each.
        probe: draw these images (a tensor [N, C, H, W] or a tuple of positional arguments) instead,
            in a separate forward pass in eval mode; numbers are still those of the training batch.
        normalization: the ``(mean, std)`` per channel of the input, or torchvision's ``Normalize``;
            undone before the input is drawn.
        max_channels: draw at most this many channels per layer; None draws all.
        max_tile: average larger maps to this many px per side (sequences: 8×); None keeps the size.
        name: prefix of every tag, to keep several models in one process apart.
        start_step: number of the first step, for a resumed run. TensorBoard discards what fmapboard
            logged in ``log_dir`` from this step on.

    Other Parameters:
        writer: log here instead of ``log_dir``: a ``SummaryWriter``, which stays open, or an object
            with ``write``, ``flush`` and ``close`` (``fmapboard.writers.Writer``), which is closed,
            such as ``fmapboard.writers.WandbWriter``.
        scaler: a ``torch.amp.GradScaler`` whose skipped steps are to be counted.
        comment: appended to the default directory's name, as in ``SummaryWriter``.
        filename_suffix: appended to the event file's name, as in ``SummaryWriter``.
        inputs: also log the layers' inputs, as grids and histograms.
        activation_gradients: also log the layers' output gradients, as grids and histograms.
        effective: draw what the next layer receives where your own forward hook changes an output.
        routers: modules that choose among experts and are not found by their structure: a glob on
            names, a module, a list of these, or a mapping of these to the number of experts that
            are chosen for each token.
        attribution: also draw where activations lower the loss: a glob on layers, or True.
        attribution_loss: of the model's output on ``probe``; draw its attribution instead.
        kernels: draw convolution kernels at logged steps at which they have changed and at the last
            one (True), at every n-th one (a number), or never (False).
        depth: which depth slice of 3-D maps (Conv3d) to draw, from 0; None draws the middle one.
        max_bytes_per_step: limit on disk space; tiles shrink, or pictures are omitted.
        reduce_statistics: compute channel statistics over the batches of all ranks, each of which
            must call ``watch``; excludes dropping steps. Images and histograms are rank 0's.
        update_ratios: also log by how much each optimizer step changes each parameter.
        compiled: of a model under ``torch.compile``, record one uncompiled pass without gradients
            beside the training's own; ``"eager"`` runs logged steps uncompiled instead, which
            activation gradients and attribution need, and which is not bitwise neutral.
        scale: the range drawn from black to white: that of each ``"channel"``, of the whole
            ``"layer"``, or ``"locked"`` to each channel's range at the first logged step.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centered ``"signed"``.
        class_names: names of the classes, written below the images with the highest loss.
        tokens: names the tokens of texts, below rows of attention: a tokenizer of transformers, or
            a function from a list of ids to their names.
        when_full: if steps are logged faster than written, ``"wait"`` blocks the training thread;
            ``"drop_oldest"`` drops queued steps, counted in ``dropped_steps``.
        checks: say what is wrong; False or ``{"dead": False}`` for less, ``[MyCheck()]`` for more.
        prove: at the end, train copies without the cause of a fault to prove it, see ``prove``;
            for at most 60 s, or so many seconds.
        rehearse: at the end of the first logged step, ``fmapboard.rehearse`` on its batch, with the
            loss that was read from the gradient; printed.

    Returns:
        The logger, usually named ``board``. Use it as a context manager or call its ``close``.

    Raises:
        ConfigurationError: an argument is invalid, or ``writer`` is in use by an open logger of the
            same name.
        LayerNotFound: ``layers`` selects no layer, or one of its patterns matches none.
        NoConvolution: the model has no convolution although ``layers`` names a convolution type, or
            no layer with parameters to watch by default.
        WriteError: the directory cannot be written to.
        MissingExtra: a package for the URL in ``log_dir`` is not installed.
    """
    check_place(log_dir, others, writer, comment, filename_suffix)
    check_names(options, inspect.signature(watch).parameters)
    checked = Options.of(**options)

    def open_writer() -> Writer:
        if writer is not None:
            check_writer_is_free(writer, checked.name)
            return as_writer(writer)
        place = default_log_dir(comment) if log_dir is None else log_dir
        first = checked.start_step
        try:
            return TensorBoardWriter(
                place,
                filename_suffix=filename_suffix,
                start_step=first,
                prefix=checked.name or "",
            )
        except FmapboardError as error:  # perhaps of a system call that a signal handler ended
            raise_interrupt(error)
            raise

    board = FeatureMapLogger(
        model, open_writer, checked, layers=layers, optimizer=optimizer, scaler=scaler
    )
    if writer is not None:
        _given_writers[id(writer), checked.name] = board
    return board


watch.__signature__ = with_options(watch)  # type: ignore[attr-defined]  # help() and editors read it
