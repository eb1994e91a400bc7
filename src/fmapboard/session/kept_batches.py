"""``KeptBatches``: keeps batches of logged steps, and how the training began.

Copies of the network are trained on them to see what takes a cause away (``rehearsal.prove``).
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.guard import Guard
from fmapboard.capture.isolation import aside
from fmapboard.capture.side_pass import detached_copy
from fmapboard.gradients.outputs import PendingOutput
from fmapboard.measure.norms import Factor, PendingNorms
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.session.facts import PendingFacts
from fmapboard.session.selection import Candidate

MAX_BYTES = 64 * 2**20
"""Of all batches that are kept."""
MAX_BYTES_PER_BATCH = 16 * 2**20
"""Of a larger batch the first samples are copied."""
MAX_BATCHES = 8
_ABOUT = "batches for experiments"
_FIRST = 4
"""Of these, the first ones: the loss can be read of them even if values are lost later on."""
_SAMPLE = 64
"""Values of a tensor on the CPU by which it is seen that its memory is used again."""
_MAX_RATES = 1000
"""Logged steps of which learning rates are kept."""

Received = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of the model."""
Rates = tuple[float | Tensor, ...]


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """A tensor that is kept by reference, and how it was.

    Attributes:
        tensor: detached from its graph.
        version: its version counter.
        sample: some of its values; empty on an accelerator.
    """

    tensor: Tensor
    version: int
    sample: Tensor

    @classmethod
    def of(cls, tensor: Tensor) -> HeldTensor:
        """The tensor as it is now."""
        tensor = tensor.detach()
        return cls(tensor, tensor._version, _sample(tensor))

    @property
    def is_intact(self) -> bool:
        """False if other values were written into its memory."""
        if self.tensor._version != self.version:
            return False
        sample = _sample(self.tensor)
        return torch.equal(torch.nan_to_num(sample), torch.nan_to_num(self.sample))


