"""Hugging Face: ``Trainer(callbacks=[FeatureMapCallback(every=100)])``."""

from __future__ import annotations

import gc
from typing import Any

from typing_extensions import Unpack

from fmapboard.errors import optional
from fmapboard.integrations.training_run import RunOptions, TrainingRun
from fmapboard.schedule import Schedule

hf = optional(
    "transformers.trainer_callback",
    extra="transformers",
    why="fmapboard.integrations.transformers",
)


class FeatureMapCallback(hf.TrainerCallback):  # type: ignore[misc, name-defined]  # known at run time
    """Logs feature maps, histograms and gradient norms of what a `Trainer` trains.

    Args:
        every: log each optimizer step whose number it divides, or a function of the number.
        options: see `training_run.RunOptions`.
    """

    def __init__(self, every: int | Schedule = 100, **options: Unpack[RunOptions]) -> None:
        self._run = TrainingRun(every, **options)

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """A training that ended in an exception has told nobody."""
        self._run.close()

    def on_step_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """The first micro-batch of an optimizer step is about to run."""
        if not self._run.started:  # not before: by now every callback has its writer
            self._run.start(
                parts["model"],
                self._summary_writer(),
                args.output_dir,
                start_step=state.global_step,
                scaler=getattr(parts.get("optimizer"), "scaler", None),
            )
        self._run.begin(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The optimizer has stepped; an evaluation may follow."""
        self._run.end()
        self.on_epoch_end(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An evaluation may follow, and is not announced otherwise."""
        if control.should_evaluate:
            self._run.begin_validation()

    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        """A batch of an evaluation has run."""
        self._run.end_validation()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The Trainer's last word, after which it closes its SummaryWriter."""
        if control.should_training_stop:
            self._run.flush()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write what waits."""
        self._run.close()

    def _summary_writer(self) -> Any:
        """That of the Trainer's TensorBoardCallback, or None.

        A callback is handed neither the Trainer nor the other callbacks: the list that holds it is
        the only way to them.
        """
        lists = [held for held in gc.get_referrers(self) if isinstance(held, list)]
        writers = (getattr(each, "tb_writer", None) for held in lists for each in held)
        return next((writer for writer in writers if writer is not None), None)
