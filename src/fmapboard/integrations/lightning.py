"""Lightning: ``Trainer(callbacks=[FeatureMapCallback(every=100)])``."""

from __future__ import annotations

from typing import Any

from typing_extensions import Unpack

from fmapboard.errors import optional
from fmapboard.integrations.training_run import RunOptions, TrainingRun
from fmapboard.schedule import Schedule
from fmapboard.writers.memory import MemoryWriter

pl = optional("lightning.pytorch", extra="lightning", why="fmapboard.integrations.lightning")


class FeatureMapCallback(pl.Callback):  # type: ignore[misc, name-defined]  # known at run time
    """Logs feature maps, histograms and gradient norms of what a `Trainer` trains.

    Args:
        every: log each optimizer step whose number it divides, or a function of the number.
        module: dotted name of the part of the LightningModule to watch; None is all of it.
        options: see `training_run.RunOptions`.
    """

    def __init__(
        self,
        every: int | Schedule = 100,
        module: str | None = None,
        **options: Unpack[RunOptions],
    ) -> None:
        self._run = TrainingRun(every, **options)
        self._module, self._steps_before = module or "", 0

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """A step begins, or its next micro-batch."""
        number = self._steps_before = trainer.global_step
        if len(trainer.optimizers) > 1:  # their steps add up there; Lightning's charts count these
            number = trainer.fit_loop.epoch_loop._batches_that_stepped
        if not self._run.started:
            loggers = [each for each in trainer.loggers if _is_tensorboard(each)]
            self._run.start(
                pl_module.get_submodule(self._module),
                loggers[0].experiment if loggers else None,
                trainer.default_root_dir,
                start_step=number,
                scaler=getattr(trainer.precision_plugin, "scaler", None),
                writer=MemoryWriter() if trainer.fast_dev_run else None,  # it leaves no files
            )
        self._run.begin(number)

    def on_before_optimizer_step(self, trainer: Any, *_: Any) -> None:
        """Gradients are unscaled and not yet clipped."""
        if trainer.gradient_clip_val:
            self._run.before_clipping()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """The step ends, unless gradients are still being accumulated."""
        if trainer.global_step != self._steps_before:
            self._run.end()

    def on_validation_batch_start(self, *_: Any) -> None:
        """A validation's batch begins; in the sanity check nothing is started yet."""
        self._run.begin_validation()

    def on_validation_batch_end(self, *_: Any) -> None:
        """It ends."""
        self._run.end_validation()

    def on_train_end(self, *_: Any) -> None:
        """Write what waits; after an exception too."""
        self._run.close()

    on_exception = on_train_end


def _is_tensorboard(logger: Any) -> bool:
    """Of either of Lightning's packages, or derived from it."""
    return any(kind.__name__ == "TensorBoardLogger" for kind in type(logger).__mro__)
