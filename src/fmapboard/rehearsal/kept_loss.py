"""The loss of a batch that was kept in a training, from what was read of its gradient.

Proofs compute it again and again on copies of the network, and so do rehearsals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from fmapboard.errors import FmapboardError
from fmapboard.formats.training_facts import LossKind
from fmapboard.gradients.loss import LEAST_ROWS
from fmapboard.gradients.output_facts import OutputReader, ReadLoss
from fmapboard.gradients.outputs import PendingOutput, is_followed
from fmapboard.gradients.regression import SquaredError, squared_error
from fmapboard.gradients.rounding import in_float64
from fmapboard.model.tensors import named_tensors
from fmapboard.rehearsal.task import Parts, Task
from fmapboard.session.kept_batches import KeptBatch, Received

_LEAST = 1e-12
"""Smaller probabilities are taken for this one before their logarithm."""
Rows = npt.NDArray[np.bool_]
"""Which rows of an output are there."""
_BINARY = "BCE with logits"


class NotTried(FmapboardError):
    """Why no experiment is possible, in words."""


class NotSo(NotTried):
    """Why nothing has to be tried: the cause is not there."""


class Losses(NamedTuple):
    """What a forward pass of a copy comes to.

    Attributes:
        trained: what ``backward`` is called on.
        shown: the mean loss, whatever is trained: of the logits, without weights or factors.
    """

    trained: Tensor
    shown: Tensor


class RowLosses(NamedTuple):
    """Losses of rows: as the training had it, and of the probabilities that the rows stand for."""

    trained: Tensor
    shown: Tensor


@dataclass(frozen=True, slots=True)
class SquaredErrorOf:
    """The squared error of an output.

    Attributes:
        output: where it is.
        error: its targets and its factor.
    """

    output: PendingOutput
    error: SquaredError

    is_changed_by_cure = False
    is_of_logits = False

    def __call__(self, tensor: Tensor, *, is_cured: bool) -> Losses:
        """As for ``OutputLoss``."""
        targets = self._targets[: len(tensor)].to(tensor.device)
        shown = functional.mse_loss(tensor.float(), targets)
        return Losses(self.error.factor * shown, shown)

    @property
    def _targets(self) -> Tensor:
        return torch.as_tensor(self.error.targets, dtype=torch.float32)

    def with_label(self) -> Labelled:
        """As for ``OutputLoss``."""
        return Labelled(partial(_squared_error, self.error.factor), self._targets)


def _squared_error(factor: float, output: Tensor, target: Tensor) -> Tensor:
    return factor * functional.mse_loss(output, target)


class Labelled(NamedTuple):
    """A loss that is a function of an output and a label, and this label."""

    loss: Callable[[Tensor, Tensor], Tensor]
    label: Tensor


@dataclass(frozen=True, slots=True)
class OutputLoss:
    """The loss of one output.

    Attributes:
        output: where the output is, and which rows were read.
        read: the loss.
    """

    output: PendingOutput
    read: ReadLoss

    def __call__(self, tensor: Tensor, *, is_cured: bool) -> Losses:
        """The losses of an output of a copy.

        Args:
            tensor: the output, of the same samples or of the first ones.
            is_cured: train on the loss of the logits that the activation at the end received.
        """
        read = self.read
        window = tuple([slice(None, None, step) for step in self.output.steps])
        values = tensor[window].float()
        if values.dim() == 1:
            values = values[:, None]  # [n, 1]
        classes_last = values.movedim(read.axis, -1)  # [n, ..., C]
        rows = classes_last.reshape(-1, values.shape[read.axis])[:: read.step]  # [R, C]
        own = read.reading.rows < len(rows)
        places = torch.as_tensor(read.reading.rows[own], device=rows.device)
        losses = self._of_rows(rows[places], own)
        trained = losses.shown if is_cured else losses.trained
        factor = 1.0 if read.factor is None else read.factor
        if read.reading.is_climbed:
            factor = -factor
        return Losses(factor * trained, losses.shown)

    def _of_rows(self, rows: Tensor, own: Rows) -> RowLosses:
        """The losses of the rows [R, C] that were read; ``own`` are theirs among all of them."""
        reading = self.read.reading
        kind = reading.kind
        targets = reading.targets
        if targets is not None:
            expected = torch.as_tensor(targets[own], dtype=rows.dtype, device=rows.device)
            return self._of_targets(rows, expected)
        labels = torch.as_tensor(reading.labels[own], device=rows.device)  # type: ignore[index]  # of hard labels
        if kind in (LossKind.BEYOND_1, LossKind.BELOW_0):
            expected = labels[:, None].to(rows.dtype)
            loss = functional.binary_cross_entropy_with_logits(rows, expected)
            return RowLosses(loss, loss)
        are_probabilities = self.read.rows_are == "probabilities"
        if kind == LossKind.NLL_OF_PROBABILITIES or are_probabilities:
            logarithms = rows.clamp_min(_LEAST).log()
            shown = functional.nll_loss(logarithms, labels)
            if kind == LossKind.NLL_OF_PROBABILITIES:
                return RowLosses(functional.nll_loss(rows, labels), shown)
            return RowLosses(functional.cross_entropy(rows, labels), shown)
        shown = functional.cross_entropy(rows, labels)
        if kind == LossKind.NLL_OF_LOGITS:
            return RowLosses(functional.nll_loss(rows, labels), shown)
        if kind == LossKind.SOFTMAX_TWICE:
            return RowLosses(functional.cross_entropy(rows.softmax(1), labels), shown)
        return RowLosses(shown, shown)

    def _of_targets(self, rows: Tensor, targets: Tensor) -> RowLosses:
        if not self.read.reading.kind.startswith(_BINARY):
            loss = functional.cross_entropy(rows, targets)
            return RowLosses(loss, loss)
        loss = functional.binary_cross_entropy_with_logits(rows, targets)
        if self.are_shares:
            shares = rows.clamp(_LEAST, 1 - torch.finfo(rows.dtype).eps)
            return RowLosses(loss, functional.binary_cross_entropy(shares, targets))
        return RowLosses(loss, loss)

    def with_label(self) -> Labelled | None:
        """The loss as a function of output and label, and the label.

        None if not every row has a label, or not every label is known.
        """
        read = self.read
        reading = read.reading
        labels = reading.labels
        values = self.output.values
        shape = values.movedim(read.axis, -1).shape[:-1] if values.dim() > 1 else values.shape
        is_whole = all(step == 1 for step in (*self.output.steps, read.step)) and read.axis == 1
        if labels is None or not is_whole or len(labels) != shape.numel() or reading.is_climbed:
            return None
        label = torch.as_tensor(labels).reshape(shape)
        if reading.kind.startswith("NLL"):
            return Labelled(functional.nll_loss, label)
        if reading.kind == LossKind.SOFTMAX_TWICE:
            return Labelled(_softmax_twice, label)
        if reading.kind.startswith("cross-entropy"):
            return Labelled(functional.cross_entropy, label)
        if values.dim() > 1:
            classes = values.shape[1]
            label = functional.one_hot(label, classes) if classes > 1 else label[..., None]
            label = label.movedim(-1, 1)
        return Labelled(functional.binary_cross_entropy_with_logits, label.float())

    @property
    def is_changed_by_cure(self) -> bool:
        """True if the loss of the logits is another one than the loss that was trained."""
        kind = self.read.reading.kind
        if kind in (LossKind.SOFTMAX_TWICE, LossKind.NLL_OF_PROBABILITIES, LossKind.NLL_OF_LOGITS):
            return True
        is_softmax = self.read.rows_are == "probabilities" and kind.startswith("cross-entropy")
        return is_softmax or self.are_shares

    @property
    def is_of_logits(self) -> bool:
        """True if the loss expects logits, and gets values of both signs."""
        kind = self.read.reading.kind
        expects_logits = kind.startswith(("cross-entropy", _BINARY))
        return expects_logits and bool((self.output.values < 0).any())

    @property
    def are_shares(self) -> bool:
        """True for outputs of 0 to 1 in front of a binary loss of logits."""
        values = self.output.values
        is_binary = self.read.reading.kind.startswith(_BINARY)
        return is_binary and bool((values >= 0).all() and (values <= 1).all())


def _softmax_twice(output: Tensor, label: Tensor) -> Tensor:
    return functional.cross_entropy(output.softmax(1), label)


@dataclass(frozen=True, slots=True)
class KeptLoss:
    """A kept batch and its loss.

    Attributes:
        batch: the batch.
        outputs: the losses of the outputs, which are added; empty if the network returns the loss.
    """

    batch: KeptBatch
    outputs: tuple[OutputLoss | SquaredErrorOf, ...]

    def __call__(self, model: nn.Module, received: Received, *, is_cured: bool) -> Losses:
        """Run a copy of the network and return its losses.

        Args:
            model: the copy.
            received: its arguments, those of the batch or changed ones.
            is_cured: see `OutputLoss`.

        Raises:
            NotTried: an output is missing.
        """
        args, kwargs = received
        with self.batch.autocast.again():
            output = model(*args, **kwargs)
        return self._of_output(output, is_cured=is_cured)

    def _of_output(self, output: Any, *, is_cured: bool) -> Losses:
        """The losses of what a copy has returned."""
        followed = [pair for pair in named_tensors(output) if is_followed(pair[1])]
        if len(followed) == 1:
            followed = [("", followed[0][1])]
        by_name = {name.replace("/", "_"): tensor for name, tensor in followed}
        losses = []
        if not self.outputs:
            own = [tensor for _, tensor in followed if not tensor.dim()]
            if not own:
                raise NotTried("a copy of the network did not return its loss")
            losses.append(Losses(own[0], own[0].detach()))
        for loss in self.outputs:
            if loss.output.name not in by_name:
                raise NotTried("a copy of the network returned other outputs")
            losses.append(loss(by_name[loss.output.name], is_cured=is_cured))
        trained = torch.stack([loss.trained for loss in losses]).sum()
        shown = torch.stack([loss.shown for loss in losses]).sum()
        return Losses(trained, shown.detach())

    def as_task(self, plain: Task) -> tuple[Task, Parts]:
        """The task of a rehearsal, and its batch, with its labels if all are known.

        Args:
            plain: the task of the network, which returns its loss.
        """
        batch = Parts(*self.batch.received, None)
        if not self.outputs:
            return plain, batch
        if len(self.outputs) == 1:
            labelled = self.outputs[0].with_label()
            if labelled is not None:
                task = replace(plain, loss=labelled.loss, takes_label=True)
                return task, batch._replace(label=labelled.label)

        def loss(output: Any, _: Any) -> Tensor:
            return self._of_output(output, is_cured=False).trained

        return replace(plain, loss=loss), batch

    def evaluated(self, model: nn.Module, received: Received) -> float:
        """The mean loss of a copy without a graph."""
        with torch.enable_grad():  # only what has a gradient is taken for an output
            shown = self(model, received, is_cured=False).shown
        return float(shown)


def kept_losses(batches: Iterable[KeptBatch]) -> list[KeptLoss]:
    """The batches whose loss is known, oldest first.

    Raises:
        NotTried: there is none; the message says why.
    """
    reader = OutputReader()
    found = []
    why = "no batch of a logged step was kept"
    for batch in batches:
        if not batch.is_intact:
            why = "the memory of the batches was used again for other values"
            continue
        known = _loss_of(batch, reader)
        if isinstance(known, KeptLoss):
            found.append(known)
        else:
            why = known
    if not found:
        raise NotTried(why)
    return found


def _loss_of(batch: KeptBatch, reader: OutputReader) -> KeptLoss | str:
    """The loss of a batch, or why it is not known."""
    outputs = [_on_host(output) for output in batch.outputs if output.gradient is not None]
    if not outputs:
        return "no gradient has reached what the network returned"
    if any(not output.shape for output in outputs):  # the loss itself
        return KeptLoss(batch, ())
    losses = []
    for output in outputs:
        read = reader.loss_of(output)
        if read is None or not _is_known(read):
            found = _squared(batch, outputs)
            return found if isinstance(found, str) else KeptLoss(batch, (found,))
        if batch.loss_scale is not None and read.factor is not None:
            read = read._replace(factor=read.factor / float(batch.loss_scale))
        losses.append(OutputLoss(output, read))
    return KeptLoss(batch, tuple(losses))


def _squared(batch: KeptBatch, outputs: list[PendingOutput]) -> SquaredErrorOf | str:
    """The squared error of a batch, from the loss that the user gave; or why it is not known."""
    unknown = "the loss could not be read from the gradient of what the network returned"
    rows = len(outputs[0].values)
    if outputs[0].values.dim() == 2 and rows < LEAST_ROWS:
        unknown += f", as {LEAST_ROWS} rows are needed for that and it has {rows}"
    if batch.given is None:
        return f"{unknown}; board.loss(loss) in the step makes a squared error known"
    output = outputs[0]
    if len(outputs) > 1:
        return f"{unknown}, as it has {len(outputs)} outputs"
    if any(step > 1 for step in output.steps):
        size = math.prod(output.shape)
        return f"{unknown}, as only {output.values.numel()} of its {size} values are copied"
    gradient = output.gradient
    assert gradient is not None  # as of all that are read
    scale = 1.0 if batch.loss_scale is None else float(batch.loss_scale)
    loss = float(batch.given.double().mean())
    rounding = torch.finfo(gradient.dtype).eps
    error = squared_error(in_float64(output.values), in_float64(gradient) / scale, loss, rounding)
    if error is None:
        return f"{unknown}; nor is {loss:.3g}, given to board.loss, a squared error that has it"
    return SquaredErrorOf(output, error)


def _is_known(read: ReadLoss) -> bool:
    """True if the loss of other outputs can be computed."""
    reading = read.reading
    if reading.kind == "weighted per sample":
        return False
    return reading.labels is not None or reading.targets is not None


def _on_host(output: PendingOutput) -> PendingOutput:
    """The output and its gradient on the CPU."""
    gradient = None if output.gradient is None else output.gradient.cpu()
    return replace(output, values=output.values.cpu(), gradient=gradient, images=None)
