"""`FeatureMapLogger` and `watch`: the only room that knows the order of a logged step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim.optimizer import Optimizer
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.side_pass import run_probe
from fmapboard.errors import ConfigurationError
from fmapboard.model.distributed import is_sharded, rank
from fmapboard.model.layers import Layers, unwrap
from fmapboard.model.tensors import tensors
from fmapboard.options import OnError, Settings, WhenFull
from fmapboard.records import KernelShape, Scale
from fmapboard.schedule import Schedule, as_schedule, never, next_due
from fmapboard.session import Observer, Passes
from fmapboard.writers import Writer
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.pipeline import Complaints, Pipeline
from fmapboard.writers.tensorboard import TensorBoardWriter, as_writer, default_log_dir


class FeatureMapLogger:
    """Logs feature maps, histograms and gradient norms of a model while it trains.

    Made by `watch`; a context manager that closes itself. With an optimizer it lives as long as
    that does, and what waits is written when the interpreter ends. Between logged steps nothing is
    installed on the model, and no error of ours reaches the user's forward, backward or step.

    Args:
        model: any module with a convolution, or with what ``layers`` names.
        open_writer: opens the place where logged steps go, once everything else is found to be in
            order; the writer is called in a worker thread.
        settings: every option that is not named here.
        layers: what to watch (see `layers.Layers`).
        optimizer: its completed steps are counted, and each window that is to be logged opens and
            closes by itself. Without it, mark steps with `step`.
        scaler: a `torch.amp.GradScaler`: a step that it skips is counted as skipped.

    Raises:
        ConfigurationError, LayerNotFound, NoConvolution: at once, for what cannot be done.
    """

    def __init__(
        self,
        model: nn.Module,
        open_writer: Callable[[], Writer],
        settings: Settings,
        *,
        layers: Layers = None,
        optimizer: Optimizer | None = None,
        scaler: Any = None,
    ) -> None:
        self._model = unwrap(model)
        schedule = as_schedule(settings.every)
        self._writes = rank() == 0
        takes_part = settings.reduce_statistics or is_sharded(self._model)
        self._schedule = schedule if self._writes or takes_part else never
        self._complaints = Complaints(settings.on_error)
        self._observer = Observer(self._model, layers, settings, scaler, self._complaints)
        _try_probe(self._model, settings.probe)
        self._next = settings.start_step
        self._logged = 0
        self._by_hand = optimizer is None
        self._asleep_until = 0  # no window is open and none is due before this step
        writer = open_writer() if self._writes else MemoryWriter()
        self._pipeline = Pipeline(writer, settings, self._complaints)
        handles = [] if optimizer is None else [self._count_steps_of(optimizer)]
        self._finalizer = weakref.finalize(self, _let_go, self._pipeline, handles)
        if not self._by_hand:
            self._open_if_due()

    def __repr__(self) -> str:
        return (
            f"FeatureMapLogger({type(self._model).__name__}, "
            f"{len(self._observer.registry.layers)} layers, "
            f"{self._logged} steps logged, next step {self._next})"
        )

    @property
    def groups(self) -> dict[KernelShape, list[str]]:
        """Kernel shape -> names of the watched convolutions that have it."""
        return self._observer.registry.groups

    @property
    def logged_steps(self) -> int:
        """How many steps were handed to the writer."""
        return self._logged

    @property
    def dropped_steps(self) -> int:
        """How many of them were dropped because the queue was full."""
        return self._pipeline.dropped

    @contextmanager
    def step(self, number: int | None = None) -> Iterator[None]:
        """Mark one training step: forward, backward and optimizer step belong inside.

        An exception inside leaves the model without hooks and what was logged before on disk.

        Args:
            number: the step's number; None counts on from the one before.
        """
        self.begin_step(number)
        try:
            yield
        except BaseException:
            self._observer.abandon()
            self._pipeline.flush()
            raise
        self.end_step()

    def begin_step(self, number: int | None = None, *, training: bool = True) -> None:
        """Begin a step that `end_step` ends: for a framework's events, where `step` cannot stand.

        Begun once more under the number that is open, it goes on: the next micro-batch begins.

        Args:
            number: the step's number; None counts on from the one before.
            training: False for a step of validation: its pass in eval mode is recorded, and no
                optimizer is expected to step.
        """
        if not self._by_hand:
            self._by_hand = True  # from now on the user says where a step begins
            self._asleep_until = 0
            self._observer.abandon()
        if number is not None:
            self._warn_if_backwards(number)
            self._next = number
        if self._schedule(self._next) and self._observer.open_step != self._next:
            passes: Passes = "all" if training else "evaluation"
            self._observer.open(self._next, passes=passes, probe_now=True)

    def end_step(self) -> None:
        """End the step that `begin_step` began."""
        self._close_window()
        self._next += 1

    def before_clipping(self) -> None:
        """Log the gradients' norms as they are now, under ``gradient_norm_before_clipping/``.

        Call it after ``backward`` (and ``scaler.unscale_``), before gradients are clipped; at a
        step that is not logged it does nothing.
        """
        self._observer.before_clipping()

    def flush(self) -> None:
        """Return when every step logged so far can be read by TensorBoard."""
        self._pipeline.flush()
        self._complaints.raise_first()

    def close(self) -> None:
        """Remove all hooks, write what is waiting and close; a second call does nothing."""
        self._observer.abandon()
        self._finalizer()
        self._complaints.raise_first()

    def __enter__(self) -> FeatureMapLogger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._observer.abandon()
        self._finalizer()
        if error is None:
            self._complaints.raise_first()

    def _count_steps_of(self, optimizer: Optimizer) -> RemovableHandle:
        if not isinstance(optimizer, Optimizer):
            raise ConfigurationError(
                f"optimizer={type(optimizer).__name__}: wanted a torch.optim.Optimizer; "
                "mark steps with board.step(i) instead"
            )

        def after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
            # The optimizer holds the logger, so one line without a name for it is enough.
            if self._next + 1 < self._asleep_until:
                self._next += 1
            elif not self._by_hand and not self._observer.was_void(optimizer):
                self._stepped()

        # In a compiled step function it is called for real, not traced once.
        untraced = torch.compiler.disable(after_step)  # type: ignore[no-untyped-call]  # torch
        return optimizer.register_step_post_hook(untraced)

    def _stepped(self) -> None:
        """The optimizer has stepped: end a window that is open, begin one that is due."""
        self._close_window()
        self._next += 1
        self._open_if_due()

    def _open_if_due(self) -> None:
        if self._schedule(self._next):
            self._observer.open(self._next, passes="training", probe_now=False)
        else:
            self._asleep_until = next_due(self._schedule, self._next)

    def _close_window(self) -> None:
        if not self._observer.is_open:
            return
        pending = self._observer.close()
        if pending is not None and self._writes:
            self._logged += 1
            self._pipeline.put(pending.to_host, pending.nbytes)
        self._complaints.raise_first()

    def _warn_if_backwards(self, number: int) -> None:
        if number < self._next - 1 and self._logged:
            self._complaints.warn(
                "backwards",
                f"step numbers went back from {self._next - 1} to {number}: TensorBoard drops what "
                "it has from there on; number steps over the whole training, not per epoch",
            )


def watch(
    model: nn.Module,
    log_dir: str | Path | None = None,
    *,
    writer: Any = None,
    optimizer: Optimizer | None = None,
    scaler: Any = None,
    every: int | Schedule = 100,
    start_step: int = 0,
    name: str | None = None,
    layers: Layers = None,
    samples: int = 1,
    probe: Any = None,
    inputs: bool = False,
    activation_gradients: bool = False,
    kernels: bool | int = True,
    max_channels: int | None = 64,
    max_tile: int | None = 64,
    max_bytes_per_step: int | None = None,
    reduce_statistics: bool = False,
    scale: Scale = "channel",
    colormap: str = "grey",
    input_mean: Sequence[float] | None = None,
    input_std: Sequence[float] | None = None,
    comment: str = "",
    filename_suffix: str = "",
    when_full: WhenFull = "wait",
    max_queue_bytes: int = 256 * 2**20,
    on_error: OnError = "warn",
) -> FeatureMapLogger:
    """Watch a model while it trains, and write what its layers do for TensorBoard.

    >>> with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=100):  # doctest: +SKIP
    ...     train(model, optimizer)

    Args:
        model: any module; DistributedDataParallel and torch.compile are looked through.
        log_dir: the run's directory, made where it is missing; without it and without ``writer``
            it is ``runs/<time>_<host><comment>``.
        writer: instead of ``log_dir``: your `torch.utils.tensorboard.SummaryWriter`, which stays
            open, or any `writers.Writer`, which is closed at the end.
        optimizer: its completed steps are counted (of several optimizers give the one that steps
            last); without it mark steps: ``with board.step(i):``.
        scaler: your `torch.amp.GradScaler`, to have the steps that it skips counted.
        every: log each step whose number it divides, or a function from step number to bool.
        start_step: steps done before, on resume; what the directory holds from there on is void.
        name: stands in front of every tag, to keep two models of one process apart.
        layers: which layers; None is every `Conv2d` at any depth (see `layers.Layers`).
        samples: draw this many samples of the batch, a grid each.
        probe: fixed images [N, C, H, W] (or a tuple of what the model is called with) to draw
            instead, all of them, in a forward pass of their own in eval mode; numbers are still
            of the training batch.
        inputs: also the layers' inputs, as grids and histograms.
        activation_gradients: also the gradients of the layers' outputs, as grids and histograms.
        kernels: convolution kernels as pictures: True at each tenth logged step, a number at each
            such logged step, False never.
        max_channels: draw at most so many channels; None draws all.
        max_tile: average larger maps down to at most so many px a side; None keeps the size.
        max_bytes_per_step: on disk; kept by shrinking tiles, then by leaving channels out. A limit
            once needed stays for the rest of the run.
        reduce_statistics: with several ranks, make the numbers of channels (extremes, mean, spread,
            fractions) those of all ranks' batches; every rank must watch. Pictures and histograms
            stay those of rank 0.
        scale: ``"channel"``: each on its own; ``"layer"``: one for all channels of a layer;
            ``"locked"``: per channel, as at the first logged step.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centred ``"signed"``.
        input_mean: per channel; with ``input_std`` undoes the normalization of the input's picture.
        input_std: per channel.
        comment: ends the name of the default directory, as in SummaryWriter.
        filename_suffix: ends the event file's name, as in SummaryWriter.
        when_full: what happens when steps come faster than they can be written: ``"wait"``, or
            ``"drop_oldest"``, counted in `FeatureMapLogger.dropped_steps`.
        max_queue_bytes: bound of the steps that wait to be written.
        on_error: ``"warn"`` once and go on, or ``"raise"`` at the end of a logged step (for tests).

    Raises:
        ConfigurationError: what was asked for cannot be meant, or both ``log_dir`` and ``writer``.
        LayerNotFound, NoConvolution: there is nothing to watch.
        WriteError: the directory cannot be written to.
    """
    if log_dir is not None and writer is not None:
        raise ConfigurationError("log_dir and writer exclude each other: give one of them")
    if writer is not None and (comment or filename_suffix):
        raise ConfigurationError("comment and filename_suffix belong to log_dir, not to writer")
    settings = Settings(
        every=every,
        start_step=start_step,
        name=name,
        samples=samples,
        probe=probe,
        inputs=inputs,
        activation_gradients=activation_gradients,
        kernels=kernels,
        max_channels=max_channels,
        max_tile=max_tile,
        max_bytes_per_step=max_bytes_per_step,
        reduce_statistics=reduce_statistics,
        scale=scale,
        colormap=colormap,
        input_mean=None if input_mean is None else tuple(input_mean),
        input_std=None if input_std is None else tuple(input_std),
        when_full=when_full,
        max_queue_bytes=max_queue_bytes,
        on_error=on_error,
    )

    def open_writer() -> Writer:
        if writer is not None:
            return as_writer(writer)
        place = default_log_dir(comment) if log_dir is None else log_dir
        return TensorBoardWriter(place, filename_suffix=filename_suffix, start_step=start_step)

    return FeatureMapLogger(
        model, open_writer, settings, layers=layers, optimizer=optimizer, scaler=scaler
    )


def _try_probe(model: nn.Module, probe: Any) -> None:
    """Run the probe once, so that one that does not fit is refused at once."""
    if probe is None:
        return
    _check_probe(probe)
    if any(is_lazy(p) for p in model.parameters()):
        return
    try:
        run_probe(model, probe)
    except Exception as error:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in tensors(probe))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigurationError(
            f"probe of shape {shapes} does not go through the model: {reason}"
        ) from error


def _check_probe(probe: Any) -> None:
    images = list(tensors(probe))
    if not images:
        raise ConfigurationError(
            f"probe={type(probe).__name__}: wanted a tensor of images [N, C, H, W], "
            "or a tuple of what the model is called with"
        )
    if any(image.dim() == 0 or image.numel() == 0 for image in images):
        raise ConfigurationError(f"probe of shape {list(images[0].shape)}: it has no samples")


def _let_go(pipeline: Pipeline, handles: list[RemovableHandle]) -> None:
    """What must happen when a logger ends, by `close`, by the collector or at exit."""
    for handle in handles:
        handle.remove()
    pipeline.close()
