"""``rehearse``: ask each question of a training, within a number of seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.capture.module_calls import has_compiled_parts
from fmapboard.capture.twin import NoTwin
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.gradients.optimizers import unwrapped
from fmapboard.interrupts import blocks, raise_interrupt
from fmapboard.model.given import check_model, check_not_inference
from fmapboard.model.layers import unwrap
from fmapboard.printing import progress_bar
from fmapboard.rehearsal.batches import drawn, first_samples, moved, size_of
from fmapboard.rehearsal.experiment import Answer, Experiment, not_judged
from fmapboard.rehearsal.experiments import BFLOAT16, EXPERIMENTS
from fmapboard.rehearsal.experiments.every_parameter_moves import (
    EveryParameterMoves,
    held_by_others,
)
from fmapboard.rehearsal.kept_loss import NotTried, kept_losses
from fmapboard.rehearsal.result import Outcome, Rehearsal
from fmapboard.rehearsal.schedules import stepped_by_hooks
from fmapboard.rehearsal.setup import Setup, parameter_names
from fmapboard.rehearsal.surroundings import code_of, surroundings_kept
from fmapboard.rehearsal.task import Task, task_of
from fmapboard.rehearsal.training_copy import StepLoss, TrainingCopy
from fmapboard.session.kept_batches import KeptBatch

_STEPS = 250
"""Steps that all experiments train together."""
_TRAINING_SHARE = 0.7
"""Share of the time that they may take."""
_LEAST_SAMPLES = 8
_MOST_SAMPLES = 512
_MOST_BATCHES = 16
_PASS = "pass batch and loss to board.rehearse(), or to fmapboard.rehearse()"


def rehearse(
    model: nn.Module,
    batch: Any,
    loss: Callable[[Any, Any], Tensor] | None = None,
    optimizer: Any = None,
    *,
    scaler: Any = None,
    seconds: float = 60.0,
    bfloat16: bool = False,
    progress: bool = True,
) -> Rehearsal:
    """Try a training on copies before it begins, and say what does not fit together.

    >>> import torch, fmapboard
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 4))
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> batch = torch.rand(8, 1, 4, 4), torch.arange(8) % 4
    >>> found = fmapboard.rehearse(
    ...     model, batch, torch.nn.CrossEntropyLoss(), optimizer, progress=False
    ... )
    >>> found.faults
    ()

    Copies of the network, the optimizer and the scaler run a few passes and up to 250 steps under
    the caller's autocast. The caller's own stay bitwise as they are, also if Ctrl-C ends it: then
    the result holds what is known.

    Args:
        model: any module, with its parameters on the device on which it trains.
        batch: what the training loop draws, with labels: a tensor, a tuple, a dict, a list of
            these, or the DataLoader. Several batches answer one question more. Batches are moved
            to the network's device.
        loss: a function of (output, batch) or of (output, label), or a loss module. None if the
            network returns its loss.
        optimizer: that of the network, or what wraps it.
        scaler: the ``torch.amp.GradScaler``, if there is one.
        seconds: after which no further experiment begins.
        bfloat16: also ask whether bfloat16 agrees, layer by layer.
        progress: show a progress bar on stderr.

    Returns:
        The answers; it prints itself as a table.

    Raises:
        ConfigurationError: an argument is invalid, or the network or the optimizer cannot be
            copied.
    """
    deadline = time.monotonic() + seconds
    check_model(model)
    check_not_inference(model)
    made = Copies(model, optimizer, scaler)

    def prepare() -> Prepared:
        batches = _on_device(drawn(batch, _MOST_BATCHES), model)

        def attempt(task: Task) -> None:
            copy = made()
            own = copy.own(task)
            copy.call(own, batches[0])

        return Prepared(task_of(model, loss, attempt), batches)

    sources = (loss, batch)
    return _rehearsed(made, prepare, deadline, sources, bfloat16=bfloat16, progress=progress)


def rehearse_step(
    model: nn.Module,
    batch: Any,
    step: StepLoss,
    optimizer: Any,
    *,
    scaler: Any = None,
    seconds: float = 60.0,
    progress: bool = True,
) -> Rehearsal:
    """Rehearse a training whose loss a framework computes.

    Args:
        model: the network.
        batch: as for ``rehearse``.
        step: the loss of a copy of the network on a batch.
        optimizer: that of the network.
        scaler: the gradient scaler, if there is one.
        seconds: as for ``rehearse``.
        progress: show a progress bar.
    """
    deadline = time.monotonic() + seconds
    made = Copies(model, optimizer, scaler)

    def prepare() -> Prepared:
        plain = task_of(model, None, lambda _: None)
        batches = _on_device(drawn(batch, _MOST_BATCHES), model)
        return Prepared(Task(plain.parameters, step=step), batches)

    return _rehearsed(made, prepare, deadline, (batch,), progress=progress)


def rehearse_kept(
    model: nn.Module, batch: KeptBatch, optimizer: Any, *, scaler: Any = None, seconds: float = 60.0
) -> Rehearsal:
    """Rehearse a training on a batch of it, with the loss that was read from the gradient.

    Args:
        model: the network.
        batch: of a logged step.
        optimizer: that of the network.
        scaler: the gradient scaler, if there is one.
        seconds: as for ``rehearse``.

    Raises:
        ConfigurationError: the loss is not known; the message says what is missing.
    """
    deadline = time.monotonic() + seconds
    try:
        (kept,) = kept_losses([batch])
    except NotTried as missing:
        raise ConfigurationError(f"{missing}; {_PASS}") from missing
    made = Copies(model, optimizer, scaler)
    task, parts = kept.as_task(task_of(model, None, lambda _: None))
    prepared = Prepared(task, _on_device([parts], model))
    with batch.autocast.again():
        return _rehearsed(made, lambda: prepared, deadline)


def check_not_compiled(model: nn.Module) -> None:
    """Refuse a model of which no step shows its batch and its loss."""
    if hasattr(model, "_orig_mod") or has_compiled_parts(unwrap(model)):
        raise ConfigurationError(f"the model is compiled; {_PASS}")


@dataclass(frozen=True, slots=True)
class Copies:
    """Makes copies of what is trained."""

    model: nn.Module
    optimizer: Any
    scaler: Any

    def __post_init__(self) -> None:
        if self.optimizer is None:
            raise ConfigurationError("optimizer=None: pass the optimizer of the training")
        object.__setattr__(self, "optimizer", unwrapped(self.optimizer))

    def __call__(self) -> TrainingCopy:
        """A copy in the state of this moment."""
        return TrainingCopy(self.model, self.optimizer, scaler=self.scaler)


class Prepared(NamedTuple):
    """What is rehearsed: how to compute the loss, and batches on the network's device."""

    task: Task
    batches: Sequence[Any]


