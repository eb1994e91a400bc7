"""For ignite: ``FeatureMapHandler(model, every=100, tb_logger=tb_logger).attach(trainer)``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn
from typing_extensions import Unpack

from fmapboard.errors import optional
from fmapboard.integrations.training_run import RunOptions, TrainingRun
from fmapboard.schedule import Schedule

ignite = optional("ignite.engine", extra="ignite", why="fmapboard.integrations.ignite")


class FeatureMapHandler:
    """Logs feature maps, histograms and gradient norms of a model that an `Engine` trains.

    Args:
        model: the model to watch.
        every: log each optimizer step whose number it divides, or a function from number to bool.
        tb_logger: ignite's TensorboardLogger; logs go below its directory. Without it, they go to
            ``runs/<time>_<host>``.
        gradient_accumulation_steps: iterations per optimizer step, the same number as given to
            `create_supervised_trainer`.
        scaler: the GradScaler, if any, to count the steps that it skips.
        options: see `training_run.RunOptions`; ``validation`` needs the evaluator in `attach`,
            and ``rehearse`` a trainer of ``create_supervised_trainer``.

    Attributes:
        rehearsal: what ``rehearse=True`` has shown; None before, and without it.
    """

    def __init__(
        self,
        model: nn.Module,
        every: int | Schedule = 100,
        *,
        tb_logger: Any = None,
        gradient_accumulation_steps: int = 1,
        scaler: Any = None,
        **options: Unpack[RunOptions],
    ) -> None:
        self._run = TrainingRun(every, **options)
        self._model = model
        self._scaler = scaler
        self._writer = None if tb_logger is None else tb_logger.writer
        self._accumulated = gradient_accumulation_steps
        self.rehearsal: Any = None

    def attach(self, engine: Any, evaluator: Any = None) -> FeatureMapHandler:
        """Add handlers to a trainer and, for ``validation=True``, to an evaluator."""
        events = ignite.Events
        engine.add_event_handler(events.ITERATION_STARTED, self._begin)
        engine.add_event_handler(events.ITERATION_COMPLETED, self._end)
        for event in (events.COMPLETED, events.TERMINATE):
            engine.add_event_handler(event, self._run.close)
        engine.add_event_handler(events.EXCEPTION_RAISED, self._failed)
        if evaluator is not None:
            evaluator.add_event_handler(events.ITERATION_STARTED, self._evaluate, engine)
            evaluator.add_event_handler(events.ITERATION_COMPLETED, self._run.end_validation)
        return self

    def _begin(self, engine: Any) -> None:
        # ignite has already counted this iteration.
        done = (engine.state.iteration - 1) // self._accumulated
        if not self._run.started:
            if self._run.rehearses:
                self._rehearse(engine)
            self._run.start(self._model, self._writer, ".", start_step=done, scaler=self._scaler)
        self._run.begin(done)

    def _rehearse(self, engine: Any) -> None:
        from fmapboard.integrations.rehearsed import not_rehearsed, rehearsed

        held = inspect.getclosurevars(engine._process_function).nonlocals
        if not {"loss_fn", "prepare_batch", "optimizer"} <= held.keys():
            not_rehearsed("its trainer was not made by create_supervised_trainer")
            return

        loss = _SupervisedLoss(
            held["loss_fn"],
            partial(held["prepare_batch"], device=held.get("device")),
            held.get("model_fn", nn.Module.__call__),
            held.get("model_transform", _same),
        )
        self.rehearsal = rehearsed(
            self._model, held["optimizer"], engine.state.dataloader, loss, scaler=self._scaler
        )

    def _end(self, engine: Any) -> None:
        if engine.state.iteration % self._accumulated == 0:
            self._run.end()

    def _evaluate(self, evaluator: Any, engine: Any) -> None:
        self._run.begin_validation(engine.state.iteration // self._accumulated)

    def _failed(self, engine: Any, error: BaseException) -> None:
        self._run.failed()
        if len(engine._event_handlers[ignite.Events.EXCEPTION_RAISED]) == 1:
            raise error  # ignite does not raise it once there is a handler, here only ours


def _same(output: Any) -> Any:
    return output


@dataclass(frozen=True, slots=True)
class _SupervisedLoss:
    """The loss of ``create_supervised_trainer``, whose arguments are the fields."""

    loss_fn: Callable[[Any, Any], Tensor]
    prepare_batch: Callable[[Any], tuple[Any, Any]]
    model_fn: Callable[[nn.Module, Any], Any]
    model_transform: Callable[[Any], Any]

    def __call__(self, model: nn.Module, batch: Any) -> Tensor:
        """The loss of a copy of the network."""
        images, labels = self.prepare_batch(batch)
        output = self.model_fn(model, images)
        return self.loss_fn(self.model_transform(output), labels)

    def own(self, own: Callable[[Any], Any]) -> _SupervisedLoss:
        """The loss with functions that refer to copies."""
        return _SupervisedLoss(
            own(self.loss_fn),
            own(self.prepare_batch),
            own(self.model_fn),
            own(self.model_transform),
        )
