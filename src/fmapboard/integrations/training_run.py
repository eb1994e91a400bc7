"""One training run that a framework drives: where it is logged, when its steps begin and end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn
from typing_extensions import Unpack

from fmapboard.errors import ConfigurationError
from fmapboard.logger import FeatureMapLogger, watch
from fmapboard.model.layers import Layers
from fmapboard.options import CommonOptions, Options
from fmapboard.schedule import Schedule
from fmapboard.writers.log_dirs import log_directory
from fmapboard.writers.tensorboard import default_log_dir

_NOT_OPTIONS = ("layers", "validation", "share_writer", "log_dir")


class PlacedOptions(CommonOptions, total=False):
    """What every integration takes besides ``every``.

    Keys:
        share_writer: write into the framework's own SummaryWriter, instead of into a run of our
            own below its directory.
        log_dir: where to write instead of either.
        layers: which layers to watch.

    The others are those of `fmapboard.watch`, under the same names.
    """

    share_writer: bool
    log_dir: str | Path | None
    layers: Layers


class RunOptions(PlacedOptions, total=False):
    """What every callback takes besides ``every``.

    Keys:
        validation: also log the first batch of each validation, under ``validation.…`` tags.
    """

    validation: bool


class TrainingRun:
    """The loggers of one training run, and of its validation passes where they are wanted.

    Holds options alone until it is started, so a callback that owns one can be copied and pickled.

    Args:
        every: log each step whose number it divides, or a function from step number to bool.
        options: see `RunOptions`.

    Raises:
        ConfigurationError: an option that is unknown, or has a value that cannot be meant.
    """

    def __init__(self, every: int | Schedule = 100, **options: Unpack[RunOptions]) -> None:
        checked(every, **options)
        self._every, self._options = every, {**options}
        self._validates = self._options.pop("validation", False)
        self._training: FeatureMapLogger | None = None
        self._validation: FeatureMapLogger | None = None
        self._number = self._done = 0
        self._validated, self._validating = -1, False

    @property
    def started(self) -> bool:
        """Are loggers open?"""
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
    ) -> None:
        """Open the loggers.

        Args:
            model: what to watch.
            summary_writer: the framework's SummaryWriter, or None where it has none.
            own_dir: without a SummaryWriter a run of its own is made below ``own_dir/runs``.
            start_step: steps done before, on resume.
            scaler: the framework's GradScaler, or None.
            writer: a `writers.Writer` to use instead of all these places.
        """
        self.close()
        self._number = self._done = start_step
        self._validated = -1
        options = placed(self._options, summary_writer, own_dir) | {"start_step": start_step}
        if writer is not None:
            options |= {"writer": writer, "log_dir": None}
        self._training = watch(model, every=self._every, scaler=scaler, **options)
        if self._validates:
            given = self._options.get("name")
            name = f"{given}.validation" if given else "validation"
            options |= {"name": name, "probe": None, "kernels": False}
            self._validation = watch(model, every=1, **options)
            self._validation.end.explains = False  # a run without a validation is no mistake

    def begin(self, number: int) -> None:
        """A step begins, or its next micro-batch; ``number`` optimizer steps are done."""
        if self._training is not None:
            self._number = number
            self._training.begin_step(number)

    def before_clipping(self) -> None:
        """Gradients are complete and unscaled, and about to be clipped."""
        if self._training is not None:
            self._training.before_clipping()

    def end(self) -> None:
        """The optimizer has stepped."""
        if self._training is not None:
            self._training.end_step()
            self._done = self._number + 1

    def begin_validation(self, number: int | None = None) -> None:
        """A batch of a validation is about to run; the first after a step is recorded.

        Args:
            number: optimizer steps done; None where `end` has been told of all of them.
        """
        done = self._done if number is None else number
        if self._validation is not None and self._validated != done:
            self._validated, self._validating = done, True
            self._validation.begin_step(done, training=False)

    def end_validation(self) -> None:
        """A batch of a validation has run."""
        if self._validation is not None and self._validating:
            self._validating = False
            self._validation.end_step()

    def flush(self) -> None:
        """Write what waits."""
        for board in (self._training, self._validation):
            if board is not None:
                board.flush()

    def close(self) -> None:
        """Write what waits and let go; a second call does nothing."""
        boards = (self._training, self._validation)
        self._training = self._validation = None
        for board in boards:
            if board is not None:
                board.close()


def checked(every: int | Schedule, **options: Any) -> None:
    """Refuse at once what could not be done when training has begun.

    Raises:
        ConfigurationError: an option that is unknown, or has a value that cannot be meant.
    """
    if options.get("share_writer") and options.get("log_dir") is not None:
        raise ConfigurationError("log_dir and share_writer are mutually exclusive: give one")
    Options.of(every=every, **{k: v for k, v in options.items() if k not in _NOT_OPTIONS})


def placed(options: Mapping[str, Any], summary_writer: Any, own_dir: str | Path) -> dict[str, Any]:
    """The options as `fmapboard.watch` takes them: with a place to write to.

    Args:
        options: may hold ``share_writer`` and ``log_dir``.
        summary_writer: the framework's, or None where it has none.
        own_dir: without a SummaryWriter a run of its own is made below ``own_dir/runs``.
    """
    rest = dict(options)
    shares = rest.pop("share_writer", False)
    if rest.get("log_dir") is not None:
        return rest
    if summary_writer is None:
        if shares:
            raise ConfigurationError("share_writer=True: the framework has no TensorBoard logger")
        return rest | {"log_dir": str(log_directory(own_dir) / str(default_log_dir()))}
    if shares:
        return rest | {"writer": summary_writer}
    # torch's SummaryWriter and tensorboardX's name it differently.
    directory = getattr(summary_writer, "log_dir", None) or summary_writer.logdir
    return rest | {"log_dir": str(log_directory(str(directory)) / "fmapboard")}