def _rehearsed(
    made: Copies,
    prepare: Callable[[], Prepared],
    deadline: float,
    sources: Sequence[Any] = (),
    *,
    bfloat16: bool = False,
    progress: bool = True,
) -> Rehearsal:
    """Prepare and run all experiments, until Ctrl-C; see ``rehearse``.

    Args:
        sources: what holds generators of random numbers, beside the network and the optimizer.
    """
    experiments = (*EXPERIMENTS, BFLOAT16) if bfloat16 else EXPERIMENTS
    outcomes: list[Outcome] = []
    depth = len(blocks.open)
    is_interrupted = False
    try:
        with surroundings_kept(code_of(made.model), type(made.optimizer), *sources):
            setup = _setup(made, prepare(), deadline)
            failed = _first_step(setup)
            if failed is not None:
                return Rehearsal((failed,))
            with progress_bar("rehearse", disable=not progress) as bar:
                line = bar.add_task("", total=len(experiments))
                for experiment in experiments:
                    outcomes.append(_outcome(experiment, setup))
                    bar.advance(line)
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        blocks.close(depth)
    return Rehearsal(tuple(outcomes), is_interrupted)


def _setup(made: Copies, prepared: Prepared, deadline: float) -> Setup:
    task, batches = prepared
    setup = Setup(made, task, batches, batches[0], deadline)
    names = dict(parameter_names(unwrap(made.model)))
    setup.held_elsewhere = held_by_others(names, made.optimizer)
    setup.schedules = stepped_by_hooks(made.optimizer)
    return setup


def _first_step(setup: Setup) -> Outcome | None:
    """Measure one step, and choose how many samples the trainings use; what it raised otherwise."""
    copy = setup.make_copy()
    begin = time.monotonic()
    try:
        copy.train([setup.batch], setup.task, 1)
        begin = time.monotonic()
        copy.train([setup.batch], setup.task, 1)
    except ConfigurationError:
        raise
    except Exception as error:
        raise_interrupt(error)
        why = _outcome(EveryParameterMoves(), setup)
        if why.answer.judgement == "fault":
            return why
        text = f"one step raises {type(error).__name__}: {first_line(error)}"
        advice = "See what one step of the training loop raises"
        answer = Answer("fault", text, advice=advice)
        seconds = time.monotonic() - begin
        return Outcome("one_step_runs", "Does one step run?", "no exception", answer, seconds)
    setup.step_seconds = time.monotonic() - begin
    size, _ = size_of(setup.batch, setup.task)
    available = max(setup.remaining(), 0.0) * _TRAINING_SHARE / _STEPS
    count = _MOST_SAMPLES
    if setup.step_seconds > available and size:
        count = max(int(size * available / setup.step_seconds), _LEAST_SAMPLES)
    if count < size:
        setup.step_batch = first_samples(setup.batch, setup.task, count)
    return None


def _outcome(experiment: Experiment, setup: Setup) -> Outcome:
    begin = time.monotonic()
    if setup.remaining() <= 0:
        answer = not_judged("no time was left; pass seconds= for more")
    else:
        try:
            answer = experiment.run(setup)
        except NoTwin as error:
            answer = not_judged(str(error))
        except Exception as error:
            raise_interrupt(error)
            answer = not_judged(f"{type(error).__name__}: {first_line(error)}")
    seconds = time.monotonic() - begin
    return Outcome(experiment.kind, experiment.question, experiment.bound, answer, seconds)


def _on_device(batches: Sequence[Any], model: nn.Module) -> list[Any]:
    """Batches on the network's device."""
    first = next((p for p in unwrap(model).parameters()), None)
    device = torch.device("cpu") if first is None else first.device
    return [moved(batch, device) for batch in batches]