def _sample(tensor: Tensor) -> Tensor:
    """Evenly spaced values of a dense tensor on the CPU; no values of any other tensor."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or not tensor.numel():
        return torch.empty(0)
    with aside("cpu"):
        flat = tensor.reshape(-1) if tensor.is_contiguous() else tensor.flatten(1)[:, 0]
        stride = max(1, len(flat) // _SAMPLE)
        return flat[::stride].clone()


@dataclass(frozen=True, slots=True)
class Autocast:
    """How a forward pass was autocast.

    Attributes:
        device: type of the device.
        dtype: number format; None if it was not.
    """

    device: str
    dtype: torch.dtype | None = None

    @classmethod
    def of(cls, model: nn.Module) -> Autocast:
        """That of this moment, on the device of the model."""
        first = next(iter(model.parameters()), None)
        device = "cpu" if first is None else first.device.type
        if not torch.is_autocast_enabled(device):
            return cls(device)
        return cls(device, torch.get_autocast_dtype(device))

    def again(self) -> torch.autocast:
        """A block in which passes are autocast in the same way."""
        return torch.autocast(self.device, dtype=self.dtype, enabled=self.dtype is not None)


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """What the model received in a logged step, and what is known of its outputs.

    Attributes:
        step: the logged step.
        received: the arguments; tensors are without graph.
        held: those tensors that are kept by reference.
        size: number of samples, if only the first ones are kept; None for all.
        in_eval_mode: names of the modules that were in eval mode.
        autocast: how the forward pass was autocast.
        outputs: with their gradients, as they are read for the loss.
        loss_scale: factor of the GradScaler; None for 1.
        uncleared: norms of the gradients that may not have been cleared, before each backward pass.
        given: the loss that the user gave; None for none.
    """

    step: int
    received: Received
    held: tuple[HeldTensor, ...]
    size: int | None
    in_eval_mode: frozenset[str]
    autocast: Autocast
    outputs: tuple[PendingOutput, ...] = ()
    loss_scale: Factor | None = None
    uncleared: tuple[PendingNorms, ...] = ()
    given: Tensor | None = None

    @property
    def is_intact(self) -> bool:
        """False if other values were written into the memory of the batch."""
        return all(held.is_intact for held in self.held)

    @property
    def nbytes(self) -> int:
        """Size in bytes of its tensors."""
        return _nbytes(self.received)

    @property
    def clears_gradients(self) -> bool:
        """False if a gradient was not 0 before each of the backward passes that added to it."""
        norms = [pending.to_host() for pending in self.uncleared]
        if not norms:
            return True
        return not any(all(of_pass.get(name) for of_pass in norms) for name in norms[0])


@dataclass(frozen=True, slots=True)
class Start:
    """How the training was before the optimizer's step of the first logged step, in host memory.

    Attributes:
        values: parameter or buffer -> its values.
        optimizer_state: of each of the optimizer's parameters, in their order.
    """

    values: Mapping[str, Tensor]
    optimizer_state: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, model: nn.Module, optimizer: Optimizer) -> Start:
        """Copy the state of this moment."""
        values = {}
        for name, tensor in named_state(model).items():
            values[name] = _host_copy(tensor)
        states = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state.get(parameter, {})
                states.append(map_tensors(dict(state), _host_copy))
        return cls(values, states)


def named_state(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers of a model, by name."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


@dataclass(slots=True)
class KeptBatches:
    """What experiments on copies of the network need; used on the training thread.

    A batch is kept by reference. If its memory turns out to be used again, as some loaders do, it
    is dropped, and later ones are copied when the model receives them.

    Attributes:
        model: the watched model.
        guard: keeps errors out of the training.
        batches: those of the first and of the last logged steps, newest last.
        start: how the training began; None before its first step.
        rates: logged step -> learning rate of each parameter group.
        optimizers: those that have updated parameters of the model, without keeping them.
        copies: batches are copied.
    """

    model: nn.Module
    guard: Guard
    batches: list[KeptBatch] = field(default_factory=list)
    start: Start | None = None
    rates: dict[int, Rates] = field(default_factory=dict)
    optimizers: list[weakref.ref[Optimizer]] = field(default_factory=list)
    copies: bool = False
    _passes: dict[Candidate, KeptBatch] = field(default_factory=dict)
    _rates: Rates = ()

    def pass_begins(self, candidate: Candidate, received: Received) -> None:
        """Called when a pass that is recorded begins, with what the model is called with."""
        with self.guard(_ABOUT):
            self._passes[candidate] = self._received(received)

    def _received(self, received: Received) -> KeptBatch:
        size = _kept_size(received)
        held: tuple[HeldTensor, ...] = ()
        if size is not None:
            received = map_tensors(received, lambda tensor: _first_samples(tensor, size))
        elif self.copies:
            received = map_tensors(received, detached_copy)
        else:
            received = map_tensors(received, Tensor.detach)
            held = tuple(HeldTensor.of(tensor) for tensor in tensors(received))
        modes = [name for name, module in self.model.named_modules() if not module.training]
        autocast = Autocast.of(self.model)
        return KeptBatch(0, received, held, size, frozenset(modes), autocast)

    def stepping(self, optimizer: Optimizer) -> None:
        """Called before an optimizer updates parameters of the model."""
        with self.guard(_ABOUT):
            if self.start is None:
                self.start = Start.of(self.model, optimizer)
            if not any(known() is optimizer for known in self.optimizers):
                self.optimizers.append(weakref.ref(optimizer))
            self._rates = _rates_of(optimizer)

    def closes(self, step: int, candidate: Candidate | None, facts: PendingFacts) -> None:
        """Called when a logged step closes in which an optimizer has stepped.

        Args:
            step: its number.
            candidate: the pass whose gradients were used; None if the model was not called.
            facts: what was recorded of the step.
        """
        with self.guard(_ABOUT):
            self.rates[step] = self._rates
            if len(self.rates) > _MAX_RATES:
                del self.rates[next(iter(self.rates))]
            batch = None if candidate is None else self._passes.get(candidate)
            if batch is not None:
                completed = replace(
                    batch,
                    step=step,
                    outputs=facts.outputs,
                    loss_scale=facts.loss_scale,
                    uncleared=facts.uncleared,
                    given=None if facts.given is None else facts.given.loss,
                )
                self.batches.append(completed)
            self._thin()

    def of_step(self, step: int) -> KeptBatch | None:
        """The batch of a logged step; None if none was kept."""
        return next((batch for batch in self.batches if batch.step == step), None)

    def _thin(self) -> None:
        """Leave out what was overwritten, and what is too much."""
        intact = [batch for batch in self.batches if batch.is_intact]
        if len(intact) < len(self.batches):
            self.copies = True
        while len(intact) > MAX_BATCHES or sum(batch.nbytes for batch in intact) > MAX_BYTES:
            oldest_of_last = min(_FIRST, len(intact) // 2)
            del intact[oldest_of_last]
        self.batches = intact

    def forget(self) -> None:
        """Called when the logged step has ended: keep nothing of passes that were not used."""
        self._passes = {}


def _rates_of(optimizer: Optimizer) -> Rates:
    """The learning rate of each parameter group; tensors of the device are copied."""
    rates = []
    for group in optimizer.param_groups:
        rate = group.get("lr", 0.0)
        rates.append(rate.detach().clone() if isinstance(rate, Tensor) else rate)
    return tuple(rates)


def _nbytes(received: Received) -> int:
    return sum(tensor.nbytes for tensor in tensors(received))


def _kept_size(received: Received) -> int | None:
    """How many samples of a batch are kept; None for all of them."""
    nbytes = _nbytes(received)
    sizes = {len(tensor) for tensor in tensors(received) if tensor.dim()}
    if nbytes <= MAX_BYTES_PER_BATCH or len(sizes) != 1:
        return None
    return max(1, min(sizes) * MAX_BYTES_PER_BATCH // nbytes)


def _first_samples(tensor: Tensor, size: int) -> Tensor:
    kept = tensor.detach()[:size] if tensor.dim() else tensor.detach()
    with aside(kept.device.type):
        return kept.clone()


def _host_copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True)
