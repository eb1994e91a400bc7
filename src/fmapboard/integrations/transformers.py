"""For Hugging Face's Trainer: ``Trainer(callbacks=[FeatureMapCallback(every=100)])``."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn
from typing_extensions import Unpack

from fmapboard.errors import optional
from fmapboard.integrations.training_run import RunOptions, TrainingRun
from fmapboard.schedule import Schedule
from fmapboard.writers import WandbWriter

hf = optional(
    "transformers.trainer_callback", extra="transformers", why="fmapboard.integrations.transformers"
)


class FeatureMapCallback(hf.TrainerCallback):  # type: ignore[misc, name-defined]  # known at run time
    """Logs feature maps, histograms and gradient norms of the model that a `Trainer` trains.

    Args:
        every: log each optimizer step whose number it divides, or a function from number to bool.
        options: see `training_run.RunOptions`; with ``rehearse``, the loss is that of the Trainer.

    Attributes:
        rehearsal: what ``rehearse=True`` has shown; None before, and without it.
    """

    def __init__(self, every: int | Schedule = 100, **options: Unpack[RunOptions]) -> None:
        self._run = TrainingRun(every, **options)
        self.rehearsal: Any = None

    def on_train_begin(self, *_: Any, **parts: Any) -> None:
        """Close the previous run, as the Trainer calls nothing after an exception; rehearse."""
        self._run.failed()
        if not self._run.rehearses:
            return
        from fmapboard.integrations.rehearsed import not_rehearsed, rehearsed

        trainer = self._trainer()
        if trainer is None:
            not_rehearsed("its Trainer was not found")
            return
        self.rehearsal = rehearsed(
            parts["model"],
            parts["optimizer"],
            parts["train_dataloader"],
            _TrainerLoss(trainer),
            scaler=trainer.accelerator.scaler,
        )

    def on_step_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Begin an optimizer step, before its first micro-batch."""
        if not self._run.started:  # not in `on_train_begin`: callbacks create their writers there
            self._run.start(
                parts["model"],
                self._summary_writer(),
                args.output_dir,
                start_step=state.global_step,
                scaler=getattr(parts.get("optimizer"), "scaler", None),
                wandb=self._wandb(),
            )
        self._run.begin(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """End the step; an evaluation may follow."""
        self._run.end()
        self.on_epoch_end(args, state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begin a validation if an evaluation follows; no event marks the start of one."""
        if control.should_evaluate:
            self._run.begin_validation()

    def on_prediction_step(self, *_: Any, **__: Any) -> None:
        """End a batch of an evaluation."""
        self._run.end_validation()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write pending steps at the Trainer's last log; it closes its SummaryWriter after that."""
        if control.should_training_stop:
            self._run.flush()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Write pending steps and close."""
        self._run.close()

    def _callbacks(self) -> list[Any]:
        """The Trainer's callbacks.

        A callback gets no reference to the Trainer or to other callbacks, so this looks for lists
        that contain this callback, among them the Trainer's list of callbacks.
        """
        found = []
        for referrer in gc.get_referrers(self):
            if isinstance(referrer, list):
                found += referrer
        return found

    def _trainer(self) -> Any:
        """The Trainer that holds this callback, which gives callbacks no reference to itself."""
        held: list[Any] = [self]
        for _ in range(6):  # list, its owner, the Trainer, and the dictionaries between them
            referrers = [each for item in held for each in gc.get_referrers(item)]
            for referrer in referrers:
                if hasattr(type(referrer), "compute_loss"):
                    return referrer
            kinds = (list, dict, hf.CallbackHandler)
            held = [each for each in referrers if isinstance(each, kinds) and each is not held]
            del referrers
        return None

    def _summary_writer(self) -> Any:
        """The SummaryWriter of the Trainer's TensorBoardCallback, or None."""
        for callback in self._callbacks():
            writer = getattr(callback, "tb_writer", None)
            if writer is not None:
                return writer
        return None

    def _wandb(self) -> partial[WandbWriter] | None:
        """Makes a writer into the run of the Trainer's WandbCallback; None if it has none."""
        names = {type(callback).__name__ for callback in self._callbacks()}
        if "WandbCallback" not in names:
            return None
        return partial(WandbWriter, commit=True)


class _TrainerLoss:
    """The loss as a Trainer computes it, see `FrameworkLoss`.

    Args:
        trainer: the Trainer, or a copy of it.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a copy of the network."""
        with self._trainer.compute_loss_context_manager():
            loss: Tensor = self._trainer.compute_loss(model, batch)
            return loss

    def own(self, own: Callable[[Any], Any]) -> _TrainerLoss:
        """The loss of a copy of the Trainer that logs nothing.

        The copy has modules and containers of its own, such as a teacher, or a list of losses.
        """
        trainer = copy.copy(self._trainer)
        attributes = vars(trainer)
        for name, value in attributes.items():
            if isinstance(value, nn.Module):
                attributes[name] = own(value)
            elif type(value) in (list, dict, set):
                attributes[name] = value.copy()
        attributes["log"] = _ignore
        return _TrainerLoss(trainer)


def _ignore(*_: Any, **__: Any) -> None:
    """In place of what logs."""
