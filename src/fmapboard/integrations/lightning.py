"""For Lightning: ``Trainer(callbacks=[FeatureMapCallback(every=100)])``."""

from __future__ import annotations

from functools import partial
from typing import Any

from typing_extensions import Unpack

from fmapboard.errors import optional
from fmapboard.integrations.training_run import RunOptions, TrainingRun
from fmapboard.schedule import Schedule
from fmapboard.writers import WandbWriter
from fmapboard.writers.folder import MemoryWriter

pl = optional("lightning.pytorch", extra="lightning", why="fmapboard.integrations.lightning")


class FeatureMapCallback(pl.Callback):  # type: ignore[misc, name-defined]  # known at run time
    """Logs feature maps, histograms and gradient norms of the module that a `Trainer` trains.

    Args:
        every: log each optimizer step whose number it divides, or a function from number to bool.
        module: dotted name of the submodule to watch; None for the whole LightningModule.
        options: see `training_run.RunOptions`.
    """

    def __init__(
        self, every: int | Schedule = 100, module: str | None = None, **options: Unpack[RunOptions]
    ) -> None:
        self._run = TrainingRun(every, **options)
        self._module, self._steps_before = module or "", 0

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Begin an optimizer step, or its next micro-batch."""
        number = self._steps_before = trainer.global_step
        if len(trainer.optimizers) > 1:
            # `global_step` is the sum over the optimizers; Lightning's own charts count batches.
            number = trainer.fit_loop.epoch_loop._batches_that_stepped
        if not self._run.started:
            wandb_run = _experiment(trainer, "WandbLogger")
            self._run.start(
                pl_module.get_submodule(self._module),
                _experiment(trainer, "TensorBoardLogger"),
                trainer.default_root_dir,
                start_step=number,
                scaler=getattr(trainer.precision_plugin, "scaler", None),
                writer=MemoryWriter() if trainer.fast_dev_run else None,  # it must leave no files
                wandb=wandb_run and partial(WandbWriter, wandb_run, commit=True),
            )
        self._run.begin(number)

    def on_before_optimizer_step(self, trainer: Any, *_: Any) -> None:
        """Read the norms before clipping: gradients are unscaled and not yet clipped."""
        if trainer.gradient_clip_val:
            self._run.before_clipping()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """End the step, unless gradients are still being accumulated."""
        if trainer.global_step != self._steps_before:
            self._run.end()

    def on_validation_batch_start(self, *_: Any) -> None:
        """Begin a validation batch; does nothing in the sanity check, before training starts."""
        self._run.begin_validation()

    def on_validation_batch_end(self, *_: Any) -> None:
        """End a validation batch."""
        self._run.end_validation()

    def on_train_end(self, *_: Any) -> None:
        """Write pending steps and close; also after an exception."""
        self._run.close()

    on_exception = on_train_end


def _experiment(trainer: Any, kind: str) -> Any:
    """What the first logger of ``lightning`` or ``pytorch_lightning`` of a kind writes to, or None.

    Args:
        trainer: the `Trainer`.
        kind: name of the logger's class or of one that it inherits from.
    """
    found = (each for each in trainer.loggers if kind in (k.__name__ for k in type(each).__mro__))
    return getattr(next(found, None), "experiment", None)
