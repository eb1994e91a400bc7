"""``FirstPass``: what a model is called with and what its loss is, seen in one training step."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from fmapboard.capture.module_calls import has_compiled_parts
from fmapboard.capture.side_pass import copied_values
from fmapboard.errors import ConfigurationError
from fmapboard.formats.training_facts import LossKind
from fmapboard.gradients.loss import Reading, read
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.layers import unwrap
from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.result import Rehearsal
from fmapboard.rehearsal.run import Copies, rehearsed
from fmapboard.rehearsal.task import Parts, Task, task_of

_PASS = "pass batch and loss to board.rehearse(), or to fmapboard.rehearse()"


class FirstPass:
    """Keeps copies of the arguments of one call of a model, and its output with its gradient.

    Args:
        model: any module. One hook is on it until it is called.

    Attributes:
        batch: what it was called with; None before.
        output: what it has returned, if that is one tensor.
        gradient: of the loss at that output; None before the backward pass.
        returns_loss: it has returned a loss.
        dtype: number format of autocast; None without.
        failure: an error of ours inside the training's passes, which does not leave them.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = unwrap(model)
        self.batch: Parts | None = None
        self.output: Tensor | None = None
        self.gradient: Tensor | None = None
        self.returns_loss = False
        self.dtype: torch.dtype | None = None
        self.failure: Exception | None = None
        self._device = "cpu"
        self._handles: list[RemovableHandle] = []
        is_wrapped = hasattr(model, "_orig_mod")
        self._is_compiled = is_wrapped or has_compiled_parts(self._model)
        if not self._is_compiled:  # which a hook would compile again
            handle = self._model.register_forward_hook(self._returned, with_kwargs=True)
            self._handles.append(handle)

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def _returned(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if self.batch is not None or not torch.is_grad_enabled():
            return
        try:
            self._keep(module, args, kwargs, output)
        except Exception as error:
            raise_interrupt(error)
            self.failure = error

    def _keep(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        own_args, own_kwargs = copied_values((args, kwargs))
        self.batch = Parts(own_args, own_kwargs, None)
        self._device = next((p.device.type for p in module.parameters()), "cpu")
        if torch.is_autocast_enabled(self._device):
            self.dtype = torch.get_autocast_dtype(self._device)
        found = [tensor for tensor in tensors(output) if tensor.requires_grad]
        self.returns_loss = any(tensor.dim() == 0 for tensor in found)
        if len(found) == 1 and found[0].dim() > 1 and not found[0].is_leaf:
            self.output = found[0].detach().clone()
            handle: Any = found[0].register_hook(self._reached)  # type: ignore[no-untyped-call]  # torch
            self._handles.append(handle)

    def _reached(self, gradient: Tensor) -> None:
        if self.gradient is not None:
            return
        try:
            self.gradient = gradient.detach().clone()
        except Exception as error:
            raise_interrupt(error)
            self.failure = error

    def rehearse(self, model: nn.Module, optimizer: Any, scaler: Any, seconds: float) -> Rehearsal:
        """Rehearse with the loss that was read from the gradient.

        Raises:
            ConfigurationError: something is missing; the message says what.
            Exception: the batch, the output or its gradient could not be copied.
        """
        if self.failure is not None:
            raise self.failure
        if optimizer is None:
            raise ConfigurationError("pass the optimizer: watch(..., optimizer=optimizer)")
        if self._is_compiled:
            raise ConfigurationError(f"the model is compiled; {_PASS}")
        if self.batch is None:
            raise ConfigurationError(f"no batch was seen: the model was not called; {_PASS}")
        task, batch = self._task(model)
        deadline = time.monotonic() + seconds
        made = Copies(model, optimizer, scaler)
        with torch.autocast(self._device, dtype=self.dtype, enabled=self.dtype is not None):
            return rehearsed(made, task, [batch], deadline)

    def _task(self, model: nn.Module) -> tuple[Task, Parts]:
        batch = self.batch
        assert batch is not None
        plain = task_of(model, None, lambda _: None)
        if self.returns_loss:
            return plain, batch
        if self.output is None or self.gradient is None:
            raise ConfigurationError(
                f"the loss is missing: no gradient has reached the one output of the model; {_PASS}"
            )
        classes_last = self.output.float().movedim(1, -1)
        rows = classes_last.reshape(-1, classes_last.shape[-1]).cpu()
        gradients = self.gradient.float().movedim(1, -1).reshape(rows.shape).cpu()
        reading = read(rows, gradients)
        loss = _loss_of(reading)
        if loss is None or reading.labels is None or len(reading.labels) != len(rows):
            raise ConfigurationError(
                f"the loss is missing: it could not be read from its gradient; {_PASS}"
            )
        labels = torch.as_tensor(reading.labels, device=self.output.device)
        shape = classes_last.shape[:-1]
        label = labels.reshape(shape)
        if reading.kind == "BCE with logits":
            hot = labels[:, None].float()
            if rows.shape[1] > 1:
                hot = functional.one_hot(labels, rows.shape[1]).float()
            label = hot.reshape(classes_last.shape).movedim(-1, 1)
        task = Task(plain.parameters, loss, takes_label=True)
        return task, batch._replace(label=label)


def _loss_of(reading: Reading) -> Any:
    """The function of output and label that was read; None if it is not known."""
    if reading.kind == "BCE with logits":
        return functional.binary_cross_entropy_with_logits
    if reading.kind in (LossKind.NLL_OF_LOGITS, LossKind.NLL_OF_PROBABILITIES):
        return functional.nll_loss
    if reading.kind.startswith("NLL"):
        return functional.nll_loss
    is_known = reading.kind.startswith("cross-entropy") or reading.kind == LossKind.SOFTMAX_TWICE
    return functional.cross_entropy if is_known else None
