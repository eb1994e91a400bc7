"""The loggers of one training run in a framework: log directory, steps, validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn
from typing_extensions import Unpack

from fmapboard.errors import ConfigurationError, log
from fmapboard.logger import FeatureMapLogger, watch
from fmapboard.model.distributed import rank
from fmapboard.model.layers import Layers
from fmapboard.options import CommonOptions, Options, check_names
from fmapboard.schedule import Schedule
from fmapboard.writers import WandbWriter
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.remote import log_directory
from fmapboard.writers.tensorboard import default_log_dir
from fmapboard.writers.trackers import wandb_follows

_NOT_OPTIONS = ("layers", "validation", "rehearse", "share_writer", "log_dir")


class PlacedOptions(CommonOptions, total=False):
    """Options of every integration, in addition to ``every``.

    Keys:
        share_writer: write into the framework's SummaryWriter instead of a separate run below its
            directory; where it has none but a W&B run, into that run (``writers.WandbWriter``).
        log_dir: the run directory to use instead of either.
        layers: which layers to watch.
        rehearse: try the training on copies before its first step, see `fmapboard.rehearse`; with
            accelerate at the end of the first logged step.
        prove: at the end, train copies without the cause of a fault, see `fmapboard.watch`; never
            after an exception.

    All other keys are the options of `fmapboard.watch` with the same names.
    """

    share_writer: bool
    log_dir: str | Path | None
    layers: Layers
    rehearse: bool
    prove: bool | float


class RunOptions(PlacedOptions, total=False):
    """Options of every callback, in addition to ``every``.

    Keys:
        validation: also log the first batch of each validation, under ``validation.…`` tags.
    """

    validation: bool


class TrainingRun:
    """The logger of one training run and, with ``validation=True``, one for its validation.

    Before `start` it holds only options, so a callback that owns one can be copied and pickled.

    Args:
        every: log each step whose number is divisible by this, or a function from step number to
            bool.
        options: see `RunOptions`.

    Attributes:
        rehearses: the framework's loss is to be rehearsed before the first step.

    Raises:
        ConfigurationError: an option is unknown or invalid.
    """

    def __init__(self, every: int | Schedule = 100, **options: Unpack[RunOptions]) -> None:
        checked(every, **options)
        self._every = every
        self._options = {**options}
        self._validates = self._options.pop("validation", False)
        self.rehearses = self._options.pop("rehearse", False)
        self._training: FeatureMapLogger | None = None
        self._validation: FeatureMapLogger | None = None
        self._number = 0
        self._done = 0
        self._validated = -1
        self._validating = False

    @property
    def started(self) -> bool:
        """True while the loggers are open."""
        return self._training is not None

    def start(
        self,
        model: nn.Module,
        summary_writer: Any,
        own_dir: str | Path,
        *,
        start_step: int,
        scaler: Any = None,
        writer: Any = None,
        wandb: Callable[[], WandbWriter] | None = None,
    ) -> None:
        """Open the loggers.

        Args:
            model: the model to watch.
            summary_writer: the framework's SummaryWriter, or None if it has none.
            own_dir: without a SummaryWriter, a new run is created below ``own_dir/runs``.
            start_step: optimizer steps already completed; 0 unless a run is resumed.
            scaler: the framework's GradScaler, or None.
            writer: a `writers.Writer` to use instead of a directory.
            wandb: makes a writer into the framework's W&B run; None if it has none.
        """
        self.failed()  # what is still open has not been ended by its framework
        self._number = start_step
        self._done = start_step
        self._validated = -1
        options = placed(self._options, summary_writer, own_dir, wandb)
        options["start_step"] = start_step
        if writer is not None:
            options |= {"writer": writer, "log_dir": None}
        self._training = watch(model, every=self._every, scaler=scaler, **options)
        if self._validates:
            given = self._options.get("name")
            name = f"{given}.validation" if given else "validation"
            options |= {"name": name, "probe": None, "kernels": False, "prove": False}
            if wandb is not None and isinstance(options.get("writer"), WandbWriter):
                options["writer"] = wandb()  # one per worker thread
            self._validation = watch(model, every=1, **options)
            self._validation.end.run.usage.explains = False  # no warning if no validation was run

    def begin(self, number: int) -> None:
        """Begin a step, or the next micro-batch of the open step.

        Args:
            number: optimizer steps completed so far.
        """
        if self._training is not None:
            self._number = number
            self._training.begin_step(number)

    def before_clipping(self) -> None:
        """Log gradient norms; call it before clipping, when gradients are complete and unscaled."""
        if self._training is not None:
            self._training.before_clipping()

    def end(self) -> None:
        """End the step; call it after the optimizer step."""
        if self._training is not None:
            self._training.end_step()
            self._done = self._number + 1

    def begin_validation(self, number: int | None = None) -> None:
        """Begin a validation batch; only the first one after an optimizer step is logged.

        Args:
            number: optimizer steps completed so far; None to use the count kept by `end`.
        """
        done = self._done if number is None else number
        if self._validation is not None and self._validated != done:
            self._validated = done
            self._validating = True
            self._validation.begin_step(done, training=False)

    def end_validation(self) -> None:
        """End a validation batch."""
        if self._validation is not None and self._validating:
            self._validating = False
            self._validation.end_step()

    def flush(self) -> None:
        """Write all pending steps."""
        for board in (self._training, self._validation):
            if board is not None:
                board.flush()

    def close(self) -> None:
        """Write all pending steps and close the loggers; a second call does nothing."""
        for board in self._taken():
            board.close()

    def failed(self) -> None:
        """Close the loggers after an exception: no cause is proven, and nothing is explained."""
        for board in self._taken():
            board.abandon()

    def _taken(self) -> list[FeatureMapLogger]:
        """The open loggers, which this run no longer holds."""
        boards = (self._training, self._validation)
        self._training = self._validation = None
        return [board for board in boards if board is not None]


def checked(every: int | Schedule, **options: Any) -> None:
    """Validate the options when the callback is created, rather than when training starts.

    Raises:
        ConfigurationError: an option is unknown or invalid.
    """
    if options.get("share_writer") and options.get("log_dir") is not None:
        raise ConfigurationError("log_dir and share_writer are mutually exclusive: give one")
    check_names(options, ["every", *RunOptions.__annotations__])
    common = dict(options)
    for name in _NOT_OPTIONS:
        common.pop(name, None)
    Options.of(every=every, **common)


def placed(
    options: Mapping[str, Any],
    summary_writer: Any,
    own_dir: str | Path,
    wandb: Callable[[], WandbWriter] | None = None,
) -> dict[str, Any]:
    """Options for `fmapboard.watch`, with ``writer`` or ``log_dir`` set.

    If the framework logs to W&B alone, and W&B will get nothing, a warning says so.

    Args:
        options: may contain ``share_writer`` and ``log_dir``.
        summary_writer: the framework's SummaryWriter, or None if it has none.
        own_dir: without a SummaryWriter, a new run is created below ``own_dir/runs``.
        wandb: makes a writer into the framework's W&B run; None if it has none.

    Raises:
        ConfigurationError: ``share_writer`` without a SummaryWriter and a W&B run.
    """
    rest = dict(options)
    shares = rest.pop("share_writer", False)
    if rest.get("log_dir") is not None:
        return rest
    if shares and rank() != 0:
        return rest | {"writer": MemoryWriter()}  # rank 0 writes, and alone has the framework's
    if summary_writer is None:
        if shares and wandb is not None:
            return rest | {"writer": wandb()}
        if shares:
            raise ConfigurationError(
                "share_writer=True: the framework has no TensorBoard logger and no W&B run; give "
                "it one, or pass log_dir= instead"
            )
        log_dir = str(log_directory(own_dir) / str(default_log_dir()))
        if wandb is not None and rank() == 0 and not wandb_follows():
            log.warning(
                "W&B receives no feature maps, they are in %s only: pass share_writer=True to log "
                "them to the framework's W&B run, or log_dir= to keep them in a directory",
                log_dir,
            )
        return rest | {"log_dir": log_dir}
    if shares:
        return rest | {"writer": summary_writer}
    # The attribute is `log_dir` in torch's SummaryWriter and `logdir` in tensorboardX's.
    directory = getattr(summary_writer, "log_dir", None) or summary_writer.logdir
    return rest | {"log_dir": str(log_directory(str(directory)) / "fmapboard")}
